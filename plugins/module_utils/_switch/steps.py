# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What both directions of a switch do: start what the files say, follow it, record that a pair serves.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import errno
import platform
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import boots, drain
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.journal import Journal, seconds_since
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import manager_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Phase, Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State


class Steps:
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
        # In records: what the inventory calls it, else what it calls itself.
        self.host = str(self.expect.get("host") or platform.node())
        # Whether it served when this run came to it: since when, nobody has seen.
        self.served_before = False
        # What is stopped for this service, and started again where it does not hold.
        self.others: list[dict[str, t.Any]] = data["others"]

    @property
    def only_others(self) -> bool:
        """Whether nothing of this service ran before, and what ran is what gave up the cards for it."""
        return self.old is None and bool(self.others)

    def start(self) -> None:
        """Start whatever the files now say, in either direction."""
        self.served_before = False
        boot = self.manager.next_boot()
        self.journal.enter("start", boot=boot)
        with self.run.phase("start") as phase:
            self.run.acted(self.manager.start_argv)
            boot = self.manager.start(boot)
            self.run.changed = True
            phase.says = self.manager.began(boot)
        self.journal.enter("ready", boot=boot)

    def _once_more(self, follow: t.Callable[[], None]) -> None:
        """Follow a boot; where the runtime had not let go of the container before, start it once more."""
        try:
            follow()
        except RadianceError as error:
            if error.code != "container_in_the_way":
                raise
            self.manager.hold_down(self.request.stop_timeout)
            self.start()
            follow()

    def _follow(self, phase: Phase) -> Reading:
        found = boots.await_ready(
            self.manager,
            self.journal.data["boot"],
            phase,
            timeout=self.request.ready_timeout,
            endpoint=self.request.endpoint,
        )
        self.run.downtime_seconds = None if self.served_before else seconds_since(self.journal.data["stopped"])
        serving = self.manager.current()
        if serving is not None:
            # The engine's own process, which a manager may not know yet at the start.
            self.journal.data["boot"].update(pid=serving.pid, ticks=serving.started_ticks)
        return found

    def _downtime(self) -> str:
        seconds = self.run.downtime_seconds
        return "" if seconds is None else f" after {seconds:,.1f} s without service"

    def _of_handover(self) -> dict[str, t.Any]:
        """What a line of the record has of it."""
        return {"handed_over": [entry["service"] for entry in self.others]} if self.others else {}

    def _entry(self, kind: str, **fields: t.Any) -> dict[str, t.Any]:
        return _records.entry(kind, self.host, self.state.service, self.expect.get("attempt"), **fields)

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
                f"The service serves, but {error.filename or self.state.folder} cannot be written ({error.strerror}). "
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
    if isinstance(error, OSError) and error.filename:
        return RadianceError(
            f"{error.filename} cannot be used: {error.strerror}. Put that right, then run this again.",
            code="file_unusable",
        )
    return RadianceError(f"{type(error).__name__}: {error}", code="unexpected")
