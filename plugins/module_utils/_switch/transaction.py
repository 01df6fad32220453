# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The switch itself: forward to the new pair, or round and back to the old one.

Each phase is written into the journal before anything of it happens, so that ``recovery`` can tell from the journal
and from the live process what was done.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import (
    boot_guard,
    boots,
    card_others,
    drain,
    files,
    handover,
    images,
    probation,
    referee,
    release,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.back import WayBack
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.journal import Journal, instant
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.steps import as_radiance_error


class Transaction(WayBack):
    """One switch, from drain to keep."""

    def __init__(self, request: Request, state: State, run: Run, journal: Journal) -> None:
        super().__init__(request, state, run, journal)
        self._reading: Reading | None = None

    def forward(self) -> None:
        """From drain to keep. Raises RadianceError when it did not: the old pair serves then, or the error says not."""
        try:
            self.drain()
        except Exception as error:  # the gateway gets its service back whatever it was
            self.cancel()
            raise as_radiance_error(error) from error
        try:
            self.stop()
            self.release()
            self.swap()
            self.start()
            self.judge_boot()
        except Exception as error:  # a bug or a full disk must not leave the service down either
            raise self.go_back(as_radiance_error(error)) from error
        self.keep()

    def judge_boot(self) -> None:
        """Ready, referee, receipt: what a finished start still needs."""
        self.ready()
        self.consult_referee()
        self.receipt()

    def drain(self) -> None:
        """Take the service out of its gateway and wait for what runs. Nothing was stopped when this raises."""
        self.journal.enter("drain")
        with self.run.phase("drain") as phase:
            handover.keep_receipts(self.state, self.run, self.others)
            if self.old is None:
                phase.says = "nothing runs, so there is nothing to drain"
            else:
                if self.request.before_drain:
                    drain.hook(self.run, "before_drain", self.request.before_drain)
                drain.wait_idle(phase, self.request.endpoint, self.request.api_key_file, self.request.drain_timeout)
            says = phase.says
            phase.says = "; ".join([says, *handover.wait_idle(self.request, phase, self.others)])
        # What is on probation stays watched by a switch that does not come to its stop.
        probation.confirm(self.state, self.run, self.request)

    def cancel(self) -> None:
        """End a transaction that stopped nothing: the gateway gets its service back, the staged files go."""
        if self.request.before_drain and self.request.after_ready and self.old is not None:
            self.after_ready()
        files.discard(self.journal.data["files"])
        self.journal.close()

    def stop(self) -> None:
        """Stop the old process, and what is stopped for this service."""
        own = [release.held_by(self.old["pid"], self.journal.data["before"])] if self.old else []
        held = release.together([*own, *handover.grip(self.others)])
        self.journal.enter("stop", stopped=instant() if self.old or self.others else None, held=held)
        if self.others:
            self.guard()  # nothing may start with the machine what is stopped now
        # From here on the ledger of the result is the new boot's, or none: the old one's would be judged in its place.
        self.run.ledger = None
        with self.run.phase("stop") as phase:
            if self.old is None:
                self.manager.hold_down(self.request.stop_timeout)
                says = "nothing runs"
            else:
                self.run.changed = True
                self.run.acted(self.manager.stop_argv(self.old["pid"]))
                says = self.manager.stop(self.old["pid"], self.old["ticks"], self.request.stop_timeout)
            phase.says = "; ".join([says, *handover.stop(self.run, self.others, self.request.stop_timeout)])

    def release(self) -> None:
        """Wait for the memory of the cards."""
        self.journal.enter("release")
        with self.run.phase("release") as phase:
            release.wait(phase, self.journal.data["held"], self.request.release_timeout)

    def swap(self) -> None:
        """Rename the staged files into their places."""
        self.journal.enter("swap")
        with self.run.phase("swap") as phase:
            entries = self.journal.data["files"]
            self.guard()
            files.swap(entries)
            self.run.changed = True
            phase.says = f"{len(entries)} file(s) replaced" if entries else "no file differs"

    def guard(self) -> None:
        """From here on another boot of the machine restores the old files first, where systemd runs the service."""
        if self.manager.is_unit:
            boot_guard.arm(self.state, self.manager, self.journal.data)

    def ready(self) -> None:
        """Follow the new boot until it serves."""
        self._once_more(self._ready)

    def _ready(self) -> None:
        with self.run.phase("ready") as phase:
            try:
                self._reading = self._follow(phase)
                self.run.ledger = self._reading.ledger
            except RadianceError as error:
                self.run.ledger = error.result.get("ledger")
                if error.code != "never_ready":
                    raise
                told = _stopped(error)
                self.run.ledger = told.result["ledger"]
                raise told from error

    def consult_referee(self) -> None:
        """Let the new ledger judge. Raises RadianceError ``referee_refused`` with the numbers and the line."""
        self.journal.enter("referee")
        with self.run.phase("referee") as phase:
            ledger = t.cast("dict[str, t.Any]", self.run.ledger)
            another = not images.is_asked(self.expect, (self.old or {}).get("image"))
            self.run.findings = referee.judge(self.expect, ledger, another)
            wrong = [finding for finding in self.run.findings if not finding["holds"]]
            if wrong:
                raise RadianceError(
                    "; ".join(
                        finding["says"] + (f" (the line: {finding['line']})" if finding["line"] else "")
                        for finding in wrong
                    ),
                    code="referee_refused",
                )
            phase.says = "; ".join(finding["says"] for finding in self.run.findings)

    def receipt(self) -> None:
        """Save the boot's text before request lines rotate it away."""
        self.journal.enter("receipt")
        with self.run.phase("receipt") as phase:
            reading = t.cast("Reading", self._reading)
            self.run.receipt = phase.says = boots.save_receipt(self.state, reading)
            boot = self.journal.data["boot"]
            if not self.manager.lives(boot):
                raise RadianceError(
                    f"Process {boot['pid']} listened and has ended since; its last words are in the log or the journal "
                    "of the service.",
                    code="engine_exited",
                )

    def keep(self) -> None:
        """The new pair stays: record it, give the gateway its service back, forget the way back."""
        ledger = self.run.ledger or {}
        pair = referee.goal_text(self.expect, (self.old or {}).get("image"))
        self.run.outcome = "switched"
        self.run.changed = True
        self.run.says.append(f"Switched to {pair}{self._downtime()}.")
        with self.run.phase("keep") as phase:
            phase.says = f"{pair} runs as process {self.journal.data['boot']['pid']}"
            if self.others:
                names = card_others.names_of(self.others)
                self.run.says.append(f"{names} was stopped for it and stays stopped.")
                phase.says += f"; {names} stays stopped"
            boot_guard.disarm(self.state)
            on_probation = probation.begin(self.state, self.run, self.journal.data, self.host)
            if on_probation and self.run.probation:
                phase.says += f"; {self.run.probation['says']}"
            self._settle(
                self._entry(
                    "switched",
                    to=self.expect["to"],
                    image=self.expect.get("image"),
                    downtime_seconds=self.run.downtime_seconds,
                    receipt=self.run.receipt,
                    ledger={key: ledger.get(key) for key in ("fingerprint", "pair", "capacity", "settled", "engine")},
                    **self._of_handover(),
                ),
                keep_old=on_probation,
            )


def _stopped(error: RadianceError) -> RadianceError:
    """A boot that did not come up in time, told as what becomes of it: the way back ends it, nobody can wait for it."""
    text = f"This boot was given up and stopped. {error.text}"
    ledger = dict(error.result["ledger"])
    if not ledger["ready"]:
        # The reason of a ledger that is read while a boot loads ends in the advice to wait.
        ledger["reason"] = {"code": "not_ready", "text": text}
    return RadianceError(text, code=error.code, result={"ledger": ledger})
