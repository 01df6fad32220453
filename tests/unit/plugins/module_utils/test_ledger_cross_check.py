# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ledger against the words of an endpoint: of the same boot, of another one, and of none."""

from __future__ import annotations

import copy
import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.cross_check import (
    check_endpoint,
    hold_to_endpoint,
)
from hypothesis import given
from hypothesis import strategies as st

LOGS = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "logs"
TEXT = (LOGS / "healthy-1.0.13.log").read_text()
NOON = 1_793_620_800.0  # 2026-11-02T12:00:00Z
MIB = 1024 * 1024
FLAGS = {"model": "/srv/models/flashnext.rad", "vram-weights-mib": "24000", "vram-kv-mib": "5120"}
# What 1.0.13 tells of the boot in healthy-1.0.13.log, up for 600 seconds.
INFO: dict[str, t.Any] = {
    "server": {
        "model": "flashnext",
        "version": "1.0.13",
        "max_model_len": 200000,
        "max_num_seqs": 3,
        "uptime_s": 600.0,
    },
    "engine": {
        "arch": "qwen4exp",
        "n_layers": 48,
        "tensor_parallel": 2,
        "tp_wire": "wht6",
        "checkpoint_slots": 8,
        "devices": [
            {"rank": 0, "device": 0, "vram_bytes": 32624 * MIB, "vram_free": 2 * MIB},
            {"rank": 1, "device": 1, "vram_bytes": 32624 * MIB, "vram_free": 2 * MIB},
        ],
        "kv_groups": [
            {"name": "kv_attn", "bytes": 150031 * 26624, "blocks": 150031, "tokens": 600124},
            {"name": "kv_qsa_bkey", "bytes": int(476.18 * MIB), "blocks": 150031, "tokens": 600124},
            {"name": "kv_gdn_state", "bytes": 324 * MIB, "states": 6},
            {"name": "kv_gdn_conv", "bytes": 5_526_000, "states": 3},
            {"name": "kv_qsa_tail", "bytes": 108 * 1024, "states": 3},
        ],
    },
}


def ledger(started_at: str | None = "2026-11-02T11:49:00.25Z", flags: dict[str, str] | None = None) -> dict[str, t.Any]:
    found = read_ledger(TEXT, source={"kind": "file", "started_at": started_at}, flags=flags)
    found["engine"] = {"version": "1.0.13", "version_from": "endpoint"}
    assert found["status"] == "complete"
    return found


def changed(*path: str | int, to: t.Any) -> dict[str, t.Any]:
    info = copy.deepcopy(INFO)
    at: t.Any = info
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = to
    return info


def failed(checks: t.Iterable[t.Any]) -> list[str]:
    return [check["name"] for check in checks if not check["holds"]]


def test_the_endpoint_of_the_same_boot() -> None:
    found = hold_to_endpoint(ledger(flags=FLAGS), INFO, NOON)
    assert (found["status"], found["reason"]) == ("complete", None)
    asked = [check["name"] for check in found["checks"] if check["name"].startswith("endpoint_")]
    assert asked == [
        "endpoint_start",
        "endpoint_version",
        "endpoint_model",
        "endpoint_arch",
        "endpoint_layers",
        "endpoint_tp",
        "endpoint_wire",
        "endpoint_sequences",
        "endpoint_tokens",
        "endpoint_cards",
        "endpoint_card_total",
        "endpoint_kv_groups",
        "endpoint_kv.kv_attn",
        "endpoint_kv.kv_attn.blocks",
        "endpoint_kv.kv_attn.tokens",
        "endpoint_kv.kv_qsa_bkey",
        "endpoint_kv.kv_qsa_bkey.blocks",
        "endpoint_kv.kv_qsa_bkey.tokens",
        "endpoint_kv.kv_gdn_state",
        "endpoint_kv.kv_gdn_state.slots",
        "endpoint_kv.kv_gdn_conv",
        "endpoint_kv.kv_gdn_conv.slots",
        "endpoint_kv.kv_qsa_tail",
        "endpoint_kv.kv_qsa_tail.slots",
        "endpoint_checkpoint_slots",
    ]


