# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""service_plan through ansible-playbook: what it asks, what it wants settled first, and what ends a plan."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import ROOT, Service

NEIGHBOUR = {
    "name": "embed",
    "engine": ["radiance"],
    "model": "/m/embed.rad",
    "port": 8001,
    "log": "/e.log",
    "pid_file": "/e.pid",
    "cards": [0],
}


def asks(service: Service) -> dict[str, dict[str, t.Any]]:
    """The options of each call, by what it is of."""
    flash = {
        "name": "flash",
        "engine": ["radiance"],
        "model": f"{service.folder}/flash.rad",
        "port": service.port,
        "log": str(service.log),
        "pid_file": str(service.pid_file),
        "flags": {"host-pool-mib": "16384", "tp": "2"},
    }
    on_card = {**flash, "cards": [0]}
    left, closed = service.folder / "left", service.folder / "closed"
    (left / "flash").mkdir(parents=True)
    (left / "flash" / "journal.json").touch()
    closed.touch()
    plain: dict[str, t.Any] = {
        "service": flash,
        "fleet_dir": str(service.folder / "fleet"),
        "target_dir": str(service.folder / "target"),
        "state_dir": str(service.folder / "state"),
        "timeouts": {"drain": 60, "stop": 60, "release": 120, "ready": 1800, "probe": 1800},
        "rate": {"prompt_tokens": 43500, "generate_tokens": 512, "runs": 2},
    }
    watched = service.folder / "watched"
    (watched / "flash").mkdir(parents=True)
    (watched / "flash" / "probation.json").touch()
    told = {"told": "What became of it.", "returned": []}
    unfit = {name: value for name, value in NEIGHBOUR.items() if name != "port"}
    return {
        "plan": plain,
        "look": {**plain, "plan": False},
        "left": {**plain, "state_dir": str(left)},
        "left_settled": {**plain, "state_dir": str(watched), "settled": {"switch": told}},
        "left_unfinished": {**plain, "state_dir": str(left), "settled": {"switch": told}},
        "relative": {**plain, "target_dir": "srv/radiance"},
        "half_timeouts": {**plain, "timeouts": {"drain": 5}},
        "others": {**plain, "service": on_card, "services": [on_card, NEIGHBOUR]},
        "others_settled": {**plain, "service": on_card, "services": [NEIGHBOUR], "settled": {"others": []}},
        "others_of_a_look": {**plain, "plan": False, "service": on_card, "services": [NEIGHBOUR]},
        "neighbour_unfit": {**plain, "service": on_card, "services": [unfit]},
        "unfit": {**plain, "service": {"name": "flash"}},
        "closed": {**plain, "state_dir": str(closed)},
        "gone": plain,
    }


@pytest.fixture(name="told", scope="module")
def told_fixture(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[dict[str, t.Any]]:
    """What each call told of a service that runs, from one play."""
    service = Service(tmp_path_factory.mktemp("asked"))
    folder = service.folder
    calls = asks(service)
    tasks: list[dict[str, t.Any]] = [
        {"name": name, "kvfleet.radiance.service_plan": options, "register": name} for name, options in calls.items()
    ]
    # A host on a port where nothing listens.
    tasks[-1].update(vars={"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1})
    content = f"{{{{ dict({list(calls)} | zip([{', '.join(calls)}])) | to_json }}}}"
    tasks.append({"name": "keep", "ansible.builtin.copy": {"content": content, "dest": str(folder / "told")}})
    (folder / "play.json").write_text(json.dumps([{"hosts": "dankserver", "gather_facts": False, "tasks": tasks}]))
    parts = ROOT.parts
    path = pathlib.Path(*parts[: parts.index("ansible_collections")]) if "ansible_collections" in parts else None
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(path or ROOT / "collections"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "local"),
        "ANSIBLE_REMOTE_TEMP": str(folder / "remote"),
        # Where a host has its interpreter.
        "PATH": "/usr/bin:/bin",
    }
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "dankserver,", "-c", "local"]
    try:
        service.start_old()
        done = subprocess.run(
            [*command, str(folder / "play.json")],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        yield json.loads((folder / "told").read_text())
    finally:
        service.kill_all()


def test_a_plan_comes_of_one_call(told: dict[str, t.Any]) -> None:
    run = told["plan"]
    assert (run["failure"], run["unsettled"], run["changed"], run["ledger"]["status"]) == (None, "", False, "complete")
    assert (run["plan"]["from"]["weights_mib"], run["plan"]["from"]["kv_mib"]) == (24000, 5120)
    assert run["report"][0].startswith("flash on dankserver: ")
    assert "VRAM_WEIGHTS_MIB=" in run["texts"]["env"]


def test_the_interpreter_that_was_found_is_handed_on(told: dict[str, t.Any]) -> None:
    assert told["plan"]["ansible_facts"]["discovered_interpreter_python"].startswith("/")
    assert "ansible_facts" not in told["look"], "it was looked for once"


def test_a_look_is_what_there_is_without_a_plan(told: dict[str, t.Any]) -> None:
    run = told["look"]
    assert (run["failure"], run["unsettled"], "plan" in run) == (None, "", False)
    assert run["ledger"]["fingerprint"] == told["plan"]["ledger"]["fingerprint"]


def test_what_a_switch_has_left_is_settled_first(told: dict[str, t.Any]) -> None:
    assert [told["left"][name] for name in ("unsettled", "settled", "failure")] == ["switch", {}, None]
    assert "plan" not in told["left"]
    assert "What became of it." in " ".join(" ".join(told["left_settled"]["report"]).split())


def test_who_runs_on_its_cards_is_settled_before_a_plan_and_no_look(told: dict[str, t.Any]) -> None:
    run = told["others"]
    assert (run["unsettled"], [other["service"] for other in run["others"]]) == ("others", ["embed"])
    assert (told["others_settled"]["unsettled"], told["others_settled"]["others"]) == ("", [])
    assert "plan" in told["others_settled"]
    assert told["others_of_a_look"]["unsettled"] == ""


@pytest.mark.parametrize(
    ("name", "word", "says"),
    [
        ("neighbour_unfit", "refused", "This is no service, 'embed' of endpoint_services: at the top: missing port."),
        ("unfit", "refused", "This is no service, 'flash' of endpoint_services: at the top: missing "),
        ("closed", "refused", "closed/flash/journal.json cannot be read: Not a directory."),
        (
            "left_unfinished",
            "refused",
            "A switch of flash has not ended: it was interrupted, or it runs now.",
        ),
        (
            "relative",
            "refused",
            "endpoint_target_dir is 'srv/radiance'. Give an absolute path.",
        ),
        ("half_timeouts", "refused", "(An argument NAME of this step is the variable endpoint_NAME.)"),
        ("gone", "not_reached", "the host does not answer: "),
    ],
)
def test_what_stands_in_the_way_is_told_and_fails_nothing(
    told: dict[str, t.Any], name: str, word: str, says: str
) -> None:
    run = told[name]
    assert (run["failure"]["word"], says in run["failure"]["says"], run["service"]["name"]) == (word, True, "flash")
    assert "plan" not in run
