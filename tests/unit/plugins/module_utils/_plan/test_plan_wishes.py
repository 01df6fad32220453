# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept for others on a card, sessions that stay in the pool, a chunk that is not used, and another tp."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import (
    ledger,
    settled,
    size,
)

DESKTOP = {"card": 1, "mib": 2048, "reason": "a desktop"}
TWO_SESSIONS = {"sessions": 2, "tokens": 184000}


def gate_of(plan, name):
    return next((gate for gate in plan["gates"] if gate["name"] == name), None)


def refused(boot, request):
    with pytest.raises(RadianceError) as caught:
        make_plan(boot, request, alternatives=False)
    return caught.value


def test_the_card_that_others_take_from_binds_and_is_labelled():
    plan = make_plan(ledger(), {"reserved_for_others_mib": [{"card": 0, "mib": 0}, DESKTOP]})
    ceiling = plan["ceiling"]
    assert (ceiling["card"], ceiling["mib"], ceiling["others_mib"]) == (1, 30979.29, 2048)
    assert ceiling["others"] == [{"card": 0, "mib": 0, "reason": None}, DESKTOP]
    # 30,979.29 - 5.125 - 2,048 = 28,926.165 for both.
    assert (plan["to"]["weights_mib"], plan["to"]["kv_mib"]) == (23807, 5119)
    gate = gate_of(plan, "pair_within_ceiling")
    assert gate["from"] == "personal reserve: 2,048 MiB of card 1 for others: a desktop"
    assert "the ceiling of card 1 is 30,979.29 MiB, less 2,048 MiB reserved for others" in gate["says"]
    assert "the pair can take 0 MiB more, clear of the rounding and 2,048 MiB reserved for others" in ceiling["says"]
    # The settled free memory that the next boot prints is before others take theirs.
    free = next(item for item in plan["predictions"] if item["id"] == "settled_free_mib.card1")
    assert free["low"] < 2068.48 + 194 < free["high"]


def test_what_is_kept_on_a_card_that_does_not_bind_changes_nothing():
    with_it = make_plan(ledger(), {"reserved_for_others_mib": [{"card": 1, "mib": 5, "reason": "a monitor"}]})
    assert with_it["to"] == make_plan(ledger(), {})["to"]
    assert (with_it["ceiling"]["card"], with_it["ceiling"]["others_mib"]) == (0, 0)


def test_both_reserves_bound_a_stated_pair_and_the_ways_out_count_them():
    request = {"reserved_for_others_mib": [DESKTOP], "reserve_mib": 100, "reserve_reason": "first launches"}
    # 30,979.29 - 2,048 - 100 = 28,831.29.
    held = make_plan(ledger(), {**request, "pair": {"weights_mib": 23711, "kv_mib": 5120}})
    assert gate_of(held, "pair_within_ceiling")["from"] == (
        "personal reserve: first launches; 2,048 MiB of card 1 for others: a desktop"
    )
    assert (
        "0.29 MiB stay free above the floor of 209.19 MiB and the personal reserves"
        in (gate_of(held, "headroom_kept")["says"])
    )
    error = refused(ledger(), {**request, "pair": {"weights_mib": 23712, "kv_mib": 5120}})
    assert error.code == "pair_within_ceiling"
    assert "less a reserve of 100 MiB and 2,048 MiB reserved for others: 0.71 MiB too much" in error.text
    assert "the largest slab that fits is 23,711 MiB, and 23,706 MiB is clear of the rounding" in error.text


def test_a_largest_slab_that_is_clear_of_the_rounding_is_named_once():
    error = refused(
        ledger(settled=[settled(0, "215.30 MiB"), settled(1, "225.30 MiB")]),
        {"pair": {"weights_mib": 26500, "kv_mib": 5120}},
    )
    assert "the largest slab that fits is 24,006 MiB, and it is clear of the rounding" in error.text


def test_a_reserve_does_not_turn_the_cross_check_into_a_warning():
    boot = ledger()
    boot["settled"][1]["free"] = size("5.00 GiB")
    boot["budget"]["rows"]["claimable"] = size("1.93 GiB")
    plan = make_plan(boot, {"reserved_for_others_mib": [{"card": 1, "mib": 4000, "reason": "an encoder"}]})
    assert plan["ceiling"]["card"] == 1
    assert plan["ceiling"]["cross_check"]["late_mib"] == 14.08
    assert not any("nothing in this boot explains" in said for said in plan["warnings"])


@pytest.mark.parametrize(
    ("reserved", "code", "named"),
    [
        ([{"card": 2, "mib": 2048, "reason": "x"}], "card_not_used", "this boot uses card 0, card 1"),
        ([DESKTOP, DESKTOP], "request_unreadable", "names card 1 twice"),
        ([{"card": 1, "mib": 2048}], "reason_missing", "reserved_for_others_mib[0].reason"),
        ([{"card": 1, "mib": "2,048", "reason": "x"}], "not_a_whole_number", "'2,048'"),
        ([{"card": "one", "mib": 1, "reason": "x"}], "not_a_whole_number", "'one'"),
        ([{"mib": 1, "reason": "x"}], "request_unreadable", "has no card"),
        ({"card1": 2048}, "request_unreadable", "takes a list"),
    ],
)
def test_a_reserve_that_cannot_be_meant_is_refused(reserved, code, named):
    error = refused(ledger(), {"reserved_for_others_mib": reserved})
    assert error.code == code
    assert named in error.text


