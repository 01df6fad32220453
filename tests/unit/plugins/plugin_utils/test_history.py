# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the record tells of the pair in force, and where a way back leads."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _plan
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _history, _record_lines, _schemas, _ways_back

UNDO = "ansible-playbook playbooks/rollback.yml -l dankserver -e service=flashnext -e to=previous"


def test_no_record_says_nothing(example: t.Any) -> None:
    assert _history.history([], example.old) == {
        "made": None,
        "predictions": [],
        "failed": [],
        "stated": False,
        "outage_seconds": None,
        "switched": None,
        "outage_at": None,
    }


def test_the_attempt_that_switched_made_the_pair(example: t.Any) -> None:
    planned = example.planned()
    record = [
        planned,
        example.switched(),
        example.verdict("settled_free_mib.card0", "killed", 100.0),
        example.verdict("settled_free_mib.card0", "held", 215.3),
    ]
    told = _history.history(record, example.new)
    assert told["made"] == planned
    assert told["outage_seconds"] == 41.2
    by_id = {item["id"]: item for item in told["predictions"]}
    # The last verdict counts, and what was not judged is open.
    assert (by_id["settled_free_mib.card0"]["verdict"], by_id["settled_free_mib.card0"]["measured"]) == ("held", 215.3)
    assert by_id["prefill_tps"]["verdict"] == "open"


def test_numbers_and_texts_of_the_same_pair_are_the_same_pair(example: t.Any) -> None:
    told = _history.history([example.planned(), example.switched()], {k: str(v) for k, v in example.new.items()})
    assert told["made"] is not None


def test_a_pair_that_somebody_else_made_is_not_explained(example: t.Any) -> None:
    told = _history.history([example.planned(), example.switched()], {**example.new, "weights_mib": 25000})
    assert told["made"] is None
    assert told["predictions"] == []


def test_a_rolled_back_attempt_is_told_with_what_was_killed(example: t.Any) -> None:
    record = [
        example.planned(),
        example.rolled_back(),
        example.verdict("weights_mib", "held", 25844),
        example.verdict("settled_free_mib.card0", "killed", 149.19),
    ]
    told = _history.history(record, example.old)
    assert told["made"] is None
    (attempt,) = told["failed"]
    assert (attempt["to"], attempt["phase"]) == (example.new, "referee")
    assert [item["id"] for item in attempt["predictions"]] == ["settled_free_mib.card0"]
    # An attempt that failed says nothing of how long a switch takes.
    assert (told["outage_seconds"], told["outage_at"]) == (None, None)
    assert _history.history([*record[:0], example.planned(), example.switched(), *record], example.old)[
        "outage_seconds"
    ] == pytest.approx(41.2)


def test_an_outage_that_nobody_saw_the_end_of_is_none_to_expect(example: t.Any) -> None:
    seen = {**example.switched("aaaaaaaaaaaa"), "at": "2026-10-13T09:30:00Z"}
    unseen = {**example.switched("bbbbbbbbbbbb"), "downtime_seconds": None}
    told = _history.history(
        [example.planned("aaaaaaaaaaaa"), seen, example.planned("bbbbbbbbbbbb"), unseen], example.new
    )
    assert (told["outage_seconds"], told["outage_at"]) == (41.2, "2026-10-13T09:30:00Z")
    assert told["made"]["attempt"] == "bbbbbbbbbbbb"


def test_a_later_good_attempt_ends_the_story_of_the_failed_ones(example: t.Any) -> None:
    record = [
        example.planned("aaaaaaaaaaaa"),
        example.rolled_back("aaaaaaaaaaaa"),
        example.planned("bbbbbbbbbbbb"),
        example.switched("bbbbbbbbbbbb"),
    ]
    told = _history.history(record, example.new)
    assert told["made"]["attempt"] == "bbbbbbbbbbbb"
    assert told["failed"] == []


