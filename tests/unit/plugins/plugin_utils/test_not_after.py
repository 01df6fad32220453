# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing is begun that may not end in time."""

from __future__ import annotations

import datetime
import time
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _not_after, _plan_report
from hypothesis import given
from hypothesis import strategies as st

TIMEOUTS = {"ready": 1800, "probe": 600}


@pytest.fixture(params=["Europe/Berlin"], autouse=True)
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[str]:
    """The zone of the controller."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def epoch(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("now", "asked", "at"),
    [
        ("2026-11-30T02:30:00+01:00", "06:00", "2026-11-30 06:00:00 +0100"),
        ("2026-11-30T06:00:00+01:00", "06:00", "2026-12-01 06:00:00 +0100"),
        ("2026-11-30T23:59:59+01:00", "00:00", "2026-12-01 00:00:00 +0100"),
        ("2026-11-30T02:30:00+01:00", "2026-11-30T02:00:00Z", "2026-11-30 03:00:00 +0100"),
        ("2026-11-30T02:30:00+01:00", "2026-11-30T06:00+05:30", None),
        ("2026-03-28T23:00:00+01:00", "06:00", "2026-03-29 06:00:00 +0200"),
        # The clocks go back from 03:00 to 02:00, so they show 02:30 twice.
        ("2026-10-25T02:29:00+02:00", "02:30", "2026-10-25 02:30:00 +0200"),
        ("2026-10-25T02:31:00+02:00", "02:30", "2026-10-25 02:30:00 +0100"),
        # They go forward from 02:00 to 03:00, so 02:30 is over in that very second.
        ("2026-03-29T01:00:00+01:00", "02:30", "2026-03-29 03:00:00 +0200"),
        ("2026-03-29T01:45:00+01:00", "02:30", "2026-03-29 03:00:00 +0200"),
        ("2026-03-29T03:10:00+02:00", "02:30", "2026-03-30 02:30:00 +0200"),
    ],
)
def test_a_time_is_the_next_one_of_this_zone(now: str, asked: str, at: str | None) -> None:
    if at is None:
        with pytest.raises(RadianceError, match="3,600 s ago"):
            _not_after.deadline(asked, epoch(now))
        return
    found = _not_after.deadline(asked, epoch(now))
    assert found is not None
    assert found["at"] == at
    assert found["epoch"] == datetime.datetime.strptime(at, "%Y-%m-%d %H:%M:%S %z").timestamp()


@given(st.integers(0, 2**31), st.integers(0, 23), st.integers(0, 59))
def test_the_next_time_is_to_come_and_within_a_day_and_an_hour(now: int, hour: int, minute: int) -> None:
    found = _not_after.deadline(f"{hour:02d}:{minute:02d}", now)
    assert found is not None
    assert 0 < found["epoch"] - now <= 25 * 3600


@pytest.mark.parametrize(
    "asked",
    # YAML makes 1,320 of a bare 22:00.
    [
        "6:00",
        "24:00",
        "06:60",
        "0600",
        "6",
        1320,
        True,
        "06:00:00",
        "2026-11-30",
        "2026-11-30T06:00:00",
        "2026-13-01T06:00Z",
        # Of a year that this zone does not have.
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_what_is_no_time_is_refused_with_what_is_one(asked: t.Any) -> None:
    with pytest.raises(RadianceError) as refused:
        _not_after.deadline(asked, 0)
    assert refused.value.code == "not_after_unreadable"
    assert repr(str(asked)) in refused.value.text and "06:00" in refused.value.text


def test_nothing_asked_is_no_bound() -> None:
    assert _not_after.deadline(None) is None
    assert _not_after.too_late({"seconds": 9e9, "says": ""}, None) == ""
    assert _not_after.fits_words({"seconds": 9e9, "says": ""}, None) == []


def test_a_switch_and_its_way_back_and_the_probes_count(example: t.Any) -> None:
    about = {"outage_seconds": 41.2, "outage_at": "2026-10-13T09:30:00Z", "probes": "quick", "timeouts": TIMEOUTS}
    # 728,700 prompt tokens at 3,996 t/s, and 2,264 tokens at 100 t/s that are decoded alone.
    needed = _not_after.time_needed(example.plan, about)
    assert needed == {
        "seconds": pytest.approx(2 * 41.2 + 205.0),
        "says": "287 s = 2 x 41 s, switch and way back (the outage on 2026-10-13T09:30:00Z) + 205 s of probes",
    }
    assert _not_after.time_needed({**example.plan, "restart": False}, about) is None


def test_what_was_never_measured_counts_as_long_as_it_may_take(example: t.Any) -> None:
    about: dict[str, t.Any] = {"outage_seconds": None, "probes": "none", "timeouts": TIMEOUTS}
    assert _not_after.time_needed(example.plan, about) == {
        "seconds": 3600.0,
        "says": "3,600 s = 2 x 1,800 s, switch and way back (its ready timeout: no outage is on record) + 0 s of "
        "probes",
    }
    unknown = {**example.plan, "predictions": []}
    needed = _not_after.time_needed(unknown, {**about, "probes": "quick"})
    assert needed is not None
    assert needed["seconds"] == 4200
    assert needed["says"].endswith("600 s of probes, their timeout: no prefill rate is known")


def test_the_bound_holds_to_the_second() -> None:
    until = {"at": "2026-11-30 06:00:00 +0100", "epoch": epoch("2026-11-30T06:00:00+01:00")}
    needed = {"seconds": 300.0, "says": "300 s = …"}
    just = epoch("2026-11-30T05:55:00+01:00")
    assert _not_after.too_late(needed, until, just) == ""
    assert _not_after.fits_words(needed, until, just) == [
        "fits at 05:55:00: 300 s are left until 2026-11-30 06:00:00 +0100, and it may take 300 s = …"
    ]
    assert _not_after.too_late(needed, until, just + 1) == (
        "not begun at 05:55:01: 299 s are left until 2026-11-30 06:00:00 +0100, and it may take 300 s = …"
    )
    assert _not_after.fits_words(needed, until, just + 1)[0].startswith("would NOT be begun at 05:55:01: 299 s")
    assert "at 06:00:04: 4 s have passed since 2026-11-30 06:00:00 +0100," in _not_after.too_late(
        needed, until, just + 304
    )
    assert _not_after.too_late(None, until, just + 1) == ""


def test_a_plan_tells_whether_it_fits(example: t.Any) -> None:
    about = {"host": "a", "service": "flashnext", "undo": "U", "outage_seconds": 41.2, "probes": "none"}
    lines = _plan_report.plan_report(example.plan, {**about, "fits": ["fits at 05:55:00"]})
    assert "  not after fits at 05:55:00" in lines
    assert not any("not after" in line for line in _plan_report.plan_report(example.plan, about))
