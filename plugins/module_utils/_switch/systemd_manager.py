# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that is a unit of systemd, of the system or of a user, with its engine in a container or without one.

The unit's own state is not enough: where somebody kills the client of a container runtime the unit has failed while
the container goes on serving and holds the cards. So what runs is what the runtime and the process list say.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container as containers
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import process
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import unit as units
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.journal_text import JournalText
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Boot, BootText, Manager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.signals import (
    KILL_WAIT,
    held_by_the_kernel,
    send,
    wait_until,
)

_POLL = 0.3
# A queued start waits for other units of the machine: its network, its disks.
_START_WAIT = 120.0
# So long after its job has ended a unit that is down has no invocation to come.
_ENDED_AT_ONCE = 2.0
# A runtime whose database is locked, or a systemd that is reloading, answers a moment later.
_PATIENCE = 10.0
_FOREGROUND = "What its ExecStart runs has to stay in the foreground: `exec` the engine or its container, without -d."
_Answer = t.TypeVar("_Answer")


def exec_words(shown: str) -> list[str]:
    """The command line in what ``systemctl show`` prints of ExecStart; it parts words by blanks and quotes nothing."""
    found = re.search(r"argv\[\]=(.*?) ; ignore_errors=", shown)
    return found.group(1).split() if found else []


