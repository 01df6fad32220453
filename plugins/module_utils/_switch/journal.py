# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal of one switch: what the next run needs to restore the old pair, or to finish the new one.

It is replaced in one step and synced before each act that cannot be taken back, so a process that dies at any instant
leaves a journal that is at most one act ahead of the world, never behind it.
Private to the collection: it may change in any release.

Shape of ``journal.json``::

    schema: "kvfleet.radiance/switch-journal/1"
    id, service, at
    direction: forward | back
    phase: precheck | drain | stop | release | swap | start | ready | referee | receipt | keep
           (back: restore | start | ready | hand_back | keep; lock and guard come before there is a journal)
    manager: what describes it, see managers.py
    expect: {to, predictions, attempt, host, flags, image, image_digest}
    old: {pid, ticks, to, image} or null    the process that ran before, null when none did
    before: the old boot's ledger, or null
    files: [{dest, existed, mode, uid, gid, backup, staged, old}]
    probation: seconds, or null
    others: [{service, manager, pid, ticks, to, cards, endpoint, boot}]    what is stopped for it, see handover.py
    boot: {pid, ticks, ...} or null               the boot that this direction started; the manager says what else
    stopped: {clock, boot_id, wall} or null       when the stop signal was about to go out
    held: the old process's grip on the cards, see release.py
    cause: {phase, code, says} or null    why it goes back
    record: the entry that `keep` writes, or null
"""

from __future__ import annotations

import json
import time
import typing as t
import uuid

from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._records import utc_now
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import host_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State

SCHEMA = "kvfleet.radiance/switch-journal/1"

_NULL = type(None)
_ABSENT = ()
# What the next run lives on, and the types that each may have.
_FIELDS: t.Mapping[str, tuple[type, ...]] = {
    "at": (str,),
    "direction": (str,),
    "phase": (str,),
    "manager": (dict,),
    "expect": (dict,),
    "old": (dict, _NULL),
    "before": (dict, _NULL),
    "files": (list,),
    "boot": (dict, _NULL),
    "stopped": (dict, _NULL),
    "held": (dict, _NULL),
    "cause": (dict, _NULL),
    "record": (dict, _NULL),
    "others": (list,),
}


class Journal:
    """One transaction's journal. ``save`` makes what ``data`` holds durable."""

    def __init__(self, state: State, data: dict[str, t.Any]) -> None:
        self.state = state
        self.data = data
        self.stale = False

    @classmethod
    def begin(cls, state: State, **fields: t.Any) -> Journal:
        """A new journal, on the disk before this returns."""
        data: dict[str, t.Any] = {
            "schema": SCHEMA,
            "id": uuid.uuid4().hex[:12],
            "service": state.service,
            "at": utc_now(),
            "direction": "forward",
            "phase": "precheck",
            "old": None,
            "before": None,
            "files": [],
            "boot": None,
            "stopped": None,
            "held": None,
            "cause": None,
            "record": None,
            "probation": None,
            "others": [],
            **fields,
        }
        journal = cls(state, data)
        journal.save()
        return journal

    @classmethod
    def load(cls, state: State) -> Journal | None:
        """The journal that an earlier run left, or None. Raises RadianceError ``switch_journal_unreadable``."""
        try:
            content = _durable.read(state.journal)
        except OSError as error:
            raise RadianceError(
                f"The journal {state.journal} cannot be read: {error.strerror}. Nobody knows whether a switch was "
                "interrupted, and nothing was changed. "
                f"Compare the files in {state.backup} with what the service runs, then move the journal away.",
                code="switch_journal_unreadable",
            ) from error
        if content is None:
            return None
        try:
            data = json.loads(content)
            if not isinstance(data, dict) or data.get("schema") != SCHEMA or data.get("service") != state.service:
                raise ValueError("another shape")
            data.setdefault("others", [])  # one that was written before there was a handover
            wrong = [name for name, kind in _FIELDS.items() if not isinstance(data.get(name, _ABSENT), kind)]
            if wrong:
                raise ValueError(f"its {', '.join(wrong)} missing or of another type")
        except ValueError as error:
            raise RadianceError(
                f"{state.journal} is not a journal of this release ({error}). It is written in one step, so something "
                f"else wrote it, or another release did. Nothing was changed. Compare the files in {state.backup} with "
                "what the service runs, then move the journal away.",
                code="switch_journal_unreadable",
            ) from error
        return cls(state, data)

    def enter(self, phase: str, **fields: t.Any) -> None:
        """Say on the disk that the phase begins, before anything of it happens.

        Going back does not wait for a disk that takes nothing: the old pair comes first, and ``stale`` tells that the
        journal on the disk is behind. A run that finds it there goes back once more.
        """
        self.data.update(fields, phase=phase)
        try:
            self.save()
        except OSError:
            self.stale = True
            if self.data["direction"] != "back":
                raise
        else:
            self.stale = False

    def save(self) -> None:
        """Replace the file with ``data``, synced."""
        _durable.replace(self.state.journal, json.dumps(self.data, sort_keys=True).encode("ascii") + b"\n", 0o600)

    def close(self, keep_old: bool = False) -> None:
        """The transaction is over: remove the journal, then the backups that only it names.

        Before it goes what a restart of the machine would restore from: a script that outlived its journal would undo
        a switch that is over. ``keep_old``: the copies beside the files stay, for a probation.
        """
        _durable.remove(self.state.restore)
        _durable.sync_folder(self.state.folder)
        if not keep_old:
            self._remove("old")
        _durable.remove(self.state.journal)
        _durable.sync_folder(self.state.folder)
        self._remove("staged", "backup")

    def _remove(self, *names: str) -> None:
        for entry in self.data["files"]:
            for name in names:
                if entry.get(name):
                    _durable.remove(entry[name])


def instant() -> dict[str, t.Any]:
    """A moment that another process can measure from, even when the wall clock is set in between."""
    return {"clock": time.monotonic(), "boot_id": host_boot(), "wall": time.time()}


def seconds_since(moment: t.Mapping[str, t.Any] | None) -> float | None:
    """Seconds from ``moment`` (of ``instant``) to now; across a restart of the machine by the wall clock."""
    if moment is None:
        return None
    if moment["boot_id"] == host_boot():
        return round(time.monotonic() - float(moment["clock"]), 2)
    return round(max(0.0, time.time() - float(moment["wall"])), 2)