@pytest.mark.parametrize(
    ("info", "untold"),
    [
        (changed("server", "max_num_seqs", to=10**400), 1),
        (changed("engine", "devices", 0, "vram_bytes", to=1e308), 1),
        (changed("engine", "kv_groups", 0, "name", to=["x"] * 1000), 4),
        (changed("engine", "kv_groups", 0, "name", to="kv_attn\x1b[2J"), 4),
    ],
)
def test_what_is_no_figure_and_no_name_is_not_told(info: dict[str, t.Any], untold: int) -> None:
    checks = check_endpoint(ledger(flags=FLAGS), info, NOON)
    assert len(checks) == 25 - untold + (untold == 4)  # the list of groups still is, and is another one
    assert all(len(check["says"]) < 200 and check["says"].isprintable() for check in checks)


@pytest.mark.parametrize(
    ("info", "name", "says"),
    [
        (changed("server", "version", to="1.0.5"), "version", "1.0.13 as the endpoint tells it and 1.0.5 in"),
        (changed("server", "model", to="other"), "model", "flashnext.rad in the log's command line and other at"),
        (changed("server", "max_num_seqs", to=4), "sequences", "max_num_seqs is 3 in the log and 4 at the endpoint"),
        (changed("server", "max_model_len", to=262144), "tokens", "200,000 in the log and 262,144 at the endpoint"),
        (changed("engine", "arch", to="llama"), "arch", "qwen4exp in the log and llama"),
        (changed("engine", "n_layers", to=64), "layers", "48 in the log and 64"),
        (changed("engine", "tensor_parallel", to=1), "tp", "the number of ranks is 2 in the log and 1"),
        (changed("engine", "tp_wire", to="exact"), "wire", "wht6 in the log and exact"),
        (changed("engine", "devices", 1, "device", to=3), "cards", "0, 1 in the log and 0, 3 at"),
        (
            changed("engine", "devices", 0, "vram_bytes", to=16000 * MIB),
            "card_total",
            "31.86 GiB in the log and 16,000",
        ),
        (changed("engine", "kv_groups", 0, "bytes", to=3000 * MIB), "kv.kv_attn", "3.72 GiB in the log and 3,000.00"),
        (
            changed("engine", "kv_groups", 1, "tokens", to=600120),
            "kv.kv_qsa_bkey.tokens",
            "600,124 in the log and 600,120",
        ),
        (changed("engine", "kv_groups", 2, "states", to=8), "kv.kv_gdn_state.slots", "6 in the log and 8"),
        (changed("engine", "kv_groups", 4, "name", to="kv_new"), "kv_groups", "kv_new, kv_qsa_bkey at"),
        (changed("engine", "checkpoint_slots", to=4), "checkpoint_slots", "8 in the log and 4"),
    ],
)
def test_a_difference_is_named_with_both_figures(info: dict[str, t.Any], name: str, says: str) -> None:
    found = hold_to_endpoint(ledger(flags=FLAGS), info, NOON)
    assert failed(found["checks"]) == [f"endpoint_{name}"]
    assert (found["status"], found["reason"]["code"]) == ("incomplete", "endpoint_differs")
    assert says in found["reason"]["text"]
    (check,) = [one for one in found["checks"] if not one["holds"]]
    sized = name in ("card_total", "kv.kv_attn")
    assert (check["difference_mib"] is not None, check["tolerance_mib"] is not None) == (sized, sized)


def test_a_size_has_its_difference_and_its_rounding() -> None:
    info = changed("engine", "devices", 0, "vram_bytes", to=16000 * MIB)
    (check,) = [one for one in check_endpoint(ledger(), info, NOON) if not one["holds"]]
    assert check["difference_mib"] == pytest.approx(16000 - 32624.64)
    assert check["tolerance_mib"] == pytest.approx(5.12)


