# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where boots begin and end in a log, and which of them was asked for.

A boot begins at the device inventory, or at an error line of the command line before it. It ends, for a ledger, at its
listening line: what comes after is traffic. Nothing else separates the boots of one log.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import Line

_INVENTORY = re.compile(
    r"^device: (?:(?:AQL|host) backend, \d{1,4} device\(s\)|built with HIP but no device is visible)"
)
_LISTENING = re.compile(r"^server: listening on https?://\S+:\d+")
# A misspelt log level: the boot goes on.
_PREAMBLE = re.compile(r"^RADIANCE_LOG='.*' is not ")
# The command line's own errors: the process ends.
COMMAND_LINE_ERROR = re.compile(
    r"^(?:(?:unknown|unrecogni[sz]ed|unsupported|removed) (?:option|flag|argument)\b.*"
    r"|-{1,2}[A-Za-z][A-Za-z0-9-]* "
    r"(?:needs an argument|is required|must be >= |must be in \[|takes a whole number, not "
    r"|takes exact or wht6|takes bf16 or fp8|is the WEIGHTS share|is not implemented|-?\d+ is above the ))"
)


def begins(line: Line) -> str:
    """How a line bears on the start of a boot: ``inventory``, ``preamble``, ``refusal``, or empty.

    ``inventory`` begins a boot, unless a preamble has just begun it; ``preamble`` is an error line that a boot prints
    first and survives; ``refusal`` is an error line of a boot that ends with its command line.
    """
    if line.level == "I" and _INVENTORY.match(line.text):
        return "inventory"
    if line.level == "E":
        if _PREAMBLE.match(line.text):
            return "preamble"
        if COMMAND_LINE_ERROR.match(line.text):
            return "refusal"
    return ""


def is_listening(line: Line) -> bool:
    """Whether this line says that the boot is ready."""
    return line.level == "I" and bool(_LISTENING.match(line.text))


class BootCounter:
    """Follows the lines of a log and says which of them begin a boot."""

    def __init__(self) -> None:
        self.seen = 0
        self._open_preamble = False

    def starts(self, line: Line) -> bool:
        """Whether a boot begins at this line. Lines come in the order of the log."""
        kind = begins(line)
        if not kind:
            return False
        joins = self._open_preamble and kind != "preamble"
        self._open_preamble = kind == "preamble"
        if joins:
            return False
        self.seen += 1
        return True


class Boots(t.NamedTuple):
    """``lines`` of the boot asked for up to its listening line, the boots ``seen``, and its ``number`` from 0.

    ``lines`` is None when there is no such boot. ``headless`` says that the lines before the first boot were taken,
    because the log holds no beginning of a boot at all.
    """

    lines: list[Line] | None
    seen: int
    number: int | None
    headless: bool


def select(lines: t.Sequence[Line], boot: int, bounded: bool) -> Boots:
    """The boot asked for: 0 is the first of the log, -1 the last.

    ``bounded`` says that the runtime knows that this is one boot. Then everything after the first listening line is
    dropped before anything is judged, and an earlier attempt that never came to listen is not the boot asked for.
    """
    if bounded:
        lines = _to_listening(lines)
        boot = -1
    counter = BootCounter()
    starts = [number for number, line in enumerate(lines) if counter.starts(line)]
    if not starts:
        whole = _to_listening(lines)
        return Boots(whole if boot in (0, -1) else None, 0, None, True)
    index = boot if boot >= 0 else len(starts) + boot
    if not 0 <= index < len(starts):
        return Boots(None, len(starts), None, False)
    end = starts[index + 1] if index + 1 < len(starts) else len(lines)
    return Boots(_to_listening(lines[starts[index] : end]), len(starts), index, False)


def _to_listening(lines: t.Sequence[Line]) -> list[Line]:
    for number, line in enumerate(lines):
        if is_listening(line):
            return list(lines[: number + 1])
    return list(lines)
