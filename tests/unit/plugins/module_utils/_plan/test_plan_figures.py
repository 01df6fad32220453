# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The published figures, as literals."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import attempt_id, make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import (
    ARMS,
    SETTLED_201_GIB,
    after,
    ledger,
    settled,
    size,
)


def gate(plan, name):
    return next(gate for gate in plan["gates"] if gate["name"] == name)


def prediction(plan, identity):
    return next(p for p in plan["predictions"] if p["id"] == identity)


def test_worked_ceiling():
    ceiling = make_plan(ledger(), {})["ceiling"]
    assert ceiling["mib"] == 30969.05
    assert ceiling["plus_minus_mib"] == 5.125
    assert ceiling["card"] == 0
    assert ceiling["settled_free_mib"] == 2058.24
    assert ceiling["floor_mib"] == 209.19
    assert ceiling["pair_sum_mib"] == 29120
    assert ceiling["lines"][0] == SETTLED_201_GIB


def test_ceiling_of_an_inexact_pair_has_its_roundings_too():
    # 24,000 and 5,120 MiB print as 23.44 and 5.00 GiB: 24,002.56 + 5,120, each ± 5.12.
    rounded = ledger(
        flags={"vram-weights-mib": None, "vram-kv-mib": None},
        pair={"weights_mib": 24002.56, "kv_mib": 5120.0, "exact": False},
    )
    ceiling = make_plan(rounded, {})["ceiling"]
    assert ceiling["mib"] == 30971.61
    assert ceiling["plus_minus_mib"] == 15.365
    free = prediction(make_plan(rounded, {}), "settled_free_mib.card0")
    # 2,058.24 - (30,956 - 29,122.56), ± 5.12 of the free size and 5.12 of each pool.
    assert (free["low"], free["high"]) == (209.44, 240.16)
    # A value inside the printed interval is taken as exact.
    stated = make_plan(rounded, {"running": {"weights_mib": "24000", "kv_mib": 5120}})
    assert (stated["ceiling"]["mib"], stated["ceiling"]["plus_minus_mib"]) == (30969.05, 5.125)
    keep = {"running": {"weights_mib": 24000, "kv_mib": 5120}, "pair": "keep"}
    kept = prediction(make_plan(rounded, keep), free["id"])
    assert kept["because"].startswith("2.01 GiB free now, and the pair stays; ")
    assert stated["from"]["weights_mib"] == 24000


@pytest.mark.parametrize(("dtype", "needed", "rate"), [("fp8", 5062.06, 7488), ("bf16", 8870.65, 14144)])
def test_contract_of_three_full_sequences(dtype, needed, rate):
    contract = make_plan(ledger(), {"shape": {"kv_cache_dtype": dtype}})["contract"]
    assert contract["needed_mib"] == pytest.approx(needed, abs=0.01)
    assert contract["rate_bytes_per_token"] == rate
    assert contract["state_mib"] == pytest.approx(329.39, abs=0.01)
    assert contract["checkpoint_mib"] == 448
    assert contract["state_mib_per_sequence"] == pytest.approx(109.796, abs=0.001)
    assert contract["figures_from"] == ("ledger" if dtype == "fp8" else "architecture")


def test_contract_at_depth_three_has_the_larger_stride():
    contract = make_plan(ledger(), {"shape": {"num_speculative_tokens": 3}})["contract"]
    assert contract["checkpoint_mib"] == 464
    assert contract["state_mib_per_sequence"] == pytest.approx(110.15, abs=0.01)


def test_contract_without_speculation_holds_one_state_copy_and_a_layer_less():
    contract = make_plan(ledger(), {"shape": {"num_speculative_tokens": 0}})["contract"]
    assert contract["rate_bytes_per_token"] == 6912
    assert contract["state_mib_per_sequence"] == pytest.approx(55.08, abs=0.01)
    assert contract["checkpoint_mib"] == 448


def test_a_context_is_counted_in_whole_blocks():
    contract = make_plan(ledger(), {"shape": {"max_num_seqs": 1, "max_model_len": 5}})["contract"]
    # 5 tokens are two blocks of 4: 2 x 29,952 bytes.
    assert contract["tokens_mib"] == 0.057


def test_a_fill_adds_the_alignment_of_the_engine_s_layout():
    # The engine backs all from 5,118.067 MiB on: the contract, a stride of 56, and 4 KiB for each of 2 paged groups.
    plan = make_plan(ledger(), {"on_gate": "report"})
    because = next(p["because"] for p in plan["predictions"] if p["id"] == "sequences_backed")
    assert "5,118.07 MiB with alignment" in because


