# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes: the live one that a pid file names with its command line, and whether one is still the same."""

from __future__ import annotations

import datetime
import os
import re
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import read_regular

_PID = re.compile(r"^[1-9][0-9]{0,9}$")
_SHORT_OPTION = re.compile(r"^-[A-Za-z]")
_ENDED = (b"Z", b"X", b"x")
_EXEC_SECONDS = 1.0
_LARGEST_PID_FILE = 64


class Process(t.NamedTuple):
    """``started_at`` is UTC, ISO 8601. ``started_ticks`` is the kernel's own mark: with the pid it names one process
    until the host restarts. ``flags`` as ``flags_of`` gives them, without secrets; ``argv`` has them."""

    pid: int
    argv: list[str]
    started_at: str
    started_ticks: int
    flags: dict[str, str]


def running(pid_file: str, log_path: str | None = None) -> Process | None:
    """The live process that ``pid_file`` names.

    None when there is no such file, or its process has ended (a zombie has), or, where ``log_path`` is given, when
    the process does not write its stderr there: then the number was given to another program since.

    Raises RadianceError ``pid_file_unreadable`` and ``process_unreadable``.
    """
    pid = _read_pid(pid_file)
    if pid is None:
        return None
    try:
        found = of(pid)
        return found if found is not None and (log_path is None or _stderr_is(pid, log_path)) else None
    except (FileNotFoundError, ProcessLookupError):
        return None
    except OSError as error:
        raise RadianceError(
            f"The pid file {pid_file} names process {pid}, which this user may not look at ({error.strerror}). "
            "Run as the user of the service, or with become.",
            code="process_unreadable",
        ) from error


def of(pid: int) -> Process | None:
    """The process with this number; None when there is none, when it has ended, and for a thread of the kernel."""
    try:
        state, ticks = _stat(pid)
        if state in _ENDED:
            return None
        raw = _command_line(pid)
        if _stat(pid)[1] != ticks:
            return None
    except (FileNotFoundError, ProcessLookupError):
        return None
    argv = [part.decode("utf-8", "replace") for part in raw.split(b"\0")[:-1]]
    if not argv:
        return None
    started = datetime.datetime.fromtimestamp(began(ticks), tz=datetime.timezone.utc)
    started_at = started.strftime("%Y-%m-%dT%H:%M:%S.") + f"{started.microsecond // 10000:02d}Z"
    return Process(pid, argv, started_at, ticks, flags_of(argv))


def _read_pid(pid_file: str) -> int | None:
    try:
        text = read_regular(pid_file, _LARGEST_PID_FILE).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RadianceError(
            f"The pid file {pid_file} cannot be read: {error.strerror}. Run as the user of the service, or "
            "with become; or name another pid_file.",
            code="pid_file_unreadable",
        ) from error
    if not text:
        return None
    if not _PID.match(text):
        raise RadianceError(
            f"The pid file {pid_file} holds {text!r}, which is no process number. Remove it, or name another pid_file.",
            code="pid_file_unreadable",
        )
    return int(text)


def _stat(pid: int) -> tuple[bytes, int]:
    """State and start ticks: fields 3 and 22 of /proc/PID/stat, see proc(5). Raises OSError where there is none."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The name before them stands in brackets and may hold anything, brackets included.
        fields = file.read().rpartition(b")")[2].split()
    return fields[0], int(fields[19])


def _command_line(pid: int) -> bytes:
    """/proc/PID/cmdline. Between a program's exec and its first instruction the kernel shows none, so one that is
    empty is waited for; it stays so for what has no command line (a kernel's own thread)."""
    until = time.monotonic() + _EXEC_SECONDS
    while True:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            raw = file.read()
        if raw or _stat(pid)[0] in _ENDED or time.monotonic() > until:
            return raw
        time.sleep(0.005)


def host_boot() -> str:
    """What tells this start of the machine from any other; a pid and its ticks are of one start."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def start_ticks(pid: int) -> int | None:
    """When the process began, in clock ticks since the machine did; None when there is no such process."""
    try:
        return _stat(pid)[1]
    except OSError:
        return None


def alive(pid: int, ticks: int) -> bool:
    """Whether this very process still runs: not a zombie, not another one that was given the same pid."""
    try:
        state, found = _stat(pid)
    except OSError:
        return False
    return state not in _ENDED and found == ticks


def began(ticks: int) -> float:
    """Start ticks as seconds since the epoch."""
    booted = 0
    with open("/proc/stat", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("btime "):
                booted = int(line.split()[1])
    return booted + ticks / os.sysconf("SC_CLK_TCK")


def _stderr_is(pid: int, log_path: str) -> bool:
    """Whether a process writes its stderr to a log, also after that log was renamed or removed by a rotation."""
    link = f"/proc/{pid}/fd/2"
    try:
        if os.path.samestat(os.stat(link), os.stat(log_path)):
            return True
    except FileNotFoundError:
        pass
    return os.readlink(link).startswith((os.path.realpath(log_path) + ".", os.path.realpath(log_path) + " (deleted)"))


def flags_of(argv: t.Sequence[str]) -> dict[str, str]:
    """The options of a command line: ``--x value`` and ``--x=value`` as ``{x: value}``, ``--x`` alone as ``{x: ""}``.

    The last of a repeated option wins, as it does for the engine. What comes before the first option (an interpreter,
    its script) is passed over, and so are secrets.
    """
    flags: dict[str, str] = {}
    position = 1
    while position < len(argv):
        word = argv[position]
        position += 1
        if not word.startswith("--") or word == "--":
            continue
        name, equals, value = word[2:].partition("=")
        if not equals and position < len(argv) and not _is_option(argv[position]):
            value = argv[position]
            position += 1
        if not is_secret(name):
            flags[name] = value
    return flags


def _is_option(word: str) -> bool:
    return word.startswith("--") or bool(_SHORT_OPTION.match(word))


def is_secret(name: str) -> bool:
    """Whether an option carries a secret itself. A path to one (``api-key-file``) and counts of tokens do not."""
    name = re.sub(r"-?[0-9]+$", "", name.lower().replace("_", "-"))
    return name in ("key", "token") or name.endswith(("-key", "-token", "-keys")) or "secret" in name or "passw" in name