def test_an_attempt_that_a_probe_undid_is_a_failed_one(example: t.Any) -> None:
    record = [example.planned(), example.switched(), example.switched(to=example.old), example.rolled_back()]
    told = _history.history(record, example.old)
    assert told["made"] is None
    assert len(told["failed"]) == 1


def test_a_plan_that_is_about_to_run_speaks_for_itself(example: t.Any) -> None:
    making = example.planned(request={"pair": {"weights_mib": 25844}})
    told = _history.history([], example.old, making)
    assert told["made"] == making
    assert told["stated"] is True
    assert {item["verdict"] for item in told["predictions"]} == {"open"}


def test_a_stated_pair_is_known_from_the_record(example: t.Any) -> None:
    stated = example.planned(request={"pair": {"weights_mib": 25844, "kv_mib": 5119}})
    assert _history.history([stated, example.switched()], example.new)["stated"] is True
    assert _history.history([example.planned(), example.switched()], example.new)["stated"] is False


def test_previous_is_what_ran_before_the_last_switch(example: t.Any) -> None:
    planned = example.planned()
    failed = example.planned("ffffffffffff", to={**example.new, "weights_mib": 20000})
    record = [planned, example.switched(), failed, example.rolled_back("ffffffffffff")]
    back = _ways_back.way_back(record, "previous", UNDO)
    assert back["to"] == example.old
    assert back["returns_to"] == planned["id"]
    assert "24,000 + 5,120" in back["says"]


def test_an_id_leads_to_what_its_line_put_in_force(example: t.Any) -> None:
    planned, switched = example.planned(), example.switched()
    record = [planned, switched]
    assert _ways_back.way_back(record, switched["id"], UNDO)["to"]["weights_mib"] == 25844
    # The header of an env names its planned line: that id leads back to the pair of that very env.
    assert _ways_back.way_back(record, planned["id"], UNDO)["to"] == example.new
    assert _ways_back.way_back([*record, example.rolled_back()], example.rolled_back()["id"], UNDO)["to"] == example.old


def test_what_was_planned_and_did_not_hold_never_ran(example: t.Any) -> None:
    planned, failed = example.planned(), [example.planned("f" * 12), example.rolled_back("f" * 12)]
    record = [planned, example.switched(), *failed]
    ran = {entry["id"]: _ways_back.way_back(record, entry["id"], UNDO)["ran"] for entry in record}
    assert ran == {planned["id"]: True, record[1]["id"]: True, failed[0]["id"]: False, failed[1]["id"]: True}
    assert _ways_back.way_back(record, "previous", UNDO)["ran"] is True


def test_a_pair_that_the_engine_derived_is_returned_to_in_whole_mib(example: t.Any) -> None:
    derived = {**example.old, "weights_mib": 24002.56, "kv_mib": 5119.96}
    back = _ways_back.way_back([example.planned(**{"from": derived}), example.switched()], "previous", UNDO)
    assert back["to"] == {**example.old, "weights_mib": 24002, "kv_mib": 5119}
    assert back["says"].startswith("returning to 24,002 + 5,119 of record ")


@pytest.mark.parametrize("to", ["previous", "0123456789ab"])
def test_an_empty_record_leads_nowhere(to: str) -> None:
    with pytest.raises(RadianceError) as caught:
        _ways_back.way_back([], to, UNDO)
    assert caught.value.code == "nothing_to_return_to"


def test_without_a_switch_on_record_the_command_that_states_a_pair_is_named() -> None:
    with pytest.raises(RadianceError) as caught:
        _ways_back.way_back([], "previous", UNDO)
    command = "ansible-playbook playbooks/resize.yml -l dankserver -e service=flashnext -e weights_mib=… -e kv_mib=…"
    assert caught.value.text.split("\n")[1:] == [command]