def test_a_fill_holds_the_live_sessions_that_were_asked_for():
    plan = make_plan(ledger(), {"live_sessions": TWO_SESSIONS})
    # 2 x 184,000 x 1.8 tokens in blocks of 4 x 7,488 B, + states + checkpoints; the contract itself is unchanged.
    assert plan["contract"]["live_sessions"] == {
        **TWO_SESSIONS,
        "factor": 1.8,
        "factor_from": "the engine's guide, 4.3",
        "held_tokens": 662400,
        "needed_mib": 5507.664,
    }
    assert plan["contract"]["needed_mib"] == 5062.059
    # 5,507.66 and one stride and 4 KiB a paged group, up to whole MiB.
    assert (plan["to"]["weights_mib"], plan["to"]["kv_mib"]) == (25399, 5564)
    gate = gate_of(plan, "pool_holds_live_sessions")
    assert gate["holds"] and not gate["hard"]
    assert "as asked in live_sessions" in gate["from"] and "the engine's guide, 4.3, and an estimate" in gate["from"]
    for option in plan["options"]:
        assert gate_of(option, "pool_holds_live_sessions")["holds"]


def test_a_running_pool_that_holds_too_few_sessions_is_filled_or_warned_of():
    assert make_plan(ledger(kv_mib=5564), {"live_sessions": TWO_SESSIONS, "min_gain_mib": 4000})["changes"] == []
    filled = make_plan(ledger(), {"live_sessions": TWO_SESSIONS, "min_gain_mib": 4000})
    assert filled["to"]["kv_mib"] == 5564
    kept = make_plan(ledger(), {"live_sessions": TWO_SESSIONS, "pair": "keep"})
    assert kept["changes"] == []
    assert any(
        "What runs already fails pool_holds_live_sessions" in said
        and "It is 387.66 MiB short" in said
        and "holds the blocks of 1 session; pair: fill takes a pool of 5,564 MiB" in said
        for said in kept["warnings"]
    )


def test_a_request_that_lets_sessions_go_is_refused_and_can_be_accepted():
    request = {"live_sessions": TWO_SESSIONS, "pair": {"weights_mib": 24000, "kv_mib": 5400}}
    error = refused(ledger(kv_mib=5600), request)
    assert error.code == "pool_holds_live_sessions"
    accepting = '{"accept": [{"gate": "pool_holds_live_sessions", "reason": "WHY"}]}'
    assert f"Or accept pool_holds_live_sessions with a reason: -e '{accepting}'." in error.text
    accept = [{"gate": "pool_holds_live_sessions", "reason": "they pause for the night"}]
    plan = make_plan(ledger(kv_mib=5600), {**request, "accept": accept})
    assert gate_of(plan, "pool_holds_live_sessions")["accepted"] == "they pause for the night"


def test_sessions_are_of_the_planned_context_and_the_factor_can_be_stated():
    live = make_plan(ledger(), {"live_sessions": {"sessions": "3", "factor": "1"}})["contract"]["live_sessions"]
    assert (live["tokens"], live["held_tokens"], live["factor_from"]) == (200000, 600000, "the request")
    # Three of the full context at a factor of 1 are the contract.
    assert live["needed_mib"] == 5062.059
    grown = make_plan(ledger(), {"live_sessions": {"sessions": 1}, "shape": {"max_model_len": 250000}})
    assert grown["contract"]["live_sessions"]["held_tokens"] == 450000


def test_sessions_that_no_pool_can_keep_are_refused():
    off = refused(ledger(flags={"no-prefix-cache": ""}), {"live_sessions": TWO_SESSIONS})
    assert (off.code, "--no-prefix-cache" in off.text) == ("prefix_cache_off", True)
    many = refused(ledger(), {"live_sessions": {"sessions": 40, "tokens": 184000}})
    assert many.code == "contract_does_not_fit"
    assert "40 live sessions of 184,000 tokens, which hold 13,248,000 tokens of blocks" in many.text
    assert "it can hold this shape and 2 live sessions" in many.text


def test_a_host_tier_is_named_beside_live_sessions():
    boot = ledger(flags={"prefix-cache-host-mib": "4096"})
    said = make_plan(boot, {"live_sessions": TWO_SESSIONS})["warnings"]
    assert any("copies finished sessions to host memory (--prefix-cache-host-mib 4096)" in text for text in said)
    assert not any("live_sessions" in text for text in make_plan(boot, {})["warnings"])


@pytest.mark.parametrize(
    ("live", "code"),
    [
        ({"tokens": 184000}, "request_unreadable"),
        ({"sessions": "two"}, "not_a_whole_number"),
        ({"sessions": 2, "tokens": 0}, "not_a_whole_number"),
        ({"sessions": 2, "factor": 0.9}, "not_a_number"),
        ({"sessions": 2, "factor": "1,8"}, "not_a_number"),
        ({"sessions": 2, "context": 1}, "request_unreadable"),
        (2, "request_unreadable"),
    ],
)
def test_live_sessions_that_cannot_be_read_are_refused(live, code):
    assert refused(ledger(), {"live_sessions": live}).code == code


