# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What blocks a plan, what is only pointed out, and the ways out that a refusal names."""

from __future__ import annotations

import re

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import (
    ledger,
    many,
    refusal,
    settled,
    size,
)


def gates(plan):
    return {gate["name"]: gate for gate in plan["gates"]}


def test_all_gates_of_a_plan_name_their_source():
    plan = make_plan(ledger(), {})
    assert list(gates(plan)) == [
        "dtype_known",
        "engine_takes_pair",
        "pair_within_ceiling",
        "one_request_fits",
        "host_pool_holds_the_rest",
        "pool_meets_contract",
        "rows_within_exact_wire",
        "chunk_within_interval",
        "headroom_kept",
    ]
    assert all(gate["from"] and gate["says"] for gate in plan["gates"])


def test_keep_with_more_sequences_is_refused_with_three_ways_out():
    error = refusal(ledger(), {"pair": "keep", "shape": {"max_num_seqs": 4}})
    assert error.code == "pool_meets_contract"
    # 4 x 200,000 tokens, the pool, the longest context for 4, the most sequences of 200,000, the pool that it takes.
    for part in ("6,600.07 MiB", "5,120 MiB", "148,184 tokens for 4 sequences", "3 sequences of 200,000", "6,601 MiB"):
        assert part in error.text
    assert "kv_attn full 13 layers block 4 tok page 26.00 KiB" in error.text
    assert "accept pool_meets_contract" in error.text


def test_the_ways_out_hold_and_one_more_does_not():
    pool = {"pair": "keep", "shape_margin_mib": 0}
    assert make_plan(ledger(), {**pool, "shape": {"max_num_seqs": 4, "max_model_len": 148184}})["restart"]
    assert (
        refusal(ledger(), {**pool, "shape": {"max_num_seqs": 4, "max_model_len": 148188}}).code == "pool_meets_contract"
    )


def test_an_accepted_gate_carries_its_reason():
    request = {
        "pair": "keep",
        "shape": {"max_num_seqs": 4},
        "accept": [
            {"gate": "pool_meets_contract", "reason": "the fourth is a short chat"},
            {"gate": "headroom_kept", "reason": "measured twice"},
        ],
    }
    plan = make_plan(ledger(), request)
    assert gates(plan)["pool_meets_contract"]["holds"] is False
    assert gates(plan)["pool_meets_contract"]["accepted"] == "the fourth is a short chat"
    # What holds needs no acceptance.
    assert gates(plan)["headroom_kept"]["accepted"] is None
    backed = next(p for p in plan["predictions"] if p["id"] == "sequences_backed")
    assert 2.8 < backed["low"] < backed["high"] < 3.0


def test_what_already_fails_and_is_not_worsened_is_a_warning():
    thin = ledger(kv_mib=3543)
    plan = make_plan(thin, {"pair": {"weights_mib": 25000, "kv_mib": 3543}})
    assert "pool_meets_contract" not in gates(plan)
    assert any("pool_meets_contract" in warning for warning in plan["warnings"])
    assert refusal(thin, {"pair": {"weights_mib": 25000, "kv_mib": 3542}}).code == "pool_meets_contract"
    # A fill mends it.
    assert make_plan(thin, {})["to"]["kv_mib"] == 5119


def test_nothing_asked_is_never_blocked():
    over = ledger(settled=[settled(0, "150.00 MiB"), settled(1, "2.02 GiB")], kv_mib=3543)
    plan = make_plan(over, {"pair": "keep"})
    assert plan["restart"] is False and plan["changes"] == []
    assert plan["to"] == plan["from"]
    assert all(gate["holds"] for gate in plan["gates"])
    assert any("pair_within_ceiling" in warning for warning in plan["warnings"])


def test_report_returns_the_failed_gate():
    plan = make_plan(ledger(), {"pair": {"weights_mib": 26000, "kv_mib": 5120}, "on_gate": "report"})
    assert gates(plan)["pair_within_ceiling"]["holds"] is False


