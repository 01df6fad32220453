# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for any text: no exception, no invented figure, and nothing after listening counts."""

from __future__ import annotations

import json
import pathlib
import time
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LOGS = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "logs"
HEALTHY = (LOGS / "healthy-1.0.13.log").read_text(encoding="utf-8")
DERIVED = (LOGS / "derived-1.0.4.log").read_text(encoding="utf-8")
MIXED = (LOGS / "mixed-1.0.5.log").read_text(encoding="utf-8")
BOOTS = (HEALTHY, DERIVED, MIXED)
LINES = sorted({line for boot in BOOTS for line in boot.split("\n")})
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

any_text = st.text(max_size=200)
forged = st.lists(
    st.one_of(any_text, st.sampled_from(LINES), st.sampled_from(LINES).map(lambda line: line.replace("3", "9"))),
    max_size=12,
).map("\n".join)


def ledger(text: str, **options: t.Any) -> dict[str, t.Any]:
    found = read_ledger(text, source={"kind": "text"}, **options)
    json.dumps(found, allow_nan=False)
    return found


@SETTINGS
@given(st.lists(st.one_of(st.sampled_from(LINES), any_text), max_size=40), st.booleans())
def test_any_text_has_a_ledger(lines: list[str], bounded: bool) -> None:
    found = ledger("\n".join(lines), bounded=bounded)
    assert found["status"] in ("complete", "incomplete", "refused", "absent")
    assert (found["reason"] is None) == (found["status"] == "complete")


@SETTINGS
@given(st.text(alphabet="VRAM budget,per cd:\n\r\x1b[0m E[]I-.0123456789GiBM()", max_size=2000))
def test_near_misses_have_a_ledger(text: str) -> None:
    ledger(text)


@SETTINGS
@given(st.sampled_from(BOOTS), st.data())
def test_a_boot_with_edits_is_never_complete_with_a_sum_that_is_off(boot: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(boot) - 1))
    drop = data.draw(st.integers(0, 60))
    insert = data.draw(st.one_of(st.just(""), any_text, st.sampled_from(["9", ".", " ", "\n", "\r", "\x1b[0m"])))
    found = ledger(boot[:at] + insert + boot[at + drop :])
    if found["status"] == "complete":
        assert all(check["holds"] for check in found["checks"])
        assert found["missing"] == []
        assert {row["card"] for row in found["settled"]} >= set(found["devices"]["used"])
        rows = found["budget"]["rows"]
        assert all(rows[name] is not None for name in rows if name not in ("unusable", "prefill_staging"))


@SETTINGS
@given(st.sampled_from(BOOTS), forged)
def test_nothing_after_listening_changes_a_bounded_ledger(boot: str, after: str) -> None:
    assert ledger(boot + after, bounded=True) == ledger(boot, bounded=True)


@SETTINGS
@given(st.sampled_from(BOOTS), forged)
def test_in_a_bare_file_nothing_after_listening_changes_the_boot_that_it_follows(boot: str, after: str) -> None:
    followed = ledger(boot + after, boot=0)
    alone = ledger(boot, boot=0)
    followed["source"]["boots_seen"] = 1
    assert followed == alone


@SETTINGS
@given(st.sampled_from(BOOTS), st.integers(0, 10_000))
def test_a_boot_cut_anywhere_before_listening_is_not_complete(boot: str, at: int) -> None:
    head = boot[: min(at, boot.index("I server: listening"))]
    assert ledger(head)["status"] in ("incomplete", "absent")


@pytest.mark.parametrize("boot", BOOTS)
def test_a_tail_of_a_boot_is_not_complete(boot: str) -> None:
    lines = boot.splitlines(keepends=True)
    for first in range(1, len(lines)):
        assert ledger("".join(lines[first:]))["status"] in ("incomplete", "absent")


@SETTINGS
@given(
    st.sampled_from(BOOTS), st.sampled_from(["2026-10-13T03:04:05.123456789+02:00 ", "radiance-1  | ", "crlf", "bars"])
)
def test_what_runtimes_and_terminals_add_makes_no_difference(boot: str, added: str) -> None:
    if added == "crlf":
        text = boot.replace("\n", "\r\n")
    elif added == "bars":
        text = "".join(f"read 10% |#  |\rread 90% |## |\r{line}" for line in boot.splitlines(keepends=True))
    else:
        text = "".join(added + line for line in boot.splitlines(keepends=True))
    found, plain = ledger(text), ledger(boot)
    assert {**found, "fingerprint": ""} == {**plain, "fingerprint": ""}


@pytest.mark.parametrize(
    "text",
    [
        "I card 0 settled at " + "9" * 100_000 + ".00 GiB free against 1.00 MiB\n",
        "I model: " + "  arch=" * 50_000 + "\n",
        "  card total " * 50_000 + "\n",
        "\x1b[" * 200_000,
        "\x1b]" * 200_000,
        "E KV group '" + "': a 1.00 MiB KV pool leaves" * 20_000 + "\n",
        "I VRAM budget, per card:\n" + "    kv cache   5.00 GiB   x\n" + " " * 20 + "backs 9 sequences all at " * 9_000,
        "E unknown option '" + "'" * 100_000,
        "E pool allocation refused:\n" + "   REFUSED   1.00 MiB" * 10_000 + "\n",
        "I kv: KV layer bundles 1\n" + "  a full " + "1 layers block " * 20_000 + "\n",
        "I[99999999999999999999] pools:\nI[999] pools:\n  host_pool 1.00 GiB budget, 1.00 GiB used, 1.00 GiB free\n",
        "I device: AQL backend, 9 device(s) [" + "0:x " * 50_000 + "]\n",
        "\ud800 \x00 \x85 \u2028I device: AQL backend, 1 device(s) [0:a]\n",
        ("I device: AQL backend, 1 device(s) [0:a]\n" + "W x\n") * 20_000,
    ],
)
def test_hostile_text_is_read_in_bounded_time(text: str) -> None:
    began = time.monotonic()
    ledger(text)
    assert time.monotonic() - began < 5
