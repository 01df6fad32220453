# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a refusal names as a way out passes the gate that refused, when it is asked for on the same boot."""

from __future__ import annotations

import collections
import random
import re
from collections.abc import Iterator
from typing import Any

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from engine.random_worlds import random_world
from rehearsal_ledgers import ledger_of

SHAPES = (
    r"(?:(?P<context>[\d,]+) tokens for [\d,]+ sequences?)?(?:, or )?(?:(?P<count>[\d,]+) sequences? of [\d,]+ tokens)?"
)
ONE = (
    r"Give the pool at least (?P<pool>[\d,]+) MiB(?:, or a max_model_len of at most (?P<context>[\d,]+))?"
    r"(?:, or a max_num_seqs of at most (?P<count>[\d,]+))?\."
)
POOL_GATES = ("one_request_fits", "pool_meets_contract", "pool_holds_live_sessions")
# What names a way out, and the gates that a request which follows it must pass.
SAID = {
    ONE: ("one_request_fits",),
    rf"This pool holds (?!no such){SHAPES}": POOL_GATES,
    r"the shape asked needs a pool of (?P<pool>[\d,]+) MiB": ("pool_meets_contract",),
    r"Raise host_pool_mib to at least (?P<host>[\d,]+)": ("host_pool_holds_the_rest",),
    rf"the slab must have (?P<slab>[\d,]+) MiB; a pool beside that holds (?!no such){SHAPES}": (
        *POOL_GATES,
        "host_pool_holds_the_rest",
        "pair_within_ceiling",
    ),
    r"the largest slab that fits is (?P<beside>[\d,]+) MiB": ("pair_within_ceiling",),
    r"State a smaller \w+, of at most (?P<half>[\d,]+)": ("pair_within_ceiling",),
    rf"beside the slab that runs, [\d,.]+ MiB, the pool can back {SHAPES}": (*POOL_GATES, "pair_within_ceiling"),
    rf"the smallest that the host pool allows, [\d,]+ MiB, the pool can back {SHAPES}": (
        *POOL_GATES,
        "host_pool_holds_the_rest",
    ),
    r"it can hold this shape and (?P<live>\d+) live session": POOL_GATES,
}


def asked(seed: int, ledger: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Requests of which most are refused."""
    chance = random.Random(seed)
    weights, pool = (int(ledger["pair"][name]) for name in ("weights_mib", "kv_mib"))
    for _number in range(8):
        request: dict[str, Any] = {"shape": {}}
        if chance.random() < 0.6:
            request["shape"]["max_num_seqs"] = chance.choice((1, 2, 5, 20, 100))
        if chance.random() < 0.6:
            request["shape"]["max_model_len"] = chance.choice((1000, 50001, 200000, 2000000))
        less = {"weights_mib": max(1, weights - chance.randrange(3000)), "kv_mib": pool + chance.randrange(4000)}
        halves = ({"weights_mib": weights}, {"kv_mib": pool}, {"weights_mib": weights + 3000}, {"kv_mib": 300})
        request["pair"] = chance.choice(("fill", "fill", "keep", less, *halves))
        if chance.random() < 0.2:
            request.update(backing="one_request", backing_reason="a single user")
        if chance.random() < 0.2:
            request.update(reserve_mib=chance.choice((100, 40000)), reserve_reason="a desktop")
        if chance.random() < 0.2:
            request["live_sessions"] = {"sessions": chance.choice((1, 4))}
        if chance.random() < 0.2:
            request["host_pool_mib"] = chance.choice((0, 1000, 60000))
        yield request


def followed(request: dict[str, Any], way: re.Match[str]) -> Iterator[dict[str, Any]]:
    """The request that a way out names, one for each number of it."""
    for name, text in way.groupdict().items():
        if text is None or name == "slab":
            continue
        number, slab = int(text.replace(",", "")), way.groupdict().get("slab")
        beside = {"pair": {"weights_mib": int(slab.replace(",", ""))}} if slab else {}
        pair = request["pair"] if isinstance(request["pair"], dict) else {}
        more: dict[str, Any] = {
            "context": {"shape": {**request["shape"], "max_model_len": number}},
            "count": {"shape": {**request["shape"], "max_num_seqs": number}},
            "pool": {"pair": {"weights_mib": pair.get("weights_mib", 1), "kv_mib": number}},
            "host": {"host_pool_mib": number},
            "beside": {"pair": {**pair, "weights_mib": number}},
            "half": {"pair": {half: number for half in pair}},
            "live": {"live_sessions": {"sessions": number}},
        }[name]
        yield {**request, **beside, **more, "on_gate": "report"}


def refused(ledger: dict[str, Any], request: dict[str, Any]) -> str:
    """What the planner says against a request, empty where it takes it."""
    try:
        make_plan(ledger, request, alternatives=False)
    except RadianceError as error:
        return error.text
    return ""


def test_every_way_out_that_is_named_is_one() -> None:
    tried: collections.Counter[str] = collections.Counter()
    for seed in range(24):
        world = random_world(seed)
        ledger = ledger_of(world, world.flags)
        if ledger["status"] != "complete":
            continue
        for request in asked(seed, ledger):
            refusal = refused(ledger, request)
            for pattern, names in SAID.items():
                for way in re.finditer(pattern, refusal):
                    for following in followed(request, way):
                        if "beside" in way.groupdict() and "kv_mib" not in following["pair"]:
                            continue
                        tried[pattern] += 1
                        plan = make_plan(ledger, following, alternatives=False)
                        failed = [gate["says"] for gate in plan["gates"] if not gate["holds"] and gate["name"] in names]
                        assert not failed, (seed, request, refusal, following)
            # Nothing is told of a pool below nothing, or of more sequences than anybody could mean.
            assert not re.search(r"-[\d,.]+ MiB|\d{1,3}(,\d{3}){3,} (tokens|sequences) ", refusal), refusal
    assert set(tried) == set(SAID), set(SAID) - set(tried)
    assert sum(tried.values()) > 200, tried
