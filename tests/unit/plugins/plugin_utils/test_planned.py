# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what was read of a service to its plan and its files, or to the first thing that stands in the way."""

from __future__ import annotations

import copy
import json
import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _known, _planned, _rendered
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import ledger

ENV, SERVE = "/srv/scripts/flashnext.env", "/srv/scripts/serve-flashnext.sh"
FLAGS = {"model": "/m/flashnext.rad", "port": "8000", "host": "127.0.0.1"}
SERVICE: dict[str, t.Any] = {
    "name": "flashnext",
    "engine": ["radiance"],
    "model": "/m/flashnext.rad",
    "port": 8000,
    "log": "/l",
    "pid_file": "/p",
    "flags": {"tp": "2", "host-pool-mib": "16384"},
    "pair": "fill",
}
ABOUT: dict[str, t.Any] = {
    "host": "alpha",
    "env_path": ENV,
    "serve_path": SERVE,
    "documents": {},
    "adopts": False,
    "drift": "",
    "handover": False,
    "not_after": None,
    "told": "",
    "uncommitted": False,
    "undo": "UNDO",
    "timeouts": {"stop": 60, "ready": 1800, "probe": 1800},
    "probes": "none",
    "rate": {"prompt_tokens": 43500, "generate_tokens": 512, "runs": 2},
    "read_only": False,
    "check": False,
}
FILES: dict[str, t.Any] = {
    "env": {
        "path": "/f/e.env",
        "foreign": False,
        "text": "",
        "exists": False,
        "values": {},
        "errors": [],
        "adopted": False,
    },
    "serve": {"path": "/f/s.sh", "foreign": False, "text": ""},
    "bats": {"path": "/f/b.bats", "foreign": False, "text": ""},
}


def read(**changes: t.Any) -> dict[str, t.Any]:
    """What was read where a service runs on the pair of the worked example, and no file of ours is there yet."""
    return {
        "boot": {"ledger": ledger(flags=FLAGS), "last_boot": ""},
        "there": {"texts": {}, "entries": []},
        "returned": [],
        "record": [],
        "files": FILES,
        "others": [],
        **copy.deepcopy(changes),
    }


def planned(told: dict[str, t.Any] | None = None, *, request: t.Any = None, **about: t.Any) -> dict[str, t.Any]:
    return _planned.planned_run(SERVICE, told or read(), request or {}, {**ABOUT, **about})


def test_a_plan_comes_with_its_files_and_what_a_person_reads() -> None:
    run = planned(uncommitted=True)
    assert (run["failure"], run["asked"], run["plan"]["restart"]) == (None, None, True)
    assert (run["plan"]["to"]["weights_mib"], run["plan"]["to"]["kv_mib"]) == (25844, 5119)
    assert "VRAM_WEIGHTS_MIB=25844\nVRAM_KV_MIB=5119\n" in run["texts"]["env"]
    assert run["target_files"]["env"] == run["texts"]["env"]
    assert run["texts"]["serve"].startswith("#!/bin/sh\n")
    assert run["texts"]["bats"].startswith("#!/usr/bin/env bats\n")
    assert run["history"]["made"] == run["making"]
    assert run["report"][0].startswith("flashnext on alpha: 24,000 + 5,120 → 25,844 + 5,119 MiB a card")
    assert "The fleet directory has changes that are not committed" in "\n".join(run["report"])
    assert (run["needs"]["seconds"], run["undo"], run["returns"]) == (3600, "UNDO", True)


def test_the_files_of_a_run_that_was_never_planned_name_their_service_themselves() -> None:
    run = {name: value for name, value in planned().items() if name != "service"}
    rendered = _rendered.rendered_run(run, SERVICE, {**ABOUT, "documents": {"runbook": "", "log": ""}})
    assert (rendered["failure"], rendered["service"]["name"]) == (None, "flashnext")


