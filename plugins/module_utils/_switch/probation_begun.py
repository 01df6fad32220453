# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A probation that was begun: what is kept of it, whether it is over or has come to a return, and its end.

``probation.json``::

    schema: "kvfleet.radiance/switch-probation/1"
    service, host, attempt, seconds: of the switch
    unit, scope, drop_in              the drop-in's path
    until: {boot_id, uptime, wall}    see scripts.Until
    to, image                         the pair on probation
    old: {to, image, ...}             the pair that it would return to
    files: [{dest, existed, old, sha256, ...}]

Under the name ``probation.ended`` it is one that is being cleared up.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import pair_text
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import host_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import unit_files
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State

SCHEMA = "kvfleet.radiance/switch-probation/1"


class Probation:
    """One that was begun. ``ended``: nothing returns any more, and what is left of it is still to be cleared up."""

    def __init__(self, state: State, data: dict[str, t.Any], ended: bool = False) -> None:
        self.state = state
        self.data = data
        self.ended = ended

    @classmethod
    def load(cls, state: State) -> Probation | None:
        """What an earlier switch began, or None. Raises RadianceError ``switch_probation_unreadable``."""
        path = state.probation_ended
        try:
            content = _durable.read(path)
            ended = content is not None
            if content is None:
                path = state.probation
                content = _durable.read(path)
            if content is None:
                return None
            data = json.loads(content)
            if data["schema"] != SCHEMA or data["service"] != state.service:
                raise ValueError("another shape")
            for name in ("host", "unit", "scope", "drop_in", "until", "to", "image", "old", "files", "seconds"):
                data[name]  # noqa: B018  a KeyError names what is missing
        except (OSError, ValueError, KeyError, TypeError) as error:
            is_other = f"is not a probation of this release ({error})"
            why = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else is_other
            raise RadianceError(
                f"{path} {why}. Nothing was changed. Move it away, and remove kvfleet-probation.conf from the drop-ins "
                "of the unit.",
                code="switch_probation_unreadable",
            ) from error
        return cls(state, data, ended)

    @property
    def pair(self) -> str:
        """The pair on probation, in words."""
        return pair_text(self.data["to"])

    @property
    def old_pair(self) -> str:
        """The pair that it would return to, in words."""
        return pair_text((self.data["old"] or {}).get("to"))

    @property
    def until(self) -> str:
        """The deadline, UTC."""
        return _utc(self.data["until"]["wall"])

    def over(self) -> bool:
        """Whether the deadline has passed."""
        until = self.data["until"]
        if until["boot_id"] == host_boot():
            return uptime() >= float(until["uptime"])
        return time.time() >= float(until["wall"])

    def left(self) -> list[dict[str, t.Any]]:
        """The files that were not put back."""
        return [entry for entry in self.data["files"] if entry["old"] and os.path.exists(entry["old"])]

    def crashed(self) -> bool:
        """Whether the script has acted."""
        return os.path.exists(self.state.probation_mark) or self.returned()

    def returned(self) -> bool:
        """Whether the script has put anything back, which uses up the copy."""
        return any(
            entry["old"] and not os.path.exists(entry["old"]) and file_hash(entry["dest"]) == entry["sha256"]
            for entry in self.data["files"]
        )

    def what_ended_it(self) -> tuple[str, str | None]:
        """How the engine ended, in words, and when (UTC); a script that was cut, or a full disk, notes nothing."""
        words = (_durable.read(self.state.probation_mark) or b"").decode("ascii", "replace").split()
        if len(words) != 4 or not words[0].isdecimal():
            return "in a way that nothing has noted", None
        how = {"exited": "with status", "killed": "by signal", "dumped": "by signal"}.get(words[2], words[2])
        result = "" if words[1] in ("exit-code", "signal") else f" ({words[1]})"
        return f"{how} {words[3]}{result}", _utc(int(words[0]))

    def finish_return(self) -> None:
        """Put back what a script that was cut has left."""
        for entry in self.left():
            os.replace(entry["old"], entry["dest"])
        for entry in self.data["files"]:
            if not entry["existed"]:
                _durable.remove(entry["dest"])

    def end(self) -> list[str]:
        """Nothing returns any more from here on; can be done again after it was cut.

        What systemd does not give back is no reason to fail, for it does nothing by then. Returns why it is left, as
        warnings; ``probation.ended`` stays for the next run.
        """
        state = self.state
        with contextlib.suppress(FileNotFoundError):
            os.replace(state.probation, state.probation_ended)
        _durable.remove(state.probation_script)
        for entry in self.left():
            _durable.remove(entry["old"])
        try:
            unit_files.remove(self.data["drop_in"])
            unit_files.ask(self.data["scope"], "daemon-reload")
        except (RadianceError, OSError) as error:
            return [
                f"The probation is over, and its drop-in {self.data['drop_in']} could not be taken out of the unit: "
                f"{str(error).rstrip('.')}. It does nothing any more, and the next run tries again."
            ]
        for path in (state.probation_armed, state.probation_mark, state.probation, state.probation_ended):
            _durable.remove(path)
        _durable.sync_folder(state.folder)
        return []

    def watching(self) -> dict[str, t.Any]:
        """The result while it lasts."""
        says = f"{self.pair} is on probation until {self.until}: a crash before that returns to {self.old_pair}"
        return self.result("watching", says)

    def result(self, state: str, says: str) -> dict[str, t.Any]:
        """What the module returns of it."""
        return {"state": state, "until": self.until, "seconds": self.data["seconds"], "says": says}


def file_hash(path: str) -> str | None:
    """The SHA-256 of the file, None where there is none."""
    content = _durable.read(path)
    return None if content is None else hashlib.sha256(content).hexdigest()


def uptime() -> float:
    """Seconds since the machine came up, by a clock that nobody sets."""
    with open("/proc/uptime", encoding="ascii") as file:
        return float(file.read().split()[0])


def _utc(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)  # noqa: UP017  datetime.UTC is 3.11's
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
