# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The switch itself: forward to the new pair, or back to the old one.

Each phase is written into the journal before anything of it happens, so that ``recovery`` can tell from the journal
and from the live process what was done. Every phase of going back may be done twice.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import errno
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import Process
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import (
    boot_guard,
    boots,
    drain,
    files,
    images,
    probation,
    referee,
    release,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.journal import Journal, instant, seconds_since
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import manager_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Phase, Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State

_INTERRUPTED = {"code": "interrupted", "says": "the run that switched was interrupted before the new pair was up"}


class Transaction:
    """One journal being worked off. What is started, stopped and restored comes from the journal, not from options."""

    def __init__(self, request: Request, state: State, run: Run, journal: Journal) -> None:
        self.request = request
        self.state = state
        self.run = run
        self.journal = journal
        data = journal.data
        self.manager = manager_of(data["manager"])
        self.old: dict[str, t.Any] | None = data["old"]
        self.expect: dict[str, t.Any] = data["expect"]
        self._reading: Reading | None = None

    # Forward

    def forward(self) -> None:
        """From drain to keep. Raises RadianceError when it did not: the old pair serves then, or the error says not."""
        try:
            self.drain()
        except RadianceError:
            self.cancel()
            raise
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
            if self.old is None:
                phase.says = "nothing runs, so there is nothing to drain"
                return
            if self.request.before_drain:
                drain.hook(self.run, "before_drain", self.request.before_drain)
            drain.wait_idle(phase, self.request.endpoint, self.request.api_key_file, self.request.drain_timeout)

    def cancel(self) -> None:
        """End a transaction that stopped nothing: the gateway gets its service back, the staged files go."""
        if self.request.before_drain and self.request.after_ready and self.old is not None:
            self.after_ready()
        files.discard(self.journal.data["files"])
        self.journal.close()

    def stop(self) -> None:
        """Stop the old process."""
        held = release.held_by(self.old["pid"], self.journal.data["before"]) if self.old else None
        self.journal.enter("stop", stopped=instant() if self.old else None, held=held)
        # From here on the ledger of the result is the new boot's, or none: the old one's would be judged in its place.
        self.run.ledger = None
        with self.run.phase("stop") as phase:
            if self.old is None:
                self.manager.hold_down(self.request.stop_timeout)
                phase.says = "nothing runs"
                return
            self.run.changed = True
            self.run.acted(self.manager.stop_argv(self.old["pid"]))
            phase.says = self.manager.stop(self.old["pid"], self.old["ticks"], self.request.stop_timeout)

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
        if self.manager.described["kind"] == "systemd":
            boot_guard.arm(self.state, self.journal.data["files"])

    def start(self) -> None:
        """Start whatever the files now say, in either direction."""
        boot = self.manager.next_boot()
        self.journal.enter("start", boot=boot)
        with self.run.phase("start") as phase:
            self.run.acted(self.manager.start_argv)
            boot = self.manager.start(boot)
            self.run.changed = True
            phase.says = self.manager.began(boot)
        self.journal.enter("ready", boot=boot)

    def ready(self) -> None:
        """Follow the new boot until it serves."""
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
            boot_guard.disarm(self.state)
            host = str(self.expect.get("host") or self.request.host)
            on_probation = probation.begin(self.state, self.run, self.journal.data, host)
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
                ),
                keep_old=on_probation,
            )

    # Back

    def go_back(self, cause: RadianceError) -> RadianceError:
        """Turn round: restore the old files, start the old pair, wait for it. Returns the error to end with.

        ``run.outcome`` is then ``rolled_back``, or ``failed`` where the old pair does not come back.
        """
        data = self.journal.data
        data["cause"] = {"phase": data["phase"], "code": cause.code, "says": files.masked(cause.text)}
        self.journal.enter("restore", direction="back")
        return self.restore()

    def restore(self, started: bool = False) -> RadianceError:
        """Work off a journal whose direction is back. ``started``: the old pair was started by an earlier run."""
        cause = self.journal.data["cause"]
        old_image = (self.old or {}).get("image")
        tried, old = referee.goal_text(self.expect, old_image), referee.pair_text((self.old or {}).get("to"))
        why = f"The switch to {tried} ended in phase {cause['phase']}: {cause['says'].rstrip('.')}."
        try:
            if not started:
                self._put_back()
                self.start()
            self._ready_again()
        except Exception as error:
            return self._failed(cause, why, as_radiance_error(error))
        says = f"{why} The old pair {old} serves again{self._downtime()}."
        self.run.says.append(says)
        self.rolled_back()
        return RadianceError(says, code=cause["code"])

    def rolled_back(self) -> None:
        """The old pair serves: record that and close."""
        self.run.outcome = "rolled_back"
        self._settle(self._back_entry(self.journal.data["cause"], serving=True))

    def put_back_files(self) -> None:
        """Restore the files and stop nothing: what serves by now was not started by us."""
        cause = self.journal.data["cause"] or {"phase": self.journal.data["phase"], **_INTERRUPTED}
        self.journal.enter("restore", direction="back", cause=cause)
        with self.run.phase("restore") as phase:
            put_back = files.restore(self.journal.data["files"])
            self.run.changed = self.run.changed or bool(put_back)
            phase.says = f"put back {', '.join(put_back)}" if put_back else "every file is as it was"

    def _put_back(self) -> None:
        with self.run.phase("restore") as phase:
            found = self.manager.current()
            ended = ""
            if found is None:
                self.manager.hold_down(self.request.stop_timeout)
            else:
                self.run.acted(self.manager.stop_argv(found.pid))
                ended = self.manager.stop(found.pid, found.started_ticks, self.request.stop_timeout) + "; "
            put_back = files.restore(self.journal.data["files"])
            self.run.changed = True
            phase.says = ended + (f"put back {', '.join(put_back)}" if put_back else "every file is as it was")
            if self.old is None and not all(entry["existed"] for entry in self.journal.data["files"]):
                raise RadianceError("nothing ran before, and there is no earlier file to start", code="nothing_ran")

    def _ready_again(self) -> None:
        with self.run.phase("ready") as phase:
            # It has to serve; nobody judges its numbers.
            reading = self._follow(phase)
            self.run.restored = reading.ledger
        try:
            boots.save_receipt(self.state, reading)
        except OSError as error:
            self.run.warnings.append(f"The receipt of the old pair's new boot could not be saved ({error.strerror}).")

    def _failed(self, cause: t.Mapping[str, t.Any], why: str, error: RadianceError) -> RadianceError:
        """The old pair is not back. The journal stays for the next run to try again; not where nothing ran before."""
        self.run.outcome = "failed"
        self.run.changed = True
        found, unknown = self._seen()
        if found is not None and error.code == "engine_refused":
            # It has said why it ends and may not have ended yet: neither we nor a person must wait for it to come up.
            with contextlib.suppress(RadianceError):
                self.manager.stop(found.pid, found.started_ticks, self.request.stop_timeout)
            found, unknown = self._seen()
        unrestored = files.by_hand(self.journal.data["files"])
        with contextlib.suppress(OSError, RadianceError):
            self._append(self._back_entry(cause, serving=False))
        if self.old is None and found is None and not unknown and not unrestored:
            with contextlib.suppress(OSError):
                self.journal.close()
            says = (
                f"{why} Nothing ran before the switch, and nothing runs now ({error.text.rstrip('.')}). Every file is "
                "as it was, and nothing is left to finish."
            )
        else:
            self.run.by_hand = self.manager.by_hand(found, unrestored, unknown)
            left = "" if found is None else f" Process {found.pid} was left running: it may still come up."
            if unknown:
                left = " Whether anything runs cannot be told, and a boot of either pair may."
            down = "THE SERVICE IS DOWN: the old pair did not come back either"
            if self.request.endpoint is not None and drain.healthy(self.request.endpoint)[0]:
                down = "/health ANSWERS, and nothing tells which pair serves: the way back did not end well"
            says = (
                f"{why} {down}: {error.text.rstrip('.')}.{left} "
                f"The next run tries again; by hand: {' ; '.join(self.run.by_hand)}"
            )
        self.run.says.append(says)
        return RadianceError(says, code=cause["code"])

    def _seen(self) -> tuple[Process | None, bool]:
        """What runs, and whether that cannot be asked: nothing may keep us from saying that the service is down."""
        with contextlib.suppress(RadianceError, OSError):
            return self.manager.current(), False
        return None, True

    # Shared

    def _follow(self, phase: Phase) -> Reading:
        found = boots.await_ready(
            self.manager,
            self.journal.data["boot"],
            phase,
            timeout=self.request.ready_timeout,
            endpoint=self.request.endpoint,
        )
        self.run.downtime_seconds = seconds_since(self.journal.data["stopped"])
        serving = self.manager.current()
        if serving is not None:
            # The engine's own process, which a manager may not know yet at the start.
            self.journal.data["boot"].update(pid=serving.pid, ticks=serving.started_ticks)
        return found

    def _downtime(self) -> str:
        seconds = self.run.downtime_seconds
        return "" if seconds is None else f" after {seconds:,.1f} s without service"

    def _back_entry(self, cause: t.Mapping[str, t.Any], serving: bool) -> dict[str, t.Any]:
        return self._entry(
            "rolled_back",
            to=(self.old or {}).get("to"),
            image=((self.old or {}).get("image") or {}).get("name"),
            tried=self.expect["to"],
            phase=cause["phase"],
            says=cause["says"],
            downtime_seconds=self.run.downtime_seconds,
            serving=serving,
        )

    def _entry(self, kind: str, **fields: t.Any) -> dict[str, t.Any]:
        host = self.expect.get("host") or self.request.host
        return _records.entry(kind, str(host), self.state.service, self.expect.get("attempt"), **fields)

    def _settle(self, entry: dict[str, t.Any], keep_old: bool = False) -> None:
        """A pair serves: record it once, give the gateway its service back, remove the journal.

        The entry goes into the journal first, so that a run which finishes ours appends the same one.
        """
        kept = self.journal.data["record"]
        if kept is not None and kept["kind"] == entry["kind"]:
            entry = kept
        try:
            self.journal.enter("keep", record=entry)
            self._append(entry)
            self.after_ready()
            self.journal.close(keep_old)
        except OSError as error:
            # Of a way back that the journal on the disk never heard of, nothing is left to do: it would be gone again.
            lost = self.journal.stale and entry["kind"] == "rolled_back"
            self.run.warnings.append(
                f"The service serves, but {self.state.folder} cannot be written ({error.strerror}). "
                + ("The record lacks this roll-back." if lost else "The next run completes the record.")
            )
            self.after_ready()
            if lost:
                with contextlib.suppress(OSError):
                    self.journal.close()

    def _append(self, entry: dict[str, t.Any]) -> None:
        self.run.warnings += _records.append(self.state.records, [entry])
        self.run.records.append(entry)

    def after_ready(self) -> None:
        """Tell the gateway that the service serves."""
        if self.request.after_ready:
            try:
                drain.hook(self.run, "after_ready", self.request.after_ready)
            except RadianceError as error:
                # The service serves: a gateway that does not take it back is worth a warning, not another restart.
                self.run.warnings.append(error.text)


def as_radiance_error(error: Exception) -> RadianceError:
    """What went wrong, whatever it was, as the one error that is reported."""
    if isinstance(error, RadianceError):
        return error
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f"for {error.filename}" if error.filename else "in the state directory, or for a file of this switch"
        return RadianceError(f"No room is left {where} ({error.strerror}). Make room on its disk.", code="disk_full")
    return RadianceError(f"{type(error).__name__}: {error}", code="unexpected")


def _stopped(error: RadianceError) -> RadianceError:
    """A boot that did not come up in time, told as what becomes of it: the way back ends it, nobody can wait for it."""
    text = f"This boot was given up and stopped. {error.text}"
    ledger = dict(error.result["ledger"])
    if not ledger["ready"]:
        # The reason of a ledger that is read while a boot loads ends in the advice to wait.
        ledger["reason"] = {"code": "not_ready", "text": text}
    return RadianceError(text, code=error.code, result={"ledger": ledger})