def test_whoever_stops_a_container_waits_as_long_as_a_switch_does() -> None:
    process = ("engine", "log", "pid_file")
    service = {name: value for name, value in SERVICE.items() if name not in process}
    service |= {"manager": "systemd", "runtime": "podman", "image": "radiance:1.0.13"}
    about = {**ABOUT, "timeouts": {**ABOUT["timeouts"], "stop": 299.5}}
    rendered = _rendered.rendered_run(planned(), service, about)
    assert rendered["failure"] is None
    for text in (rendered["texts"]["serve"], rendered["target_files"]["serve"]):
        assert "--network host --stop-timeout 300 " in text


def test_what_stays_has_no_line_of_the_record() -> None:
    run = planned(read(), request={"weights_mib": "24000", "kv_mib": "5120"})
    assert (run["plan"]["restart"], run["making"], run["needs"]) == (False, None, None)


def test_a_pair_that_a_command_stated_is_not_filled_and_that_is_told(example: t.Any) -> None:
    stated = {**example.old, "max_num_seqs": 3}
    made = [
        example.planned(to=stated, request={"pair": {"weights_mib": 24000, "kv_mib": 5120}}),
        example.switched(to=stated),
    ]
    there = {"texts": {}, "entries": made}
    note = "a command stated the pair in force, so it stays; -e fill=true fills the card"
    kept = planned(read(record=made, there=there))
    assert (kept["plan"]["restart"], note in " ".join(" ".join(kept["report"]).split())) == (False, True)
    filled = planned(read(record=made, there=there), request={"fill": "true"})
    assert (filled["plan"]["restart"], note in " ".join(" ".join(filled["report"]).split())) == (True, False)
    assert note not in " ".join(" ".join(planned()["report"]).split())


def test_a_reviewed_plan_that_made_the_pair_in_force_is_done(example: t.Any, tmp_path: pathlib.Path) -> None:
    to = {**example.old, "max_num_seqs": 3}
    file = tmp_path / "plan.json"

    def again(on_record: bool = True, **asked: t.Any) -> dict[str, t.Any]:
        """It is asked for once more, having asked for this beside the pair."""
        made = example.planned(to=to, request={"pair": {"weights_mib": 24000, "kv_mib": 5120}, **asked})
        item = {
            "host": "alpha",
            "service": "flashnext",
            "request": made["request"],
            "plan": {**made["plan"], "prices": [], "options": []},
        }
        file.write_text(json.dumps({"schema": "kvfleet.radiance/plan-file/1", "plans": [item]}))
        record = [made, example.switched(to=to)] if on_record else []
        return planned(read(record=record, there={"texts": {}, "entries": record}), request={"plan": str(file)})

    done = again()
    assert (done["failure"], done["plan"]["restart"], done["plan"]["changes"]) == (None, False, [])
    # Without that record it is the plan of a boot that is gone, and so it is where more than the pair would change.
    assert again(on_record=False)["failure"]["code"] == "plan_is_stale"
    assert again(host_pool_mib=20480)["failure"]["code"] == "plan_is_stale"


def test_what_a_run_left_unjudged_is_judged_by_the_boot_in_force(example: t.Any) -> None:
    to = {**example.old, "max_num_seqs": 3}
    low, high = {"low": 2050, "high": 2060}, {"low": 300, "high": 400}
    settled = {"quantity": "settled_free_mib", "stack": None, "rank": None, "unit": "MiB", "because": "a test"}
    predictions = [{**settled, "id": f"settled_free_mib.card{card}", "card": card} for card in (0, 1)]
    made = example.planned(to=to, predictions=[predictions[0] | low, predictions[1] | high])
    switched = {**example.switched(to=to), "ledger": {"fingerprint": "0123456789ab"}}

    def late(*record: dict[str, t.Any]) -> list[tuple[str, str, t.Any]]:
        run = planned(read(record=record, there={"texts": {}, "entries": list(record)}))
        told = "has not judged its boot; " in " ".join(" ".join(run["report"]).split())
        assert (run["failure"], told) == (None, bool(run["late"]))
        assert {entry["attempt"] for entry in run["late"]} <= {"0123456789ab"}
        assert run["record"] == [*record, *run["late"]] and [e for e in run["lost"] if e["kind"] == "verdict"] == [
            entry for entry in run["late"] if entry["host"] == "alpha"
        ]
        return [(entry["prediction"], entry["verdict"], entry["measured"]) for entry in run["late"]]

    assert late(made, switched) == [
        ("settled_free_mib.card0", "held", 2058.24),
        ("settled_free_mib.card1", "killed", 2068.48),
    ]
    # It was judged; another boot of it runs; nobody kept which boot it was.
    assert late(made, switched, example.verdict("settled_free_mib.card0", "held", 2058.24)) == []
    assert late(made, {**switched, "ledger": {"fingerprint": "ba9876543210"}}) == []
    assert late(made, {**switched, "ledger": None}) == []


