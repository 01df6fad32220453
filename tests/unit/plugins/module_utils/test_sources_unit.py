# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's units: what systemctl 252 printed, and programs of its name."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import unit

LOGS = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "logs"
HEALTHY = LOGS / "healthy-1.0.13.log"
RUNNING = """\
MainPID=622
Result=success
NRestarts=0
ExecMainCode=0
ExecMainStatus=0
Id=flashnext.service
LoadState=loaded
ActiveState=active
SubState=running
FragmentPath=/etc/systemd/system/flashnext.service
InvocationID=9ab33127a628458496da25cd04d0713b
"""
KILLED = """\
MainPID=0
Result=signal
NRestarts=2
ExecMainCode=2
ExecMainStatus=9
Id=plain.service
LoadState=loaded
ActiveState=failed
SubState=failed
FragmentPath=
InvocationID=32546a3ddb1f4ce2822a1c27a9ab32b1
InactiveEnterTimestamp=Mon 2026-11-30 07:05:37 UTC
"""
UNKNOWN = """\
MainPID=0
Result=success
NRestarts=0
ExecMainCode=0
ExecMainStatus=0
Id=nosuch.service
LoadState=not-found
ActiveState=inactive
SubState=dead
FragmentPath=
InvocationID=
"""

PutProgram = t.Callable[[str, str], pathlib.Path]


def test_a_unit_that_runs() -> None:
    assert unit.parse_unit(RUNNING, "system") == unit.Unit(
        name="flashnext.service",
        scope="system",
        load_state="loaded",
        active_state="active",
        sub_state="running",
        result="success",
        main_pid=622,
        exit_status="",
        invocation="9ab33127a628458496da25cd04d0713b",
        restarts=0,
        job=0,
        outdated=False,
    )


def test_a_unit_that_was_killed() -> None:
    found = unit.parse_unit(KILLED, "user")
    assert (found.scope, found.main_pid, found.exit_status, found.restarts) == ("user", 0, "signal 9", 2)
    assert (found.active_state, found.result) == ("failed", "signal")
    assert found.invocation == "32546a3ddb1f4ce2822a1c27a9ab32b1"
    assert (found.crashed, found.ended_at) == (True, "Mon 2026-11-30 07:05:37 UTC")


@pytest.mark.parametrize(
    ("result", "code", "status", "crashed"),
    [
        ("exit-code", "1", "1", True),
        ("exit-code", "1", "137", True),
        ("core-dump", "3", "11", True),
        ("start-limit-hit", "1", "1", True),
        ("exit-code", "1", "143", False),
        ("exit-code", "1", "130", False),
        ("signal", "2", "15", False),
        ("timeout", "2", "9", False),
    ],
)
def test_what_nobody_stopped_has_crashed(result: str, code: str, status: str, crashed: bool) -> None:
    told = f"Result={result}\nExecMainCode={code}\nExecMainStatus={status}\nActiveState="
    assert unit.parse_unit(f"{told}failed\n", "system").crashed is crashed
    assert unit.parse_unit(f"{told}activating\n", "system").crashed is False


@pytest.mark.parametrize(
    ("code", "status", "says"),
    [
        ("1", "0", "status 0"),
        ("1", "125", "status 125"),
        ("2", "15", "signal 15"),
        ("3", "6", "signal 6"),
        ("0", "0", ""),
    ],
)
def test_how_the_main_process_ended(code: str, status: str, says: str) -> None:
    assert unit.parse_unit(f"ExecMainCode={code}\nExecMainStatus={status}\n", "system").exit_status == says


def test_a_unit_that_does_not_exist() -> None:
    found = unit.parse_unit(UNKNOWN, "system")
    assert (found.load_state, found.invocation, found.job) == ("not-found", "", 0)


@pytest.mark.parametrize(
    ("active", "sub", "does"),
    [
        ("active", "running", True),
        ("active", "exited", True),
        ("activating", "start", True),
        ("deactivating", "stop-sigterm", True),
        ("activating", "auto-restart", False),
        ("inactive", "dead", False),
        ("failed", "failed", False),
    ],
)
def test_whether_a_unit_runs(active: str, sub: str, does: bool) -> None:
    assert unit.parse_unit(f"ActiveState={active}\nSubState={sub}\n", "system").runs is does


@pytest.mark.parametrize(("scope", "manager"), [("system", ""), ("user", "--user ")])
def test_the_manager_of_the_scope_is_asked(
    put_program: PutProgram, tmp_path: pathlib.Path, scope: str, manager: str
) -> None:
    (tmp_path / "said").write_text(RUNNING)
    folder = put_program("systemctl", f"cat {tmp_path}/said")
    found = unit.show("-flashnext", scope)
    assert (found.scope, found.main_pid) == (scope, 622)
    call = (folder / "systemctl.calls").read_text()
    assert call.startswith(f"{manager}--no-pager --no-ask-password show --property=Id,")
    assert call.endswith(" -- -flashnext\n")


@pytest.mark.parametrize(
    ("scope", "said", "way"),
    [
        ("user", "Failed to connect to bus: No medium found", "loginctl enable-linger"),
        ("system", "Failed to connect to bus: Host is down", "a host that runs systemd"),
    ],
)
def test_a_manager_that_does_not_answer(put_program: PutProgram, scope: str, said: str, way: str) -> None:
    put_program("systemctl", f"echo '{said}' >&2; exit 1")
    with pytest.raises(RadianceError) as caught:
        unit.show("flashnext", scope)
    assert caught.value.code == "systemd_unreachable"
    assert f"'flashnext': {said}." in caught.value.text
    assert way in caught.value.text


def test_the_journal_of_an_invocation(put_program: PutProgram) -> None:
    folder = put_program("journalctl", f"cat {HEALTHY}; while :; do echo traffic; done")
    assert unit.journal("9ab33127a628458496da25cd04d0713b", "user") == HEALTHY.read_text()
    assert (folder / "journalctl.calls").read_text() == (
        "--quiet --no-pager --output=cat _SYSTEMD_INVOCATION_ID=9ab33127a628458496da25cd04d0713b _TRANSPORT=stdout\n"
    )


def test_a_journal_without_an_entry_is_empty(put_program: PutProgram) -> None:
    put_program("journalctl", "exit 0")
    assert unit.journal("9ab33127a628458496da25cd04d0713b", "system") == ""


def test_a_journal_that_may_not_be_read(put_program: PutProgram) -> None:
    said = "No journal files were opened due to insufficient permissions."
    put_program("journalctl", f"echo '{said}' >&2; exit 1")
    with pytest.raises(RadianceError) as caught:
        unit.journal("9ab33127a628458496da25cd04d0713b", "system")
    assert caught.value.code == "journal_unreadable"
    assert said in caught.value.text
    assert "with become" in caught.value.text


@pytest.mark.parametrize(
    ("active", "stopped"), [("active", False), ("activating", False), ("inactive", True), ("failed", True)]
)
def test_whether_a_unit_is_down_for_good(active: str, stopped: bool) -> None:
    assert unit.parse_unit(f"ActiveState={active}\nSubState=auto-restart\nJob=412\n", "system").stopped is stopped