def test_fill_of_the_worked_example():
    plan = make_plan(ledger(), {"arms": ARMS})
    assert plan["to"] == {
        "weights_mib": 25844,
        "kv_mib": 5119,
        "max_num_seqs": 3,
        "max_model_len": 200000,
        "kv_cache_dtype": "fp8",
        "num_speculative_tokens": 2,
    }
    assert plan["from"]["weights_mib"] == 24000
    assert plan["changes"] == ["weights_mib", "kv_mib"]
    assert plan["restart"] is True
    assert plan["contract"]["pool_mib"] == 5119
    assert all(gate["holds"] for gate in plan["gates"])
    assert plan["warnings"] == []


def test_predictions_of_the_worked_example():
    plan = make_plan(ledger(), {"arms": ARMS})
    assert [p["id"] for p in plan["predictions"]] == [
        "weights_mib",
        "kv_mib",
        "sequences_backed",
        "settled_free_mib.card0",
        "settled_free_mib.card1",
        "unclaimed_mib",
        "slab_slots.rank0",
        "pool_slots.rank0",
        "slab_slots.rank1",
        "pool_slots.rank1",
        "lendable_slots",
        "sampler_rows",
        "prefill_tps",
    ]
    for identity, low, high in (
        ("weights_mib", 25844, 25844),
        ("kv_mib", 5119, 5119),
        ("sequences_backed", 3, 3),
        ("settled_free_mib.card0", 210.12, 220.36),
        ("settled_free_mib.card1", 220.36, 230.6),
        ("unclaimed_mib", 230.6, 240.84),
        ("sampler_rows", 9, 9),
    ):
        found = prediction(plan, identity)
        assert (found["low"], found["high"]) == (low, high), identity
        assert found["because"]
        assert found["stack"] == "1.0.13"
    slots = prediction(plan, "slab_slots.rank0")
    assert slots["low"] <= 18898 <= slots["high"] and slots["high"] - slots["low"] <= 30
    rest = prediction(plan, "pool_slots.rank0")
    assert rest["low"] <= 25128 - 18898 <= rest["high"]
    prefill = prediction(plan, "prefill_tps")
    assert prefill["low"] == pytest.approx(3996 * 0.97, abs=1)
    assert prefill["high"] == pytest.approx(3996 * 1.03, abs=1)
    assert plan["law"]["status"] == "inside" and "3,996 t/s" in plan["law"]["says"]


def test_a_kept_pool_that_is_known_as_printed_is_predicted_as_printed():
    boot = ledger(flags={"vram-weights-mib": None}, pair={"weights_mib": 24002.56, "kv_mib": 5120.0, "exact": False})
    plan = make_plan(boot, {"pair": "keep"})
    kept = prediction(plan, "weights_mib")
    assert (kept["low"], kept["high"], kept["because"]) == (23997.44, 24007.68, "as it runs: 23.44 GiB")
    stated = prediction(make_plan(boot, {"pair": {"weights_mib": 24000, "kv_mib": 5119}}), "weights_mib")
    assert (stated["low"], stated["high"]) == (24000, 24000)


def test_what_the_arena_lends_does_not_size_a_slot():
    # Every expert is in a slab that is not full: by what the idle cache lends a slot is 1.07 MiB, by the arena 8.
    slab = [{"rank": 0, "slots": 17548, "shadow_slots": 32, "pool_slots": 0, "static": size("42.40 MiB")}]
    lent = [
        {"from": "activation_arena", "slots": 62, "size": size("496.00 MiB")},
        {"from": "kv_cache", "slots": 4000, "size": size("4.18 GiB")},
    ]
    plan = make_plan(ledger(slab=slab, lent=lent), {"pair": {"weights_mib": 15000, "kv_mib": 5120}})
    slots = prediction(plan, "slab_slots.rank0")
    assert 13800 <= slots["low"] <= 13977 <= slots["high"] <= 14200


def test_a_pair_past_the_ceiling_is_refused_with_the_numbers():
    with pytest.raises(RadianceError) as refused:
        make_plan(ledger(), {"pair": {"weights_mib": 26000, "kv_mib": 5120}})
    for part in ("31,120", "30,969", "25,849", "25,843", SETTLED_201_GIB):
        assert part in refused.value.text
    assert refused.value.code == "pair_within_ceiling"
    plan = refused.value.result["plan"]
    assert gate(plan, "pair_within_ceiling")["holds"] is False
    assert gate(plan, "pair_within_ceiling")["from"] == SETTLED_201_GIB


