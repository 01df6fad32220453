# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables that a person reads: plan, verdicts, summary. No line is wider than a screen, and no number is missing."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import (
    _failure,
    _files,
    _gates,
    _plan_report,
    _summary,
    _verdict_report,
    _words,
)


def about(**changes: t.Any) -> dict[str, t.Any]:
    return {
        "host": "dankserver",
        "service": "flashnext",
        "outage_seconds": 41.2,
        "outage_at": "2026-10-13T09:30:00Z",
        "probes": "quick",
        "undo": "ansible-playbook playbooks/rollback.yml -l dankserver",
        "notes": ["a note"],
        **changes,
    }


def one(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def test_a_plan_fits_a_screen_and_says_everything(example: t.Any) -> None:
    lines = _plan_report.plan_report(example.plan, about())
    assert max(len(line) for line in lines) <= 120
    assert all(line == line.rstrip() for line in lines)
    text = one(lines)
    for said in (
        "flashnext on dankserver: 24,000 + 5,120 → 25,844 + 5,119 MiB a card",
        "30,969.05 MiB ± 5.12 a card = 2,058.24 settled free − 209.19 floor + 29,120 pair",
        f'"{example.line}"',
        "5,062.06 MiB of the pool's 5,119",
        "holds pair_within_ceiling",
        "settled_free_mib.card0 210.12 to 220.36 MiB",
        "about 41 s, as the restart of 2026-10-13T09:30:00Z took",
        "728,700 prompt tokens",
        "ansible-playbook playbooks/rollback.yml -l dankserver",
        "[-e max_num_seqs=4 -e fill=true]",
        "A warning of the plan.",
        "a note",
    ):
        assert said in text, said


def test_before_a_restart_the_options_are_only_named(example: t.Any) -> None:
    undo = "ansible-playbook playbooks/rollback.yml -l dankserver -e service=flashnext -e to=previous"
    lines = _plan_report.plan_report(example.plan, about(brief=True, undo=undo))
    text = one(lines)
    assert "options one_more_sequence" in text
    plan = "ansible-playbook playbooks/plan.yml -l dankserver -e service=flashnext"
    assert f"            what each would cost: {plan}" in lines
    assert "-e max_num_seqs=4" not in text


def test_a_gate_that_holds_takes_one_line(example: t.Any) -> None:
    example.plan["gates"][0]["says"] = "word " * 60
    plain = _plan_report.plan_report(example.plan, about())
    example.plan["gates"][0]["holds"] = False
    whole = _plan_report.plan_report(example.plan, about())
    assert one(plain).count("word") < 25
    assert one(whole).count("word") == 60


def test_nothing_to_change_says_so_and_announces_no_outage(example: t.Any) -> None:
    plan = {**example.plan, "from": example.new, "restart": False, "changes": []}
    text = one(_plan_report.plan_report(plan, about()))
    assert "nothing to change, 25,844 + 5,119" in text
    assert "outage" not in text
    assert "728,700" not in text
    # Nothing grows, so nothing is predicted; what does not hold is still told.
    for unsaid in ("predicted", "Between the arms", "pair_within_ceiling", "one_more_sequence"):
        assert unsaid not in one(_plan_report.plan_report(plan, about(brief=True))), unsaid
    assert "30,969.05 MiB" in text and "5,062.06 MiB" in text and "a note" in text


def test_a_pair_that_was_rolled_back_before_is_noted(example: t.Any) -> None:
    record = [example.planned(), example.rolled_back()]
    text = one(_plan_report.plan_report(example.plan, about(record=record)))
    assert "note 25,844 + 5,119 was rolled back on" in text
    assert "was rolled back" not in one(_plan_report.plan_report(example.plan, about(record=[])))


def test_an_unknown_outage_is_not_a_number(example: t.Any) -> None:
    text = one(_plan_report.plan_report(example.plan, about(outage_seconds=None, outage_at=None)))
    assert "no restart of this service is on record" in text


def test_no_probes_cost_nothing(example: t.Any) -> None:
    text = one(_plan_report.plan_report(example.plan, about(probes="none")))
    assert "none will run" in text


def test_a_gate_that_fails_and_one_that_was_accepted_look_different(example: t.Any) -> None:
    example.plan["gates"][0]["holds"] = False
    example.plan["gates"][1].update(holds=False, accepted="short chats only")
    text = one(_plan_report.plan_report(example.plan, about()))
    assert "FAILS pair_within_ceiling" in text
    assert "accepted pool_meets_contract" in text
    assert "short chats only" in text


def test_a_change_of_shape_is_shown(example: t.Any) -> None:
    plan = {**example.plan, "to": {**example.new, "max_num_seqs": 2}}
    text = one(_plan_report.plan_report(plan, about()))
    assert "3 x 200,000 tokens, fp8, speculation depth 2 → 2 x 200,000 tokens" in text


VERDICTS = [
    {"id": "weights_mib", "verdict": "held", "measured": 25844, "says": ""},
    {"id": "settled_free_mib.card0", "verdict": "killed", "measured": 149.19, "says": "The ledger says 149.19 MiB."},
]


def test_predictions_stand_beside_what_was_measured(example: t.Any) -> None:
    seen = {"to": example.new, "flags": {"vram-weights-mib": "25844"}, "ledger": {}, "probes": {}}
    text = one(_verdict_report.verdict_report(example.plan["predictions"], VERDICTS, seen))
    assert "weights_mib 25,844 MiB 25,844 held" in text
    assert "settled_free_mib.card0 210.12 to 220.36 MiB 149.19 killed" in text
    assert "settled_free_mib.card0: The ledger says 149.19 MiB." in text
    assert "prefill_tps 3,876.10 to 4,115.90 t/s – open" in text


def test_one_reason_of_many_is_told_once(example: t.Any) -> None:
    says = "The boot ended with a refusal. " * 12
    verdicts = [
        {"id": item["id"], "verdict": "killed", "measured": None, "says": says} for item in example.plan["predictions"]
    ]
    lines = _verdict_report.verdict_report(example.plan["predictions"], verdicts, {"to": example.new})
    assert one(lines).count(says.strip()) == 1
    assert "3 of them: The boot ended" in one(lines)
    assert sum(line.endswith("killed") for line in lines) == 3
    assert max(len(line) for line in lines) <= 120


def test_a_printed_number_shows_its_rounding(example: t.Any) -> None:
    verdict = {"id": "settled_free_mib.card0", "verdict": "held", "measured": 209.0, "says": ""}
    for rounding, text in (
        ({"plus_minus": 5.12}, "209 ± 5.12 held"),
        ({"plus_minus": 0.005}, "209 held"),
        ({}, "209 held"),
    ):
        report = _verdict_report.verdict_report(
            example.plan["predictions"], [{**verdict, **rounding}], {"to": example.new}
        )
        assert text in one(report)


def test_a_pair_that_nothing_predicted_is_told(example: t.Any) -> None:
    lines = _verdict_report.verdict_report([], [], {"to": example.new})
    assert lines[:2] == ["predicted and measured", "  No line of the record predicted the pair that runs."]


def test_the_four_numbers_stand_in_a_row(example: t.Any) -> None:
    seen = {
        "to": example.new,
        "flags": {"vram-weights-mib": "25844", "max-num-seqs": "3", "max-model-len": "200000"},
        "ledger": {
            "budget": {"rows": {"vram_weights": {"text": "25.24 GiB"}, "vram_kv": None}},
            "capacity": {"sequences": 3, "tokens": 200000, "full": True},
            "sampler": {"rows": 9},
        },
        "probes": {
            "calibration": {"limit": 200000, "chars_per_token": 2.7617, "method": "refusal"},
            "boundary": {"asked": 3, "retrieved": 3, "overlap": 3, "verdict": "passed", "says": "all of them"},
        },
    }
    seen["flags"]["num-speculative-tokens"] = "9" * 5000
    rows = {row[0]: row[1:] for row in _verdict_report.four_numbers(seen)}
    assert rows["num_speculative_tokens"][1] == "9" * 5000
    assert rows["weights_mib"] == ["25,844", "25,844", "25.24 GiB", "–"]
    assert rows["kv_mib"] == ["5,119", "–", "–", "–"]
    assert rows["max_num_seqs"] == ["3", "3", "3 sequences", "3 of 3 markers, 3 at once"]
    assert rows["max_model_len"][3] == "200,000 is the limit it refuses with"
    text = one(_verdict_report.probe_words(seen["probes"]))
    assert "calibration measured 2.76 characters a token, by refusal" in text
    assert "boundary passed all of them" in text


def test_a_probe_that_measured_nothing_is_not_called_measured() -> None:
    text = one(_verdict_report.probe_words({"calibration": {"chars_per_token": None, "method": None}}))
    assert "calibration inconclusive no ratio" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (30969, "30,969"),
        (30969.05, "30,969.05"),
        (5119.0, "5,119"),
        (232558.3, "232,558.30"),
        (None, "–"),
        ("fp8", "fp8"),
    ],
)
def test_numbers_for_a_person(value: t.Any, text: str) -> None:
    assert _words.number(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (210.12, 220.36, "210.12 to 220.36 MiB"),
        (2058.3, 2058.3, "2,058.30 MiB"),
        (2058.2951, 2058.3049, "2,058.30 MiB"),
    ],
)
def test_an_interval_whose_ends_read_alike_is_one_number(low: float, high: float, text: str) -> None:
    assert _words.interval(low, high, "MiB") == text


