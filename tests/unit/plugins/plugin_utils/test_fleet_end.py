# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run over many hosts comes to: who is done, who is not, what is undone, and who is told."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.filter.endpoint import FilterModule
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _failure, _summary, _undo
from hypothesis import given
from hypothesis import strategies as st

UNDO = "ansible-playbook playbooks/rollback.yml -l a -e service=flashnext -e to=previous"
DONE = {"service": "flashnext", "word": "switched", "says": "24,000 + 5,120 → 25,844 + 5,119", "undo": UNDO}
LATE = {"service": "flashnext", "word": "not_reached", "says": "not begun at 05:40:00", "code": "not_after"}
SHORT = {"service": "flashnext", "word": "rolled_back", "says": "card 0 settled short", "code": "referee_refused"}
PLANNED = {"word": "planned", "says": "planned and not started", "services": []}
BEGUN = {"word": "begun", "says": "", "services": []}


def ended(*services: dict[str, str]) -> dict[str, t.Any]:
    return _summary.host_outcome({}, services)


def states(outcomes: dict[str, t.Any]) -> dict[str, list[str]]:
    content = _summary.summary(list(outcomes), outcomes)
    return {state: content[state] for state in ("done", "failed", "not_started", "undone")}


class OneHost(dict[str, t.Any]):
    """Variables of a host, of which one is there to be read; to look at another one, or at all, is a failure."""

    def __iter__(self) -> t.NoReturn:
        raise AssertionError("every variable was looked at")

    def __getitem__(self, name: str) -> t.Any:
        assert name == "endpoint_outcome"
        return super().__getitem__(name)


def test_of_each_host_nothing_but_its_outcome_is_read() -> None:
    outcomes = FilterModule().filters()["outcomes"]
    hostvars = {"b": OneHost(endpoint_outcome=PLANNED), "a": OneHost(), "c": OneHost(endpoint_outcome=None)}
    found = outcomes(["b", "a", "c"], hostvars)
    assert found == {"b": PLANNED, "a": {}, "c": {}}
    assert list(found) == ["b", "a", "c"]
    # As where a playbook is listed, and there are no variables yet.
    assert outcomes(["a"], {}) == {"a": {}}
    assert states(found) == {"done": [], "failed": [], "not_started": ["b", "a", "c"], "undone": []}


def test_every_host_is_done_or_failed_or_not_started() -> None:
    outcomes = {"a": ended(DONE), "b": ended(SHORT), "c": PLANNED, "d": {}, "e": BEGUN, "f": ended(LATE)}
    assert states(outcomes) == {"done": ["a"], "failed": ["b", "e"], "not_started": ["c", "d", "f"], "undone": []}
    words = {line["host"]: line["word"] for line in _summary.summary(list(outcomes), outcomes)["hosts"]}
    assert words == {"a": "switched", "b": "rolled_back"} | dict.fromkeys("cdef", "not_reached")
    # One service that failed is a host that failed, whatever else had no time left.
    assert states({"a": ended(DONE, {**SHORT, "service": "b"}, {**LATE, "service": "c"})})["failed"] == ["a"]


def test_a_host_that_was_lost_in_its_switch_is_not_told_as_one_that_never_began() -> None:
    (line,) = _summary.summary(["e"], {"e": BEGUN})["hosts"]
    assert line["says"].startswith("lost in the middle of its switch; run this again")


def test_the_screen_tells_whom_to_run_again_and_what_undoes_the_rest() -> None:
    outcomes = {"a": ended(DONE), "b": ended(SHORT), "c": PLANNED}
    lines = _summary.summary_report(_summary.summary(list(outcomes), outcomes))
    assert lines == [
        "outcome",
        "  a  switched     24,000 + 5,120 → 25,844 + 5,119",
        "  b  rolled_back  card 0 settled short",
        "  c  not_reached  planned, and not started: another host has no good outcome",
        "done         a",
        "failed       b",
        "not started  c",
        "what was switched stays; this undoes it:",
        f"  {UNDO}",
    ]
    assert _summary.summary_report(_summary.summary(["a"], {"a": ended(DONE)})) == lines[:1] + [
        "  a  switched  24,000 + 5,120 → 25,844 + 5,119"
    ]


def test_a_name_as_wide_as_the_screen_leaves_room_for_the_sentence() -> None:
    lines = _summary.summary_report(_summary.summary(["h" * 200], {"h" * 200: ended(SHORT)}))
    assert lines[1].endswith("card 0 settled short")


