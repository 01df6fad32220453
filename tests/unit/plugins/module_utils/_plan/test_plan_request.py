# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request is read strictly, and what runs is read from the ledger first."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import (
    kv_groups,
    ledger,
    size,
)

LOOSE = [
    "6144\n",
    "9" * 13,
    "9" * 400,
    "06144",
    "6_144",
    "1e3",
    "6,144",
    "8k",
    "auto",
    "",
    " 6144",
    "6144MiB",
    "0x1800",
    "-1",
    True,
    6144.0,
    -1,
    [],
]


def refusal(request, boot=None):
    with pytest.raises(RadianceError) as refused:
        make_plan(ledger() if boot is None else boot, request)
    return refused.value


@pytest.mark.parametrize("value", LOOSE)
@pytest.mark.parametrize(
    "place",
    [
        lambda value: {"pair": {"weights_mib": value, "kv_mib": 5120}},
        lambda value: {"shape": {"max_num_seqs": value}},
        lambda value: {"shape": {"num_speculative_tokens": value}},
        lambda value: {"running": {"max_model_len": value}},
        lambda value: {"reserve_mib": value, "reserve_reason": "x"},
        lambda value: {"min_gain_mib": value},
        lambda value: {"shape_margin_mib": value},
        lambda value: {"host_pool_mib": value},
        lambda value: {"kv_model": {"rate_bytes_per_token": value}},
        lambda value: {"arms": [{"weights_mib": value, "prefill_tps": 1}]},
    ],
)
def test_loose_numbers_are_refused_with_the_text_quoted(place, value):
    error = refusal(place(value))
    assert error.code == "not_a_whole_number"
    assert repr(value) in error.text


def test_what_is_asked_of_pair_and_shape_has_the_name_that_a_command_gave_it():
    assert refusal({"pair": {"weights_mib": "06144"}}).text.startswith("weights_mib is '06144', which is not a whole")
    assert refusal({"pair": {"kv_mib": "0"}}).text.startswith("kv_mib is '0': at 0 the engine derives it")
    assert refusal({"shape": {"max_num_seqs": "8k"}}).text.startswith("max_num_seqs is '8k', which")
    assert refusal({"running": {"max_num_seqs": "8k"}}).text.startswith("running.max_num_seqs is '8k', which")


@pytest.mark.parametrize("value", [10**12, 10**400])
def test_a_number_beyond_every_card_is_refused_in_words(value):
    error = refusal({"pair": {"weights_mib": 24000, "kv_mib": value}})
    assert error.code == "not_a_whole_number"
    assert "more than 12 digits" in error.text


@pytest.mark.parametrize("value", ["3,397", "fast", float("inf"), True, "1e3", "03"])
def test_loose_rates_are_refused(value):
    assert refusal({"arms": [{"weights_mib": 24000, "prefill_tps": value}]}).code == "not_a_number"


def test_plain_digits_are_read_like_numbers():
    as_text = make_plan(ledger(), {"shape": {"max_num_seqs": "4"}, "reserve_mib": "0", "min_gain_mib": "256"})
    assert as_text == make_plan(ledger(), {"shape": {"max_num_seqs": 4}})


def test_zero_is_not_a_pool_that_anyone_means():
    assert "at 0 the engine derives" in refusal({"pair": {"weights_mib": 0, "kv_mib": 5120}}).text


@pytest.mark.parametrize(
    ("request_", "code", "quoted"),
    [
        ({"pair": "full"}, "request_unreadable", "'full'"),
        ({"pair": {}}, "request_unreadable", "pair is empty"),
        ({"pair": {"weight_mib": 1}}, "request_unreadable", "'weight_mib'"),
        ({"shapes": {}}, "request_unreadable", "'shapes'"),
        ({"shape": {"kv_cache_dtype": "q8_0"}}, "dtype_unknown", "'q8_0'"),
        ({"backing": "some"}, "request_unreadable", "'some'"),
        ({"backing": "one_request"}, "reason_missing", "backing_reason"),
        ({"backing": "one_request", "backing_reason": "WHY"}, "reason_missing", "say why in backing_reason"),
        ({"reserve_mib": 64}, "reason_missing", "reserve_reason"),
        ({"reserve_mib": 64, "reserve_reason": "  "}, "reason_missing", "reserve_reason"),
        ({"accept": [{"gate": "pool_meets_contract"}]}, "reason_missing", "pool_meets_contract"),
        ({"accept": [{"gate": "pair_within_ceiling", "reason": "x"}]}, "gate_not_acceptable", "pair_within_ceiling"),
        ({"accept": [{"gate": "pool", "reason": "x"}]}, "gate_not_acceptable", "'pool'"),
        ({"engine_version": "latest"}, "request_unreadable", "'latest'"),
        ({"engine_version": 1.3}, "request_unreadable", "1.3"),
        ({"engine_version": "1." + "9" * 5000}, "request_unreadable", "'1.999"),
        ({"on_gate": "warn"}, "request_unreadable", "'warn'"),
        ({"arms": [{"weights_mib": 24000}]}, "request_unreadable", "prefill_tps"),
    ],
)
def test_what_cannot_be_read_is_quoted(request_, code, quoted):
    error = refusal(request_)
    assert error.code == code
    assert quoted in error.text


def test_none_counts_as_not_given():
    request = {"running": None, "shape": {"max_num_seqs": None}, "pair": None, "kv_model": None, "host_pool_mib": None}
    assert make_plan(ledger(), request) == make_plan(ledger(), {})


