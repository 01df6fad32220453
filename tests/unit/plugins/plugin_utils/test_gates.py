# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates of an env: what a rendered one is held to, and that a shell and Python hold it to the same."""

from __future__ import annotations

import copy
import subprocess
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _env_text, _files, _gates, _history
from hypothesis import given, settings
from hypothesis import strategies as st

LIVE = {
    "sessions": 2,
    "tokens": 184000,
    "factor": 1.8,
    "factor_from": "the engine's guide, 4.3",
    "held_tokens": 662400,
    "needed_mib": 5507.664,
}
WIRE = {
    "name": "rows_within_exact_wire",
    "holds": True,
    "says": "A full decode step has 9 rows.",
    "from": "tp wire: LOSSY (--tp-wire wht6) at 128 KiB. Steps of at most 25 rows are exact: decode",
    "hard": False,
    "accepted": None,
}
ROWS = {"id": "sampler_rows", "quantity": "sampler_rows", "low": 9, "high": 9, "unit": "rows"}


def rendered(example: t.Any, **other: t.Any) -> str:
    values = {**_files.env_values(example.service, example.new), **other}
    told = _history.history([], example.new, example.planned())
    return _env_text.env_text(values, example.service, "dankserver", told)


def of(gates: list[_gates.Gate]) -> dict[str, t.Any]:
    return {gate.name: gate.bound for gate in gates}


def test_a_rendered_env_passes_its_gates(example: t.Any) -> None:
    assert _gates.file_gates(rendered(example), example.new, example.plan) == []
    assert of(_gates.gates(rendered(example), example.plan)) == {
        "whole_numbers": None,
        "dtype_known": ("bf16", "fp8"),
        "shape_within_plan": (3, 200000, "fp8", 2),
        "pair_within_ceiling": 30969,
        "pool_meets_contract": 5063,
    }


def test_another_value_than_the_planned_one_is_found(example: t.Any) -> None:
    text = rendered(example, VRAM_KV_MIB="5118")
    (said,) = _gates.file_gates(text, example.new, example.plan)
    assert said == "VRAM_KV_MIB is '5118' in the rendered env, and the plan has 5119."


def test_a_pair_over_the_ceiling_is_found_with_the_line_that_the_ceiling_comes_from(example: t.Any) -> None:
    to = {**example.new, "weights_mib": 26000}
    (said,) = _gates.file_gates(rendered(example, VRAM_WEIGHTS_MIB="26000"), to, example.plan)
    assert said.startswith(
        "pair_within_ceiling: the pair is at most 30,969 MiB, the ceiling; the pair has 31,119 MiB in the rendered "
        "env. 30,969.05 MiB ± 5.12 a card = 2,058.24 settled free − 209.19 floor + 29,120 pair (card 0); Ledger: card "
        "0 settled"
    )


def test_the_boot_that_proved_a_pair_lowers_the_bound_and_never_below_the_pair(example: t.Any) -> None:
    def bound(free: float, **reserve: t.Any) -> tuple[t.Any, str]:
        example.plan["ceiling"].update(reserve)
        line = f"card 0 settled at {free:.2f} MiB free"
        card = {"card": 0, "free": {"mib": free}, "floor": {"mib": 209.19}, "line": line}
        switched = {"ledger": {"settled": [card]}}
        gate = _gates.gates(rendered(example), example.plan, None, switched)[3]
        return gate.bound, gate.because[-1]

    # 25,844 + 5,119 + 213.50 - 209.19, and what the plan's own boot gave.
    assert bound(213.5) == (30967, "Proved: card 0 settled at 213.50 MiB free")
    assert bound(215.3)[0] == 30969
    assert bound(900.0)[0] == 30969
    # 6 MiB were planned to stay for a monitor, and 4 of them did.
    assert bound(213.5, reserve_mib=6, reserve_reason="a monitor")[0] == 30963
    assert _gates.gates(rendered(example), example.plan, None, {"ledger": None})[3].bound == 30963