def test_what_was_before_the_last_switch_is_completed_unless_it_is_to_be_applied(example: t.Any) -> None:
    now = {**example.old, "weights_mib": 24000, "kv_mib": 5120}
    before = {**now, "weights_mib": 22000}
    made = [example.planned(**{"from": before, "to": now}), example.switched(to=now)]
    env = {**FILES["env"], "exists": True, "values": {"VRAM_WEIGHTS_MIB": "22000", "VRAM_KV_MIB": "5120"}}
    there = {"texts": {}, "entries": made}
    service = {**SERVICE, "pair": "keep"}
    told = read(record=made, there=there, files={**FILES, "env": env})
    completed = _planned.planned_run(service, told, {}, ABOUT)
    assert (completed["failure"], completed["drift"]["explained"], completed["plan"]["restart"]) == (None, True, False)
    applied = _planned.planned_run(service, told, {"drift": "apply"}, {**ABOUT, "drift": "apply"})
    assert (applied["failure"], applied["plan"]["restart"]) == (None, True)
    assert (applied["plan"]["to"]["weights_mib"], applied["plan"]["to"]["kv_mib"]) == (22000, 5120)


def test_the_first_thing_that_stands_in_the_way_is_told(tmp_path: pathlib.Path) -> None:
    damaged = f"# BEGIN kvfleet.radiance: managed; {SERVICE['name']}\n"
    about: dict[str, t.Any] = {"documents": {"agents": f"<!-- {damaged[2:-1]} -->\n"}}
    reviewed = tmp_path / "plan.json"
    reviewed.write_text(json.dumps({"schema": "kvfleet.radiance/plan-file/1", "plans": []}))
    ours = "# kvfleet.radiance: managed; a file of ours\n"
    env = ours + "VRAM_WEIGHTS_MIB=24000\nVRAM_KV_MIB=5120\n"
    request = {"image": "i", "to": "0123456789ab", "plan": str(reviewed), "weights_mib": "31000"}
    told = read(
        boot={"ledger": ledger(flags={**FLAGS, "moe-topk": "4"}), "last_boot": ""},
        files={
            **FILES,
            "env": {**FILES["env"], "exists": True, "values": {"VRAM_WEIGHTS_MIB": "22000", "VRAM_KV_MIB": "5120"}},
        },
        there={"texts": {ENV: env.replace("5120", "$(x)"), SERVE: "#!/bin/sh\n"}, "entries": []},
        others=[{"service": "other", "stance": "in_the_way", "both_run": False, "says": "Other runs."}],
    )
    seen = []

    def fails() -> str:
        run = planned(told, request={key: value for key, value in request.items() if value}, **about)
        seen.append((run["failure"]["word"], run["failure"].get("code")))
        return str(run["failure"]["says"])

    foreign = fails()
    assert foreign.startswith(f"Without the marker of this collection, and therefore never overwritten: alpha:{SERVE}.")
    assert foreign.endswith("\nansible-playbook playbooks/adopt.yml -l alpha -e service=flashnext")
    told["there"]["texts"][SERVE] = ours
    assert fails().endswith("(line 3 of scripts/flashnext.env)")
    told["there"]["texts"][ENV] = env
    assert fails().startswith("image=i was asked, and flashnext is a plain process")
    request["image"] = ""
    assert "VRAM_WEIGHTS_MIB is 22000 in the fleet directory, and 24000 on the host, which runs it." in fails()
    told["files"]["env"]["values"]["VRAM_WEIGHTS_MIB"] = "24000"
    assert fails().endswith("Or let it go with -e drift=apply.")
    told["boot"]["ledger"] = ledger(flags=FLAGS)
    assert fails().startswith("to=0123456789ab names no line of the record")
    request["to"] = ""
    assert fails().startswith("The plan file plans nothing, not flashnext on alpha.")
    request["plan"] = ""
    assert fails().startswith("weights_mib 31,000 leaves nothing for kv_mib")
    request["weights_mib"] = ""
    assert fails().startswith("Other runs. Nothing was changed.")
    told["others"] = []
    assert fails().startswith("AGENTS.md: ")
    about["documents"] = {}
    assert planned(told)["failure"] is None
    assert seen == [
        ("refused", "files_foreign"),
        ("refused", "env_unfit"),
        ("refused", "no_container"),
        ("drift", "drift"),
        ("drift", "drift"),
        ("refused", "nothing_to_return_to"),
        ("refused", "not_in_plan_file"),
        ("refused", "nothing_left"),
        ("refused", "cards_taken"),
        ("refused", None),
    ]


