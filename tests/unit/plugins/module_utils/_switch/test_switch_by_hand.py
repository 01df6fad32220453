# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person did between a switch that did not end and the next run, and what a failure tells them to do."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    NEW,
    OLD,
    Service,
    env_text,
    wait_until,
)

REQUESTS = "I chat: 12 prompt tokens, 34 tokens\n" * 2000


def listens(service: Service) -> bool:
    return "server: listening" in service.log.read_text() and service.serves()


def failed(service: Service) -> tuple[list[str], list[str]]:
    """A switch of which neither pair came up; the command lines of the old pair and of the new one."""
    old = service.argv()
    service.arm("refuse_boot", "refuse_boot")
    result = service.run(NEW)
    assert result["outcome"] == "failed"
    assert (service.state / "journal.json").exists()
    new = [{"24000": "25844", "5120": "5119"}.get(word, word) for word in old]
    return old, new


@pytest.mark.parametrize("with_endpoint", [True, False])
@pytest.mark.parametrize("log", ["cut", "cut and grown", "another file", "appended to"])
def test_an_old_pair_that_a_person_brought_back_is_seen_at_once(
    service: Service, log: str, with_endpoint: bool
) -> None:
    old, _new = failed(service)
    if log == "another file":
        service.log.unlink()
    service.by_hand(*old, log_mode="ab" if log == "appended to" else "wb")
    wait_until(lambda: service.serves() and listens(service))
    if log == "cut and grown":
        with service.log.open("ab") as handle:
            handle.write(REQUESTS.encode())
    pid = service.pid()
    endpoint = service.endpoint if with_endpoint else None
    assert service.run(check_mode=True, endpoint=endpoint)["outcome"] == "rolled_back"

    result = service.run(endpoint=endpoint, ready_timeout=4)
    assert (result["outcome"], result["failed"], service.pid()) == ("rolled_back", False, pid)
    assert f"the old pair 24,000 + 5,120 serves already in process {pid}" in result["recovered"]
    assert [phase["name"] for phase in result["phases"]] == ["lock", "restore"]
    assert not (service.state / "journal.json").exists()
    assert [entry["serving"] for entry in service.records()] == [False, True]
    assert service.env.read_text() == env_text(OLD)
    # And the next call has nothing to finish.
    assert service.run(OLD)["outcome"] == "unchanged"


@pytest.mark.parametrize("grown", ["", "D still loading\n" * 2000])
def test_an_old_pair_that_still_loads_is_followed_in_the_log_that_it_writes(service: Service, grown: str) -> None:
    old, _new = failed(service)
    service.world(load_speedup=30, stop_seconds=0)
    os.truncate(service.log, 0)
    service.by_hand(*old, log_mode="ab")
    wait_until(lambda: "load:" in service.log.read_text())
    with service.log.open("a") as handle:
        handle.write(grown)
    assert not service.serves()
    pid = service.pid()
    result = service.run(ready_timeout=15)
    assert (result["outcome"], result["failed"], service.pid()) == ("rolled_back", False, pid)
    assert result["restored"]["status"] == "complete"
    assert not (service.state / "journal.json").exists()


def test_a_new_pair_that_a_person_started_is_left_alone_and_said(service: Service) -> None:
    _old, new = failed(service)
    service.by_hand(*new)
    wait_until(lambda: listens(service))
    pid = service.pid()
    result = service.run(endpoint=service.endpoint)
    assert (result["outcome"], result["failed"], service.pid()) == ("unchanged", False, pid)
    assert f"25,844 + 5,119 serves in process {pid}, which no run of ours started" in result["recovered"]
    assert not (service.state / "journal.json").exists()
    # The call that wants this pair installs its files and restarts nothing.
    result = service.run(NEW, endpoint=service.endpoint)
    assert (result["outcome"], result["changed"], service.pid()) == ("unchanged", True, pid)
    assert service.env.read_text() == env_text(NEW)


def interrupted(service: Service, phase: str) -> tuple[list[str], list[str]]:
    """A switch whose module died right before it entered this phase; the two command lines."""
    old = service.argv()
    child = os.fork()
    if child == 0:
        path = service.state / "journal.json"

        def watch(event: str, args: tuple[object, ...]) -> None:
            if event == "os.rename" and str(args[1]) == str(path):
                fresh = json.loads(pathlib.Path(str(args[0])).read_text())
                if fresh["phase"] == phase:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        try:
            service.run(NEW)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert service.pair() is None
    return old, [{"24000": "25844", "5120": "5119"}.get(word, word) for word in old]


