# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every plan fits the published schema, and the schema lets nothing else pass."""

from __future__ import annotations

import copy
import json
import pathlib
import typing as t

import jsonschema
import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import ARMS, ledger

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[4] / "schemas" / "plan.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

REQUESTS: list[dict[str, t.Any]] = [
    {},
    {"arms": ARMS},
    {"pair": "keep"},
    {"shape": {"max_num_seqs": 4, "kv_cache_dtype": "bf16"}, "arms": ARMS},
    {"pair": {"weights_mib": 26000, "kv_mib": 5120}, "on_gate": "report"},
    {"engine_version": "1.3.0"},
    {"engine_version": "1.0.14", "image_digest": "sha256:aa", "host_pool_mib": 20000},
    {"reserve_mib": 100, "reserve_reason": "a desktop"},
    {"reserved_for_others_mib": [{"card": 0, "mib": 0}, {"card": 1, "mib": 2048, "reason": "a desktop"}]},
    {"live_sessions": {"sessions": 2, "tokens": 184000, "factor": "1.5"}, "arms": ARMS},
    {"backing": "one_request", "backing_reason": "a single user"},
    {"pair": {"weights_mib": 31000, "kv_mib": 5120}, "shape": {"kv_cache_dtype": "bf16_i8"}, "ran_before": "a record"},
    {"pair": {"weights_mib": 25000, "kv_mib": 4000}, "accept": [{"gate": "pool_meets_contract", "reason": "short"}]},
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_plans_fit_the_schema(request_: dict[str, t.Any]) -> None:
    plan = json.loads(json.dumps(make_plan(ledger(), request_)))
    assert [error.message for error in VALIDATOR.iter_errors(plan)] == []


def test_a_pair_known_only_as_printed_fits_too() -> None:
    boot = ledger(flags={"vram-weights-mib": None}, pair={"weights_mib": 24002.56, "kv_mib": 5120.0, "exact": False})
    assert [error.message for error in VALIDATOR.iter_errors(make_plan(boot, {"pair": "keep"}))] == []


def test_every_record_is_closed_and_whole() -> None:
    plan = make_plan(ledger(), {"arms": ARMS})
    places: list[tuple[str | int, ...]] = [
        (),
        ("from",),
        ("to",),
        ("ceiling",),
        ("contract",),
        ("gates", 0),
        ("options", 0),
        ("options", 0, "to"),
        ("options", 0, "gates", 0),
        ("prices", 0),
        ("prices", 0, "prefill"),
        ("predictions", 0),
        ("law",),
    ]
    for place in places:
        more, fewer = copy.deepcopy(plan), copy.deepcopy(plan)
        record, lesser = more, fewer
        for step in place:
            record, lesser = record[step], lesser[step]  # type: ignore[index]
        record["surprise"] = 1
        assert not VALIDATOR.is_valid(more), place
        del lesser[next(iter(lesser))]
        assert not VALIDATOR.is_valid(fewer), place