@pytest.mark.parametrize(
    ("result", "word"),
    [
        ({"msg": "x", "outcome": "rolled_back", "ledger": {"status": "complete"}}, "rolled_back"),
        ({"msg": "x", "outcome": "failed"}, "not_serving"),
        ({"msg": "x", "outcome": "unchanged", "ledger": {"status": "complete"}}, "refused"),
        ({"msg": "x", "ledger": {"status": "refused"}}, "not_serving"),
        ({"msg": "x", "ledger": {"status": "incomplete", "reason": {"code": "not_ready"}}}, "not_serving"),
        ({"msg": "x", "ledger": {"status": "absent", "reason": {"code": "container_absent"}}}, "not_serving"),
        ({"msg": "x", "ledger": {"status": "absent", "reason": {"code": "unit_inactive"}}}, "not_serving"),
        ({"msg": "x", "ledger": {"status": "incomplete", "reason": {"code": "log_cut"}}}, "refused"),
        ({"msg": "x", "ledger": {"status": "absent", "reason": {"code": "log_unreadable"}}}, "refused"),
        ({"msg": "x", "code": "drift"}, "drift"),
        ({"msg": "x", "unreachable": True}, "not_reached"),
        ({"msg": "x"}, "refused"),
    ],
)
def test_a_failure_has_one_word(result: dict[str, t.Any], word: str) -> None:
    assert _failure.failure(result)["word"] == word


