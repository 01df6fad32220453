# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for every ledger and every request."""

from __future__ import annotations

import copy
import json

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.architecture import kv_groups as known_groups
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import Shape
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import (
    ARMS,
    kv_groups,
    ledger,
    printed,
    settled,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

FREE = st.integers(min_value=20_000, max_value=400_000).map(lambda hundredths: printed(hundredths / 100)["text"])
SEQUENCES = st.integers(min_value=1, max_value=8)
CONTEXTS = st.integers(min_value=1, max_value=262_144)
DTYPES = st.sampled_from(["fp8", "bf16"])
SHAPES = st.fixed_dictionaries(
    {},
    optional={
        "max_num_seqs": SEQUENCES,
        "max_model_len": CONTEXTS,
        "kv_cache_dtype": DTYPES,
        "num_speculative_tokens": st.integers(min_value=0, max_value=4),
    },
)
REQUESTS = st.fixed_dictionaries(
    {"shape": SHAPES, "arms": st.just(ARMS)},
    optional={
        "pair": st.one_of(
            st.sampled_from(["fill", "keep"]),
            st.fixed_dictionaries(
                {},
                optional={
                    "weights_mib": st.integers(min_value=1, max_value=32_000),
                    "kv_mib": st.integers(min_value=1, max_value=32_000),
                },
            ).filter(bool),
        ),
        "min_gain_mib": st.integers(min_value=0, max_value=1000),
        "shape_margin_mib": st.integers(min_value=0, max_value=300),
        "live_sessions": st.fixed_dictionaries({"sessions": st.integers(min_value=1, max_value=3)}),
    },
)
RESERVES = st.integers(min_value=0, max_value=1000)
# What others take on each of the two cards.
OTHERS = st.tuples(st.integers(min_value=0, max_value=1000), st.integers(min_value=0, max_value=1000))


def planned(boot, request, alternatives=False):
    """A plan, or None where the request was refused."""
    try:
        return make_plan(boot, request, alternatives=alternatives)
    except RadianceError:
        return None


def booted(free, **more):
    return ledger(settled=[settled(0, free[0]), settled(1, free[1])], **more)


@given(st.tuples(FREE, FREE), REQUESTS, RESERVES, OTHERS)
def test_a_plan_never_passes_the_ceiling(free, request, reserve, others):
    boot = booted(free)
    reserves = {"reserve_mib": reserve, "reserve_reason": "a test"}
    reserves["reserved_for_others_mib"] = [{"card": n, "mib": kept, "reason": "x"} for n, kept in enumerate(others)]
    plan = planned(boot, {**request, **reserves})
    if plan is None or not plan["restart"]:
        return
    pair = plan["to"]["weights_mib"] + plan["to"]["kv_mib"]
    for row in boot["settled"]:
        ceiling = row["free"]["mib"] - row["floor"]["mib"] + 29120
        rounding = row["free"]["plus_minus_mib"] + row["floor"]["plus_minus_mib"]
        filled = request.get("pair", "fill") == "fill" or len(request["pair"]) == 1
        kept = (plan["to"]["weights_mib"], plan["to"]["kv_mib"]) == (24000, 5120)
        sure = rounding if filled and not kept else 0
        assert pair + reserve + others[row["card"]] <= ceiling - sure + 0.001


@given(st.tuples(FREE, FREE), REQUESTS)
def test_gates_of_a_plan_hold_and_have_a_source(free, request):
    plan = planned(booted(free), request)
    if plan is None:
        return
    for gate in plan["gates"]:
        assert gate["holds"] and gate["from"] and gate["says"]


@given(st.tuples(FREE, FREE), SHAPES)
@settings(max_examples=50)
def test_options_pass_their_own_gates(free, shape):
    boot = booted(free)
    plan = planned(boot, {"pair": "fill", "shape": shape, "arms": ARMS, "on_gate": "report"}, True)
    assume(plan is not None)
    for option in plan["options"]:
        assert option["gates"] and all(gate["holds"] for gate in option["gates"])
        # The arguments get what the option shows.
        words = dict(word.split("=") for word in option["request"].split() if "=" in word)
        assert words.pop("fill") == "true"
        again = make_plan(boot, {"shape": words, "pair": "fill", "min_gain_mib": 0}, alternatives=False)
        assert again["to"] == option["to"]
        assert again["gates"] == option["gates"]


@given(
    SEQUENCES,
    CONTEXTS,
    DTYPES,
    st.integers(0, 3),
    st.integers(0, 50_000),
    st.integers(1, 20_000),
    st.integers(1, 9_999),
)
def test_the_contract_never_falls_as_the_shape_grows(sequences, context, dtype, more, longer, rate, dearer):
    def needed(shape, **kv_model):
        request = {"shape": {"kv_cache_dtype": dtype, **shape}, "on_gate": "report", "pair": "keep"}
        return make_plan(ledger(), {**request, "kv_model": kv_model}, alternatives=False)["contract"]["needed_mib"]

    shape = {"max_num_seqs": sequences, "max_model_len": context}
    base = needed(shape)
    assert needed({**shape, "max_num_seqs": sequences + more}) >= base
    assert needed({**shape, "max_model_len": context + longer}) >= base
    assert needed(shape, rate_bytes_per_token=rate + dearer) >= needed(shape, rate_bytes_per_token=rate)


@given(st.tuples(FREE, FREE), SHAPES, st.integers(min_value=64, max_value=200))
@settings(max_examples=60)
def test_planning_a_plans_own_result_changes_nothing(free, shape, margin):
    first = planned(booted(free), {"shape": shape, "shape_margin_mib": margin})
    assume(first is not None and first["to"]["weights_mib"] > 20_000)
    to = first["to"]
    moved = to["weights_mib"] + to["kv_mib"] - 29120
    result = ledger(
        weights_mib=to["weights_mib"],
        kv_mib=to["kv_mib"],
        flags={
            "max-num-seqs": str(to["max_num_seqs"]),
            "max-model-len": str(to["max_model_len"]),
            "kv-cache-dtype": to["kv_cache_dtype"],
            "num-speculative-tokens": str(to["num_speculative_tokens"]),
        },
        settled=[
            settled(card, printed(row["free"]["mib"] - moved)["text"])
            for card, row in enumerate(booted(free)["settled"])
        ],
        wire={"mode": "exact", "exact_rows": None},
    )
    result["kv"]["groups"] = groups_of(Shape(**{k: v for k, v in to.items() if not k.endswith("_mib")}))
    result["kv"]["checkpoints"] = {"slots": 8, "each": printed(first["contract"]["checkpoint_mib"] / 8)}
    again = make_plan(result, {"shape": shape, "shape_margin_mib": margin}, alternatives=False)
    assert again["changes"] == [] and again["restart"] is False
    assert again["to"] == again["from"] == to


def groups_of(shape):
    """The KV groups that a boot of this shape prints."""
    known = {group.name: group for group in known_groups("qwen4exp", 2, shape)}
    groups = kv_groups(shape.max_num_seqs)
    for group in groups:
        exact = known[group["name"]]
        # How many blocks that pool holds is not told here, and so not taken for evidence.
        group["blocks"] = None
        if group["page"] is not None:
            group["page"] = kib(exact.page_bytes)
        else:
            group["state"] = printed(exact.state_bytes / 1024**2)
            group["slots"] = exact.copies * shape.max_num_seqs
    return groups


def kib(count):
    text = f"{count / 1024:.2f} KiB"
    return {"mib": float(text.split()[0]) / 1024, "plus_minus_mib": 0.005 / 1024, "text": text}


@given(st.tuples(FREE, FREE), st.integers(min_value=0, max_value=2000), SHAPES)
def test_more_settled_free_never_makes_a_fill_worse(free, more, shape):
    boot = booted(free)
    richer = copy.deepcopy(boot)
    for row in richer["settled"]:
        row["free"]["mib"] += more
    request = {"shape": shape, "min_gain_mib": 0}
    plan = planned(boot, request)
    assume(plan is not None)
    assert make_plan(richer, request, alternatives=False)["to"]["weights_mib"] >= plan["to"]["weights_mib"]


@given(st.tuples(FREE, FREE), REQUESTS)
@settings(max_examples=40)
def test_the_same_input_gives_the_same_bytes_and_is_left_alone(free, request):
    boot = booted(free)
    before = json.dumps([boot, request])
    plans = [
        json.dumps(planned(boot, {**request, "on_gate": "report"}, True), ensure_ascii=False) for _again in range(2)
    ]
    assert plans[0] == plans[1]
    assert json.dumps([boot, request]) == before


@given(st.tuples(FREE, FREE), REQUESTS)
def test_predictions_have_names_of_their_own_and_an_order(free, request):
    plan = planned(booted(free), request)
    assume(plan is not None)
    names = [prediction["id"] for prediction in plan["predictions"]]
    assert len(names) == len(set(names))
    for prediction in plan["predictions"]:
        assert prediction["low"] <= prediction["high"] and prediction["because"]