def test_an_engine_that_splits_the_card_keeps_none_of_it_and_the_plan_says_so():
    request = {"engine_version": "1.3.0", "reserved_for_others_mib": [DESKTOP], "live_sessions": TWO_SESSIONS}
    said = make_plan(ledger(), request)["warnings"]
    assert any(
        "It keeps nothing for the reserve (2,048 MiB of card 1 for others: a desktop) and the live sessions" in text
        for text in said
    )


@pytest.mark.parametrize(
    ("flags", "lent", "said"),
    [
        (
            {"max-num-batched-tokens": "4096"},
            [{"from": "activation_arena", "slots": 363, "size": size("496.00 MiB")}],
            "the larger step budget (--max-num-batched-tokens 4096) only costs arena: at most 496 MiB of its 897.00",
        ),
        (
            {},
            [],
            "the engine's default step budget of 8,192 only costs arena: how many of its 897.00 MiB cannot be told",
        ),
    ],
)
def test_a_chunk_that_is_paid_for_and_not_used_is_warned_of_with_its_price(flags, lent, said):
    boot = ledger(flags=flags, lent=lent, chunk={"prefill_tokens": 2048, "bound_by": "checkpoint_interval"})
    boot["budget"]["rows"]["activation_arena"] = size("897.00 MiB")
    (warned,) = (text for text in make_plan(boot, {})["warnings"] if "chunk_within_interval" in text)
    assert said in warned
    assert "one boot at 2048 prints the arena to compare" in warned
    assert "Lower --max-num-batched-tokens to 2048" in warned


def test_another_tp_is_refused_with_what_is_known_and_what_one_boot_tells():
    assert make_plan(ledger(), {"tp": "2"})["to"] == make_plan(ledger(), {})["to"]
    error = refused(ledger(), {"tp": 1})
    assert error.code == "tp_not_measured"
    assert "tp 1 is asked for, and this boot ran at tp 2" in error.text
    # 14,144 B a token; the states of all 48 heads; 8 strides of 112 MiB.
    assert "3 sequences of 200,000 tokens (fp8) would need 9,647.93 MiB a card" in error.text
    assert "One boot at --tp 1 would tell" in error.text
    unknown = ledger(model={"name": "m", "arch": "other", "quant": "w4", "layers": 48, "trained_context": 262144})
    assert "the dimensions of other are not" in refused(unknown, {"tp": 1}).text
    model = {"rate_bytes_per_token": 14144, "state_mib_per_sequence": 219.6, "checkpoint_mib": 896}
    stated = refused(unknown, {"tp": 1, "kv_model": model}).text
    assert "By what is stated in kv_model: rate_bytes_per_token 14144" in stated
    assert "would need 9,648.06 MiB a card" in stated
    assert refused(ledger(), {"tp": "0"}).code == "not_a_whole_number"


def test_a_half_that_is_stated_twice_restarts_once():
    # The next boot prints its free memory in MiB, and so the rest to a hundredth.
    boot = ledger(weights_mib=25000, kv_mib=5963, settled=[settled(0, "215.30 MiB"), settled(1, "225.30 MiB")])
    again = make_plan(boot, {"pair": {"weights_mib": 25000}})
    assert again["changes"] == []
    assert any(
        "the rest would give kv_mib 6 MiB more, less than min_gain_mib 256" in said for said in again["warnings"]
    )
    taken = make_plan(boot, {"pair": {"weights_mib": 25000}, "min_gain_mib": 5})
    assert (taken["to"]["weights_mib"], taken["to"]["kv_mib"]) == (25000, 5969)
    assert make_plan(boot, {"pair": {"kv_mib": 5900}})["to"]["weights_mib"] == 25069


def test_what_runs_keeps_a_reserve_as_far_as_its_rounding_tells():
    # 29,120 + 2,047 of reserve is 3.39 over what this print says is there, and the print is rounded to 5.12.
    free = [settled(0, "2.20 GiB"), settled(1, "2.20 GiB")]
    reserve = {"reserved_for_others_mib": [{"card": 0, "mib": 2047, "reason": "a desktop"}]}
    plan = make_plan(ledger(settled=free), reserve)
    assert plan["changes"] == []
    over = {"reserved_for_others_mib": [{"card": 0, "mib": 2052, "reason": "a desktop"}]}
    assert make_plan(ledger(settled=free), over)["to"]["weights_mib"] < 24000


def test_a_second_fill_is_announced_where_the_engine_derived_the_slab():
    boot = ledger()
    boot["budget"]["weights"] = "derived"
    boot["budget"]["rows"]["prefill_staging"] = size("288.00 MiB")
    assert any("288 MiB of it went into prefill staging" in said for said in make_plan(boot, {})["warnings"])
    assert not any("prefill staging" in said for said in make_plan(ledger(), {})["warnings"])
