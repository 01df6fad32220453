# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a command asks goes before what is declared, and what cannot be meant is refused."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _record_fields
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _request


def test_a_service_that_declares_nothing_keeps_its_pair(example: t.Any) -> None:
    assert _request.pair_request(example.service, {}) == {"pair": "keep"}


def test_arms_on_record_join_the_declared_ones(example: t.Any) -> None:
    declared = {"weights_mib": 24_000, "prefill_tps": 3_290}
    measured = dict.fromkeys(_record_fields.FIELDS["arm"])
    measured.update(kind="arm", id="0", weights_mib=25_844, decode_tps=121.3)
    service = {**example.service, "arms": [declared]}
    asked = _request.pair_request(service, {}, record=[measured])
    assert asked == {"pair": "keep", "arms": [declared, {"weights_mib": 25_844, "decode_tps": 121.3}]}


def test_declared_policy_counts_as_a_request(example: t.Any) -> None:
    service = {**example.service, "pair": "fill", "max_num_seqs": 4, "reserve_mib": 100, "reserve_reason": "a monitor"}
    assert _request.pair_request(service, {}) == {
        "pair": "fill",
        "shape": {"max_num_seqs": 4},
        "reserve_mib": 100,
        "reserve_reason": "a monitor",
    }


def test_reserves_sessions_and_figures_of_the_inventory_reach_the_planner(example: t.Any) -> None:
    others = [{"card": 1, "mib": 2048, "reason": "a desktop"}]
    declared = {"reserved_for_others_mib": others, "live_sessions": {"sessions": 2}, "kv_model": {"checkpoint_mib": 0}}
    assert _request.pair_request({**example.service, **declared}, {}) == {"pair": "keep", **declared}
    asked = {"live_sessions": {"sessions": "3"}, "tp": "1"}
    options = _request.pair_request({**example.service, **declared}, asked)
    assert (options["live_sessions"], options["tp"]) == ({"sessions": "3"}, "1")


def test_a_command_goes_before_a_declaration(example: t.Any) -> None:
    service = {**example.service, "pair": "fill", "max_num_seqs": 4, "min_gain_mib": 512}
    options = _request.pair_request(service, {"max_num_seqs": "2", "weights_mib": "06144"})
    # Text stays the text that it was: the core refuses 06144, and must see it.
    assert options == {"pair": {"weights_mib": "06144"}, "shape": {"max_num_seqs": "2"}, "min_gain_mib": 512}


def test_fill_of_a_command_ignores_the_least_gain(example: t.Any) -> None:
    options = _request.pair_request({**example.service, "min_gain_mib": 512}, {"fill": "true"})
    assert options["pair"] == "fill"
    assert options["min_gain_mib"] == 0


def test_a_stated_pair_outlives_a_declared_fill(example: t.Any) -> None:
    service = {**example.service, "pair": "fill"}
    assert _request.pair_request(service, {}, stated=True)["pair"] == "keep"
    assert _request.pair_request(service, {"fill": "yes"}, stated=True)["pair"] == "fill"


def test_a_fill_and_a_stated_pair_contradict_each_other(example: t.Any) -> None:
    with pytest.raises(RadianceError) as caught:
        _request.pair_request(example.service, {"fill": "true", "kv_mib": "5120"})
    assert caught.value.code == "request_contradicts_itself"


def test_an_applied_env_is_the_request_where_the_command_has_none(example: t.Any) -> None:
    env = {"VRAM_WEIGHTS_MIB": "24500", "VRAM_KV_MIB": "5120", "MAX_NUM_SEQS": "2", "MODEL": "x"}
    options = _request.pair_request(example.service, {"max_num_seqs": "1"}, applied=env)
    assert options == {"pair": {"weights_mib": "24500", "kv_mib": "5120"}, "shape": {"max_num_seqs": "1"}}


def test_a_way_back_is_the_whole_request_and_accepts_every_soft_gate(example: t.Any) -> None:
    back = {"to": example.old, "returns_to": "0" * 12, "says": "returning to 24,000 + 5,120", "ran": True}
    options = _request.pair_request({**example.service, "reserve_mib": 300}, {"max_num_seqs": "9"}, back=back)
    assert options["pair"] == {"weights_mib": 24000, "kv_mib": 5120}
    assert options["shape"]["max_num_seqs"] == 3
    assert "reserve_mib" not in options
    assert {"gate": "pool_meets_contract", "reason": "returning to 24,000 + 5,120"} in options["accept"]
    assert options["ran_before"] == "returning to 24,000 + 5,120"
    # What was planned and never held is no evidence of what the card takes.
    assert "ran_before" not in _request.pair_request(example.service, {}, back={**back, "ran": False})


@pytest.mark.parametrize(("text", "truth"), [("true", True), ("Yes", True), ("1", True), ("no", False), ("", False)])
def test_yes_and_no_of_a_command_line(text: str, truth: bool) -> None:
    assert _request.truth(text, "fill") is truth