def test_only_a_complete_ledger_is_planned_from():
    refused = ledger(status="refused", reason={"code": "short", "text": "SHORT BY 1.00 GiB."})
    assert refusal({}, refused).code == "ledger_not_complete"
    assert "SHORT BY 1.00 GiB" in refusal({}, refused).text
    assert refusal({}, {"schema": "other"}).code == "ledger_unknown"
    assert refusal({}, ledger(settled=[])).code == "no_settled_line"


@pytest.mark.parametrize(
    ("running", "printed"),
    [
        ({"max_num_seqs": 4}, "3"),
        ({"max_model_len": 100000}, "200000"),
        ({"kv_cache_dtype": "bf16"}, "fp8"),
        ({"num_speculative_tokens": 3}, "2"),
        ({"weights_mib": 25600}, "24,000"),
        ({"kv_mib": 5119}, "5,120"),
    ],
)
def test_running_that_contradicts_the_boot_is_drift(running, printed):
    error = refusal({"running": running})
    assert error.code == "running_drift"
    assert printed in error.text and str(next(iter(running))) in error.text


def test_running_outside_the_printed_interval_is_drift():
    rounded = ledger(flags={"vram-weights-mib": None}, pair={"weights_mib": 24002.56, "kv_mib": 5120.0, "exact": False})
    assert refusal({"running": {"weights_mib": 24008}}, rounded).code == "running_drift"
    assert make_plan(rounded, {"running": {"weights_mib": 24007}})["from"]["weights_mib"] == 24007


def test_without_a_command_line_the_printed_rows_tell_the_shape():
    bare = ledger(flags={name: None for name in ledger()["flags"]})
    found = make_plan(bare, {})["from"]
    assert (found["max_num_seqs"], found["max_model_len"]) == (3, 200000)
    # 9 sampler rows over 3 sequences; 26.00 KiB pages are fp8 at tp 2.
    assert (found["num_speculative_tokens"], found["kv_cache_dtype"]) == (2, "fp8")
    groups = kv_groups()
    groups[0]["page"] = size("52.00 KiB")
    bare["kv"]["groups"] = groups
    assert make_plan(bare, {"pair": "keep"})["from"]["kv_cache_dtype"] == "bf16"


def test_what_nothing_tells_is_named():
    silent = ledger(
        flags={name: None for name in ledger()["flags"]}, capacity=None, sampler=None, model={"arch": "other"}
    )
    error = refusal({}, silent)
    assert error.code == "running_unknown"
    for name in ("max_num_seqs", "max_model_len", "kv_cache_dtype", "num_speculative_tokens"):
        assert name in error.text
    told = {"max_num_seqs": 3, "max_model_len": 200000, "kv_cache_dtype": "fp8", "num_speculative_tokens": 2}
    assert make_plan(silent, {"running": told})["to"]["weights_mib"] == 25844


def test_a_command_line_without_a_dtype_has_the_engines_own():
    # Nothing tells it by its pages, since the architecture is another one.
    bare = ledger(model={"arch": "other"}, flags={"kv-cache-dtype": None})
    assert make_plan(bare, {})["from"]["kv_cache_dtype"] == "bf16"
    # Of a later release, and of a process whose command line cannot be read, nobody knows.
    for more in ({"engine": {"version": "1.2.4"}}, {"engine": {"version": None}}):
        assert refusal({}, {**bare, **more}).code == "running_unknown"
    assert make_plan(ledger(flags={"kv-cache-dtype": None}), {})["from"]["kv_cache_dtype"] == "fp8"


def test_a_context_of_zero_is_what_the_model_was_trained_for():
    silent = {"sequences": 3, "tokens": None}
    asked = ledger(flags={"max-model-len": "0"}, capacity=silent)
    assert make_plan(asked, {})["from"]["max_model_len"] == 262144
    # No flag and no line tell it: nothing is taken for it.
    assert refusal({}, ledger(flags={"max-model-len": None}, capacity=silent)).code == "running_unknown"


def test_a_context_beyond_what_the_model_was_trained_for_is_a_warning():
    said = "A context of 300,000 tokens is beyond the 262,144 that the model was trained for."
    assert said in make_plan(ledger(), {"shape": {"max_model_len": 300000}})["warnings"]
    assert said not in make_plan(ledger(), {"shape": {"max_model_len": 262144}})["warnings"]


def test_keeping_a_rounded_pair_over_a_restart_needs_its_whole_number():
    rounded = ledger(flags={"vram-weights-mib": None}, pair={"weights_mib": 24002.56, "kv_mib": 5120.0, "exact": False})
    request = {"pair": "keep", "shape": {"max_num_seqs": 2}}
    assert refusal(request, rounded).code == "pair_not_exact"
    assert make_plan(rounded, {"pair": "keep"})["restart"] is False
    exact = make_plan(rounded, {**request, "running": {"weights_mib": 24000, "kv_mib": 5120}})
    assert exact["to"]["weights_mib"] == 24000


def test_one_half_that_leaves_nothing_is_refused():
    error = refusal({"pair": {"weights_mib": 30963}})
    assert error.code == "nothing_left"
    assert "30,963" in error.text and "card 0 settled" in error.text


def test_a_half_that_was_stated_alone_says_what_the_other_takes() -> None:
    plan = make_plan(ledger(), {"pair": {"weights_mib": 24000}})
    assert plan["to"]["kv_mib"] == 6963
    assert "weights_mib was stated alone, so kv_mib takes the rest of the ceiling: 6,963 MiB." in plan["warnings"]
