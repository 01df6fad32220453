# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people have reported of such planners, number by number, as the input that it was."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import (
    kv_groups,
    ledger,
    settled,
    size,
)


def refusal(boot: dict[str, t.Any], request: dict[str, t.Any]) -> str:
    with pytest.raises(RadianceError) as refused:
        make_plan(boot, request)
    return refused.value.text


def test_eight_megabytes_are_seven_too_much_and_one_is_to_spare() -> None:
    # A ceiling of 28,769, and 24,576 + 4,200 asked for.
    boot = ledger(kv_mib=4000, settled=[settled(0, "978.19 MiB"), settled(1, "990.00 MiB")])
    text = refusal(boot, {"pair": {"weights_mib": 24576, "kv_mib": 4200}})
    assert "Asked 28,776 MiB (24,576 + 4,200), ceiling 28,769 MiB ± 0.01 on card 0: 7 MiB too much" in text
    accept = [{"gate": "pool_meets_contract", "reason": "one user"}]
    for weights in (24569, 24568):
        pair = {"weights_mib": weights, "kv_mib": 4200}
        assert make_plan(boot, {"pair": pair, "accept": accept})["to"]["weights_mib"] == weights


def test_an_integrated_card_never_binds() -> None:
    cards = [settled(0, "2.01 GiB"), settled(1, "511.00 MiB")]
    plan = make_plan(ledger(devices={"used": [0], "ignored": [1]}, settled=cards), {})
    assert (plan["ceiling"]["card"], len(plan["ceiling"]["lines"])) == (0, 1)


def test_a_headroom_that_is_under_the_policy_names_its_card() -> None:
    # 256.06 and 71.00 MiB free, and somebody's policy of 162: 66 more than the engine's 96.
    cards = [settled(0, "256.06 MiB", "96.00 MiB", False), settled(1, "71.00 MiB", "96.00 MiB", False)]
    kept = make_plan(ledger(settled=cards), {"pair": "keep"})
    (fails,) = [said for said in kept["warnings"] if said.startswith("What runs already fails pair_within_ceiling")]
    assert "on card 1: 25 MiB too much" in fails
    assert any(said.startswith("Card 1 may settle at 71 MiB free") for said in kept["warnings"])
    policy = make_plan(ledger(settled=cards), {"reserve_mib": 66, "reserve_reason": "162 MiB stay free"})
    assert policy["to"]["weights_mib"] + policy["to"]["kv_mib"] == 29120 + 71 - 96 - 66 - 1
    assert not any("may settle" in said for said in policy["warnings"])


def test_whole_blocks_of_7808_tokens() -> None:
    paged = {**kv_groups()[0], "block_tokens": 7808, "page": size("7.63 MiB"), "blocks": 400}
    boot = ledger(
        model={"arch": "other"},
        flags={"max-num-seqs": "8", "max-model-len": "8192", "num-speculative-tokens": "0"},
        sampler={"rows": 8},
        capacity={"sequences": 8, "tokens": 8192, "full": True},
        kv={"groups": [paged], "checkpoints": {"slots": None, "each": None, "size": None}},
    )
    contract = make_plan(boot, {"pair": "keep"})["contract"]
    # 16 blocks, which are 124,928 tokens and not 65,536.
    assert contract["tokens_mib"] == pytest.approx(124928 * contract["rate_bytes_per_token"] / 1024**2, abs=0.001)


@pytest.mark.parametrize(("pool", "holds"), [(12290, True), (12289, False), (11426, False)])
def test_the_state_counts_at_the_boundary(pool: int, holds: bool) -> None:
    # 8 x 200,000 tokens of 29.25 KiB a block of 4 are 11,425.78 MiB, and 8 x 2 x 54 MiB of state beside them.
    request = {
        "shape": {"max_num_seqs": 8},
        "pair": {"weights_mib": 18000, "kv_mib": pool},
        "kv_model": {"rate_bytes_per_token": 7488, "state_mib_per_sequence": 108, "checkpoint_mib": 0},
        "on_gate": "report",
    }
    plan = make_plan(ledger(), request)
    assert plan["contract"]["needed_mib"] == 12289.781
    assert [gate["holds"] for gate in plan["gates"] if gate["name"] == "pool_meets_contract"] == [holds]


def test_more_sequences_than_states_fit_are_bounded_by_the_states() -> None:
    boot = ledger(wire={"mode": "exact", "exact_rows": None})
    text = refusal(boot, {"shape": {"max_num_seqs": 1024, "max_model_len": 256}, "pair": "keep"})
    # (5,120 - 448) / (109.8 + 256 tokens of 7,488 B); by its tokens alone the pool would hold 2,555 of them.
    assert "This pool holds 41 sequences of 256 tokens" in text
    assert "Give the pool at least 112,937 MiB, or a max_num_seqs of at most 42." in text


def test_four_contexts_of_262144_have_three_ways_out_and_each_is_one() -> None:
    shape = {"max_num_seqs": 4, "max_model_len": 262144}
    text = refusal(ledger(), {"shape": shape, "pair": "keep"})
    assert "This pool holds 148,184 tokens for 4 sequences, or 2 sequences of 262,144 tokens" in text
    assert "the shape asked needs a pool of 8,376 MiB" in text
    pool = {"pair": {"weights_mib": 22000, "kv_mib": 8376}}
    fewer = ({"max_model_len": 148184}, {"max_num_seqs": 2})
    for way in ({"shape": shape, **pool}, *({"shape": {**shape, **less}, "pair": "keep"} for less in fewer)):
        assert make_plan(ledger(), way)["restart"]
    for beyond in ({"max_model_len": 148188}, {"max_num_seqs": 3}):
        assert "pool_meets_contract" in refusal(ledger(), {"shape": {**shape, **beyond}, "pair": "keep"})
