# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole boots in every format that is supported, against literal ledgers. The logs are synthesised."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger

LOGS = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "logs"
FLAGS = {"tp": "2", "vram-weights-mib": "24000", "vram-kv-mib": "5120", "max-num-seqs": "3"}


def ledger(name: str, flags: dict[str, str] | None = None, **options: t.Any) -> dict[str, t.Any]:
    text = (LOGS / name).read_text(encoding="utf-8")
    return read_ledger(text, source={"kind": "text"}, flags=flags, **options)


def size(mib: float, plus_minus: float, text: str) -> dict[str, t.Any]:
    return {"mib": pytest.approx(mib), "plus_minus_mib": pytest.approx(plus_minus), "text": text}


def sums(found: dict[str, t.Any]) -> dict[str, bool]:
    return {check["name"]: check["holds"] for check in found["checks"]}


def test_a_healthy_boot_of_both_stated_pools_is_complete() -> None:
    found = ledger("healthy-1.0.13.log", FLAGS)
    assert found["schema"] == "kvfleet.radiance/ledger/1"
    assert (found["status"], found["reason"], found["missing"]) == ("complete", None, [])
    assert (found["ready"], found["essential"], found["tp"]) == (True, True, 2)
    assert found["devices"] == {"used": [0, 1], "ignored": [2]}
    assert found["model"] == {
        "name": "qwen3.8-flash-next",
        "arch": "qwen4exp",
        "quant": "fp8-iq4r",
        "layers": 48,
        "trained_context": 262144,
    }
    assert found["pair"] == {"weights_mib": 24000, "kv_mib": 5120, "exact": True}
    assert found["flags"] == FLAGS
    assert (found["source"]["boots_seen"], found["source"]["boot"]) == (1, 0)
    assert sums(found) == {
        "card_total": True,
        "claimable": True,
        "experts": True,
        "vram_kv": True,
        "unclaimed": True,
        "pools_match_table": True,
        "host_pool": True,
        "kv_sizes": True,
        "kv_pool": True,
        "settled_floor.card0": True,
        "settled_floor.card1": True,
        "flags_match_table": True,
    }


def test_the_settled_line_of_1_0_13_names_its_floor_and_both_parts() -> None:
    first, second = ledger("healthy-1.0.13.log")["settled"]
    assert first == {
        "card": 0,
        "free": size(2058.24, 5.12, "2.01 GiB"),
        "floor": size(209.19, 0.005, "209.19 MiB"),
        "headroom": size(96.0, 0.005, "96.00 MiB"),
        "static_region": size(113.19, 0.005, "113.19 MiB"),
        "line": "card 0 settled at 2.01 GiB free against 209.19 MiB (the 96.00 MiB --gpu-headroom-mib and 113.19 MiB "
        "kept for the static region)",
    }
    assert (second["card"], second["free"]["text"]) == (1, "2.02 GiB")


def test_the_table_of_both_stated_pools_row_by_row() -> None:
    budget = ledger("healthy-1.0.13.log")["budget"]
    assert (budget["weights"], budget["kv"]) == ("stated", "stated")
    assert {name: row and row["text"] for name, row in budget["rows"].items()} == {
        "card_total": "31.86 GiB",
        "already_held": "342.00 MiB",
        "activation_arena": "897.00 MiB",
        "step_staging": "187.70 MiB",
        "headroom": "96.00 MiB",
        "claimable": "1.93 GiB",
        "static_weights": "42.40 MiB",
        "elastic": "1.93 GiB",
        "experts": "0 B",
        "kv_cache": "5.00 GiB",
        "unusable": None,
        "prefill_staging": None,
        "vram_weights": "23.44 GiB",
        "vram_kv": "5.00 GiB",
        "unclaimed": "2.03 GiB",
    }
    assert budget["rows"]["experts"] == {"mib": 0.0, "plus_minus_mib": 0.0, "text": "0 B"}


def test_slots_loans_sampler_wire_and_chunk() -> None:
    found = ledger("healthy-1.0.13.log")
    assert [(row["rank"], row["slots"], row["shadow_slots"], row["pool_slots"]) for row in found["slab"]] == [
        (0, 17548, 32, 7580),
        (1, 17596, 32, 7532),
    ]
    assert found["slab"][0]["static"] == size(42.4, 0.005, "42.40 MiB")
    assert found["host_pool"][0] == {
        "rank": 0,
        "budget": size(16384.0, 5.12, "16.00 GiB"),
        "used": size(10352.64, 5.12, "10.11 GiB"),
        "free": size(6031.36, 5.12, "5.89 GiB"),
    }
    assert [(row["from"], row["slots"], row["size"]["text"]) for row in found["lent"]] == [
        ("kv_cache", 3051, "4.07 GiB"),
        ("kv_cache", 3059, "4.07 GiB"),
        ("activation_arena", 503, "686.60 MiB"),
        ("activation_arena", 505, "686.60 MiB"),
    ]
    assert found["sampler"] == {"rows": 9}
    assert found["wire"] == {"mode": "wht6", "exact_rows": 25}
    assert found["chunk"] == {"prefill_tokens": 2048, "bound_by": "budget"}
    assert found["capacity"] == {
        "sequences": 3,
        "tokens": 200000,
        "full": True,
        "backing_percent": None,
        "full_length_sessions": None,
    }


