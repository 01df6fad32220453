# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Following one boot by its log, from the byte where it began to its listening line or its end.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import re
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import SIZE_PATTERN, parse_size
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.file import read_log
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import boot_of_log, ledger_from
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import Process, alive, began
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.drain import healthy
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import ProcessManager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Phase
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State

# A boot takes minutes, or it is refused at once.
_FIRST_POLL, _LONGEST_POLL = 0.02, 0.25
_TELL_EVERY = 10.0
_LOAD = re.compile(rf"load: ({SIZE_PATTERN}) of ({SIZE_PATTERN}) read, ([0-9.]+ GB/s)")


class BootText:
    """The text of a boot as far as it is written; each ``poll`` reads only what is new.

    ``path`` leads to the very file that was opened, whatever a rotation gives its name to. ``emptied`` tells that a
    rotation cut the file to nothing: what was read before is then only here.
    """

    def __init__(self, path: str, offset: int) -> None:
        self._handle = open(path, "rb")  # noqa: SIM115  closed by close()
        self._handle.seek(offset)
        self._data = b""
        self.path = f"/proc/self/fd/{self._handle.fileno()}"
        self.emptied = False

    def poll(self) -> bool:
        """Whether at least one whole line has come since the last poll."""
        if os.fstat(self._handle.fileno()).st_size < self._handle.tell():
            self._handle.seek(0)
            self.emptied = True
        new = self._handle.read()
        self._data += new
        return b"\n" in new

    def lines(self) -> str:
        """The whole lines."""
        return self._data[: self._data.rfind(b"\n") + 1].decode("utf-8", "replace")

    def all(self) -> str:
        """Everything, a line that was cut off included."""
        return self._data.decode("utf-8", "replace")

    def close(self) -> None:
        """Close the log."""
        self._handle.close()


def last_line(text: str) -> str:
    """The last line with anything on it, for a message."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "(nothing was printed)"


def load_progress(text: str) -> str | None:
    """``loading 62 % (18.60 GiB of 30.00 GiB, 5.1 GB/s)`` from the last load line, None before there is one."""
    found = _LOAD.findall(text)
    if not found:
        return None
    read, whole, speed = parse_size(found[-1][0]), parse_size(found[-1][1]), found[-1][2]
    if not whole.mib:
        return None
    return f"loading {100 * read.mib / whole.mib:.0f} % ({read.text} of {whole.text}, {speed})"


def running_ledger(manager: ProcessManager) -> dict[str, t.Any]:
    """The ledger of the boot that runs, as boot_ledger_info reads it from this log with this pid file."""
    return ledger_from("file", path=manager.log, pid_file=manager.pid_file)


class _Boot(t.NamedTuple):
    """Where the boot that is followed lies: the byte where it began, and its process.

    ``bounded`` is false when text of an earlier boot may stand after ``offset``.
    """

    offset: int
    pid: int
    ticks: int
    bounded: bool

    def ledger(self, text: BootText, process: Process | None, flags: dict[str, str]) -> tuple[dict[str, t.Any], str]:
        source = {"kind": "file", "started_at": process.started_at if process is not None else None}
        if text.emptied:
            return read_ledger(text.all(), source=source, flags=flags or None, bounded=self.bounded), text.all()
        return boot_of_log(text.path, source, flags or None, offset=self.offset, bounded=self.bounded)


def await_ready(
    manager: ProcessManager,
    boot: t.Mapping[str, t.Any],
    phase: Phase,
    *,
    timeout: float,
    endpoint: str | None,
) -> tuple[dict[str, t.Any], str]:
    """Follow the boot until it listens and, with ``endpoint``, /health answers. Returns its ledger and its text.

    ``boot`` is the journal's ``{offset, inode, pid, ticks}``. Raises RadianceError ``engine_refused``,
    ``engine_exited`` or ``never_ready`` with ``result={"ledger": ...}``, as soon as it is certain.
    """
    pid = int(boot["pid"])
    path = manager.log
    if not os.path.exists(path) or os.stat(path).st_ino != boot["inode"]:
        path = f"/proc/{pid}/fd/2"  # the log was rotated since; the process still writes where it began
    offset = int(boot["offset"]) if _holds_offset(path, boot) else 0
    where = _Boot(offset, pid, int(boot["ticks"]), bool(boot.get("bounded", True)))
    text = BootText(path, where.offset)
    try:
        return _follow(manager, where, text, phase, timeout, endpoint)
    finally:
        text.close()


def _holds_offset(path: str, boot: t.Mapping[str, t.Any]) -> bool:
    """Whether the byte where the boot began is still where it was: a log that was made anew, or cut, begins anew."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        offset = int(boot["offset"])
        if status.st_ino != boot["inode"] or status.st_size < offset:
            return False
        # The offset was noted at the end of a line; in other text that grew past it, it hardly ever is.
        return not offset or os.pread(file.fileno(), 1, offset - 1) == b"\n"