def test_a_reserve_lowers_the_bound_and_is_labelled(example: t.Any) -> None:
    example.plan["ceiling"].update(reserve_mib=200, reserve_reason="a monitor")
    (said,) = _gates.file_gates(rendered(example), example.new, example.plan)
    assert "at most 30,769 MiB, the ceiling of 30,969 less a personal reserve of 200" in said
    example.plan["ceiling"].update(others_mib=300)
    (said,) = _gates.file_gates(rendered(example), example.new, example.plan)
    assert "at most 30,469 MiB, the ceiling of 30,969 less a personal reserve of 500" in said
    assert [gate.label for gate in _gates.gates(rendered(example), example.plan)] == [
        "",
        "",
        "",
        "personal reserve",
        "",
    ]


def test_a_pool_under_the_contract_is_found_and_an_accepted_one_goes_no_further(example: t.Any) -> None:
    short = {**example.new, "kv_mib": 5062}
    assert len(_gates.file_gates(rendered(example, VRAM_KV_MIB="5062"), short, example.plan)) == 1
    to = {**example.new, "kv_mib": 4000}
    text = rendered(example, VRAM_KV_MIB="4000")
    (said,) = _gates.file_gates(text, to, example.plan)
    assert "at least 5,063 MiB, the contract; the pool has 4,000 MiB" in said
    plan = {**example.plan, "to": to}
    plan["gates"][1].update(holds=False, accepted="short chats only")
    assert _gates.file_gates(text, to, plan) == []
    gate = _gates.gates(text, plan)[-1]
    assert (gate.bound, gate.label, gate.because[-1]) == (4000, "accepted", "Accepted: short chats only")
    less = rendered(example, VRAM_KV_MIB="3999")
    assert len(_gates.file_gates(less, {**to, "kv_mib": 3999}, plan)) == 1


def test_a_pool_for_one_request_is_labelled(example: t.Any) -> None:
    example.plan["contract"].update(backing="one_request", full_mib=5062.06, needed_mib=2205.61)
    gate = _gates.gates(rendered(example), example.plan)[-1]
    assert (gate.bound, gate.label) == (2206, "accepted")
    assert gate.says == "the pool has at least 2,206 MiB, one request, less than the contract"


def test_a_pool_too_small_for_its_live_sessions_is_found_unless_it_was_accepted(example: t.Any) -> None:
    example.plan["contract"]["live_sessions"] = LIVE
    gate = {**example.plan["gates"][1], "name": "pool_holds_live_sessions"}
    example.plan["gates"].append(gate)
    (said,) = _gates.file_gates(rendered(example), example.new, example.plan)
    assert "at least 5,508 MiB, which 2 live sessions need; the pool has 5,119 MiB" in said
    gate.update(holds=False, accepted="one of them may wait")
    assert _gates.file_gates(rendered(example), example.new, example.plan) == []


def test_what_failed_before_is_held_to_where_it_was(example: t.Any) -> None:
    # A plan that makes it no worse has no such gate, and a warning in its place.
    example.plan["gates"] = example.plan["gates"][:1]
    example.plan["contract"]["needed_mib"] = 6000.0
    gate = _gates.gates(rendered(example), example.plan)[-1]
    assert (gate.bound, gate.label, gate.because[-1]) == (
        5119,
        "accepted",
        "Accepted: what ran before it was no better",
    )


def test_a_pair_that_is_kept_is_held_to_the_ceiling_within_its_rounding(example: t.Any) -> None:
    # The plan judged it so: what runs is over a reserve by less than the print of its settled line can tell.
    plan = {**example.plan, "from": example.new, "ceiling": {**example.plan["ceiling"], "reserve_mib": 9}}
    assert _gates.file_gates(rendered(example), example.new, plan) == []
    assert of(_gates.gates(rendered(example), plan))["pair_within_ceiling"] == 30963
    (said,) = _gates.file_gates(rendered(example), example.new, {**plan, "from": example.old})
    assert "at most 30,960 MiB" in said and "the pair has 30,963 MiB" in said
    further = {**plan, "ceiling": {**plan["ceiling"], "reserve_mib": 12}}
    assert len(_gates.file_gates(rendered(example), example.new, further)) == 1


