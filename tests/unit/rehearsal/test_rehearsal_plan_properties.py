# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds of every plan, whatever the world, over ledgers of boots of the stand-in in random worlds."""

from __future__ import annotations

import copy
import functools
import json
from typing import Any

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import ARMS
from engine.random_worlds import random_world
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from rehearsal_ledgers import ledger_of

WORLDS = st.integers(min_value=0, max_value=59)
RESERVES = st.fixed_dictionaries(
    {},
    optional={
        "reserve_mib": st.integers(min_value=0, max_value=900),
        "others": st.integers(min_value=0, max_value=3000),
        "live_sessions": st.fixed_dictionaries({"sessions": st.integers(min_value=1, max_value=3)}),
    },
)
SHAPES = st.fixed_dictionaries(
    {},
    optional={
        "max_num_seqs": st.integers(min_value=1, max_value=9),
        "max_model_len": st.integers(min_value=1, max_value=262_144),
        "kv_cache_dtype": st.sampled_from(["fp8", "bf16"]),
        "num_speculative_tokens": st.integers(min_value=0, max_value=3),
    },
)


@functools.cache
def boot_of(seed: int) -> dict[str, Any]:
    """The ledger of a random world whose boots come up; nobody may change it."""
    world = random_world(seed)
    return ledger_of(world, world.flags)


def request_of(boot: dict[str, Any], shape: dict[str, Any], reserves: dict[str, Any]) -> dict[str, Any]:
    """A fill of ``shape`` with these reserves, ``others`` on the last card."""
    asked = {"shape": shape, "arms": ARMS, "min_gain_mib": 0, "reserve_reason": "a test", **reserves}
    others = asked.pop("others", None)
    if others is not None:
        asked["reserved_for_others_mib"] = [{"card": boot["devices"]["used"][-1], "mib": others, "reason": "x"}]
    return asked


def planned(boot: dict[str, Any], request: dict[str, Any], alternatives: bool = False) -> dict[str, Any]:
    """A plan; what is refused tells nothing here."""
    try:
        return make_plan(boot, request, alternatives=alternatives)
    except RadianceError:
        assume(False)
        raise


@given(WORLDS, SHAPES, RESERVES)
@settings(max_examples=50)
def test_a_plan_of_any_world_keeps_under_every_ceiling_and_its_gates_hold(
    seed: int, shape: dict[str, Any], reserves: dict[str, Any]
) -> None:
    boot = boot_of(seed)
    plan = planned(boot, request_of(boot, shape, reserves))
    assume(plan["restart"])
    pair = plan["to"]["weights_mib"] + plan["to"]["kv_mib"]
    runs = boot["pair"]["weights_mib"] + boot["pair"]["kv_mib"]
    for row in boot["settled"]:
        sure = row["free"]["plus_minus_mib"] + row["floor"]["plus_minus_mib"]
        kept = reserves.get("reserve_mib", 0)
        if row["card"] == boot["devices"]["used"][-1]:
            kept += reserves.get("others", 0)
        assert pair + kept <= row["free"]["mib"] - row["floor"]["mib"] + runs - sure + 0.001
    for gate in plan["gates"]:
        assert gate["holds"] and gate["from"] and gate["says"]
    live = plan["contract"]["live_sessions"]
    assert live is None or plan["to"]["kv_mib"] >= live["needed_mib"]
    assert plan["to"]["kv_mib"] >= plan["contract"]["needed_mib"]


@given(WORLDS, SHAPES, RESERVES, st.integers(min_value=0, max_value=4000))
@settings(max_examples=50)
def test_more_memory_never_makes_a_plan_of_any_world_worse(
    seed: int, shape: dict[str, Any], reserves: dict[str, Any], more: int
) -> None:
    boot = boot_of(seed)
    request = request_of(boot, shape, reserves)
    plan = planned(boot, request)
    richer = copy.deepcopy(boot)
    for row in richer["settled"]:
        row["free"]["mib"] += more
    to = make_plan(richer, request, alternatives=False)["to"]
    assert to["weights_mib"] >= plan["to"]["weights_mib"]
    # What is asked of the pool is what it gets, unless what runs was left as it is.
    assert to["kv_mib"] == plan["to"]["kv_mib"] or not plan["restart"]


@given(WORLDS, SHAPES, st.integers(0, 4), st.integers(0, 60_000), st.integers(1, 20_000), st.integers(0, 9_999))
@settings(max_examples=50)
def test_the_contract_of_any_world_never_falls_as_the_shape_grows(
    seed: int, shape: dict[str, Any], more: int, longer: int, rate: int, dearer: int
) -> None:
    boot = boot_of(seed)

    def needed(wanted: dict[str, Any], **kv_model: Any) -> float:
        request = {"shape": wanted, "pair": "keep", "on_gate": "report", "kv_model": kv_model}
        return float(planned(boot, request)["contract"]["needed_mib"])

    base = planned(boot, {"shape": shape, "pair": "keep", "on_gate": "report"})["to"]
    least = needed(shape)
    assert needed({**shape, "max_num_seqs": base["max_num_seqs"] + more}) >= least
    assert needed({**shape, "max_model_len": base["max_model_len"] + longer}) >= least
    assert needed(shape, rate_bytes_per_token=rate + dearer) >= needed(shape, rate_bytes_per_token=rate)


@given(WORLDS, RESERVES)
@settings(max_examples=30)
def test_every_option_and_price_of_any_world_passes_its_own_gates(seed: int, reserves: dict[str, Any]) -> None:
    boot = boot_of(seed)
    request = request_of(boot, {}, reserves)
    plan = planned(boot, request, True)
    rows = [(row["to"], row["request"]) for row in plan["options"]]
    rows += [(row["to"], row["request"]) for row in plan["prices"] if row["fits"] and row["backing"] == "full"]
    for to, words in rows:
        if words is None:
            assert to == plan["from"]
            continue
        asked = dict(word.split("=") for word in words.split() if "=" in word)
        fill = asked.pop("fill", None)
        pair = {name: asked.pop(name) for name in ("weights_mib", "kv_mib") if name in asked}
        again = make_plan(boot, {**request, "shape": asked, "pair": pair or "fill"}, alternatives=False)
        assert (again["to"], fill or pair) == (to, fill or pair), words
        assert all(gate["holds"] for gate in again["gates"])


@given(WORLDS, SHAPES, RESERVES)
@settings(max_examples=20)
def test_the_same_ledger_of_any_world_gives_the_same_bytes(
    seed: int, shape: dict[str, Any], reserves: dict[str, Any]
) -> None:
    boot = boot_of(seed)
    before = json.dumps(boot)
    request = {**request_of(boot, shape, reserves), "on_gate": "report"}
    plans = [json.dumps(planned(boot, request, True), ensure_ascii=False) for _again in range(2)]
    assert plans[0] == plans[1]
    assert json.dumps(boot) == before
