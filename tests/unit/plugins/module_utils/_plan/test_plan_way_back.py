# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ran before is never refused by what another boot cannot tell, or says of its own shape."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import (
    ledger,
    refusal,
    settled,
    size,
)

RAN = "returning to 24,000 + 5,120 of record 0123456789ab"
PAIR = {"weights_mib": 24000, "kv_mib": 5120}
OTHER = {"arch": "other", "trained_context": 262144}


def gate(plan: dict[str, t.Any], name: str) -> dict[str, t.Any]:
    return next(item for item in plan["gates"] if item["name"] == name)


@pytest.mark.parametrize(
    ("runs", "back"),
    [
        ({"kv-cache-dtype": "bf16"}, {"kv_cache_dtype": "fp8"}),
        ({"num-speculative-tokens": "3"}, {"num_speculative_tokens": 2}),
    ],
)
def test_a_way_back_to_figures_that_nobody_knows_is_open(runs: dict[str, str], back: dict[str, t.Any]) -> None:
    boot = ledger(weights_mib=22000, kv_mib=7000, model=OTHER, flags=runs, sampler={"rows": None})
    request = {"shape": back, "pair": PAIR}
    assert refusal(boot, request).code == "kv_figures_unknown"
    plan = make_plan(boot, {**request, "ran_before": RAN})
    assert (plan["to"]["weights_mib"], plan["to"]["kv_mib"], plan["restart"]) == (24000, 5120, True)
    contract = plan["contract"]
    assert (contract["needed_mib"], contract["figures_from"], contract["pool_mib"]) == (None, None, 5120)
    # What can be judged is judged, what cannot is said, and nothing is predicted of it.
    assert gate(plan, "pair_within_ceiling")["holds"] and gate(plan, "host_pool_holds_the_rest")["holds"]
    assert not {"one_request_fits", "pool_meets_contract"} & {item["name"] for item in plan["gates"]}
    for name in ("one_request_fits", "pool_meets_contract"):
        assert any(said.startswith(f"{name} could not be judged") for said in plan["warnings"])
    assert any(RAN in said and "not known for the architecture other" in said for said in plan["warnings"])
    quantities = {item["quantity"] for item in plan["predictions"]}
    assert not {"sequences_backed", "lendable_slots"} & quantities
    assert {"weights_mib", "kv_mib", "settled_free_mib", "slab_slots"} <= quantities


def test_what_ran_before_says_nothing_of_a_pair_that_a_fill_would_choose() -> None:
    boot = ledger(model=OTHER)
    for pair in ("fill", "keep", {"kv_mib": 5120}):
        asked = {"shape": {"kv_cache_dtype": "bf16"}, "pair": pair, "ran_before": RAN}
        assert refusal(boot, asked).code == "kv_figures_unknown"


def test_the_ceiling_of_another_shape_does_not_close_the_way_back() -> None:
    # The shape that runs took 300 MiB of arena: by its boot the old pair is past the ceiling, and it ran all the same.
    boot = ledger(weights_mib=25000, kv_mib=5600, flags={"max-model-len": "262144"}, settled=[settled(0, "400.00 MiB")])
    boot["devices"] = {"used": [0], "ignored": []}
    request = {"shape": {"max_model_len": 200000}, "pair": {"weights_mib": 25844, "kv_mib": 5119}}
    assert refusal(boot, request).code == "pair_within_ceiling"
    plan = make_plan(boot, {**request, "ran_before": RAN})
    failed = gate(plan, "pair_within_ceiling")
    assert (failed["holds"], failed["accepted"], failed["hard"]) == (False, RAN, True)
    assert "172.19 MiB too much" in failed["says"]
    (said,) = [said for said in plan["warnings"] if said.startswith("pair_within_ceiling fails by what this boot says")]
    assert "what runs now is put back where that does not hold" in said


def test_the_host_pool_that_another_slab_filled_does_not_close_it_either() -> None:
    small = [{"rank": 0, "budget": size("16.00 GiB"), "used": size("15.90 GiB"), "free": size("0.10 GiB")}]
    request = {"pair": {"weights_mib": 22000, "kv_mib": 5120}}
    assert refusal(ledger(host_pool=small), request).code == "host_pool_holds_the_rest"
    plan = make_plan(ledger(host_pool=small), {**request, "ran_before": RAN})
    assert gate(plan, "host_pool_holds_the_rest")["accepted"] == RAN


def test_an_engine_that_takes_no_pair_never_held_one() -> None:
    request = {"pair": {"weights_mib": 25000, "kv_mib": 5120}, "engine_version": "1.3.0", "ran_before": RAN}
    assert refusal(ledger(), request).code == "engine_takes_pair"


def test_an_engine_that_splits_the_card_needs_no_figures_to_do_so() -> None:
    boot = ledger(
        model=OTHER,
        engine={"version": "1.3.2", "version_from": "endpoint"},
        flags={"vram-weights-mib": None, "vram-kv-mib": None},
        pair={"weights_mib": 24002.56, "kv_mib": 5120.0, "exact": False},
    )
    boot["budget"].update(weights="derived", kv="derived")
    plan = make_plan(boot, {"shape": {"kv_cache_dtype": "bf16"}})
    assert (plan["changes"], plan["to"]["kv_mib"]) == (["kv_cache_dtype"], None)
    assert plan["contract"]["needed_mib"] is None
    assert any("The engine splits the card itself, so it is not refused" in said for said in plan["warnings"])


def test_a_dtype_that_ran_or_runs_here_is_taken() -> None:
    boot = ledger(flags={"kv-cache-dtype": "bf16_i8"}, model=OTHER)
    kept = make_plan(boot, {"shape": {"kv_cache_dtype": "bf16_i8"}, "pair": "keep"})
    assert (kept["restart"], kept["to"]["kv_cache_dtype"]) == (False, "bf16_i8")
    asked = {"shape": {"kv_cache_dtype": "bf16_i8"}, "pair": PAIR}
    assert refusal(ledger(model=OTHER), asked).code == "dtype_unknown"
    assert make_plan(ledger(model=OTHER), {**asked, "ran_before": RAN})["to"]["kv_cache_dtype"] == "bf16_i8"
