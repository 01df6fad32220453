# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back of a switch: the old files, the old pair, and what to say where it does not come up either.

Every phase of it may be done twice.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import shlex
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import hidden
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import pair_text
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import Process
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import (
    boots,
    card_others,
    drain,
    files,
    handover,
    referee,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.journal import Journal, seconds_since
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import manager_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.steps import Steps, as_radiance_error


def interruption(by: str = "the run that switched was interrupted") -> RadianceError:
    """Why a way back begins that the run before has not begun itself."""
    return RadianceError(f"{by} before the new pair was up", code="interrupted")


def cause_of(journal: Journal, error: RadianceError) -> dict[str, t.Any]:
    """The ``cause`` of a journal, in the phase that it has come to."""
    return {"phase": journal.data["phase"], "code": error.code, "says": hidden(error.text)}


class WayBack(Steps):
    """What a journal whose direction is back has done to it."""

    def go_back(self, cause: RadianceError) -> RadianceError:
        """Turn round: restore the old files, start the old pair, wait for it. Returns the error to end with.

        ``run.outcome`` is then ``rolled_back``, or ``failed`` where the old pair does not come back.
        """
        self.journal.enter("restore", direction="back", cause=cause_of(self.journal, cause))
        return self.restore()

    def restore(self, started: bool = False) -> RadianceError:
        """Work off a journal whose direction is back. ``started``: the old pair was started by an earlier run."""
        cause = self.journal.data["cause"]
        old_image = (self.old or {}).get("image")
        tried, old = referee.goal_text(self.expect, old_image), pair_text((self.old or {}).get("to"))
        why = f"The switch to {tried} ended in phase {cause['phase']}: {cause['says'].rstrip('.')}."
        try:
            if not started:
                self._put_back()
            if not self.only_others:
                if not started:
                    self.start()
                self._once_more(self._ready_again)
        except Exception as error:
            return self._failed(cause, why, as_radiance_error(error))
        try:
            self.hand_back()
        except Exception as error:
            return self._not_handed_back(cause, why, as_radiance_error(error))
        says = f"{why} {self._serves_again(old)}{self._downtime()}."
        self.run.says.append(says)
        self.rolled_back()
        return RadianceError(says, code=cause["code"])

    def _serves_again(self, old: str) -> str:
        names = card_others.names_of(self.others)
        if self.only_others:
            return f"{names} serves again"
        return f"The old pair {old} and {names} serve again" if self.others else f"The old pair {old} serves again"

    def hand_back(self) -> None:
        """Have those serve again that were stopped for this service; can be done again after it was cut."""
        if not self.others:
            return
        self.journal.enter("hand_back")
        # What serves already, an earlier call has started, and nobody saw when.
        down = any(manager_of(entry["manager"]).current() is None for entry in self.others)
        with self.run.phase("hand_back") as phase:
            says = []
            for entry in self.others:
                try:
                    says.append(
                        handover.start_again(
                            self.run, phase, entry, self.request.ready_timeout, lambda: self.journal.enter("hand_back")
                        )
                    )
                except RadianceError as error:
                    raise RadianceError(f"{entry['service']}: {error.text}", code=error.code) from error
            phase.says = "; ".join(says)
        if down:
            self.run.downtime_seconds = seconds_since(self.journal.data["stopped"])

    def _not_handed_back(self, cause: t.Mapping[str, t.Any], why: str, error: RadianceError) -> RadianceError:
        """What was stopped for this service is not back. The journal stays for the next run to try again."""
        self.run.outcome = "failed"
        self.run.changed = True
        self.run.by_hand = handover.by_hand(self.others)
        with contextlib.suppress(OSError, RadianceError):
            self._append(self._back_entry(cause, serving=False))
        says = (
            f"{why} A SERVICE IS DOWN: what was stopped for {self.state.service} did not come back "
            f"({error.text.rstrip('.')}). The next run tries again; by hand: {' ; '.join(self.run.by_hand)}"
        )
        self.run.says.append(says)
        return RadianceError(says, code=cause["code"])

    def rolled_back(self) -> None:
        """The old pair serves: record that and close."""
        self.run.outcome = "rolled_back"
        self._settle(self._back_entry(self.journal.data["cause"], serving=True))

    def put_back_files(self) -> None:
        """Restore the files and stop nothing: what serves by now was not started by us."""
        cause = self.journal.data["cause"] or cause_of(self.journal, interruption())
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
            if (
                self.old is None
                and not self.others
                and not all(entry["existed"] for entry in self.journal.data["files"])
            ):
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
            self.run.by_hand = self._by_hand(found, unrestored, unknown)
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

    def _by_hand(self, found: Process | None, unrestored: list[str], unknown: bool) -> list[str]:
        others = handover.by_hand(self.others)
        if not self.only_others:
            return [*self.manager.by_hand(found, unrestored, unknown), *others]
        stop = [shlex.join(self.manager.stop_argv(found.pid if found is not None else 0))]
        return [*(stop if found is not None or unknown else []), *unrestored, *others]

    def _seen(self) -> tuple[Process | None, bool]:
        """What runs, and whether that cannot be asked: nothing may keep us from saying that the service is down."""
        with contextlib.suppress(RadianceError, OSError):
            return self.manager.current(), False
        return None, True

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
            **self._of_handover(),
        )