@pytest.mark.parametrize(
    ("started_at", "uptime", "broken", "says"),
    [
        # An hour older than the process whose log this is.
        (
            "2026-11-02T11:00:00.00Z",
            7200.0,
            ["endpoint_start", "endpoint_tokens"],
            "The endpoint is stale: it has served",
        ),
        # Loading took ten minutes, or it is another service.
        (
            "2026-11-02T11:49:00.25Z",
            60.0,
            ["endpoint_tokens"],
            "The log is stale: the process that should have printed",
        ),
        (
            None,
            60.0,
            ["endpoint_tokens"],
            "so the log is stale, and the endpoint, which has served since 2026-11-02T11:59",
        ),
        ("2026-11-02T11:49:00.25Z", None, ["endpoint_tokens"], "the endpoint does not tell since when it serves"),
    ],
)
def test_the_reason_says_which_is_stale(
    started_at: str | None, uptime: float | None, broken: list[str], says: str
) -> None:
    info = changed("server", "max_model_len", to=100000)
    info["server"]["uptime_s"] = uptime
    found = hold_to_endpoint(ledger(started_at), info, NOON)
    assert failed(found["checks"]) == broken
    assert says in found["reason"]["text"]


def test_an_older_process_with_the_same_figures_is_another_boot() -> None:
    info = changed("server", "uptime_s", to=7200.0)
    found = hold_to_endpoint(ledger(), info, NOON)
    assert failed(found["checks"]) == ["endpoint_start"]
    assert "runs since 2026-11-02T11:49:00Z, the endpoint serves since 2026-11-02T10:00:00Z" in found["reason"]["text"]


def test_a_process_and_its_endpoint_may_tell_the_same_start_a_second_apart() -> None:
    info = changed("server", "uptime_s", to=661.0)
    assert failed(check_endpoint(ledger(), info, NOON)) == []


def test_withdrawn_checkpoints_are_counted_in_either_way() -> None:
    one = ledger()
    one["kv"]["checkpoints"]["backed"] = 5
    for told, holds in ((8, True), (5, True), (6, False)):
        checks = check_endpoint(one, changed("engine", "checkpoint_slots", to=told), NOON)
        assert (failed(checks) == []) is holds


def test_another_reason_stays_the_first() -> None:
    one = read_ledger(TEXT.replace("backs 3 sequences", "holds 3 sequences"), source={})
    assert one["reason"]["code"] == "rows_missing"
    found = hold_to_endpoint(one, changed("engine", "tensor_parallel", to=1), NOON)
    assert found["reason"] == one["reason"]
    assert failed(found["checks"]) == ["endpoint_tp"]


def test_one_rank_has_no_wire() -> None:
    text = (LOGS / "mixed-1.0.5.log").read_text()
    checks = check_endpoint(read_ledger(text, source={}), {"engine": {"tp_wire": "n/a", "tensor_parallel": 1}}, NOON)
    assert {check["name"]: check["holds"] for check in checks} == {"endpoint_tp": True, "endpoint_wire": True}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def places(value: t.Any, path: tuple[t.Any, ...] = ()) -> list[tuple[t.Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in items for place in places(inner, (*path, key)))]


@given(st.sampled_from(places(INFO)), JSON)
def test_whatever_is_told_gives_checks_and_no_exception(path: tuple[t.Any, ...], value: t.Any) -> None:
    info = changed(*path, to=value) if path else value
    one = ledger()
    found = hold_to_endpoint(one, info, NOON)
    assert found["checks"][: len(one["checks"])] == one["checks"]
    broken = failed(found["checks"])
    assert (found["status"] == "complete") is (broken == [])
    # A value that differs is found at its own place, and what tells nothing contradicts nothing.
    group = path[:3] if path[1:2] == ("kv_groups",) else None
    assert len(broken) <= (2 if group else 1) or path == ("engine", "kv_groups")
    assert value is not None or broken == [] or group