def boot_position(log: str, boot: t.Mapping[str, t.Any] | None, found: Process) -> dict[str, t.Any]:
    """The journal's ``boot`` for a process that no journal names: where in the log its text can be.

    ``boot`` is what the journal has. What was printed since is after its offset, unless the log was made anew or cut:
    then the whole of it is looked through, however far it has grown since.
    """
    offset, bounded = 0, False
    status = os.stat(log) if os.path.exists(log) else None
    if boot is not None and status is not None and _holds_offset(log, boot):
        printed = status.st_mtime >= began(found.started_ticks) - 1
        if not printed or read_log(log, int(boot["offset"]), bounded=False)[1]["boots_seen"]:
            # A boot that we noted and that is gone left its text before that of the one that runs.
            offset, bounded = int(boot["offset"]), bool(boot.get("bounded", True)) and boot["pid"] is None
    inode = status.st_ino if status is not None else os.stat(f"/proc/{found.pid}/fd/2").st_ino
    return {"offset": offset, "inode": inode, "pid": found.pid, "ticks": found.started_ticks, "bounded": bounded}


def serves(manager: ProcessManager, found: Process, endpoint: str | None) -> bool:
    """Whether this process serves by now: /health answers 200, or without an endpoint its boot listens."""
    if endpoint is not None:
        return healthy(endpoint)[0]
    if not os.path.exists(manager.log) or os.stat(manager.log).st_mtime < began(found.started_ticks) - 1:
        return False  # it has printed nothing yet: the last boot in the log is another's
    return bool(running_ledger(manager)["ready"])


def _follow(
    manager: ProcessManager, where: _Boot, text: BootText, phase: Phase, timeout: float, endpoint: str | None
) -> tuple[dict[str, t.Any], str]:
    start = told = time.monotonic()
    shown: str | None = None
    ledger: dict[str, t.Any] | None = None
    flags: dict[str, str] = {}
    answer, pause = "", _FIRST_POLL
    while True:
        # Whether it lives is asked before the log is read: what it printed last is then in what we read.
        process = manager.current()
        lives = process is not None or alive(where.pid, where.ticks)
        if process is not None:
            flags = process.flags
        new = text.poll()
        if new or not lives or ledger is None:
            ledger = read_ledger(
                text.lines() if lives else text.all(),
                source={"kind": "file"},
                flags=flags or None,
                bounded=where.bounded,
            )
        waited = time.monotonic() - start
        if not lives:
            raise _ended(manager, where.ledger(text, None, flags)[0], text.all(), waited)
        if ledger["status"] == "refused":
            raise _refused(where.ledger(text, process, flags)[0], text.all())
        if ledger["ready"]:
            well, answer = healthy(endpoint) if endpoint else (True, "")
            if well and process is not None:
                phase.says = f"listening after {waited:.1f} s" + (f", {answer}" if answer else "")
                return where.ledger(text, process, flags)
        if waited >= timeout:
            raise _never(where.ledger(text, process, flags)[0], text.all(), timeout, answer)
        progress = load_progress(text.lines()) if new else shown
        now = time.monotonic()
        if now - told >= _TELL_EVERY or (progress != shown and now - told >= 1.0):
            told, shown = now, progress
            phase.tell(f"{progress or last_line(text.lines())}, {waited:.0f} s")
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_POLL)


def _reason(ledger: t.Mapping[str, t.Any], text: str) -> str:
    reason = ledger.get("reason")
    return str(reason["text"]) if reason else last_line(text)


def _refused(ledger: dict[str, t.Any], text: str) -> RadianceError:
    return RadianceError(
        f"The engine refused this boot: {_reason(ledger, text)}", code="engine_refused", result={"ledger": ledger}
    )


def _ended(manager: ProcessManager, ledger: dict[str, t.Any], text: str, waited: float) -> RadianceError:
    if ledger["status"] == "refused":
        return _refused(ledger, text)
    status = manager.exit_status()
    how = f" with {status}" if status else ""
    return RadianceError(
        f"The engine ended{how} after {waited:.1f} s, before it listened. Its last line: {last_line(text)}",
        code="engine_exited",
        result={"ledger": ledger},
    )


def _never(ledger: dict[str, t.Any], text: str, timeout: float, answer: str) -> RadianceError:
    but = f" It listens, but {answer}." if ledger["ready"] else ""
    return RadianceError(
        f"Not ready after {timeout:g} s (ready_timeout).{but} Its last line: {last_line(text)}",
        code="never_ready",
        result={"ledger": ledger},
    )


def save_receipt(state: State, ledger: t.Mapping[str, t.Any], text: str) -> str:
    """Keep the boot's text, which ends with its listening line, as ``receipts/<fingerprint>.log``; returns the path."""
    path = f"{state.receipts}/{ledger['fingerprint']}.log"
    _durable.replace(path, text.encode("utf-8"), 0o600)
    return path