def test_files_of_others_are_read_to_be_taken_over() -> None:
    told = read(there={"texts": {ENV: "VRAM_WEIGHTS_MIB=24000\n"}, "entries": []})
    assert _known.known_run(SERVICE, told, ABOUT)["failure"]["word"] == "refused"
    run = _known.known_run(SERVICE, told, {**ABOUT, "adopts": True})
    assert (run["failure"], run["target"]["values"]) == (None, {"VRAM_WEIGHTS_MIB": "24000"})


def test_an_image_is_asked_for_before_there_is_a_plan() -> None:
    service = {**SERVICE, "runtime": "podman", "image": "radiance:1.0.13", "manager": "systemd"}
    asked = {"image": "radiance:1.0.14"}
    source = {**ledger()["source"], "image": "radiance:1.0.13", "image_digest": "sha256:0a"}
    told = read(boot={"ledger": ledger(flags=FLAGS, source=source), "last_boot": ""})
    run = _planned.planned_run(service, told, asked, ABOUT)
    assert (run["asked"], run["failure"], "plan" in run) == ("radiance:1.0.14", None, False)
    run = _planned.planned_run(service, told, asked, ABOUT, {"rc": 125, "stdout": "", "stderr": "no such image"})
    assert run["failure"]["says"].startswith("image=radiance:1.0.14 was asked, and podman has no such image")
    assert run["failure"]["code"] == "image_missing"
    # A reference that is the running one needs no look at its digest.
    same = _planned.planned_run(service, told, {"image": "radiance:1.0.13"}, ABOUT, {"rc": 0, "stdout": "[]"})
    assert (same["failure"], same["image"]["same"], same["options"].get("image")) == (None, True, None)


@pytest.mark.parametrize(
    ("request_", "handover", "returns"),
    [({}, False, True), ({}, True, False), ({"weights_mib": "24000", "kv_mib": "5120"}, False, False)],
)
def test_what_does_not_run_is_started_and_returns_to_another_pair_alone(
    request_: dict[str, str], handover: bool, returns: bool
) -> None:
    told = read()
    told["boot"]["last_boot"] = "It does not run"
    run = planned(told, request=request_, handover=handover)
    assert (run["plan"]["restart"], run["returns"], run["undo"]) == (True, returns, "UNDO" if returns else "")


def test_a_plan_that_takes_the_cards_of_another_keeps_the_command_back() -> None:
    other = {"service": "day", "stance": "in_the_way", "both_run": False, "says": "Day runs."}
    undo = "ansible-playbook playbooks/rollback.yml -l alpha -e service=flashnext -e to=previous"
    run = planned(read(others=[other]), handover=True, undo=undo)
    command = "ansible-playbook playbooks/resize.yml -l alpha -e service=day -e handover=true"
    assert run["hands_back"] == {"day": command}
    assert command in " ".join(" ".join(run["report"]).split())
    assert planned()["hands_back"] == {}


def test_a_plan_that_only_reads_is_shown_whoever_has_the_cards() -> None:
    other = {"service": "other", "stance": "in_the_way", "both_run": False, "says": "Other runs."}
    run = planned(read(others=[other]), read_only=True)
    assert run["failure"] is None
    assert "Other runs." in "\n".join(run["report"])