def test_a_service_that_was_switched_names_what_undoes_it(example: t.Any) -> None:
    run = {"service": example.service, "plan": example.plan, "making": {"id": "x"}, "probes": {}, "undo": UNDO}
    assert _summary.service_outcome(run) == DONE
    assert "undo" not in _summary.service_outcome({**run, "making": None})
    late = {**run, "failure": {"word": "not_reached", "says": "not begun at 05:40:00", "code": "not_after"}}
    assert _summary.service_outcome(late) == LATE


def test_the_end_of_a_handover_names_the_command_back(example: t.Any) -> None:
    command = "ansible-playbook playbooks/resize.yml -l a -e service=day -e handover=true"
    run = {"service": example.service, "plan": example.plan, "making": {"id": "x"}, "probes": {}, "undo": ""}
    run["switched"] = {"others": [{"service": "day", "stance": "handed_over"}, {"service": "b", "stance": "beside"}]}
    run["hands_back"] = {"day": command}
    said = _summary.service_outcome(run)
    first = "24,000 + 5,120 → 25,844 + 5,119, day stopped for it; this hands the cards back:"
    assert (said["word"], said["says"]) == ("switched", f"{first}\n{command}")
    # On the screen it is a line to paste.
    lines = _summary.summary_report(_summary.summary(["a"], {"a": _summary.host_outcome({}, [said])}))
    assert lines[-1].strip() == command
    # So it is where the probes leave a doubt.
    doubt = {**run, "probes": {"boundary": {"verdict": "inconclusive", "says": "other traffic."}, "rates": {"x": 1}}}
    assert _summary.service_outcome(doubt)["says"] == (
        "25,844 + 5,119 is kept. boundary: other traffic. day stopped for it; this hands the cards back:\n" + command
    )
    # Nobody was stopped: nothing of it.
    beside = {**run, "switched": {"others": [{"service": "day", "stance": "beside"}]}}
    assert _summary.service_outcome(beside)["says"] == "24,000 + 5,120 → 25,844 + 5,119"


def test_probes_that_nobody_answered_leave_a_doubt(example: t.Any) -> None:
    probes = {"calibration": None, "boundary": None, "rates": None}
    run = {"service": example.service, "plan": example.plan, "making": {"id": "x"}, "probes": probes}
    found = _summary.service_outcome(run)
    assert found["word"] == "inconclusive"
    assert "boundary: the host did not answer when it was to be probed. rates: " in found["says"]


def test_a_failure_keeps_its_code() -> None:
    assert _failure.failure({"msg": "short", "code": "pair_within_ceiling"})["code"] == "pair_within_ceiling"
    lost = _failure.failure({"msg": "short", "code": "x"}, lost="Task failed: no\nroute")
    assert lost == {"word": "not_reached", "says": "the host does not answer: no route"}
    unreachable = _failure.failure({"msg": "Task failed: no route", "unreachable": True})
    assert unreachable["says"] == "the host does not answer: no route"


def test_a_host_that_does_not_answer_is_not_reached_unless_its_switch_has_ended() -> None:
    lost = {"word": "not_reached", "says": "the host does not answer"}
    for word, told in (("refused", "not_reached"), ("drift", "not_reached"), ("not_serving", "not_serving")):
        run = {"service": {"name": "a"}, "failure": {"word": word, "says": "cannot be read"}}
        assert _summary.host_outcome(run, [], lost)["word"] == told


def test_a_service_that_serves_after_its_switch_was_interrupted_is_not_told_as_down() -> None:
    died = _failure.failure(
        {"msg": "The switch was interrupted in phase ready.", "outcome": "failed", "code": "interrupted"}
    )
    boot = {"ready": True, "flags": {"vram-weights-mib": "24000", "vram-kv-mib": "5120"}}
    found = _failure.interrupted(died, {"ledger": boot, "last_boot": False})
    says = "The switch was interrupted in phase ready. It serves, on 24,000 + 5,120."
    assert found == {"word": "inconclusive", "says": says, "code": "interrupted"}
    looks = [
        {},
        {"unreachable": True, "msg": "no route"},
        {"ledger": boot, "last_boot": True},
        {"ledger": {**boot, "ready": False}, "code": "not_ready"},
        {"ledger": {**boot, "flags": {}}},
    ]
    for look in looks:
        assert _failure.interrupted(died, look)["word"] == "not_serving"
    for known in (SHORT, {"word": "not_serving", "says": "down", "code": "engine_refused"}):
        assert _failure.interrupted(known, {"ledger": boot}) == known
    # What it comes to is not known, so neither is a return.
    assert _undo.undone(ended(DONE), [{**found, "service": "flashnext"}], "b ended refused")["undone"] is False