def test_a_pair_over_its_ceiling_that_ran_before_is_held_to_what_ran(example: t.Any) -> None:
    to = {**example.new, "weights_mib": 25900}
    example.plan["gates"][0].update(holds=False, accepted="it ran here before")
    text, plan = rendered(example, VRAM_WEIGHTS_MIB="25900"), {**example.plan, "to": to}
    assert _gates.file_gates(text, to, plan) == []
    gate = _gates.gates(text, plan)[3]
    assert (gate.bound, gate.label, gate.because[-1]) == (31019, "accepted", "Accepted: it ran here before")


def test_rows_are_bound_on_a_lossy_wire_alone_and_without_a_draft_head_by_sequences(example: t.Any) -> None:
    plan = {**example.plan, "gates": [*example.plan["gates"], WIRE], "predictions": [ROWS]}
    gate = _gates.gates(rendered(example), plan)[-1]
    assert (gate.keys, gate.bound) == (("MAX_NUM_SEQS", "NUM_SPECULATIVE_TOKENS"), 25)
    assert gate.because == (f"Ledger: {WIRE['from']}",)
    headless = {**plan, "predictions": [{**ROWS, "low": 3, "high": 3}]}
    gate = _gates.gates(rendered(example), headless)[-1]
    assert (gate.keys, gate.bound) == (("MAX_NUM_SEQS",), 25)
    for other in ([{**ROWS, "low": 4, "high": 4}], []):
        assert _gates.gates(rendered(example), {**plan, "predictions": other})[-1].name == "pool_meets_contract"


def test_what_no_plan_and_no_ledger_tells_is_not_held(example: t.Any) -> None:
    text = rendered(example)
    assert list(of(_gates.gates(text))) == ["whole_numbers", "dtype_known"]
    known = ("pool_mib", "backing")
    unknown = {name: value if name in known else None for name, value in example.plan["contract"].items()}
    plan = {**example.plan, "contract": unknown, "gates": example.plan["gates"][:1]}
    assert list(of(_gates.gates(text, plan))) == ["whole_numbers", "dtype_known", "pair_within_ceiling"]
    assert _gates.file_gates(text, example.new, plan) == []
    by_itself = {**example.plan, "to": {**example.new, "weights_mib": None, "kv_mib": None}}
    assert list(of(_gates.gates(text, by_itself))) == ["whole_numbers", "dtype_known"]


def test_a_line_that_reads_differently_elsewhere_is_found(example: t.Any) -> None:
    (said,) = _gates.file_gates(rendered(example) + "EXTRA='x'\n", example.new, example.plan)
    assert "quote" in said


@pytest.mark.parametrize("value", ["0", "18446744073709575616"])
def test_a_number_that_leaves_the_pair_to_the_engine_or_wraps_in_a_shell_is_found(example: t.Any, value: str) -> None:
    (said,) = _gates.file_gates(rendered(example, VRAM_WEIGHTS_MIB=value), {}, example.plan)
    assert said.startswith("whole_numbers: ") and repr(value) in said


def test_a_file_without_our_marker_is_found(example: t.Any) -> None:
    text = "\n".join(line for line in rendered(example).split("\n") if "managed" not in line)
    assert _gates.file_gates(text, example.new, example.plan) == [
        "the marker of a managed file is not in the rendered env."
    ]


def test_keys_of_somebody_elses_are_held_by_their_names(example: t.Any) -> None:
    service = {**example.service, "env_names": {"VRAM_KV_MIB": "KV", "VRAM_WEIGHTS_MIB": "SLAB"}}
    text = rendered(example).replace("VRAM_KV_MIB=", "KV=").replace("VRAM_WEIGHTS_MIB=", "SLAB=")
    assert _gates.file_gates(text, example.new, example.plan, service) == []
    codes = {gate["name"]: gate["code"] for gate in _gates.bats_gates(text, example.plan, service)}
    assert codes["pool_meets_contract"] == ["pool=$((KV))", 'echo "The pool has $pool MiB."', '[ "$pool" -ge 5063 ]']
    assert codes["pair_within_ceiling"][0] == "pair=$((SLAB + KV))"