def test_a_planned_line_gets_the_attempt_of_its_plan(example: t.Any) -> None:
    first = _record_lines.record_entry({"plan": example.plan, "request": {}}, "planned", "dankserver", "flashnext")
    again = _record_lines.record_entry({"plan": example.plan, "request": {}}, "planned", "dankserver", "flashnext")
    other_plan = {**example.plan, "to": example.old}
    other = _record_lines.record_entry({"plan": other_plan, "request": {}}, "planned", "dankserver", "flashnext")
    assert first["attempt"] == again["attempt"] != other["attempt"]


def test_a_planned_line_has_neither_prices_nor_options_nor_arms(example: t.Any) -> None:
    plan = {**example.plan, "prices": [{"name": "present"}] * 100}
    request = {"pair": "fill", "arms": [{"weights_mib": 24000, "prefill_tps": 3290}]}
    first = _record_lines.record_entry({"plan": plan, "request": request}, "planned", "dankserver", "flashnext")
    kept = {name: value for name, value in example.plan.items() if name != "options"}
    assert (first["plan"], first["request"]) == (kept, {"pair": "fill"})
    assert first["attempt"] == _plan.attempt_id(plan)
    # Another price table is not another plan, and more arms are not another request.
    before = {**first, "at": "2026-01-01T00:00:00Z"}
    own = {"plan": example.plan, "request": {**request, "arms": []}}
    assert _record_lines.record_entry(own, "planned", "dankserver", "flashnext", record=[before]) == before


def run_that_ended(example: t.Any, word: str, *phases: str) -> dict[str, t.Any]:
    """A run whose switch failed in the last of ``phases``."""
    told = [{"name": name, "seconds": 0.1, "says": f"what {name} came to"} for name in phases]
    own = {"service": example.service, "making": example.planned(), "record": []}
    return {**own, "switched": {"phases": told} if phases else {}, "failure": {"word": word, "says": "x"}}


@pytest.mark.parametrize(
    "phases", [("lock",), ("lock", "precheck"), ("lock", "precheck", "guard"), ("precheck", "guard", "drain")]
)
def test_a_switch_that_was_refused_before_it_stopped_anything_is_put_on_record(example: t.Any, phases: t.Any) -> None:
    run = run_that_ended(example, "refused", *phases)
    (line,) = _record_lines.refused_entries(run, "dankserver")
    assert (line["kind"], line["attempt"]) == ("refused", "0123456789ab")
    assert (line["phase"], line["says"]) == (phases[-1], f"what {phases[-1]} came to")
    assert _schemas.problems(line, "record") == []


@pytest.mark.parametrize(
    ("word", "phases"),
    [
        ("rolled_back", ("lock", "precheck", "drain", "stop", "restore", "start", "ready")),
        ("not_serving", ("lock", "precheck", "drain", "stop")),
        ("refused", ()),
        ("not_reached", ("lock", "precheck")),
    ],
)
def test_nothing_is_called_refused_that_got_further_or_was_lost(example: t.Any, word: str, phases: t.Any) -> None:
    assert _record_lines.refused_entries(run_that_ended(example, word, *phases), "dankserver") == []
    planned_nothing = {**run_that_ended(example, "refused", "precheck"), "making": None}
    assert _record_lines.refused_entries(planned_nothing, "dankserver") == []


def test_a_plan_that_is_tried_again_after_a_refusal_is_on_record_again(example: t.Any) -> None:
    own = {"plan": example.plan, "request": {}}
    first = {**_record_lines.record_entry(own, "planned", "dankserver", "flashnext"), "at": "2026-01-01T00:00:00Z"}
    refused = {**example.entry("refused", phase="drain", says="busy"), "attempt": first["attempt"]}
    again = _record_lines.record_entry(own, "planned", "dankserver", "flashnext", record=[first, refused])
    assert (again["attempt"], again["at"] == first["at"]) == (first["attempt"], False)
    # The second try was lost midway: of it no end is known, whatever the first came to.
    one, other = _history.attempts([first, refused, again])
    assert (_history.refused(one), _history.refused(other)) == (refused, None)