def test_a_grown_shape_needs_its_margin():
    filled = ledger(weights_mib=25844, kv_mib=5119, settled=[settled(0, "215.30 MiB"), settled(1, "225.30 MiB")])
    error = refusal(filled, {"pair": "keep", "shape": {"max_num_seqs": 4, "max_model_len": 140000}})
    assert error.code == "headroom_kept"
    assert "shape_margin_mib 64" in error.text and "pair: fill" in error.text
    # A smaller shape needs none.
    assert make_plan(filled, {"pair": "keep", "shape": {"max_num_seqs": 2}})["restart"] is True


def test_the_host_pool_must_take_what_the_slab_gives_up():
    boot = ledger(
        host_pool=[
            {"rank": 0, "budget": size("10.50 GiB"), "used": size("10.11 GiB"), "free": size("400.00 MiB")},
            {"rank": 1, "budget": size("10.50 GiB"), "used": size("10.11 GiB"), "free": size("400.00 MiB")},
        ],
        flags={"host-pool-mib": "10752"},
    )
    request = {"pair": {"weights_mib": 22208, "kv_mib": 5120}}
    error = refusal(boot, request)
    assert error.code == "host_pool_holds_the_rest"
    assert "400.00 MiB" in error.text and "host_pool_mib" in error.text
    plan = make_plan(boot, {**request, "host_pool_mib": 16384})
    assert gates(plan)["host_pool_holds_the_rest"]["holds"] is True
    assert plan["changes"] == ["weights_mib", "host_pool_mib"]
    assert refusal(boot, {"pair": "keep", "host_pool_mib": 4096}).code == "host_pool_holds_the_rest"


def test_a_host_pool_that_is_there_already_is_no_change():
    assert make_plan(ledger(), {"pair": "keep", "host_pool_mib": "16384"})["restart"] is False
    assert (
        make_plan(ledger(flags={"host-pool-mib": None}), {"pair": "keep", "host_pool_mib": 16384})["restart"] is False
    )
    assert make_plan(ledger(), {"pair": "keep", "host_pool_mib": 20000})["changes"] == ["host_pool_mib"]


def test_missing_rows_leave_a_gate_out_with_a_warning():
    bare = ledger(slab=[], host_pool=[], wire=None, chunk=None)
    plan = make_plan(bare, {})
    for name in ("host_pool_holds_the_rest", "rows_within_exact_wire", "chunk_within_interval"):
        assert name not in gates(plan)
        assert any(warning.startswith(f"{name} could not be judged") for warning in plan["warnings"])
    assert not [p for p in plan["predictions"] if p["quantity"] in ("slab_slots", "pool_slots")]


def test_rows_matter_only_on_a_lossy_wire():
    request = {"pair": "fill", "shape": {"max_num_seqs": 9, "max_model_len": 65536}}
    error = refusal(ledger(), request)
    assert error.code == "rows_within_exact_wire"
    assert "27 rows" in error.text and "25 rows" in error.text and "8 sequences" in error.text
    plan = make_plan(ledger(wire={"mode": "exact", "exact_rows": None}), request)
    assert "rows_within_exact_wire" not in gates(plan)


def test_the_checkpoint_interval_cannot_be_worsened_by_a_request():
    plan = make_plan(ledger(chunk={"prefill_tokens": 2048, "bound_by": "checkpoint_interval"}), {})
    assert "chunk_within_interval" not in gates(plan)
    assert any("2,048 tokens" in warning for warning in plan["warnings"])


def test_one_request_must_fit():
    error = refusal(
        ledger(),
        {
            "pair": {"weights_mib": 24000, "kv_mib": 2261},
            "accept": [{"gate": "pool_meets_contract", "reason": "a single user"}],
        },
    )
    assert error.code == "one_request_fits"
    assert "2,262" in error.text


