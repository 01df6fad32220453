# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan on the controller: the one of the module, and its refusals as data."""

from __future__ import annotations

from ansible_collections.kvfleet.radiance.plugins.filter.endpoint import FilterModule
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import ledger

pair_plan = FilterModule().filters()["pair_plan"]


def test_a_plan_comes_alone() -> None:
    found = pair_plan(ledger(), {"pair": "fill", "image": "localhost/radiance:1.0.13"})
    assert list(found) == ["plan"]
    assert (found["plan"]["to"]["weights_mib"], found["plan"]["to"]["kv_mib"]) == (25844, 5119)


def test_a_gate_that_blocks_gives_its_name_and_the_plan() -> None:
    found = pair_plan(ledger(), {"pair": {"weights_mib": 26000, "kv_mib": 5120}})
    assert found["code"] == "pair_within_ceiling"
    assert "26,000 + 5,120" in found["msg"]
    assert found["plan"]["to"]["weights_mib"] == 26000


def test_a_request_that_cannot_be_read_gives_no_plan() -> None:
    found = pair_plan(ledger(), {"min_gain_mib": "06144"})
    assert (found["code"], "plan" in found) == ("not_a_whole_number", False)
