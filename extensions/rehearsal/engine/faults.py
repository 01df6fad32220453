# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that a file beside the model arms, and which boot they hit.

``NAME.faults.json`` is a list of faults; writing it arms it. The first ready boot is spared (an engine that serves
while the list is written is that boot), and each boot after it takes the next name of the list, so that a roll-back
after the last one succeeds. ``NAME.state.json`` is the engine's own memory of that.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from . import fault_names
from .world import WorldError, beside


@dataclass
class State:
    """What the stand-in remembers between boots; times are nanoseconds of the system clock."""

    armed_ns: int = 0
    ready_boots: int = 0
    consumed: list[str] = field(default_factory=list)
    serving_since_ns: int = 0
    ended_ns: int = 0


class Faults:
    """The faults of one model."""

    def __init__(self, model: str) -> None:
        self._list = beside(model, "faults")
        self._file = beside(model, "state")
        self.state = _read_state(self._file)

    def take(self) -> str | None:
        """The fault that hits the boot that begins now, noted as consumed; None for a healthy boot."""
        names = self._armed()
        if not names or self.state.ready_boots < 1 or len(self.state.consumed) >= len(names):
            return None
        fault = names[len(self.state.consumed)]
        self.state.consumed.append(fault)
        self._write()
        return fault

    def ready(self) -> None:
        """This boot serves from now on."""
        self.state.ready_boots += 1
        self.state.serving_since_ns = time.time_ns()
        self.state.ended_ns = 0
        self._write()

    def ended(self) -> None:
        """This boot serves no longer."""
        self.state.ended_ns = time.time_ns()
        self._write()

    def _armed(self) -> list[str]:
        try:
            names: Any = json.loads(self._list.read_text(encoding="utf-8"))
            armed_ns = self._list.stat().st_mtime_ns
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise WorldError(f"{self._list}: {error}") from error
        if not isinstance(names, list) or not all(isinstance(item, str) for item in names):
            raise WorldError(f"{self._list}: faults are a list of names, not {names!r}")
        try:
            armed = [boot for item in names for boot in fault_names.boots(item)]
        except ValueError as error:
            known = ", ".join(fault_names.names())
            raise WorldError(f"{self._list}: {names!r} has what is no fault ({error}); known are {known}") from error
        if armed_ns != self.state.armed_ns:
            state = self.state
            served = 0 < state.serving_since_ns <= armed_ns and (state.ended_ns == 0 or state.ended_ns >= armed_ns)
            self.state = State(armed_ns, int(served), [], state.serving_since_ns, state.ended_ns)
            self._write()
        return armed

    def _write(self) -> None:
        # A model directory that cannot be written only loses the memory of faults.
        with contextlib.suppress(OSError):
            part = self._file.with_name(f"{self._file.name}.{os.getpid()}")
            part.write_text(json.dumps(asdict(self.state)) + "\n", encoding="utf-8")
            os.replace(part, self._file)


def _read_state(path: pathlib.Path) -> State:
    try:
        return State(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return State()