def test_one_request_backing_fills_for_one():
    plan = make_plan(ledger(), {"backing": "one_request", "backing_reason": "a single user"})
    # 1,428.22 for one context, 329.39 of state, 448 of checkpoints, 56 and 8 KiB of alignment.
    assert plan["to"]["kv_mib"] == 2262
    assert plan["contract"]["needed_mib"] == pytest.approx(2205.61, abs=0.01)
    assert gates(plan)["pool_meets_contract"]["from"] == "personal choice: backing one_request, a single user"
    assert any("5,062.06 MiB" in warning for warning in plan["warnings"])


def test_a_contract_that_the_card_cannot_hold_names_what_it_can():
    error = refusal(ledger(), {"shape": {"max_num_seqs": 24}})
    assert error.code == "contract_does_not_fit"
    for part in ("24 sequences of 200,000 tokens", "30,899 MiB", "card 0 settled at 2.01 GiB"):
        assert part in error.text


def test_fewer_checkpoint_slots_than_sequences_is_a_warning():
    boot = ledger()
    boot["kv"]["checkpoints"] = {"slots": 2, "each": size("56.00 MiB"), "size": size("112.00 MiB")}
    plan = make_plan(boot, {})
    assert any("2 checkpoint slots are fewer than 3 sequences" in warning for warning in plan["warnings"])


def test_an_unknown_architecture_needs_a_kv_model_for_another_dtype():
    boot = ledger(model={"name": "m", "arch": "other", "quant": "w4", "layers": 48, "trained_context": 262144})
    assert make_plan(boot, {"shape": {"max_num_seqs": 4}})["contract"]["figures_from"] == "ledger"
    error = refusal(boot, {"shape": {"kv_cache_dtype": "bf16"}})
    assert error.code == "kv_figures_unknown" and "kv_model" in error.text
    figures = {"rate_bytes_per_token": "14144", "state_mib_per_sequence": "109.8", "checkpoint_mib": 448}
    contract = make_plan(boot, {"shape": {"kv_cache_dtype": "bf16"}, "kv_model": figures})["contract"]
    assert contract["figures_from"] == "kv_model"
    assert contract["needed_mib"] == pytest.approx(8870.66, abs=0.05)


def test_a_dtype_that_the_boot_contradicts_is_not_computed_from_dimensions():
    boot = ledger()
    boot["kv"]["groups"][0]["page"] = size("20.00 KiB")
    assert refusal(boot, {"shape": {"kv_cache_dtype": "bf16"}}).code == "kv_figures_unknown"


def test_rows_that_are_past_the_wire_already_do_not_block_what_leaves_them():
    plan = make_plan(many(9, 65536), {"shape": {"max_model_len": 60000}})
    assert plan["restart"] is True
    assert "rows_within_exact_wire" not in gates(plan)
    assert any("rows_within_exact_wire" in warning for warning in plan["warnings"])
    assert refusal(many(9, 65536), {"shape": {"max_num_seqs": 10}}).code == "rows_within_exact_wire"


def test_a_fill_leaves_a_pair_that_fails_however_little_slab_it_gains():
    boot = ledger(weights_mib=25844, kv_mib=5000, settled=[settled(0, "334.30 MiB"), settled(1, "344.30 MiB")])
    plan = make_plan(boot, {})
    assert (plan["to"]["weights_mib"], plan["to"]["kv_mib"]) == (25850, 5119)


def test_a_paged_group_that_the_dimensions_do_not_have_voids_them():
    boot = ledger()
    boot["kv"]["groups"].append({**boot["kv"]["groups"][1], "name": "kv_more"})
    assert make_plan(boot, {"shape": {"max_num_seqs": 2}})["contract"]["rate_bytes_per_token"] == 8320
    assert refusal(boot, {"shape": {"kv_cache_dtype": "bf16"}}).code == "kv_figures_unknown"


def test_states_of_another_size_void_the_dimensions():
    boot = ledger()
    boot["kv"]["groups"][2]["state"] = size("60.00 MiB")
    assert refusal(boot, {"shape": {"kv_cache_dtype": "bf16"}}).code == "kv_figures_unknown"


