# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs whose lines are objects, as docker's driver json-file writes them.

A line is ``{"log":"text\\n","stream":"stderr","time":"2026-11-29T23:05:30.366740149Z"}``, in the order of their times.
A line of the program that is longer than 16 KiB has several; only the last one's text ends with a line feed.
"""

from __future__ import annotations

import json
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.records import NotRecords, seek_line

# 16 KiB of text whose every byte is written as six, and what else an object has.
_LONGEST = 128 * 1024


class JsonText:
    """The program's text of the objects from where a file stands up to its end."""

    def __init__(self, file: t.BinaryIO) -> None:
        self._file = file
        self._rest = b""

    def readline(self, limit: int, /) -> bytes:
        """The next line, or so much of it. Raises NotRecords."""
        while not self._rest:
            raw = self._file.readline(_LONGEST)
            if not raw.endswith(b"\n"):  # the end, or an object that is being written
                return b""
            self._rest = _object(raw)[1]
        # An object has one line, or a piece of one.
        piece, self._rest = self._rest[:limit], self._rest[limit:]
        return piece


def text_from_first(file: t.BinaryIO, wanted: t.Callable[[str], bool]) -> JsonText:
    """The text from the first object on whose time is wanted; all that come after one that is, are too.

    Raises NotRecords where an object that is looked at is none, and where there is none before it: then older ones may
    be in a file that the runtime put aside.
    """

    def is_wanted(raw: bytes) -> bool:
        return not raw.endswith(b"\n") or wanted(_object(raw)[0])  # one that is being written is the last

    seek_line(file, is_wanted, _LONGEST)
    if not file.tell():
        raise NotRecords
    return JsonText(file)


def _object(raw: bytes) -> tuple[str, bytes]:
    """Its time and its text. Raises NotRecords."""
    try:
        told = json.loads(raw)
        return str(told["time"]), str(told["log"]).encode("utf-8", "replace")
    except (ValueError, LookupError, TypeError) as error:
        raise NotRecords from error
