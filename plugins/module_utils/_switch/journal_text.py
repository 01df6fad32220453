# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a boot that a unit of systemd printed, by the unit's journal.

A container that the engine's refusal ended may be gone with its log; the journal of its unit has its last words.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container as containers
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container_log, process
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import unit as units
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading, read_text
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import BootText
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.signals import wait_until

_POLL = 0.3
# How far the runtime's own log may be behind the journal.
_LOG_DELAY = 5.0


class Service(t.Protocol):
    """What is asked of the manager whose boot this is."""

    unit: str
    scope: str

    def invocation_of(self, boot: t.Mapping[str, t.Any]) -> str:
        """The invocation of that boot, empty while systemd has not begun it."""

    def container(self) -> containers.Container | None:
        """The container of this service, if there is one."""

    def reading(self) -> Reading:
        """The boot that runs, as its declared source tells it."""


class JournalText(BootText):
    """What the unit's processes wrote in one invocation, read anew at each poll: until a boot listens it has printed
    some hundred lines.

    Where the unit's own output goes elsewhere, its container's log has the boot, as long as the container is there.
    """

    longest_pause = 1.0

    def __init__(self, service: Service, boot: t.Mapping[str, t.Any]) -> None:
        self._service = service
        self._boot = boot
        self._text = ""
        # Why the journal could not be read when it was read last, and since when it cannot.
        self._unread: RadianceError | None = None
        self._unread_since: float | None = None

    def poll(self) -> bool:
        """Whether there is more of it than before.

        Raises RadianceError ``journal_unreadable`` where for a while nothing could tell of this boot.
        """
        before = len(self._text)
        if self._read():
            self._unread_since = None
        elif self._unread_since is None:
            self._unread_since = time.monotonic()
        elif not self._text and time.monotonic() - self._unread_since >= _LOG_DELAY:
            raise t.cast("RadianceError", self._unread)
        return len(self._text) != before

    def _read(self) -> bool:
        """Read what there is; whether the journal could be read."""
        journal, self._unread = "", None
        try:
            invocation = self._service.invocation_of(self._boot)
            journal = units.journal(invocation, self._service.scope) if invocation else ""
        except RadianceError as error:
            self._unread = error
        # What was read once stays: a container takes its log along.
        self._text = max(self._text, journal or self._log_of_container(), key=len)
        return self._unread is None

    def _log_of_container(self) -> str:
        try:
            found = self._service.container()
            return container_log.read_boot(found)[0] if found is not None and found.pid else ""
        except RadianceError:
            return ""  # a log driver that cannot be read; what the boot says is then not known

    def lines(self) -> str:
        """The journal has whole lines only."""
        return self._text

    def all(self) -> str:
        """The same; asked for once the boot has ended, whose last words are in the journal alone then.

        Raises RadianceError ``journal_unreadable`` where nothing tells of this boot.
        """
        if self._unread is not None and not wait_until(self._read, _LOG_DELAY, _POLL) and not self._text:
            raise self._unread
        return self._text

    def reading(self, found: process.Process | None, flags: t.Mapping[str, str]) -> Reading:
        """By the declared source where that has the boot; it has lost the container of a boot that ended."""
        known = {
            "kind": "journald",
            "name": self._service.unit,
            "invocation": self._service.invocation_of(self._boot),
            "started_at": found.started_at if found is not None else None,
        }
        reading = read_text(self._text, known, flags)
        if found is None or not reading.ledger["ready"]:
            return reading
        # The runtime may write its own log a moment later than the journal has the line.
        told: list[Reading] = []

        def ready() -> bool:
            with contextlib.suppress(RadianceError):
                told[:] = [self._service.reading()]
            return bool(told and told[0].ledger["ready"])

        if wait_until(ready, _LOG_DELAY, _POLL):
            return told[0]
        # The runtime cannot read its log: the boot is still that of its container, which is how its receipt is found.
        named = told[0].known if told else {}
        return read_text(self._text, {**named, "kind": "journald", "name": self._service.unit}, flags)

    def close(self) -> None:
        """Nothing is held."""
