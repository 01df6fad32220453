# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What starts and stops the engine. A manager has these members, and the transaction uses nothing else:

``current()`` the live process of the service or None; ``stranger()`` a sentence when something else runs in its place;
``problem()`` a sentence when it could not be started; ``log_position()`` where the next boot's text will begin;
``start()``; ``stop(pid, ticks, timeout)``; ``exit_status()`` of what ``start`` began; ``by_hand()`` the commands with
which a person does what ``start`` does.
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

_POLL = 0.05
# After SIGKILL only the kernel is in the way: memory to give back, a device to let go of.
_KILL_WAIT = 30.0


class ProcessManager:
    """A plain process with a pid file, its output appended to a log, in a session of its own."""

    def __init__(self, start: t.Sequence[str], pid_file: str, log: str) -> None:
        self.start_argv = list(start)
        self.pid_file = pid_file
        self.log = log
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

    def log_position(self) -> dict[str, int]:
        """``{inode, offset}`` of the log's end, where the next boot begins at the start of a line."""
        handle = os.open(self.log, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":
                os.write(handle, b"\n")
            status = os.fstat(handle)
            return {"inode": status.st_ino, "offset": status.st_size}
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

    def no_program(self) -> str | None:
        """A few words when the program of ``start`` cannot be run as it is now."""
        program = self.start_argv[0]
        return None if shutil.which(program) is not None else f"{program} is not an executable file on the target"

    def start(self) -> tuple[int, int]:
        """Start detached; returns pid and start ticks. Raises RadianceError ``start_failed``.

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
        return self._child.pid, process.start_ticks(self._child.pid) or 0

    def exit_status(self) -> str | None:
        """How what we started ended, in words; None while it runs and where it was not our child."""
        if self._child is None:
            return None
        status = self._child.poll()
        if status is None:
            return None
        return f"signal {-status}" if status < 0 else f"status {status}"

    def stop(self, pid: int, ticks: int, timeout: float) -> str:
        """SIGTERM, then SIGKILL after ``timeout`` seconds; a sentence how it went. Raises ``still_running``."""
        began = time.monotonic()
        if self._signal(pid, ticks, signal.SIGTERM) and not self._gone(pid, ticks, timeout):
            self._signal(pid, ticks, signal.SIGKILL)
            if not self._gone(pid, ticks, _KILL_WAIT):
                raise RadianceError(
                    f"Process {pid} is still there {_KILL_WAIT:g} s after SIGKILL: the kernel holds it, usually in a "
                    "driver. Nothing can use its cards before the machine is restarted.",
                    code="still_running",
                )
            return f"process {pid} did not end within {timeout:g} s of SIGTERM and was killed"
        return f"process {pid} ended {time.monotonic() - began:.1f} s after SIGTERM"

    def _signal(self, pid: int, ticks: int, number: int) -> bool:
        if not process.alive(pid, ticks):
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        except PermissionError as error:
            raise RadianceError(
                f"This user may not stop process {pid}. Run the task as the user that owns it.", code="still_running"
            ) from error
        return True

    def _gone(self, pid: int, ticks: int, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while True:
            if self._child is not None:
                self._child.poll()
            if not process.alive(pid, ticks):
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL)

    def by_hand(self, found: process.Process | None, before: t.Sequence[str]) -> list[str]:
        """The shell commands that start the service as we do: ``found`` is ended first, then ``before`` is run."""
        words = " ".join(shlex.quote(word) for word in self.start_argv)
        script = f"cd /; echo $$ >{shlex.quote(self.pid_file)}; exec {words} >>{shlex.quote(self.log)} 2>&1"
        start = f"LC_ALL=C setsid sh -c {shlex.quote(script)} </dev/null &"
        if found is None:
            return [*before, start]
        stop = f"kill {found.pid}; while kill -0 {found.pid} 2>/dev/null; do sleep 1; done"
        return [stop, *before, start]