def test_what_this_run_switched_is_undone_where_that_is_declared() -> None:
    outcomes = {"a": ended(DONE, {**DONE, "service": "b"}), "b": ended(SHORT), "c": PLANNED}
    assert _undo.to_undo("a", outcomes, "undo") == {"services": ["b", "flashnext"], "because": "b ended rolled_back"}
    assert _undo.to_undo("a", outcomes, "leave") == {}
    # What did not run before has no way back, and is not stopped again.
    started = {"service": "flashnext", "word": "switched", "says": "24,000 + 5,120, started: it did not run"}
    assert _undo.to_undo("a", {**outcomes, "a": ended(started)}, "undo") == {}
    for host in ("b", "c"):
        assert _undo.to_undo(host, outcomes, "undo") == {}


@pytest.mark.parametrize(
    ("other", "because"),
    [
        (ended(LATE), "b ended not_reached"),
        (BEGUN, "b was lost in the middle of its switch"),
        (None, "b was not planned"),
        ({}, "b was not planned"),
        (PLANNED, ""),
        (ended(DONE), ""),
    ],
)
def test_only_a_host_without_a_good_outcome_undoes_others(other: t.Any, because: str) -> None:
    assert _undo.to_undo("a", {"a": ended(DONE), "b": other}, "undo").get("because", "") == because


def test_what_was_undone_is_rolled_back_and_undoes_no_other() -> None:
    back = {"service": "flashnext", "word": "switched", "says": "25,844 + 5,119 → 24,000 + 5,120", "undo": "again"}
    found = _undo.undone(ended(DONE), [back], "b ended refused")
    says = "25,844 + 5,119 → 24,000 + 5,120, undone because b ended refused"
    assert found["services"] == [{"service": "flashnext", "word": "rolled_back", "says": says}]
    assert (found["word"], found["says"], found["undone"]) == ("rolled_back", says, True)
    outcomes = {"z": ended(DONE), "a": found, "b": ended(SHORT)}
    assert _undo.to_undo("z", outcomes, "undo")["because"] == "b ended rolled_back"
    assert _undo.to_undo("a", outcomes, "undo") == {}
    assert states(outcomes) == {"done": ["z"], "failed": ["b"], "not_started": [], "undone": ["a"]}


def test_what_could_not_be_undone_says_so_and_stays_named() -> None:
    found = _undo.undone(ended(DONE), [{**LATE, "undo": "x"}], "b ended refused")
    assert found["undone"] is False
    assert found["word"] == "not_reached"
    assert found["says"] == (
        "24,000 + 5,120 → 25,844 + 5,119 was to be undone because b ended refused, and was not: not begun at 05:40:00"
    )
    content = _summary.summary(["a"], {"a": found})
    assert content["failed"] == ["a"]
    assert _summary.summary_report(content)[-1] == f"  {UNDO}"


@given(st.lists(st.sampled_from([None, PLANNED, BEGUN, ended(DONE), ended(SHORT), ended(LATE)]), max_size=6))
def test_each_host_is_in_one_list_and_good_means_that_all_are_done(found: list[t.Any]) -> None:
    outcomes = {f"h{n}": outcome for n, outcome in enumerate(found)}
    content = _summary.summary(list(outcomes), outcomes)
    listed = [host for state in ("done", "failed", "not_started", "undone") for host in content[state]]
    assert sorted(listed) == sorted(outcomes)
    assert content["good"] is (content["done"] == list(outcomes))


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"rc": 0, "failed": False}, ""),
        (
            {"rc": 3, "failed": True, "stderr": "one\nno such channel\n"},
            "/bin/tell ended with 3, and may not have taken",
        ),
        ({"rc": 3, "failed": True, "stderr": "one\nno such channel\n"}, "the summary: no such channel"),
        # How Ansible tells that it could not run at all, or has not read it: an error number for a status.
        (
            {"rc": 2, "msg": "Error executing command.", "stderr": ""},
            "tell could not take the summary: No such file",
        ),
        ({"rc": 32, "msg": "Error executing command.", "stderr": ""}, "could not take the summary: Broken pipe"),
        ({"rc": 1, "failed": True, "stderr": "refused Bearer SESAME"}, "summary: refused Bearer ********"),
        ({"failed": True, "msg": "async task did not complete within the requested time - 60s"}, "did not complete"),
        ({"unreachable": True}, "did not end well"),
    ],
)
def test_a_command_that_did_not_take_the_summary_is_a_warning(result: dict[str, t.Any], said: str) -> None:
    words = _summary.notify_words(result, ["/bin/tell", "secret"])
    assert said in words
    assert bool(words) is bool(said)
    assert "secret" not in words