def test_the_kv_plan_by_group_without_its_sentinel() -> None:
    kv = ledger("healthy-1.0.13.log")["kv"]
    assert [group["name"] for group in kv["groups"]] == [
        "kv_attn",
        "kv_qsa_bkey",
        "kv_gdn_state",
        "kv_gdn_conv",
        "kv_qsa_tail",
    ]
    assert kv["groups"][0] == {
        "name": "kv_attn",
        "kind": "full",
        "layers": 13,
        "block_tokens": 4,
        "page": size(0.025390625, 0.005 / 1024, "26.00 KiB"),
        "blocks": 150031,
        "tokens": 600124,
        "state": None,
        "slots": None,
        "size": size(3809.28, 5.12, "3.72 GiB"),
    }
    assert (kv["groups"][2]["slots"], kv["groups"][2]["state"]["text"]) == (6, "54.00 MiB")
    assert kv["checkpoints"] == {
        "slots": 8,
        "each": size(56.0, 0.005, "56.00 MiB"),
        "size": size(448.0, 0.005, "448.00 MiB"),
        "backed": None,
    }


def test_warnings_carry_level_and_rank() -> None:
    warnings = ledger("healthy-1.0.13.log")["warnings"]
    assert [(w["level"], w["rank"], w["text"].split(" ")[0]) for w in warnings] == [
        ("W", None, "device:"),
        ("W", None, "tp"),
        ("W", 0, "VRAM"),
        ("W", 1, "VRAM"),
        ("W", 0, "card"),
        ("W", 1, "card"),
    ]


def test_without_flags_the_pair_keeps_the_rounding_of_its_rows() -> None:
    pair = ledger("healthy-1.0.13.log")["pair"]
    assert pair == {"weights_mib": pytest.approx(24002.56), "kv_mib": 5120.0, "exact": False}


def test_derived_pools_of_1_0_4() -> None:
    found = ledger("derived-1.0.4.log")
    assert (found["status"], found["missing"], found["tp"]) == ("complete", [], 2)
    assert (found["budget"]["weights"], found["budget"]["kv"]) == ("derived", "derived")
    assert found["capacity"] == {
        "sequences": 8,
        "tokens": 200000,
        "full": False,
        "backing_percent": 31.0,
        "full_length_sessions": 2.5,
    }
    assert sums(found) == {
        "card_total": True,
        "claimable": True,
        "vram_weights": True,
        "vram_kv": True,
        "elastic": True,
        "unclaimed": True,
        "pools_match_table": True,
        "host_pool": True,
        "kv_sizes": True,
        "kv_pool": True,
        "settled_floor.card0": True,
        "settled_floor.card1": True,
    }
    assert found["budget"]["rows"]["prefill_staging"] == size(200.0, 0.005, "200.00 MiB")
    assert found["wire"] == {"mode": "exact", "exact_rows": None}
    assert found["chunk"] == {"prefill_tokens": 2048, "bound_by": "checkpoint_interval"}
    settled = [(row["card"], row["free"]["text"], row["floor"]["text"]) for row in found["settled"]]
    assert settled == [(0, "101.50 MiB", "96.00 MiB"), (1, "90.00 MiB", "96.00 MiB")]


def test_weights_derived_and_kv_stated_at_one_rank() -> None:
    found = ledger("mixed-1.0.5.log")
    assert (found["status"], found["missing"], found["tp"]) == ("complete", [], 1)
    assert (found["budget"]["weights"], found["budget"]["kv"]) == ("derived", "stated")
    assert sums(found) == {
        "card_total": True,
        "claimable": True,
        "vram_weights": True,
        "vram_kv": True,
        "elastic": True,
        "unclaimed": True,
        "pools_match_table": True,
        "host_pool": True,
        "kv_sizes": True,
        "kv_pool": True,
        "settled_floor.card0": True,
    }
    assert found["budget"]["rows"]["unusable"]["text"] == "1.04 GiB"
    assert [(row["rank"], row["slots"], row["pool_slots"]) for row in found["slab"]] == [(0, 6144, 0)]
    assert found["devices"] == {"used": [0], "ignored": []}


@pytest.mark.parametrize(
    ("line", "free", "floor"),
    [
        (
            "W card 0 settled at 90.00 MiB free against the 96.00 MiB --gpu-headroom-mib asked to keep. The difference "
            "is allocations made after the budget was resolved. Raise --gpu-headroom-mib by at least 6.00 MiB so",
            "90.00 MiB",
            "96.00 MiB",
        ),
        (
            "I card 0 settled at 1.12 GiB free against the 96.00 MiB --gpu-headroom-mib asked to keep. The split "
            "accounted for it: neither pool could address another byte, which is the `unusable` line of the VRAM",
            "1.12 GiB",
            "96.00 MiB",
        ),
        (
            "W card 0 settled at 2.01 GiB free against the 160.00 MiB --gpu-headroom-mib asked to keep, so 1.85 GiB is "
            "unused. On a model that does not fit in VRAM every unused GiB is weight that has to be moved",
            "2.01 GiB",
            "160.00 MiB",
        ),
        (
            "I card 0 settled at 101.00 MiB free, against the 96.00 MiB --gpu-headroom-mib asked to keep",
            "101.00 MiB",
            "96.00 MiB",
        ),
    ],
)
def test_the_four_older_settled_lines(line: str, free: str, floor: str) -> None:
    text = (LOGS / "mixed-1.0.5.log").read_text(encoding="utf-8")
    older = "\n".join(line if raw.startswith("I card 0 settled") else raw for raw in text.split("\n"))
    (row,) = read_ledger(older, source={})["settled"]
    assert (row["free"]["text"], row["floor"]["text"], row["headroom"]["text"]) == (free, floor, floor)
    assert row["static_region"] is None
    assert row["line"] == line[2:]