class SystemdManager(Manager):
    """A boot is ``{before, invocation, pid, ticks}``: the unit's invocation before the start, and that of the boot.

    ``source`` says where the engine's text is: ``journald``, or the runtime that has a container called ``name``.
    ``script`` is the program that the unit has to start, where the caller knows it.
    """

    def __init__(self, unit: str, scope: str, source: str, name: str, script: str | None) -> None:
        self.unit = unit
        self.scope = scope
        self.source = source
        self.name = name
        self.script = script
        self.described = {
            "kind": "systemd",
            "unit": unit,
            "scope": scope,
            "source": source,
            "name": name,
            "script": script,
        }
        self.start_argv = self._systemctl("start")

    def _systemctl(self, verb: str) -> list[str]:
        """The command as a person writes it."""
        return ["systemctl", *(["--user"] if self.scope == "user" else []), verb, self.unit]

    def state(self) -> units.Unit:
        """How the unit stands. Raises RadianceError ``systemd_unreachable``."""
        return _patiently(lambda: units.show(self.unit, self.scope))

    def container(self) -> containers.Container | None:
        """The container of this service, if there is one. Raises RadianceError ``runtime_unusable``."""
        if self.source not in containers.RUNTIMES:
            return None
        return _patiently(lambda: containers.inspect(self.source, self.name))

    def _in_container(self) -> process.Process | None:
        found = self.container()
        ticks = process.start_ticks(found.pid) if found is not None and found.pid else None
        if found is None or ticks is None:
            return None
        return process.Process(found.pid, found.argv, found.started_at, ticks, found.flags)

    def current(self) -> process.Process | None:
        """The container's first process; before there is one, or without a container, the unit's main process."""
        found = self._in_container()
        if found is not None:
            return found
        state = self.state()
        return process.of(state.main_pid) if state.main_pid and not state.stopped else None

    def nothing_runs(self) -> str:
        """What shows that nothing runs."""
        return f"The unit {self.unit} runs nothing"

    def to_be_found(self) -> str:
        """What makes an engine ours."""
        return f"Start it by {shlex.join(self.start_argv)}"

    def stranger(self) -> str | None:
        """A sentence when the unit is up and its container does not come.

        A unit that has just begun, or that begins again and again, has none for a moment.
        """
        if self.source not in containers.RUNTIMES:
            return None
        if wait_until(lambda: self._in_container() is not None or not self.state().runs, _PATIENCE, _POLL):
            return None
        return (
            f"The unit {self.unit} is up, and {self.source} of this user has no running container called {self.name}. "
            "Wait until it has one, or correct the name of the container"
        )

    def problem(self, installs: t.Collection[str]) -> str | None:
        """A sentence when systemd could not start the unit, or would start something else."""
        state = self.state()
        if state.load_state != "loaded":
            return (
                f"unit: {self.unit} is {state.load_state} in the systemd of the {self.scope}. Put it there, have "
                f"{shlex.join(self._systemctl('daemon-reload')[:-1])} read it, or correct `unit`"
            )
        if state.outdated:
            return (
                f"unit: the file of {self.unit} has changed since systemd read it, and what a start would run is not "
                f"what the file says. Run {shlex.join(self._systemctl('daemon-reload')[:-1])} first"
            )
        if self.scope == "user" and units.lingers() is False:
            return (
                f"unit: the user does not linger, so systemd ends {self.unit} with the user's last session, this one "
                "included. As root: loginctl enable-linger USER"
            )
        if self.scope == "system" and os.geteuid() != 0:
            return f"unit: only root starts {self.unit} of the system. Run this with become"
        words = self.program()
        if self.script is not None and self.script not in words:
            return f"unit: {self.unit} runs {' '.join(words) or 'nothing'}, and these files are for {self.script}"
        gone = self._missing(words)
        return f"unit: {gone}" if gone is not None and os.path.realpath(words[0]) not in installs else None

    def lost_image(self, image: str | None) -> str | None:
        """One that the runtime does not have (any more): the image that runs is not needed to go on, only to start."""
        found = self.container()
        wanted = [image, found.image if found is not None and found.pid else None]
        return next((name for name in wanted if name and not containers.has_image(self.source, name)), None)

    def image(self) -> dict[str, t.Any] | None:
        """What the runtime tells of its container, while that runs."""
        found = self.container()
        return {"name": found.image, "digest": found.image_digest} if found is not None and found.pid else None

    def watched(self) -> tuple[str, str] | None:
        """The unit by systemd's own name for it: an alias has no folder of its own."""
        return self.state().name, self.scope

    def digest_of(self, image: str) -> str | None:
        """What the runtime tells of the name."""
        told = containers.inspect_image(self.source, image) if self.source in containers.RUNTIMES else None
        return told.digest if told is not None else None

    def tag_command(self, image: str) -> str | None:
        """By the runtime, which knows the image of its container by an id whatever its names are."""
        inspect = f"{self.source} container inspect --format '{{{{.Image}}}}' {shlex.quote(self.name)}"
        return f'{self.source} tag "$({inspect})" {shlex.quote(image)}'

    def program(self) -> list[str]:
        """The words of the unit's ExecStart."""
        return exec_words(units.systemctl(self.scope, "show", "--property=ExecStart", "--value", self.unit).out)

    def no_program(self) -> str | None:
        """A few words when the program of ExecStart is not there."""
        return self._missing(self.program())

    def _missing(self, words: t.Sequence[str]) -> str | None:
        if words and shutil.which(words[0]) is not None:
            return None
        return f"{words[0]} of {self.unit} is not an executable file" if words else f"{self.unit} has no ExecStart"

    def writes(self) -> list[tuple[str, str]]:
        """The runtime and the journal know where they write."""
        return []

    def next_boot(self) -> Boot:
        """The unit's last invocation: the next one is another."""
        return {"before": self.state().invocation, "invocation": None, "pid": None, "ticks": None}

    def start(self, boot: Boot) -> Boot:
        """Have systemd start the unit, and wait until it has begun. Raises RadianceError ``start_failed``."""
        units.systemctl(self.scope, "reset-failed", self.unit)  # a unit that failed too often is not started at all
        done = units.systemctl(self.scope, "start", "--no-block", self.unit)
        if done.status != 0:
            raise RadianceError(f"systemd does not start {self.unit}: {done.err.strip()}", code="start_failed")
        self._await_invocation(boot)
        state = self.state()
        ticks = process.start_ticks(state.main_pid) if state.main_pid else None
        return {**boot, "invocation": state.invocation, "pid": state.main_pid if ticks else None, "ticks": ticks}

    def _await_invocation(self, boot: Boot) -> None:
        down_since: float | None = None
        deadline = time.monotonic() + _START_WAIT
        while True:
            state, now = self.state(), time.monotonic()
            if self._is(boot, state):
                return
            # A unit that has ended well and that nothing refers to is forgotten, with its invocation.
            down_since = (down_since or now) if state.stopped and not state.job else None
            if down_since is not None and now - down_since >= _ENDED_AT_ONCE:
                how = " with " + state.exit_status if state.exit_status else ""
                raise RadianceError(f"{self.unit} ended at once{how}. {_FOREGROUND}", code="start_failed")
            if now >= deadline:
                raise RadianceError(
                    f"systemd has not begun to start {self.unit} within {_START_WAIT:g} s: another job is in its way. "
                    f"{shlex.join(self._systemctl('list-jobs')[:-1])} names it.",
                    code="start_failed",
                )
            time.sleep(_POLL)

    def began(self, boot: t.Mapping[str, t.Any]) -> str:
        """The unit: the engine's own process is known when its container has one."""
        return f"{self.unit} in invocation {boot['invocation']}"

    @staticmethod
    def _is(boot: t.Mapping[str, t.Any], state: units.Unit) -> bool:
        """Whether the unit is in the invocation of that boot."""
        if boot["invocation"]:
            return bool(boot["invocation"] == state.invocation)
        return state.invocation not in ("", boot["before"])

    def boot_of(self, found: process.Process, boot: Boot | None) -> Boot:
        """The invocation that the unit is in."""
        return {
            "before": "",
            "invocation": self.state().invocation,
            "pid": found.pid,
            "ticks": found.started_ticks,
        }

    def owns(self, boot: t.Mapping[str, t.Any], found: process.Process) -> bool:
        """Whether it is the very process, or the unit is in the invocation of that boot."""
        return (boot["pid"], boot["ticks"]) == (found.pid, found.started_ticks) or self._is(boot, self.state())

    def lives(self, boot: t.Mapping[str, t.Any]) -> bool:
        """Whether the process that is known of that boot lives, or else the unit in its invocation."""
        if boot["pid"] is not None and process.alive(int(boot["pid"]), int(boot["ticks"])):
            return True
        state = self.state()
        return self._is(boot, state) and state.runs

    def text(self, boot: t.Mapping[str, t.Any]) -> BootText:
        """What the unit wrote to the journal in that invocation."""
        return JournalText(self, boot)

    def invocation_of(self, boot: t.Mapping[str, t.Any]) -> str:
        """The invocation of that boot, empty while systemd has not begun it."""
        if boot["invocation"]:
            return str(boot["invocation"])
        state = self.state()
        return state.invocation if self._is(boot, state) else ""

    def exit_status(self, boot: t.Mapping[str, t.Any]) -> str | None:
        """What systemd tells of the main process, while the unit has not begun another invocation."""
        state = self.state()
        return state.exit_status or None if self._is(boot, state) else None

    def did_not_stay(self, boot: t.Mapping[str, t.Any]) -> str | None:
        """A sentence when the unit is down and nothing of it failed; it may have been forgotten with its invocation."""
        state = self.state()
        if state.active_state != "inactive" or not (self._is(boot, state) or not state.invocation):
            return None
        return (
            f"{self.unit} ended before its engine listened, and without a failure. Where nobody stopped it: "
            f"{_FOREGROUND[0].lower()}{_FOREGROUND[1:]}"
        )

    def reading(self, receipts: str | None = None) -> Reading:
        """The boot that runs, by the runtime's log or by the unit's journal."""
        name = self.unit if self.source == "journald" else self.name
        return read_boot(self.source, name=name, scope=self.scope, receipts=receipts)

    def has_printed(self, found: process.Process) -> bool:
        """Always: container and invocation bound the text."""
        return True

    def stop_argv(self, pid: int) -> list[str]:
        """What stops the unit, and with it the process."""
        return self._systemctl("stop")

    def stop(self, pid: int, ticks: int, timeout: float) -> str:
        """Stop the unit and what is left of its container; by force after ``timeout`` seconds."""
        began = time.monotonic()
        alone = self.state().stopped
        self._stop_unit()
        if alone:
            send(pid, ticks, signal.SIGTERM)  # its client was killed: systemd knows nothing of the container
        if wait_until(lambda: self._down(pid, ticks), timeout, _POLL):
            return f"{self.unit} and process {pid} ended {time.monotonic() - began:.1f} s after systemctl stop"
        send(pid, ticks, signal.SIGKILL)
        with contextlib.suppress(RadianceError):
            found = self.current()
            if found is not None:
                send(found.pid, found.started_ticks, signal.SIGKILL)
        units.systemctl(self.scope, "kill", "--signal=SIGKILL", self.unit)
        if not wait_until(lambda: self._down(pid, ticks), KILL_WAIT, _POLL):
            raise held_by_the_kernel(pid) if process.alive(pid, ticks) else self._not_down()
        return f"{self.unit} did not end within {timeout:g} s of systemctl stop, and process {pid} was killed"

    def _stop_unit(self) -> None:
        done = units.systemctl(self.scope, "stop", "--no-block", self.unit)
        if done.status != 0:
            raise RadianceError(
                f"systemd does not stop {self.unit}: {done.err.strip()} By hand: {shlex.join(self.stop_argv(0))}.",
                code="still_running",
            )

    def hold_down(self, timeout: float) -> None:
        """Stop a unit that waits for its next restart, or that has just begun it."""
        self._stop_unit()
        if not wait_until(lambda: self.state().stopped, timeout, _POLL):
            raise RadianceError(
                f"{self.unit} did not end within {timeout:g} s of systemctl stop (stop_timeout), so nothing else was "
                f"started. {shlex.join(self._systemctl('status'))} tells what it waits for.",
                code="still_running",
            )

    def _down(self, pid: int, ticks: int) -> bool:
        try:
            return not process.alive(pid, ticks) and self.state().stopped and self._in_container() is None
        except RadianceError:
            return False  # what cannot be asked is not known to be down

    def _not_down(self) -> RadianceError:
        """What to raise where the process has ended and the rest has not, or nothing tells whether it has."""
        try:
            left = f"the container {self.name} runs" if self._in_container() else f"it is {self.state().active_state}"
        except RadianceError as error:
            return error
        return RadianceError(
            f"The engine of {self.unit} has ended, yet {left}. {shlex.join(self._systemctl('status'))} tells more.",
            code="still_running",
        )

    def by_hand(self, found: process.Process | None, before: t.Sequence[str], unknown: bool = False) -> list[str]:
        """systemctl, whatever runs."""
        stop = [shlex.join(self._systemctl("stop"))] if found is not None or unknown else []
        again = [shlex.join(self._systemctl(verb)) for verb in ("reset-failed", "start")]
        return [*stop, *before, *again]


def _patiently(ask: t.Callable[[], _Answer]) -> _Answer:
    """What ``ask`` returns, asked again for a while where it raises."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return ask()
        except RadianceError as error:
            if error.code == "command_missing" or time.monotonic() >= deadline:
                raise
        time.sleep(_POLL)
