# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that is a unit of systemd, of the system or of a user: its boots, its start and its stop.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import shlex
import signal
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import process
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import unit as units
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import unit_files
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.journal_text import JournalText
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Boot, BootText
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.signals import (
    KILL_WAIT,
    held_by_the_kernel,
    send,
    wait_until,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.unit_seen import UnitSeen

_POLL = 0.3
# A queued start waits for other units of the machine: its network, its disks.
_START_WAIT = 120.0
# So long after its job has ended a unit that is down has no invocation to come.
_ENDED_AT_ONCE = 2.0
_FOREGROUND = "What its ExecStart runs has to stay in the foreground: `exec` the engine or its container, without -d."


class SystemdManager(UnitSeen):
    """A boot is ``{before, invocation, pid, ticks}``: the unit's invocation before the start, and that of the boot."""

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
                    f"{shlex.join(units.argv(self.scope, 'list-jobs'))} names it.",
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

    def timed_out(self, boot: t.Mapping[str, t.Any]) -> str | None:
        """A sentence when systemd has ended that boot at the unit's own limit; by its journal where it goes round."""
        state = self.state()
        invocation = boot["invocation"] or state.invocation
        by_result = self._is(boot, state) and state.result == "timeout"
        if not by_result and "start operation timed out" not in units.told_of(invocation, self.scope):
            return None
        limit = unit_files.properties(self.unit, self.scope, "TimeoutStartUSec").get("TimeoutStartUSec") or "unknown"
        return (
            f"systemd ended {self.unit} because its start took longer than the unit's own limit, TimeoutStartSec "
            f"({limit}). That tells nothing of whether the pair fits. Give the unit TimeoutStartSec=infinity, since a "
            f"switch has its own ready_timeout, have it read ({shlex.join(units.argv(self.scope, 'daemon-reload'))}), "
            "and run this again"
        )

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
