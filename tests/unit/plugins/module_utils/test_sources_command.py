# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other programs, against real ones."""

from __future__ import annotations

import os
import pathlib
import sys
import time
import tracemalloc

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.command import (
    environment,
    read_until_listening,
    run,
)

LOGS = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "logs"
HEALTHY = LOGS / "healthy-1.0.13.log"
LISTENING = "I server: listening on http://127.0.0.1:8465 (8 threads, up to 64)\n"


def gone(pid_file: pathlib.Path) -> bool:
    """Whether the process whose number a test's program wrote down has ended, or ends now."""
    pid = int(pid_file.read_text())
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.01)
    return False


def test_a_program_is_run_to_its_end() -> None:
    assert run(["sh", "-c", "echo out; echo err >&2; exit 3"]) == (3, "out\n", "err\n")


def test_nothing_is_on_its_stdin() -> None:
    assert run(["cat"], timeout=10) == (0, "", "")


def test_no_shell_reads_its_words() -> None:
    assert run(["printf", "%s|", "$HOME", "a b", ";", "*"]).out == "$HOME|a b|;|*|"


def test_it_speaks_english_and_keeps_the_rest_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1234")
    assert run(["sh", "-c", "echo $LC_ALL $XDG_RUNTIME_DIR"]).out == "C /run/user/1234\n"


def test_bytes_of_another_encoding_are_replaced() -> None:
    assert run(["printf", r"a\377b"]).out == "a\ufffdb"


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(RadianceError) as caught:
        run(["no-such-program-here"])
    assert caught.value.code == "command_missing"
    assert "no-such-program-here" in caught.value.text
    assert repr(os.environ["PATH"]) in caught.value.text


def test_a_word_that_no_program_can_be_given() -> None:
    with pytest.raises(RadianceError) as caught:
        run(["echo", "a\0b"])
    assert caught.value.code == "command_missing"


def test_a_program_that_does_not_end_is_ended_with_what_it_started(tmp_path: pathlib.Path) -> None:
    started = time.monotonic()
    with pytest.raises(RadianceError) as caught:
        run(["sh", "-c", f"sleep 300 & echo $! > {tmp_path}/pid; wait"], timeout=2)
    assert time.monotonic() - started < 30
    assert caught.value.code == "command_stuck"
    assert "sleep 300" in caught.value.text
    assert gone(tmp_path / "pid")


def test_a_log_ends_at_its_listening_line_while_more_comes(tmp_path: pathlib.Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; cat {HEALTHY}; while :; do echo 'I device: AQL backend, 1 device(s)'; done"
    text, status = read_until_listening(["sh", "-c", script], timeout=60)
    assert text == HEALTHY.read_text()
    assert status is None
    assert gone(tmp_path / "pid")


def test_nothing_is_waited_for_after_the_listening_line(tmp_path: pathlib.Path) -> None:
    script = f"cat {HEALTHY}; sleep 300 & echo $! > {tmp_path}/pid; wait"
    started = time.monotonic()
    text, status = read_until_listening(["sh", "-c", script], timeout=60)
    assert time.monotonic() - started < 30
    assert text.endswith(LISTENING)
    assert status is None
    # The number may be written after the line was read, or not at all.
    assert not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text() or gone(tmp_path / "pid")


def test_both_streams_come_in_their_order() -> None:
    script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done; exit 4"
    text, status = read_until_listening(["sh", "-c", script])
    assert text == "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"
    assert status == 4


def test_a_boot_that_does_not_listen_is_read_to_its_end() -> None:
    text, status = read_until_listening(["head", "-n", "5", str(HEALTHY)])
    assert text == "".join(HEALTHY.read_text().splitlines(keepends=True)[:5])
    assert status == 0


def test_a_line_of_a_client_that_looks_like_the_listening_line_is_none() -> None:
    client = 'W server: refused "I server: listening on http://x:1"\n  I server: listening on http://x:1\n'
    text, _status = read_until_listening(["printf", "%s", client + LISTENING + "more\n"])
    assert text == client + LISTENING


def test_an_overlong_line_does_not_fill_the_memory() -> None:
    script = (
        f"import sys; [sys.stdout.write('x' * 1000000) for _ in range(12)]; sys.stdout.write('\\n' + {LISTENING!r})"
    )
    tracemalloc.start()
    try:
        text, status = read_until_listening([sys.executable, "-c", script])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert text.endswith("x\n" + LISTENING)
    assert (len(text) < 100_000, status) == (True, None)
    assert peak < 4_000_000


def test_a_log_without_end_is_read_over_the_longest_boot() -> None:
    text, status = read_until_listening(["yes", "y" * 63])
    assert (len(text), text.count("\n")) == (1_636_864, 25_576)
    assert status is None


def test_a_log_that_does_not_end_is_given_up(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RadianceError) as caught:
        read_until_listening(["sh", "-c", f"echo line; sleep 300 & echo $! > {tmp_path}/pid; wait"], timeout=2)
    assert caught.value.code == "command_stuck"
    assert gone(tmp_path / "pid")


def test_who_became_another_user_finds_that_users_systemd(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    (tmp_path / "1000").mkdir()
    (tmp_path / "0").mkdir()
    assert environment(1000, str(tmp_path))["XDG_RUNTIME_DIR"] == str(tmp_path / "1000")
    assert environment(1000, str(tmp_path))["LC_ALL"] == "C"
    assert "XDG_RUNTIME_DIR" not in environment(1001, str(tmp_path))  # who does not linger has none
    assert "XDG_RUNTIME_DIR" not in environment(0, str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/elsewhere")
    assert environment(1000, str(tmp_path))["XDG_RUNTIME_DIR"] == "/elsewhere"