def test_a_filters_refusal_is_told_without_its_wrapping() -> None:
    message = "Task failed: Error while resolving value: The filter plugin 'kvfleet.radiance.way_back' failed: No way."
    assert _failure.failure({"msg": message}) == {"word": "refused", "says": "No way."}


def test_a_plan_of_what_crashed_says_how_it_ended_and_that_it_is_started(example: t.Any) -> None:
    down = "flashnext.service does not run: systemd has it as failed, with the result signal and signal 9"
    same = {**example.plan, "to": example.plan["from"], "changes": []}
    lines = _plan_report.plan_report(same, about(down=down, returns=False, brief=True))
    assert lines[0] == "flashnext on dankserver: does not run, one start on 24,000 + 5,120 MiB a card (slab + pool)"
    assert f"{down}; this run starts it." in one(lines)
    assert not any(line.startswith("  undo") for line in lines)
    moved = _plan_report.plan_report(example.plan, about(down=down, returns=True))
    assert f"{down}; a resize starts it." in one(moved)
    assert any(line.startswith("  undo") for line in moved)


def test_a_service_says_what_its_run_came_to(example: t.Any) -> None:
    run = {"service": example.service, "plan": example.plan, "making": {"id": "x"}, "probes": {}, "failure": None}
    assert _summary.service_outcome(run)["word"] == "switched"
    assert _summary.service_outcome({**run, "making": None})["word"] == "unchanged"
    same = {**example.plan, "to": example.plan["from"], "changes": []}
    started = {**run, "down": "flashnext.service does not run", "plan": same}
    assert _summary.service_outcome(started)["says"] == "24,000 + 5,120, started: it did not run"
    moved = {**started, "plan": example.plan}
    assert _summary.service_outcome(moved)["says"].endswith(" → 25,844 + 5,119, started: it did not run")
    doubtful = {**run, "probes": {"boundary": {"verdict": "inconclusive", "says": "other traffic"}, "rates": None}}
    assert _summary.service_outcome(doubtful)["word"] == "inconclusive"
    assert "other traffic" in _summary.service_outcome(doubtful)["says"]
    failed = {**run, "failure": {"word": "rolled_back", "says": "short"}}
    assert _summary.service_outcome(failed) == {"service": "flashnext", "word": "rolled_back", "says": "short"}