def test_another_word_is_refused_with_the_text() -> None:
    with pytest.raises(RadianceError, match="'maybe'"):
        _request.truth("maybe", "fill")


def test_services_by_name(example: t.Any) -> None:
    services = [example.service, {**example.service, "name": "coder"}]
    assert [item["name"] for item in _request.chosen(services, "coder")] == ["coder"]
    assert len(_request.chosen(services, "")) == 2
    assert _request.chosen([]) == []  # as the task names it whose name loads the filters
    assert _request.chosen(services, "other") == []
    said = _request.request_objection({}, [*services, services[0]], "dankserver")
    assert said == (
        "dankserver declares 'flashnext' more than once in endpoint_services. Give each service a name of its own."
    )
    for name in ("flash\nnext", "flashnext\n", "flash next", "flash\x1b[2Jnext"):
        said = _request.request_objection({}, [{**example.service, "name": name}], "dankserver")
        assert said == f"dankserver declares {name!r} in endpoint_services. Name a service in one word."
    odd: t.Any
    for odd in ({"name": "flashnext"}, "flashnext", [None], ["flashnext"]):
        said = _request.request_objection({}, odd, "dankserver")
        assert said.startswith("endpoint_services of dankserver is no list of services."), odd
    assert _request.request_objection({"service": "other"}, services, "dankserver") == (
        "service=other is not declared on this host. Its endpoint_services are: flashnext, coder."
    )


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"probes": "fast"}, "probes is 'fast'. Write probes=none, quick or full."),
        ({"drift": "force"}, "drift is 'force'. Write drift=apply or adopt."),
        ({"backing": "half"}, "backing is 'half'. Write backing=full or one_request."),
        ({"fill": "maybe"}, "fill is 'maybe'."),
        ({"fill": "true", "kv_mib": "5120"}, "at once"),
        ({"service": "other"}, "flashnext"),
        ({"plan": "nosuch.json"}, "nosuch.json cannot be read: No such file"),
        (
            {"accept": "pool_meets_contract"},
            "accept is 'pool_meets_contract'. Write it as JSON: "
            '-e \'{"accept": [{"gate": "pool_meets_contract", "reason": "WHY"}]}\'.',
        ),
        ({"accept": {"gate": "headroom_kept"}}, '{"accept": [{"gate": "GATE", "reason": "WHY"}]}'),
        (
            {"live_sessions": "2"},
            "live_sessions is '2'. Write it as JSON: -e '{\"live_sessions\": {\"sessions\": 2}}'.",
        ),
        ({"reserved_for_others_mib": "2048"}, '[{"card": 0, "mib": 2048, "reason": "WHO"}]'),
        ({"accept": [{"gate": "headroom_kept", "reason": "why"}], "live_sessions": {"sessions": 2}}, ""),
        ({"not_after": "6 in the morning"}, "not_after is '6 in the morning'. Write a time of the day like 06:00"),
        ({"not_after": "2020-01-01T06:00:00Z"}, " s ago: it is "),
        ({"after_stop": "revert"}, "after_stop is 'revert'. Write after_stop=leave or undo."),
        ({"not_after": "06:00", "after_stop": "undo"}, ""),
        ({"probes": "full", "drift": "adopt", "fill": "true"}, ""),
        ({}, ""),
    ],
)
def test_what_cannot_be_meant_is_refused_before_the_host_is_read(
    example: t.Any, request_: dict[str, t.Any], said: str
) -> None:
    found = _request.request_objection(request_, [example.service], "dankserver")
    assert said in found
    assert bool(found) == bool(said)


def test_a_host_without_services_is_named() -> None:
    assert (
        _request.request_objection({}, [], "dankserver") == "dankserver declares no endpoint_services in the inventory."
    )


def test_the_command_that_made_the_pair_fills_it_again_like_any_fill(example: t.Any) -> None:
    asked = {"fill": "true", "max_num_seqs": "4"}
    first = _request.pair_request(example.service, asked)
    assert first == {"shape": {"max_num_seqs": "4"}, "pair": "fill", "min_gain_mib": 0}
    # A run that was stopped is taken up again: 6 MiB that the first boot had rounded are no restart.
    made = example.planned(request=first)
    arm = {"weights_mib": 24000, "prefill_tps": 3290}
    measured = {**example.service, "arms": [arm]}
    assert _request.pair_request(measured, asked, made=made) == {
        "shape": {"max_num_seqs": "4"},
        "pair": "fill",
        "arms": [arm],
    }
    declared = {**example.service, "min_gain_mib": 512}
    assert _request.pair_request(declared, asked, made=made)["min_gain_mib"] == 512
    # Another command, or another way to the pair: whatever it gains.
    for other in (example.planned(request={**first, "image": "x"}), example.planned(request={"pair": "fill"}), None):
        assert _request.pair_request(example.service, asked, made=other)["min_gain_mib"] == 0
