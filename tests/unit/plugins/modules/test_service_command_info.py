# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of a service that runs: a real process, and a unit as a systemctl of the test's own tells it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.kvfleet.radiance.plugins.modules import service_command_info

Run = t.Callable[..., dict[str, t.Any]]
# Sleeps under any words, which stay on its command line.
ENGINE = [sys.executable, "-c", "import time; time.sleep(60)", "--model", "/m.rad", "--api-key", "sk-of-the-test-0815"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_module(**options: t.Any) -> dict[str, t.Any]:
        with patch_module_args(options), pytest.raises(SystemExit):
            service_command_info.main()
        return t.cast("dict[str, t.Any]", json.loads(capsys.readouterr().out))

    return run_module


@pytest.fixture
def engine() -> t.Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(ENGINE) as process:
        yield process
        process.kill()


def a_systemctl(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, system: dict[str, t.Any], user: dict[str, t.Any]
) -> None:
    """Puts a systemctl on PATH that shows these properties of the one unit."""
    for name, told in (("system", system), ("user", user)):
        lines = [f"{key}={value}\n" for key, value in {"Id": "qwen.service", "LoadState": "not-found", **told}.items()]
        (folder / name).write_text("".join(lines))
    (folder / "systemctl").write_text(
        "#!/bin/sh\n"
        f"case $* in *--property=ExecStart*) echo '{{ path=/s/q ; argv[]=/s/q --x ; ignore_errors=no }}' ;;\n"
        f"*--user*) cat '{folder}/user' ;; *) cat '{folder}/system' ;; esac\n"
    )
    (folder / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def up(pid: int, **changed: str) -> dict[str, t.Any]:
    return {"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "MainPID": pid, **changed}


def test_a_process_is_told_by_its_pid_file_without_its_key(
    run: Run, engine: subprocess.Popen[bytes], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "pid").write_text(f"{engine.pid}\n")
    result = run(service="qwen", pid_file=str(tmp_path / "pid"))
    assert result["changed"] is False
    assert result["command"] == {
        "manager": "process",
        "unit": None,
        "scope": None,
        "program": [],
        "argv": [*ENGINE[:-1], "********"],
    }


def test_a_process_that_is_gone_is_said_so(run: Run, tmp_path: pathlib.Path) -> None:
    result = run(service="qwen", pid_file=str(tmp_path / "pid"))
    assert result["failed"] and result["code"] == "process_absent" and "pid names no process of qwen" in result["msg"]
    assert run(service="qwen", manager="process")["code"] == "process_absent"


def test_the_unit_is_found_in_the_systemd_that_runs_it(
    run: Run, engine: subprocess.Popen[bytes], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_systemctl(tmp_path, monkeypatch, {}, up(engine.pid))
    command = run(service="qwen")["command"]
    assert (command["manager"], command["scope"], command["unit"]) == ("systemd_user", "user", "qwen.service")
    assert command["program"] == ["/s/q", "--x"] and command["argv"][:2] == ENGINE[:2]
    a_systemctl(tmp_path, monkeypatch, up(engine.pid), up(engine.pid))
    assert run(service="qwen")["command"]["manager"] == "systemd"


@pytest.mark.parametrize(
    ("told", "manager", "code"),
    [
        ({}, None, "unit_absent"),
        ({}, "systemd", "unit_absent"),
        (up(0, ActiveState="failed", SubState="failed"), "systemd", "unit_inactive"),
        (up(0), "systemd", "unit_inactive"),
        (up(os.getpid(), NeedDaemonReload="yes"), "systemd", "unit_outdated"),
    ],
)
def test_a_unit_that_tells_nothing_is_refused(
    told: dict[str, t.Any],
    manager: str | None,
    code: str,
    run: Run,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a_systemctl(tmp_path, monkeypatch, told, {})
    options = {"service": "qwen", **({"manager": manager} if manager else {})}
    result = run(**options)
    assert result["failed"] and result["code"] == code and "qwen.service" in result["msg"]