def test_the_worst_service_is_the_hosts_word() -> None:
    done = [
        {"service": "a", "word": "switched", "says": "fine"},
        {"service": "b", "word": "rolled_back", "says": "short"},
    ]
    assert _summary.host_outcome({}, done) == {"word": "rolled_back", "says": "short", "services": done}
    both = [{"service": name, "word": "refused", "says": "no such image"} for name in ("a", "b")]
    assert _summary.host_outcome({}, both)["says"] == "no such image"
    failed = _summary.host_outcome({"service": {"name": "c"}}, [], {"word": "refused", "says": "no"})
    assert (failed["word"], failed["services"][0]["service"]) == ("refused", "c")


def test_no_further_host_starts_after_a_bad_one() -> None:
    good = [{"word": "switched"}, {"word": "unchanged"}, {"word": "planned"}]
    assert _summary.all_good(good) is True
    assert _summary.all_good([*good, {"word": "inconclusive"}]) is False
    assert _summary.all_good([*good, None]) is False
    assert _summary.all_good([*good, {}]) is False


def test_a_host_that_never_started_was_not_reached() -> None:
    outcomes = {
        "a": {"word": "refused", "says": "too much", "services": []},
        "b": {"word": "planned", "says": "", "services": []},
    }
    content = _summary.summary(["a", "b", "c"], outcomes)
    assert [(line["host"], line["word"]) for line in content["hosts"]] == [
        ("a", "refused"),
        ("b", "not_reached"),
        ("c", "not_reached"),
    ]
    assert content["good"] is False
    assert _summary.summary(["a"], {"a": {"word": "switched", "says": "", "services": []}})["good"] is True


def test_the_summary_fits_a_screen() -> None:
    outcomes = {"dankserver": {"word": "rolled_back", "says": "a long reason " * 30, "services": []}}
    lines = _summary.summary_report(_summary.summary(["dankserver"], outcomes))
    assert max(len(line) for line in lines) <= 120
    assert lines[1].startswith("  dankserver  rolled_back  a long reason")


def test_a_refusal_of_several_lines_keeps_them() -> None:
    told = _failure.failure({"msg": "no such line:\n  one   thing\n\n  another\n"})
    assert told == {"word": "refused", "says": "no such line:\none thing\nanother"}
    command = "LC_ALL=C setsid sh -c '" + "a long command " * 12 + "' &"
    hosts = {"a": {"word": "refused", "says": f"{told['says']}\n{command}", "services": []}}
    lines = _summary.summary_report(_summary.summary(["a"], hosts))
    assert lines == [
        "outcome",
        "  a  refused  no such line:",
        "              one thing",
        "              another",
        f"              {command}",
    ]


