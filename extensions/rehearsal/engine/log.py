# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's log: stderr, a level letter, a rank tag where there are ranks, no time stamps."""

from __future__ import annotations

import os
import sys
import threading

LEVELS = ("error", "warn", "info", "debug", "trace")
_LETTERS = {"E": 0, "W": 1, "I": 2, "D": 3, "T": 4}
_COLOURS = {"E": "\x1b[31m", "W": "\x1b[33m", "D": "\x1b[36m", "T": "\x1b[90m"}
MESSAGE_BYTES = 4095


class Log:
    """One writer for all threads; a message of many lines is one write, so that nothing comes between its lines."""

    def __init__(self, wanted: str | None) -> None:
        """Read the level from the text of RADIANCE_LOG; a misspelt one is an E line and info."""
        self._lock = threading.Lock()
        self._colour = sys.stderr.isatty()
        self.ranks = 1
        self.level = 2
        if wanted:
            if wanted in LEVELS:
                self.level = LEVELS.index(wanted)
            else:
                self.error(f"RADIANCE_LOG='{wanted}' is not error|warn|info|debug|trace; using info")

    def write(self, letter: str, text: str, rank: int | None = None) -> None:
        """One message; ``rank`` tags it where more than one rank runs."""
        if _LETTERS[letter] > self.level:
            return
        tag = f"[{rank}]" if rank is not None and self.ranks > 1 else ""
        colour = _COLOURS.get(letter, "") if self._colour else ""
        cut = text.encode("utf-8", "replace")[:MESSAGE_BYTES]
        reset = "\x1b[0m" if colour else ""
        self._put(f"{colour}{letter}{tag}{reset} ".encode() + cut + b"\n")

    def error(self, text: str, rank: int | None = None) -> None:
        """An E line."""
        self.write("E", text, rank)

    def warn(self, text: str, rank: int | None = None) -> None:
        """A W line."""
        self.write("W", text, rank)

    def info(self, text: str, rank: int | None = None) -> None:
        """An I line."""
        self.write("I", text, rank)

    def debug(self, place: str, text: str, rank: int | None = None) -> None:
        """A D line, which names its place in the source."""
        self.write("D", f"{place}  {text}", rank)

    def fatal(self, text: str) -> int:
        """The last line of a process that dies: its exit status."""
        self._put(f"radiance: fatal: {text}\n".encode())
        return 70

    def bare(self, text: str) -> None:
        """A debug report or a plug-in's own line: no prefix, whatever the level."""
        self._put(text.encode("utf-8", "replace") + b"\n")

    def _put(self, data: bytes) -> None:
        with self._lock:
            while data:
                data = data[os.write(2, data) :]