@pytest.mark.parametrize("key", ["MAX_NUM_SEQS", "NUM_SPECULATIVE_TOKENS", "KV_CACHE_DTYPE"])
def test_what_an_env_leaves_to_the_engine_has_no_gate(example: t.Any, key: str) -> None:
    plan = {**example.plan, "gates": [*example.plan["gates"], WIRE], "predictions": [ROWS]}
    gates = _gates.gates(rendered(example, **{key: ""}), plan)
    assert all(key not in gate.keys for gate in gates)
    assert {"whole_numbers", "pair_within_ceiling", "pool_meets_contract"} <= {gate.name for gate in gates}


NUMBERS = st.one_of(st.integers(0, 40000), st.sampled_from([24999, 25850, 25851, 5062, 5063, 5119])).map(str)
SMALL = st.integers(0, 30).map(str)
WRONG = st.sampled_from(["06144", "0", "18446744073709575616", "6,144", "8k", "0x1800", "6_144", "auto", "-1", "+5"])


@settings(max_examples=4)
@given(st.data())
def test_a_shell_and_python_judge_alike(data: st.DataObject) -> None:
    plan = copy.deepcopy(PLAN_OF_BOTH)
    keys = ("VRAM_WEIGHTS_MIB", "VRAM_KV_MIB", "MAX_NUM_SEQS", "NUM_SPECULATIVE_TOKENS")
    script, expected = [], []
    for _case in range(25):
        values = [data.draw(NUMBERS), data.draw(NUMBERS), data.draw(SMALL), data.draw(SMALL)]
        if data.draw(st.integers(0, 5)) == 0:
            values[data.draw(st.integers(0, 3))] = data.draw(WRONG)
        text = "".join(f"{key}={value}\n" for key, value in zip(keys, values, strict=True))
        text += f"MAX_MODEL_LEN=200000\nKV_CACHE_DTYPE={data.draw(st.sampled_from(['bf16', 'fp8']))}\n"
        gates = _gates.bats_gates(text, plan)
        assert [gate["name"] for gate in gates] == [gate.name for gate in _gates.gates(text, plan)]
        body = "\n".join(line for gate in gates for line in gate["code"])
        script.append(f"( set -e; {{ {text}\n{body}\n}} >/dev/null 2>&1 )\necho $?")
        found = _gates.file_gates(f"# {_files.MARKER}\n{text}", {}, plan)
        expected.append("1" if found else "0")
    ran = subprocess.run(["bash", "-c", "\n".join(script)], check=True, capture_output=True, text=True, timeout=60)
    assert ["0" if line == "0" else "1" for line in ran.stdout.split()] == expected


PLAN_OF_BOTH: dict[str, t.Any] = {
    "from": {"weights_mib": 24000, "kv_mib": 5120},
    "to": {"weights_mib": 25844, "kv_mib": 5119, "max_num_seqs": 3, "num_speculative_tokens": 2},
    "ceiling": {
        "mib": 30969.05,
        "plus_minus_mib": 5.125,
        "card": 0,
        "settled_free_mib": 2058.24,
        "floor_mib": 209.19,
        "pair_sum_mib": 29120,
        "reserve_mib": 0,
        "lines": ["card 0 settled"],
    },
    "contract": {
        "needed_mib": 5062.06,
        "pool_mib": 5119,
        "tokens_mib": 4284.67,
        "state_mib": 329.39,
        "checkpoint_mib": 448.0,
        "rate_bytes_per_token": 7488,
        "state_mib_per_sequence": 109.8,
        "figures_from": "ledger",
    },
    "gates": [{"name": "pair_within_ceiling", "holds": True}, {"name": "pool_meets_contract", "holds": True}, WIRE],
    "predictions": [ROWS],
}