def test_a_fill_stops_where_every_expert_is_resident():
    slab = [
        {"rank": rank, "slots": 17548, "shadow_slots": 32, "pool_slots": 500, "static": size("42.40 MiB")}
        for rank in (0, 1)
    ]
    # 500 more slots, and 8 for what whole slots leave over, of 1.36526 MiB.
    assert make_plan(ledger(slab=slab), {})["to"]["weights_mib"] == 24694


def test_unclaimed_is_not_predicted_from_a_split_that_the_engine_derived():
    boot = ledger(pair={"weights_mib": 24002.56, "kv_mib": 5120.0, "exact": False}, flags={"vram-weights-mib": None})
    boot["budget"].update(weights="derived", kv="derived")
    names = [p["id"] for p in make_plan(boot, {})["predictions"]]
    assert "unclaimed_mib" not in names and "settled_free_mib.card0" in names


def test_a_way_out_of_a_thin_pool_is_one_that_the_gates_let_pass() -> None:
    # 2,000 MiB hold 1 x 200,000 tokens by the contract (1,986 MiB) but not with the alignment that the engine takes.
    with pytest.raises(RadianceError) as refused:
        make_plan(ledger(), {"pair": {"weights_mib": 24000, "kv_mib": 2000}})
    assert "tokens for 3 sequences; the shape asked needs a pool of 5,063 MiB" in refused.value.text
    assert "1 sequence" not in refused.value.text
    with pytest.raises(RadianceError) as thin:
        make_plan(ledger(), {"pair": {"weights_mib": 24000, "kv_mib": 2300}})
    assert "or 1 sequence of 200,000 tokens" in thin.value.text
    plan = make_plan(ledger(), {"shape": {"max_num_seqs": 1}, "pair": {"weights_mib": 24000, "kv_mib": 2300}})
    assert all(gate["holds"] for gate in plan["gates"])


def test_a_host_pool_shrinks_with_what_the_slab_takes_from_it() -> None:
    # 10.11 GiB are in use; a slab of 25,844 takes 1,335 slots or more of them, 1,819 MiB.
    grows = {"pair": {"weights_mib": 25844, "kv_mib": 5119}}
    says = gates(make_plan(ledger(), {**grows, "host_pool_mib": 8600}))["host_pool_holds_the_rest"]["says"]
    assert says.startswith("The slab takes 1,3") and "from the host pool" in says
    assert "10.11 GiB in use now, and 8,600 MiB in all at host_pool_mib 8,600" in says
    error = refusal(ledger(), {**grows, "host_pool_mib": 8000})
    assert error.code == "host_pool_holds_the_rest"
    least = int(re.search(r"Raise host_pool_mib to at least ([\d,]+)", error.text).group(1).replace(",", ""))
    assert 8500 <= least <= 8600
    assert make_plan(ledger(), {**grows, "host_pool_mib": least})["restart"]
    # Smaller than what it holds, beside the slab that runs: a larger slab is the way out, and it is one.
    kept = refusal(ledger(), {"pair": {"weights_mib": 24000, "kv_mib": 5119}, "host_pool_mib": 9000})
    slab = int(re.search(r"the slab must have ([\d,]+) MiB", kept.text).group(1).replace(",", ""))
    assert 25300 <= slab <= 25500
    assert make_plan(ledger(), {"pair": {"weights_mib": slab, "kv_mib": 5119}, "host_pool_mib": 9000})["restart"]


def test_a_reserve_beyond_the_card_is_told_in_words_and_not_as_less_than_nothing() -> None:
    huge = {"reserve_mib": 40000, "reserve_reason": "a desktop"}
    for pair in ("fill", {"weights_mib": 24000}, {"weights_mib": 24100, "kv_mib": 5120}):
        text = refusal(ledger(), {**huge, "pair": pair}).text
        assert "-9" not in text and "reserve" in text
    assert "reserves and margins leave the pair nothing" in refusal(ledger(), huge).text