def price(**changes: t.Any) -> dict[str, t.Any]:
    """One row of a price table."""
    row = {
        "name": "neighbour",
        "shown": True,
        "fits": True,
        "to": {
            "weights_mib": 24242,
            "kv_mib": 6657,
            "max_num_seqs": 4,
            "max_model_len": 200000,
            "kv_cache_dtype": "fp8",
            "num_speculative_tokens": 2,
        },
        "backing": "full",
        "sequences_backed": 4.0,
        "prefill": {"low": 3234.433, "high": 3434.502},
        "decode": {"tps": 124.1, "weights_mib": 26071},
        "slots_lost": 1172,
        "lendable_slots": 4183,
        "against_now_mib": 242.0,
        "against_fill_mib": -1602.0,
        "against_fill_prefill": -0.166,
        "request": "-e max_num_seqs=4 -e fill=true",
        "says": "The law's words.",
    }
    return {**row, **changes}


def test_the_price_table_is_one_screen_of_rows_to_copy(example: t.Any) -> None:
    unmeasured = {"prefill": None, "decode": None, "against_fill_prefill": None}
    one_request = "-e kv_cache_dtype=bf16 -e fill=true -e backing=one_request -e backing_reason=WHY"
    example.plan["prices"] = [
        price(),
        price(**unmeasured, backing="one_request", request=one_request),
        price(fits=False, request=None, reason="contract_does_not_fit", says="9 sequences need more."),
        price(prefill={"low": 4000.2, "high": 4000.4}),
        price(shown=False, request="-e max_num_seqs=9 -e fill=true"),
    ]
    lines = _plan_report.plan_report(example.plan, about())
    assert max(len(line) for line in lines) <= 118
    text = one(lines)
    for said in (
        "fp8 4 x 200,000 24,242 3,234–3,435 124.1 4 -1,602 -17% 1,172 4,183 -e max_num_seqs=4 -e fill=true",
        f"not measured – one -1,602 1,172 4,183 {one_request}",
        "24,242 4,000 124.1 4",
        "fp8 4 x 200,000 does not fit: contract_does_not_fit",
        "The plan file has 1 more.",
        "get one: ansible-playbook playbooks/resize.yml -l dankserver and its arguments",
    ):
        assert said in text, said
    assert "max_num_seqs=9" not in text
    assert "with the reserves and live sessions" not in text
    example.plan["ceiling"].update(reserve_mib=100, reserve_reason="a monitor")
    assert "with the reserves and live sessions that were asked for here" in one(
        _plan_report.plan_report(example.plan, about())
    )
    assert f"      {one_request}" in lines
    # Before a restart nobody chooses any more.
    assert "get one" not in one(_plan_report.plan_report(example.plan, about(brief=True)))


def test_free_memory_the_budget_and_the_expected_warning_stand_under_the_ceiling(example: t.Any) -> None:
    example.plan["ceiling"].update(
        says="Free is not spare: so it is.",
        cross_check={"says": "claimable 1 + pools 2"},
        expected_warning="Expected: W.",
    )
    text = one(_plan_report.plan_report(example.plan, about()))
    assert "Free is not spare: so it is. claimable 1 + pools 2 Expected: W. contract" in text


def test_a_contract_that_nothing_tells_is_said_and_the_files_are_not_held_to_it(example: t.Any) -> None:
    known = ("pool_mib", "backing")
    unknown = {name: value if name in known else None for name, value in example.plan["contract"].items()}
    gates = [gate for gate in example.plan["gates"] if gate["name"] != "pool_meets_contract"]
    plan = {**example.plan, "contract": unknown, "gates": gates}
    text = one(_plan_report.plan_report(plan, about()))
    assert "contract not known: no line of the boot that was planned from tells the KV figures" in text
    env = "".join(f"{key}={plan['to'][name]}\n" for name, key in _words.ENV_OF.items())
    assert _gates.file_gates(f"# {_files.MARKER}\n{env}", plan["to"], plan) == []


def test_a_pool_for_one_request_is_labelled_where_the_contract_is_shown(example: t.Any) -> None:
    example.plan["contract"].update(backing="one_request", full_mib=5062.06, needed_mib=2205.61)
    text = one(_plan_report.plan_report(example.plan, about()))
    assert "contract backing one_request, less than the contract of 5,062.06 MiB for all: 2,205.61 MiB" in text
