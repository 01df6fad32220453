# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that is a plain process: its pid in a file, its output appended to a log.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import process
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.file import read_log
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.log_text import LogText, holds_offset
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Boot, BootText, Manager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.signals import (
    KILL_WAIT,
    held_by_the_kernel,
    send,
    wait_until,
)

_POLL = 0.05


class ProcessManager(Manager):
    """A plain process with a pid file, its output appended to a log, in a session of its own.

    A boot is ``{inode, offset, pid, ticks}``, with ``bounded: false`` where text of an earlier one may stand after the
    offset.
    """

    def __init__(self, start: t.Sequence[str], pid_file: str, log: str) -> None:
        self.start_argv = list(start)
        self.pid_file = pid_file
        self.log = log
        self.described = {"kind": "process", "start": self.start_argv, "pid_file": pid_file, "log": log}
        self._child: subprocess.Popen[bytes] | None = None

    def current(self) -> process.Process | None:
        """The process that the pid file names, if it lives and writes to our log."""
        if self._child is not None:
            self._child.poll()  # an exited child stays a zombie until somebody asks for its status
        return process.running(self.pid_file, self.log)

    def stranger(self) -> str | None:
        """A sentence when the pid file names a live process that we may neither stop nor start beside."""
        found = process.running(self.pid_file)
        if found is None or self.current() is not None:
            return None
        # A pid that was given out again belongs to a process that is younger than the file.
        if process.began(found.started_ticks) > os.stat(self.pid_file).st_mtime + 2:
            return None
        return (
            f"The pid file {self.pid_file} names process {found.pid}, which lives but does not write its errors to "
            f"{self.log}. Stop it, or correct `path` or `pid_file`"
        )

    def nothing_runs(self) -> str:
        """What shows that nothing runs."""
        return f"The pid file {self.pid_file} names no live process"

    def to_be_found(self) -> str:
        """What makes a process ours."""
        return "Write its pid into the pid file"

    def next_boot(self) -> Boot:
        """``{inode, offset}`` of the log's end, where the next boot begins at the start of a line."""
        handle = os.open(self.log, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                os.write(handle, b"\n")
            status = os.fstat(handle)
            return {"inode": status.st_ino, "offset": status.st_size, "pid": None, "ticks": None}
        finally:
            os.close(handle)

    def problem(self, installs: t.Collection[str]) -> str | None:
        """A sentence when ``start`` could not work. ``installs`` are the files that the switch brings along."""
        gone = self.no_program()
        if gone is not None and os.path.realpath(self.start_argv[0]) not in installs:
            return f"start: {gone}"
        for name, path in (("path", self.log), ("pid_file", self.pid_file)):
            folder = os.path.dirname(os.path.abspath(path))
            if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
                return f"{name}: this user may not write in {folder}, or there is no such folder"
        return None

    def lost_image(self, image: str | None) -> str | None:
        """A plain process has none."""
        return None

    def program(self) -> list[str]:
        """The command line of a start."""
        return self.start_argv

    def writes(self) -> list[tuple[str, str]]:
        """The log and the pid file."""
        return [(self.log, "path"), (self.pid_file, "pid_file")]

    def no_program(self) -> str | None:
        """A few words when the program of ``start`` cannot be run as it is now."""
        program = self.start_argv[0]
        return None if shutil.which(program) is not None else f"{program} is not an executable file on the target"

    def start(self, boot: Boot) -> Boot:
        """Start detached. Raises RadianceError ``start_failed``.

        The child writes the pid file itself before it becomes the engine, so no instant exists at which it runs and
        nothing names it.
        """

        def announce() -> None:
            _durable.replace(self.pid_file, b"%d\n" % os.getpid(), 0o644)

        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        environment["LC_ALL"] = "C"
        output = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # A process that outlives the module.
            self._child = subprocess.Popen(  # pylint: disable=ansible-bad-function
                self.start_argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env=environment,
                start_new_session=True,
                preexec_fn=announce,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise RadianceError(
                f"{self.start_argv[0]} could not be started: {error}.",
                code="start_failed",
            ) from error
        finally:
            os.close(output)
        return {**boot, "pid": self._child.pid, "ticks": process.start_ticks(self._child.pid) or 0}

    def began(self, boot: t.Mapping[str, t.Any]) -> str:
        """The process."""
        return f"process {boot['pid']}"

    def boot_of(self, found: process.Process, boot: Boot | None) -> Boot:
        """Where in the log the text of a process can be that no journal names.

        What was printed since ``boot`` was noted is after its offset, unless the log was made anew or cut: then the
        whole of it is looked through, however far it has grown since.
        """
        offset, bounded = 0, False
        status = os.stat(self.log) if os.path.exists(self.log) else None
        if boot is not None and status is not None and holds_offset(self.log, boot):
            noted = int(boot["offset"])
            if not self.has_printed(found) or read_log(self.log, noted, bounded=False)[1]["boots_seen"]:
                # A boot that we noted and that is gone left its text before that of the one that runs.
                offset, bounded = noted, bool(boot.get("bounded", True)) and boot["pid"] is None
        inode = status.st_ino if status is not None else os.stat(f"/proc/{found.pid}/fd/2").st_ino
        return {"offset": offset, "inode": inode, "pid": found.pid, "ticks": found.started_ticks, "bounded": bounded}

    def owns(self, boot: t.Mapping[str, t.Any], found: process.Process) -> bool:
        """Whether the pid and the start are those of that boot."""
        return (boot["pid"], boot["ticks"]) == (found.pid, found.started_ticks)

    def lives(self, boot: t.Mapping[str, t.Any]) -> bool:
        """Whether the process of that boot lives."""
        return boot["pid"] is not None and process.alive(int(boot["pid"]), int(boot["ticks"]))

    def text(self, boot: t.Mapping[str, t.Any]) -> BootText:
        """The log from the byte where that boot began."""
        path = self.log
        if not os.path.exists(path) or os.stat(path).st_ino != boot["inode"]:
            path = f"/proc/{boot['pid']}/fd/2"  # the log was rotated since; the process still writes where it began
        offset = int(boot["offset"]) if holds_offset(path, boot) else 0
        return LogText(path, offset, bool(boot.get("bounded", True)))

    def reading(self, receipts: str | None = None) -> Reading:
        """The last boot of the log, with the process of the pid file."""
        return read_boot("file", path=self.log, pid_file=self.pid_file, receipts=receipts)

    def has_printed(self, found: process.Process) -> bool:
        """Whether the log was written to since that process began."""
        return os.path.exists(self.log) and os.stat(self.log).st_mtime >= process.began(found.started_ticks) - 1

    def exit_status(self, boot: t.Mapping[str, t.Any]) -> str | None:
        """How what we started ended; None while it runs and where it was not our child."""
        if self._child is None or self._child.pid != boot["pid"]:
            return None
        status = self._child.poll()
        if status is None:
            return None
        return f"signal {-status}" if status < 0 else f"status {status}"

    def stop_argv(self, pid: int) -> list[str]:
        """The signal."""
        return ["kill", "-TERM", str(pid)]

    def stop(self, pid: int, ticks: int, timeout: float) -> str:
        """SIGTERM, then SIGKILL after ``timeout`` seconds; a sentence how it went. Raises ``still_running``."""
        began = time.monotonic()
        if send(pid, ticks, signal.SIGTERM) and not self._gone(pid, ticks, timeout):
            send(pid, ticks, signal.SIGKILL)
            if not self._gone(pid, ticks, KILL_WAIT):
                raise held_by_the_kernel(pid)
            return f"process {pid} did not end within {timeout:g} s of SIGTERM and was killed"
        return f"process {pid} ended {time.monotonic() - began:.1f} s after SIGTERM"

    def _gone(self, pid: int, ticks: int, timeout: float) -> bool:
        def ended() -> bool:
            if self._child is not None:
                self._child.poll()
            return not process.alive(pid, ticks)

        return wait_until(ended, timeout, _POLL)

    def hold_down(self, timeout: float) -> None:
        """Nothing restarts a plain process."""

    def by_hand(self, found: process.Process | None, before: t.Sequence[str], unknown: bool = False) -> list[str]:
        """The shell commands that start the service as we do: ``found`` is ended first, then ``before`` is run."""
        words = " ".join(shlex.quote(word) for word in self.start_argv)
        script = f"cd /; echo $$ >{shlex.quote(self.pid_file)}; exec {words} >>{shlex.quote(self.log)} 2>&1"
        start = f"LC_ALL=C setsid sh -c {shlex.quote(script)} </dev/null &"
        if found is None:
            return [*before, start]
        stop = f"kill {found.pid}; while kill -0 {found.pid} 2>/dev/null; do sleep 1; done"
        return [stop, *before, start]