def test_a_refusal_is_told_until_an_end_whatever_else_is_on_record_since(example: t.Any) -> None:
    planned, refused = example.planned(), example.entry("refused", phase="drain", says="busy")
    judged = example.verdict("weights_mib", "void", None)
    assert _history.refused([planned, refused, judged]) == refused
    assert _history.refused([planned, refused, example.switched(), judged]) is None
    assert _history.refused([planned, example.rolled_back(), refused]) == refused
    assert _history.refused([planned]) is None


def test_what_was_refused_neither_made_a_pair_nor_leads_anywhere(example: t.Any) -> None:
    refused = example.entry("refused", phase="precheck", says="image_missing")
    assert _history.history([example.planned(), refused], example.new)["made"] is None
    assert _history.history([example.planned(), refused], example.new)["failed"] == []
    with pytest.raises(RadianceError):
        _ways_back.way_back([example.planned(), refused], refused["id"], UNDO)


def test_open_verdicts_leave_no_line(example: t.Any) -> None:
    verdicts: list[dict[str, t.Any]] = [
        {"id": "weights_mib", "verdict": "held", "measured": 25845.76, "plus_minus": 5.12, "says": ""},
        {"id": "prefill_tps", "verdict": "open", "measured": None, "plus_minus": 0, "says": ""},
    ]
    probes = {"calibration": None, "boundary": {"verdict": "passed"}, "rates": None}
    lines = _record_lines.record_entries(
        verdicts, example.plan["predictions"], probes, "dankserver", "flashnext", "0" * 12
    )
    assert [line["kind"] for line in lines] == ["probed", "verdict"]
    assert (lines[1]["prediction"], lines[1]["plus_minus"]) == ("weights_mib", 5.12)
    none = _record_lines.record_entries(verdicts, example.plan["predictions"], {}, "dankserver", "flashnext", "0" * 12)
    assert [line["kind"] for line in none] == ["verdict"]


def test_an_unknown_id_lists_the_choices_one_a_line(example: t.Any) -> None:
    planned, switched = example.planned(), example.switched()
    with pytest.raises(RadianceError) as told:
        _ways_back.way_back([planned, switched, example.verdict("weights_mib", "held", 1)], "ffff", UNDO)
    first, *choices, last = told.value.text.split("\n")
    assert told.value.code == "nothing_to_return_to"
    assert "to=ffff" in first and "to=previous" in first
    # What was only planned is no choice, and one line an attempt is enough.
    assert choices == [f"{switched['id']} {switched['at']} 25,844 + 5,119, 3 x 200,000, fp8, depth 2"]
    assert last == f"Which of them can be had: {UNDO.replace('previous', 'list')}"


def test_a_pair_that_was_rolled_back_before_is_pointed_out(example: t.Any) -> None:
    (said,) = _history.rolled_back_before([example.planned(), example.rolled_back()], example.new)
    assert said.startswith("25,844 + 5,119 was rolled back on ")
    assert said.endswith("in phase referee: card 0 settled at 149.19 MiB free")
    assert _history.rolled_back_before([example.rolled_back()], example.old) == []
    assert _history.rolled_back_before([example.rolled_back()], {**example.new, "max_num_seqs": 2}) == []
    # It held since.
    assert _history.rolled_back_before([example.rolled_back(), example.switched()], example.new) == []


def test_trying_again_is_the_same_line_until_the_attempt_has_ended(example: t.Any) -> None:
    own = {"plan": example.plan, "request": {"pair": "fill"}}
    first = {**_record_lines.record_entry(own, "planned", "dankserver", "flashnext"), "at": "2026-01-01T00:00:00Z"}
    again = _record_lines.record_entry(own, "planned", "dankserver", "flashnext", record=[first])
    assert again == first
    other = _record_lines.record_entry({**own, "request": {}}, "planned", "dankserver", "flashnext", record=[first])
    assert other["at"] != first["at"]
    ended = [first, example.rolled_back(first["attempt"])]
    assert _record_lines.record_entry(own, "planned", "dankserver", "flashnext", record=ended)["at"] != first["at"]