def test_a_stated_pair_may_go_up_to_the_ceiling_itself():
    plan = make_plan(ledger(), {"pair": {"weights_mib": 25849, "kv_mib": 5120}})
    assert plan["to"]["weights_mib"] == 25849
    with pytest.raises(RadianceError):
        make_plan(ledger(), {"pair": {"weights_mib": 25850, "kv_mib": 5120}})


def test_with_one_of_the_pair_given_the_other_takes_the_rest():
    assert make_plan(ledger(), {"pair": {"kv_mib": 6000}})["to"]["weights_mib"] == 24963
    assert make_plan(ledger(), {"pair": {"weights_mib": 25000}})["to"]["kv_mib"] == 5963


def test_fill_again_changes_nothing():
    first = make_plan(ledger(), {})
    again = make_plan(after(first, ledger(), ["215.30 MiB", "225.30 MiB"]), {})
    assert again["to"] == first["to"]
    assert again["changes"] == [] and again["restart"] is False
    assert again["ceiling"]["mib"] == 30969.11
    # A gain of 6 MiB is worth a restart only to one who asks for whatever it gains.
    greedy = make_plan(after(first, ledger(), ["215.30 MiB", "225.30 MiB"]), {"min_gain_mib": 0})
    assert greedy["to"]["weights_mib"] == 25850


def test_a_changed_shape_keeps_its_margin_free():
    plan = make_plan(ledger(), {"shape": {"max_num_seqs": 4}})
    assert (plan["to"]["weights_mib"], plan["to"]["kv_mib"]) == (24242, 6657)
    wide = make_plan(ledger(), {"shape": {"max_num_seqs": 4}, "shape_margin_mib": 164})
    assert (wide["to"]["weights_mib"], wide["to"]["kv_mib"]) == (24142, 6657)
    free = prediction(plan, "settled_free_mib.card0")
    # 2,058.24 - (30,899 - 29,120), with the rounding and the margin either way.
    assert (free["low"], free["high"]) == (210.12, 348.36)


def test_the_card_that_binds_is_named():
    tight = ledger(settled=[settled(0, "2.01 GiB"), settled(1, "1.90 GiB")])
    plan = make_plan(tight, {})
    assert plan["ceiling"]["card"] == 1
    assert plan["ceiling"]["mib"] == 30856.41
    assert plan["ceiling"]["lines"][0].startswith("card 1 settled at 1.90 GiB")


def test_a_reserve_comes_off_the_ceiling_and_is_labelled():
    request = {"reserve_mib": 512, "reserve_reason": "a desktop session"}
    plan = make_plan(ledger(), request)
    assert plan["to"]["weights_mib"] == 25332
    assert plan["ceiling"]["mib"] == 30969.05 and plan["ceiling"]["reserve_mib"] == 512
    assert gate(plan, "pair_within_ceiling")["from"] == "personal reserve: a desktop session"
    with pytest.raises(RadianceError, match="25,337"):
        make_plan(ledger(), {**request, "pair": {"weights_mib": 25400, "kv_mib": 5120}})


def test_attempt_id_is_of_boot_and_goal():
    first, second = make_plan(ledger(), {}), make_plan(ledger(), {"arms": ARMS})
    assert attempt_id(first) == attempt_id(second)
    assert len(attempt_id(first)) == 12
    other = make_plan(ledger(fingerprint="ffffffffffff"), {})
    assert attempt_id(other) != attempt_id(first)


def test_no_static_region_and_little_free_is_a_warning():
    old = ledger(
        settled=[settled(0, "1.90 GiB", "96.00 MiB", static_region=False)], devices={"used": [0], "ignored": []}
    )
    plan = make_plan(old, {})
    assert any("162 MiB" in warning for warning in plan["warnings"])
    roomy = make_plan(old, {"reserve_mib": 100, "reserve_reason": "first kernel launches"})
    assert not any("162 MiB" in warning for warning in roomy["warnings"])


def test_sizes_are_not_confused_with_their_print():
    assert size("2.01 GiB") == {"mib": 2058.24, "plus_minus_mib": 5.12, "text": "2.01 GiB"}
