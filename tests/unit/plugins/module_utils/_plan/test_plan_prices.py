# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The price table: what each shape would cost on this card, and the arguments that get it."""

from __future__ import annotations

import json
import shlex

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import (
    ARMS,
    ledger,
    settled,
)
from hypothesis import given, settings
from hypothesis import strategies as st

# The published decode rates, with the slabs and dtypes that they were seen at.
DECODE = [
    {"weights_mib": 26071, "prefill_tps": 4379, "decode_tps": 124.1, "prompt_tokens": 43500, "kv_cache_dtype": "fp8"},
    {"weights_mib": 22208, "prefill_tps": 3397, "decode_tps": 94.1, "kv_cache_dtype": "bf16"},
]


def row(plan, **wanted):
    """The one row with these values of its ``to`` or its own."""
    found = [
        item
        for item in plan["prices"]
        if all({**item["to"], **item}.get(name) == value for name, value in wanted.items())
    ]
    assert len(found) == 1, found
    return found[0]


def test_the_fastest_arms_slab_has_a_row_with_the_context_that_still_fits():
    # 30,899 MiB beside the margin - 26,071 = 4,828; less 329.39 + 448 + 56 of fixed costs: 3 x 46,615 blocks of 4.
    found = row(make_plan(ledger(), {"arms": ARMS}), name="best_arm", kv_cache_dtype="fp8", max_num_seqs=3)
    assert found["to"] == {
        "weights_mib": 26071,
        "kv_mib": 4828,
        "max_num_seqs": 3,
        "max_model_len": 186460,
        "kv_cache_dtype": "fp8",
        "num_speculative_tokens": 2,
    }
    assert found["prefill"] == {"low": 4247.63, "high": 4510.37}
    assert (found["against_fill_mib"], found["against_fill_prefill"], found["against_now_mib"]) == (227, 0.096, 2071)
    assert found["request"] == "-e max_model_len=186460 -e fill=true"
    assert found["shown"] and found["fits"] and found["sequences_backed"] == 3


def test_four_sequences_cost_against_a_fill_of_today_not_against_today():
    found = row(make_plan(ledger(), {"arms": ARMS}), max_num_seqs=4, max_model_len=200000, kv_cache_dtype="fp8")
    assert (found["against_now_mib"], found["against_fill_mib"], found["against_fill_prefill"]) == (242, -1602, -0.166)
    assert 1160 <= found["slots_lost"] <= 1185


def test_what_was_not_measured_is_null_and_decode_is_only_what_an_arm_saw():
    plan = make_plan(ledger(), {"arms": [*ARMS[:3], *DECODE]})
    other = row(plan, name="neighbour", max_num_seqs=3, max_model_len=200000, kv_cache_dtype="bf16")
    assert (other["prefill"], other["decode"]) == (None, {"tps": 94.1, "weights_mib": 22208})
    assert row(plan, name="present")["decode"] == {"tps": 124.1, "weights_mib": 26071}
    bare = make_plan(ledger(), {})
    assert {(item["prefill"], item["decode"]) for item in bare["prices"] if item["fits"]} == {(None, None)}
    assert not any(item["name"] == "best_arm" for item in bare["prices"])


def test_a_row_that_does_not_fit_says_why_and_has_no_pair():
    plan = make_plan(ledger(), {})
    found = row(plan, max_num_seqs=4, max_model_len=262144, kv_cache_dtype="bf16")
    assert (found["fits"], found["to"]["weights_mib"], found["request"]) == (False, None, None)
    assert found["reason"] == "host_pool_holds_the_rest"
    unknown = ledger()
    unknown["model"]["arch"] = "other"
    found = row(make_plan(unknown, {}), name="one_request", kv_cache_dtype="bf16")
    assert (found["reason"], found["says"]) == ("kv_figures_unknown", "One boot of this dtype would tell its figures.")


def test_one_request_is_labelled_and_backs_one():
    plan = make_plan(ledger(), {"arms": ARMS})
    found = row(plan, name="one_request", kv_cache_dtype="fp8")
    assert (found["backing"], found["to"]["kv_mib"], found["sequences_backed"]) == ("one_request", 2262, 1.0)
    assert found["request"] == "-e fill=true -e backing=one_request -e backing_reason=WHY"


def test_a_screen_has_a_few_rows_and_the_plan_has_all():
    plan = make_plan(ledger(), {"arms": ARMS})
    assert len([item for item in plan["prices"] if item["shown"]]) <= 12
    shapes = {(item["to"]["kv_cache_dtype"], item["to"]["max_num_seqs"]) for item in plan["prices"]}
    assert shapes == {(dtype, count) for dtype in ("fp8", "bf16") for count in (2, 3, 4)}
    windows = {item["to"]["max_model_len"] for item in plan["prices"] if item["name"] != "best_arm"}
    assert windows == {163840, 200000, 262144}


def test_what_runs_at_its_fill_has_nothing_to_ask():
    boot = ledger(weights_mib=25844, kv_mib=5119, settled=[settled(0, "209.50 MiB"), settled(1, "225.30 MiB")])
    found = row(make_plan(boot, {"arms": ARMS}), name="present")
    assert (found["request"], found["to"]["weights_mib"], found["against_fill_mib"]) == (None, 25844, 0)


@given(
    st.integers(min_value=21_000, max_value=300_000),
    st.sampled_from([None, 22208, 25600, 27000]),
    st.sampled_from(["full", "one_request"]),
)
@settings(max_examples=12)
def test_the_arguments_of_a_row_get_its_pair(free, arm, backing):
    boot = ledger(settled=[settled(0, f"{free / 100:.2f} MiB"), settled(1, "2.02 GiB")])
    arms = ARMS if arm is None else [{"weights_mib": arm, "prefill_tps": 9000, "kv_cache_dtype": "fp8"}]
    request = {"arms": arms, "backing": backing, "backing_reason": "a user's own"}
    plan = make_plan(boot, {**request, "on_gate": "report"})
    for item in plan["prices"]:
        if not item["fits"] or item["request"] is None:
            continue
        given = shlex.split(item["request"])
        words = dict(word.split("=", 1) for word in given if "=" in word)
        said = [json.loads(word) for word in given if word.startswith("{")]
        assert said == ([{"backing_reason": "a user's own"}] if words.get("backing") == "one_request" else [])
        asked = {name: words.pop(name) for name in ("backing", "backing_reason") if name in words}
        pair = {"weights_mib": words.pop("weights_mib")} if "weights_mib" in words else "fill"
        words.pop("fill", None)
        again = make_plan(
            boot, {**request, **asked, "shape": words, "pair": pair, "min_gain_mib": 0}, alternatives=False
        )
        assert again["to"] == item["to"], item
