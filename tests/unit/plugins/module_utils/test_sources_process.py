# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that a pid file names, against real processes."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import flags_of, running

SLEEPER = "import time; time.sleep(60)"


@pytest.fixture
def started(tmp_path: pathlib.Path) -> t.Iterator[tuple[subprocess.Popen[bytes], str, str]]:
    """A process with flags, its pid file, and the log that its stderr goes to."""
    log = tmp_path / "engine.log"
    argv = [sys.executable, "-c", SLEEPER, "--model", "/m.rad", "--vram-kv-mib", "5120", "--api-key", "hush-hush"]
    with open(log, "ab") as stderr:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=stderr)
    pid_file = tmp_path / "engine.pid"
    pid_file.write_text(f"{process.pid}\n")
    wait_for(lambda: os.readlink(f"/proc/{process.pid}/fd/2") == str(log))
    try:
        yield process, str(pid_file), str(log)
    finally:
        process.kill()
        process.wait()


def wait_for(condition: t.Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_live_process(started: tuple[subprocess.Popen[bytes], str, str]) -> None:
    process, pid_file, log = started
    found = running(pid_file, log)
    assert found is not None
    assert found.pid == process.pid
    assert found.argv[3:5] == ["--model", "/m.rad"]
    assert found.flags == {"model": "/m.rad", "vram-kv-mib": "5120"}
    assert found.started_ticks > 0
    again = running(pid_file)
    assert again == found


def test_a_process_is_seen_in_the_moment_that_its_program_is_loaded(tmp_path: pathlib.Path) -> None:
    """The kernel shows no command line in it; about one look in fifteen falls into that moment."""
    pid_file = tmp_path / "engine.pid"
    for _start in range(200):
        process = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)
        pid_file.write_text(f"{process.pid}\n")
        found = running(str(pid_file))
        process.kill()
        process.wait()
        assert found is not None
        assert found.argv == ["sleep", "60"]


def test_its_start_is_told_in_utc(started: tuple[subprocess.Popen[bytes], str, str]) -> None:
    _process, pid_file, _log = started
    found = running(pid_file)
    assert found is not None
    told = time.mktime(time.strptime(found.started_at[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    assert abs(told - time.time()) < 30
    assert found.started_at.endswith("Z")


def test_a_log_that_was_rotated_away_is_still_its_own(started: tuple[subprocess.Popen[bytes], str, str]) -> None:
    process, pid_file, log = started
    os.rename(log, log + ".1")
    pathlib.Path(log).write_text("")
    found = running(pid_file, log)
    assert found is not None
    assert found.pid == process.pid


def test_a_removed_log_is_still_its_own(started: tuple[subprocess.Popen[bytes], str, str]) -> None:
    _process, pid_file, log = started
    os.remove(log)
    assert running(pid_file, log) is not None


def test_a_number_given_to_another_program_is_nobody(
    started: tuple[subprocess.Popen[bytes], str, str], tmp_path: pathlib.Path
) -> None:
    _process, pid_file, _log = started
    other = tmp_path / "other.log"
    other.write_text("")
    assert running(pid_file, str(other)) is None


def test_a_zombie_is_nobody(started: tuple[subprocess.Popen[bytes], str, str]) -> None:
    process, pid_file, log = started
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    assert running(pid_file, log) is None
    assert running(pid_file) is None


def test_a_dead_process_is_nobody(started: tuple[subprocess.Popen[bytes], str, str]) -> None:
    process, pid_file, log = started
    process.kill()
    process.wait()
    assert running(pid_file, log) is None


def test_without_a_pid_file_nobody_runs(tmp_path: pathlib.Path) -> None:
    assert running(str(tmp_path / "none.pid")) is None
    (tmp_path / "empty.pid").write_text("")
    assert running(str(tmp_path / "empty.pid")) is None


@pytest.mark.parametrize("text", ["abc", "-5", "0", "12x", "012"])
def test_a_pid_file_with_something_else_in_it(tmp_path: pathlib.Path, text: str) -> None:
    path = tmp_path / "odd.pid"
    path.write_text(text)
    with pytest.raises(RadianceError) as caught:
        running(str(path))
    assert caught.value.code == "pid_file_unreadable"
    assert repr(text) in caught.value.text


@pytest.mark.parametrize(
    ("argv", "flags"),
    [
        (["python3", "/p/radiance.py", "--model", "/m.rad", "--tp", "2"], {"model": "/m.rad", "tp": "2"}),
        (["/usr/bin/radiance", "--model", "/m.rad"], {"model": "/m.rad"}),
        (["python3", "-u", "-X", "dev", "/p/radiance.py", "--tp=2"], {"tp": "2"}),
        (["radiance", "--no-prefix-cache", "--tp", "2"], {"no-prefix-cache": "", "tp": "2"}),
        (["radiance", "--deterministic", "-vv", "--tp", "2"], {"deterministic": "", "tp": "2"}),
        (["radiance", "--vram-kv-mib", "1", "--vram-kv-mib", "2"], {"vram-kv-mib": "2"}),
        (["radiance", "--seed", "-1"], {"seed": "-1"}),
        (["radiance", "--chat-template", ""], {"chat-template": ""}),
        (["radiance", "--api-key", "hush-hush", "--port", "1"], {"port": "1"}),
        (["radiance", "--api-key=hush-hush", "--port", "1"], {"port": "1"}),
        (["radiance", "--api-key-file", "/k"], {"api-key-file": "/k"}),
        (["radiance", "--max-num-batched-tokens", "2048"], {"max-num-batched-tokens": "2048"}),
        (
            ["radiance", "--max-tokens-cap", "9", "--default-max-tokens", "8"],
            {"max-tokens-cap": "9", "default-max-tokens": "8"},
        ),
        (["radiance", "--hf-token", "hush-hush"], {}),
        (["radiance", "--hf-token2", "hush-hush", "--api-key-2", "hush-hush"], {}),
        (["radiance", "--"], {}),
        (["radiance"], {}),
        ([], {}),
    ],
)
def test_flags_of_a_command_line(argv: list[str], flags: dict[str, str]) -> None:
    assert flags_of(argv) == flags
