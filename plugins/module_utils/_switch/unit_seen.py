# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd and a container runtime tell of a service that is a unit. Nothing here changes anything.

The unit's own state is not enough: where somebody kills the client of a container runtime the unit has failed while
the container goes on serving and holds the cards. So what runs is what the runtime and the process list say.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container as containers
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import process
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import unit as units
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.signals import wait_until

_POLL = 0.3
# A runtime whose database is locked, or a systemd that is reloading, answers a moment later.
_PATIENCE = 10.0
_Answer = t.TypeVar("_Answer")


class UnitSeen(Manager):
    """``source`` says where the engine's text is: ``journald``, or the runtime that has a container called ``name``.

    ``script`` is the program that the unit has to start, where the caller knows it.
    """

    is_unit = True

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
        return units.argv(self.scope, verb, self.unit)

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

    def comes_back(self) -> bool:
        """Whether the unit is up, begins, or waits for its next restart."""
        return not self.state().stopped

    def crashed(self) -> bool:
        """What systemd says; see ``Unit.crashed``."""
        return self.state().crashed

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
                f"{shlex.join(units.argv(self.scope, 'daemon-reload'))} read it, or correct `unit`"
            )
        if state.outdated:
            return (
                f"unit: the file of {self.unit} has changed since systemd read it, and what a start would run is not "
                f"what the file says. Run {shlex.join(units.argv(self.scope, 'daemon-reload'))} first"
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

    def environment_files(self) -> list[str]:
        """Its EnvironmentFile=, but those that it begins with a `-`, and patterns."""
        shown = units.systemctl(self.scope, "show", "--property=EnvironmentFiles", "--value", "--", self.unit).out
        paths = re.findall(r"^(.+) \(ignore_errors=no\)$", shown, re.MULTILINE)
        return [path for path in paths if not re.search(r"[*?\[]", path)]

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
        return units.program(self.unit, self.scope)

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

    def reading(self, receipts: str | None = None) -> Reading:
        """The boot that runs, by the runtime's log or by the unit's journal."""
        name = self.unit if self.source == "journald" else self.name
        return read_boot(self.source, name=name, scope=self.scope, receipts=receipts)

    def has_printed(self, found: process.Process) -> bool:
        """Always: container and invocation bound the text."""
        return True


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