@pytest.mark.parametrize("phase", ["release", "swap", "start"])
def test_an_old_pair_that_is_back_before_the_switch_went_on_keeps_its_files(service: Service, phase: str) -> None:
    old, _new = interrupted(service, phase)
    service.by_hand(*old)
    wait_until(lambda: listens(service))
    pid = service.pid()
    result = service.run()
    assert (result["outcome"], result["failed"], service.pid()) == ("rolled_back", False, pid)
    assert service.env.read_text() == env_text(OLD)
    assert not (service.state / "journal.json").exists()
    assert not list(service.folder.glob(".flash*"))


@pytest.mark.parametrize("phase", ["swap", "start"])
def test_a_new_pair_that_is_up_before_the_switch_went_on_is_judged_and_kept(service: Service, phase: str) -> None:
    _old, new = interrupted(service, phase)
    service.by_hand(*new)
    wait_until(lambda: listens(service))
    pid = service.pid()
    assert service.run(check_mode=True)["outcome"] == "switched"
    result = service.run()
    assert (result["outcome"], result["failed"], service.pid()) == ("switched", False, pid)
    assert service.env.read_text() == env_text(NEW)
    assert [entry["kind"] for entry in service.records()] == ["switched"]
    assert not (service.state / "journal.json").exists()


def test_no_engine_is_started_beside_one_that_has_no_pid_file(service: Service) -> None:
    old, _new = failed(service)
    service.by_hand(*old)
    wait_until(lambda: listens(service))
    pid = service.pid_file.read_text()
    service.pid_file.unlink()
    for check_mode in (True, False):
        result = service.run(check_mode=check_mode, endpoint=service.endpoint)
        assert (result["code"], len(service.pids())) == ("port_taken", 1)
        assert "Write its pid into the pid file" in result["msg"]
    service.pid_file.write_text(pid)
    assert service.run(endpoint=service.endpoint)["outcome"] == "rolled_back"


def paste(service: Service, message: str) -> None:
    """Run the commands at a message's end as a shell does that they are pasted into; it ends with nothing held."""
    commands = message.partition("by hand: ")[2]
    done = subprocess.run(
        ["/bin/sh", "-i"],
        input=commands + "\n",
        cwd=service.folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        # Without a terminal of its own: a shell in the background would stop at asking for one.
        start_new_session=True,
    )
    assert "not found" not in done.stderr and "yntax" not in done.stderr


def test_the_commands_of_a_failure_start_the_old_pair_detached(service: Service) -> None:
    service.arm("refuse_boot", "refuse_boot")
    result = service.run(NEW)
    paste(service, result["msg"])
    wait_until(lambda: service.pair() == "24000+5120" and service.serves())
    pid = service.pid()
    assert os.getsid(pid) == pid != os.getsid(0)
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    assert os.readlink(f"/proc/{pid}/fd/1") == str(service.log)
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"


def test_the_commands_of_a_failure_end_first_what_was_left_running(service: Service) -> None:
    service.arm("never_ready", "never_ready")
    result = service.run(NEW, ready_timeout=1, stop_timeout=1)
    pid = service.pid()
    assert result["outcome"] == "failed"
    assert f"Process {pid} was left running: it may still come up." in result["msg"]
    assert result["by_hand"][0].startswith(f"kill {pid}; while kill -0 {pid} ")
    # It is this process's child, and stays in the table until somebody asks for its status.
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    paste(service, result["msg"])
    wait_until(lambda: service.pair() == "24000+5120" and service.serves())
    assert len(service.pids()) == 1


def test_a_boot_that_was_stopped_is_not_one_to_wait_for(service: Service) -> None:
    service.arm("never_ready")
    result = service.run(NEW, ready_timeout=2, stop_timeout=1)
    assert result["code"] == "never_ready"
    assert "This boot was given up and stopped. Not ready after 2 s (ready_timeout)" in result["msg"]
    reason = result["ledger"]["reason"]
    assert reason["code"] == "not_ready"
    assert reason["text"].startswith("This boot was given up and stopped. Not ready after 2 s (ready_timeout)")
    assert "Wait if" not in json.dumps([result["msg"], result["says"], result["phases"], result["ledger"]])
