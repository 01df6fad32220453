# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan says of free memory, of the budget beside the ceiling, of backing, and of ways out."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import (
    kv_groups,
    ledger,
    size,
)

ROWS = {
    "card_total": size("31.86 GiB"),
    "claimable": size("1.93 GiB"),
    "vram_weights": size("23.44 GiB"),
    "vram_kv": size("5.00 GiB"),
    "unclaimed": size("2.03 GiB"),
}


def booted(**rows):
    return ledger(budget={"weights": "stated", "kv": "stated", "rows": {**ROWS, **rows}})


def test_free_memory_is_told_apart_from_spare():
    ceiling = make_plan(booted(), {})["ceiling"]
    # 2.01 GiB - 209.19 - 5.125 of rounding; a fill leaves less than one whole MiB of it.
    assert (ceiling["takeable_mib"], ceiling["left_mib"]) == (1843.925, 0.925)
    assert ceiling["says"] == (
        "Free is not spare: card 0 settled with 2,058.24 MiB free, 209.19 of that is the floor that the engine keeps, "
        "so the pair can take 1,843.92 MiB more, clear of the rounding; after this plan nothing."
    )


def test_claimable_and_pools_are_held_against_the_ceiling():
    check = make_plan(booted(), {})["ceiling"]["cross_check"]
    assert check["name"] == "static region and late allocations"
    # 1.93 GiB + 29,120 - 30,969.05 = 127.27, of which the settled line names 113.19.
    assert (check["difference_mib"], check["static_region_mib"], check["late_mib"]) == (127.27, 113.19, 14.08)
    assert check["plus_minus_mib"] == 10.245
    assert "claimable 1,976.32 + stated pools 29,120 = 31,096.32 MiB" in check["says"]
    assert make_plan(ledger(), {})["ceiling"]["cross_check"] is None


def test_memory_that_nothing_explains_is_a_warning():
    plan = make_plan(booted(claimable=size("2.43 GiB")), {})
    assert plan["ceiling"]["cross_check"]["late_mib"] == 526.08
    assert any(said.startswith("526.08 MiB of the card were taken") for said in plan["warnings"])
    assert not any("of the card were taken" in said for said in make_plan(booted(), {})["warnings"])


def test_the_engines_own_warning_is_labelled_as_expected():
    ceiling = make_plan(booted(), {})["ceiling"]
    assert ceiling["expected_warning"] == (
        "Expected: the engine will warn that about 1,661.64 MiB of the card are neither budgeted nor accounted. The "
        "driver's context, the arena, the staging and the headroom are in that; takeable of it: nothing."
    )
    kept = make_plan(booted(), {"pair": "keep"})["ceiling"]["expected_warning"]
    assert kept.endswith("takeable of it: 1,843.92 MiB.")
    small = booted(card_total=size("29.90 GiB"), claimable=None)
    assert make_plan(small, {"pair": "keep"})["ceiling"]["expected_warning"] is not None
    assert make_plan(booted(card_total=size("29.40 GiB")), {"pair": "keep"})["ceiling"]["expected_warning"] is None


def test_a_pool_for_one_request_says_what_all_would_need():
    plan = make_plan(booted(), {"backing": "one_request", "backing_reason": "a single user"})
    contract = plan["contract"]
    assert (contract["backing"], contract["needed_mib"], contract["full_mib"]) == ("one_request", 2205.613, 5062.059)
    name = "pool_meets_contract"
    gate = next(gate for gate in plan["gates"] if gate["name"] == name)
    assert gate["says"].startswith("One request of 200,000 tokens needs 2,205.61 MiB; the pool is 2,262 MiB.")
    assert "That is less than the contract: all 3 need 5,062.06 MiB." in gate["says"]
    one = next(gate for gate in make_plan(booted(), {"shape": {"max_num_seqs": 1}})["gates"] if gate["name"] == name)
    assert one["says"].startswith("1 sequence of 200,000 tokens needs 1,986.02 MiB;")
    option = plan["options"][1]
    assert "one of them backed at once, which is less than the contract" in option["says"]
    assert (
        option["request"]
        == '-e max_num_seqs=4 -e fill=true -e backing=one_request -e \'{"backing_reason": "a single user"}\''
    )
    whole = make_plan(booted(), {})
    assert whole["contract"]["backing"] == "full"
    assert whole["options"][1]["says"].startswith("4 sequences of 200,000 tokens in fp8, all backed at once.")


def test_unknown_figures_say_what_one_boot_would_tell():
    boot = booted()
    boot["model"]["arch"] = "other"
    with pytest.raises(RadianceError) as refused:
        make_plan(boot, {"shape": {"kv_cache_dtype": "bf16"}})
    assert refused.value.code == "kv_figures_unknown"
    assert "One boot with --kv-cache-dtype bf16 and --num-speculative-tokens 2 would tell" in refused.value.text


def test_a_contract_that_does_not_fit_names_shapes_that_do():
    with pytest.raises(RadianceError) as refused:
        make_plan(booted(), {"shape": {"max_num_seqs": 24}})
    assert refused.value.code == "contract_does_not_fit"
    ways = refused.value.text.split("Ways out: ")[1]
    assert ways.startswith("beside the slab that runs, 24,000 MiB, the pool can back 21,936 tokens")
    assert "beside the smallest that the host pool allows, 18,016 MiB" in ways
    context = int(ways.split("the pool can back ")[2].split(" tokens")[0].replace(",", ""))
    assert make_plan(booted(), {"shape": {"max_num_seqs": 24, "max_model_len": context}, "accept": EXACT})["gates"]
    with pytest.raises(RadianceError):
        make_plan(booted(), {"shape": {"max_num_seqs": 24, "max_model_len": context + 2000}, "accept": EXACT})


EXACT = [{"gate": "rows_within_exact_wire", "reason": "a test"}]


def test_a_slab_under_its_statics_is_refused():
    with pytest.raises(RadianceError) as refused:
        make_plan(booted(), {"pair": {"weights_mib": 42, "kv_mib": 5119}})
    assert refused.value.code == "host_pool_holds_the_rest"
    assert "The smallest that holds them is 43 MiB" in refused.value.text


def test_a_page_of_a_mib_is_narrowed_by_the_blocks_that_the_pool_held():
    # 16 x 8 x 92 x 1 x 2 x 48 = 1,130,496 B prints as 1.08 MiB, 1,127,219 to 1,137,704 B.
    boot = booted()
    boot["model"]["arch"] = "other"
    groups = [group for group in kv_groups() if group["name"] == "kv_attn"]
    groups[0].update(block_tokens=16, layers=48, page=size("1.08 MiB"), blocks=5119 * 1024**2 // 1_130_496)
    boot["kv"] = {"groups": groups, "checkpoints": {"slots": 0, "each": None}}
    rate = make_plan(boot, {"pair": "keep", "on_gate": "report"})["contract"]["rate_bytes_per_token"]
    assert 1_130_496 <= rate * 16 <= 1_130_800
