# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the free memory could buy: only what passes its gates, compared with what runs and with a fill."""

from __future__ import annotations

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import (
    ARMS,
    ledger,
    many,
    refusal,
)


def test_options_pass_their_own_gates_and_compare_twice():
    plan = make_plan(ledger(), {"pair": "keep", "arms": ARMS})
    options = {option["name"]: option for option in plan["options"]}
    assert list(options) == ["fill", "one_more_sequence", "longest_context", "bf16_cache"]
    assert options["fill"]["request"] == "-e fill=true"
    four = options["one_more_sequence"]
    assert four["request"] == "-e max_num_seqs=4 -e fill=true"
    assert four["to"]["weights_mib"] == 24242
    assert "+242 MiB against what runs" in four["says"]
    assert "−1,602 MiB against a fill of the present shape (−17% prefill)" in four["says"]
    assert options["longest_context"]["to"]["max_model_len"] == 262144
    assert options["bf16_cache"]["request"] == "-e kv_cache_dtype=bf16 -e fill=true"
    for option in plan["options"]:
        assert all(gate["holds"] for gate in option["gates"])


def test_a_request_is_compared_with_a_fill_of_the_present_shape():
    plan = make_plan(ledger(), {"shape": {"max_num_seqs": 4}, "arms": ARMS})
    assert any("against a fill of the present shape" in warning for warning in plan["warnings"])


def test_an_option_that_fails_a_gate_is_not_offered():
    names = [option["name"] for option in make_plan(many(8, 32768), {})["options"]]
    assert "one_more_sequence" not in names and "most_sequences" not in names
    assert "longest_context" in names
    names = [option["name"] for option in make_plan(many(7, 32768), {})["options"]]
    assert "one_more_sequence" in names


def test_options_say_what_a_pool_for_one_request_backs() -> None:
    asked = {"backing": "one_request", "backing_reason": "a single user"}
    for request, one in ((asked, True), ({}, False)):
        options = {option["name"]: option["says"] for option in make_plan(ledger(), request)["options"]}
        for name in ("fill", "one_more_sequence"):
            assert ("one of them backed at once, which is less than the contract" in options[name]) is one


def test_one_request_is_not_called_a_contract_of_all() -> None:
    asked = {"backing": "one_request", "backing_reason": "a single user", "shape": {"max_model_len": 6_000_000}}
    text = refusal(ledger(), asked).text
    assert text.startswith("One request of 6,000,000 tokens (fp8) beside the states of 3 sequences needs a pool of")
