# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""service_switch through ansible-playbook, while what lies between controller and target breaks."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.action import service_switch
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    NEW,
    ROOT,
    Service,
    wait_until,
)

PLAY = [
    {
        "hosts": "dankserver",
        "gather_facts": False,
        "tasks": [
            {"name": "switch", "kvfleet.radiance.service_switch": "{{ options }}", "register": "result"},
            {
                "name": "keep",
                "ansible.builtin.copy": {"content": "{{ result | to_json }}", "dest": "{{ options.state_dir }}/result"},
                "delegate_to": "localhost",
            },
        ],
    }
]


@pytest.fixture(name="service")
def service_fixture(tmp_path: pathlib.Path) -> t.Iterator[Service]:
    """A service on the old pair, whose next boot takes some seconds."""
    service = Service(tmp_path)
    try:
        service.start_old()
        service.world(load_speedup=12, stop_seconds=0)
        yield service
    finally:
        service.kill_all()


class Playbook:
    """ansible-playbook with one task, on a host whose connection is lost while ``down`` exists."""

    def __init__(self, service: Service) -> None:
        folder = service.folder
        self.service = service
        self.down = folder / "down"
        self.output = folder / "output"
        (folder / "play.json").write_text(json.dumps(PLAY))
        options = service.options(NEW, endpoint=service.endpoint)
        given = {name: value for name, value in options.items() if value not in (None, [])}
        variables = {"options": given, "ansible_python_interpreter": sys.executable}
        parts = ROOT.parts
        path = pathlib.Path(*parts[: parts.index("ansible_collections")]) if "ansible_collections" in parts else None
        environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(path or ROOT / "collections"),
            "ANSIBLE_CONNECTION_PLUGINS": str(pathlib.Path(__file__).parent / "switch_connections"),
            "ANSIBLE_LOCAL_TEMP": str(folder / "local"),
            "ANSIBLE_REMOTE_TEMP": str(folder / "remote"),
            "ANSIBLE_ASYNC_DIR": str(folder / "async"),
            "ANSIBLE_NOCOLOR": "1",
            "SWITCH_TEST_DOWN": str(self.down),
        }
        command = [sys.executable, "-m", "ansible", "playbook", "-i", "dankserver,", "-c", "flaky"]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*command, "-e", json.dumps(variables), str(folder / "play.json")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )

    def wait_for_load(self) -> None:
        """Until the new engine loads."""
        wait_until(lambda: "] start: process " in self.output.read_text(), 60)

    def end(self) -> str:
        """Its output, once it has ended."""
        try:
            self.process.wait(60)
        finally:
            self.kill()
        return self.output.read_text()

    def kill(self) -> None:
        """The controller is gone, with everything that it has started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def module_pid(service: Service) -> int:
    return int(json.loads((service.state / "progress.jsonl").read_text().splitlines()[0])["pid"])


def test_a_connection_that_is_lost_for_a_while_is_found_again(service: Service) -> None:
    service.state.mkdir(parents=True, exist_ok=True)
    os.mkfifo(service.state / "progress.jsonl")  # whoever reads that waits for ever
    playbook = Playbook(service)
    playbook.wait_for_load()
    playbook.down.touch()
    wait_until(lambda: "the connection is lost; the switch goes on without it" in playbook.output.read_text(), 30)
    playbook.down.unlink()
    output = playbook.end()
    assert playbook.process.returncode == 0, output
    assert "[dankserver flash] keep: 25,844 + 5,119 runs as process " in output
    lines = [line for line in output.splitlines() if line.startswith("[dankserver flash] ")]
    assert len(lines) == len(set(lines)), "each line once"
    result = json.loads((service.folder / "state" / "result").read_text())
    assert (result["outcome"], result["changed"], result["downtime_seconds"] > 1) == ("switched", True, True)
    assert list((service.folder / "async").iterdir()) == [], "the job file is removed"


def test_a_controller_that_is_gone_leaves_the_switch_to_itself(service: Service) -> None:
    playbook = Playbook(service)
    playbook.wait_for_load()
    playbook.kill()
    wait_until(lambda: [entry["kind"] for entry in service.records()] == ["switched"], 30)
    wait_until(lambda: not (service.state / "journal.json").exists())
    assert (service.pair(), service.serves()) == ("25844+5119", True)


def test_a_module_that_is_gone_is_reported_with_its_phase(service: Service) -> None:
    playbook = Playbook(service)
    playbook.wait_for_load()
    os.kill(module_pid(service), signal.SIGKILL)
    output = playbook.end()
    assert playbook.process.returncode == 2, output
    assert "The switch was interrupted in phase ready: its process on the target is gone" in output
    assert "it restores the old pair or finishes the new one, and says which" in output
    # The engine was loading, and the next run finds it.
    result = service.run()
    assert (result["outcome"], result["failed"], service.pair()) == ("switched", False, "25844+5119")


def test_a_module_that_was_killed_before_anything_was_seen_of_it_is_told_without_its_traceback() -> None:
    msg = "Traceback (most recent call last):\n  File x, line 94\nValueError: No start of json char found"
    told = service_switch._finished({"failed": True, "finished": True, "msg": msg}, [])
    assert (told["failed"], told["changed"], told["outcome"], told["code"]) == (True, False, "failed", "interrupted")
    assert told["msg"].startswith(
        "The switch was interrupted in phase lock: its process on the target is gone. Run the"
    )
    refused = {"failed": True, "msg": "state_dir is required", "finished": True, "ansible_job_id": "j1"}
    assert service_switch._finished(refused, []) == {"failed": True, "msg": "state_dir is required"}


def test_a_switch_that_was_lost_from_sight_is_not_called_dead() -> None:
    lines = [{"run": "0a", "phase": phase, "says": ""} for phase in ("lock", "precheck", "drain")]
    result = service_switch._interrupted(lines, "the connection was lost and did not come back (timed out)", lost=True)
    assert result["msg"].startswith(
        "The switch was last seen in phase drain: the connection was lost and did not come back (timed out). Run the "
    )
    assert (result["failed"], result["changed"], result["outcome"]) == (True, True, "failed")
    gone = service_switch._interrupted(lines, "its process on the target is gone")
    assert gone["msg"].startswith("The switch was interrupted in phase drain: its process on the target is gone. ")
    assert (gone["failed"], gone["changed"], gone["outcome"]) == (True, False, "failed")


@pytest.mark.parametrize(
    ("phase", "changed"), [("lock", False), ("precheck", False), ("guard", True), ("drain", False), ("stop", True)]
)
def test_a_module_that_was_killed_before_it_stopped_anything_has_changed_nothing(phase: str, changed: bool) -> None:
    lines = [{"run": "0a", "phase": name, "says": ""} for name in ("lock", phase)]
    assert service_switch._interrupted(lines, "its process on the target is gone")["changed"] is changed


def test_a_refusal_before_the_lock_comes_back_as_it_is(service: Service) -> None:
    service.serve.chmod(0o644)
    playbook = Playbook(service)
    output = playbook.end()
    assert playbook.process.returncode == 2, output
    assert "is not an executable file on the target. Nothing was changed." in output
    assert service.pair() == "24000+5120"
