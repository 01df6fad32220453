# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs whose lines are records, as podman's k8s-file driver and the runtimes of Kubernetes write them.

A record is ``2026-11-29T19:40:32.741234567+00:00 stderr F text``. F ends a line of the program; P is the beginning of
one that the next record of the same stream goes on with. A log is read as records whole or not at all: what looks like
a record in any other log is text that a client sent. To look at each line would take longer than all else; ``check``
says which are enough.
"""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import clean

# Of one line of the program; the rest is dropped.
LONGEST_LINE = 64 * 1024
_FORM = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d) (stdout|stderr) ([FP])(?::\S{0,64})? "
_RECORD = re.compile(rb"^" + _FORM.encode("ascii"))
_LIKE_A_RECORD = re.compile(r"^\s*" + _FORM.rstrip(" "))
_BREAK = re.compile(r"\r\n|\n|\r")
# One call of the engine's logger is cut at 4,095 bytes and begins with its level. So this much of a plain log holds a
# line that is no record, whatever its clients sent.
_ENOUGH = 8 * 1024
# The century, which every record begins with.
_BEGINNING = b"20"
_OTHER = re.compile(rb"\n(?!20|2?\Z)")


class NotRecords(Exception):
    """A line of the log is not a record, so none is."""


class BinaryLines(t.Protocol):
    """What text is read from: an open file, or the text of its records."""

    def readline(self, limit: int, /) -> bytes:
        """The next line, or so much of it."""


def begin_with_record(file: t.BinaryIO, offset: int) -> bool:
    """Whether the first line from here is a record."""
    file.seek(offset)
    return _RECORD.match(file.readline(256)) is not None


def check(chunk: bytes, *, whole: bool = False) -> None:
    """Raises NotRecords where one of the lines cannot be a record: of the first that are enough to tell, or of all.

    The last line may be cut off. A log needs a check of each chunk, and a whole one of each that something was found
    in: there the log may have become a plain one.
    """
    if chunk[:2] not in (_BEGINNING, _BEGINNING[:1]) or _OTHER.search(chunk, 0, len(chunk) if whole else _ENOUGH):
        raise NotRecords


def seek_first(file: t.BinaryIO, wanted: t.Callable[[str], bool]) -> None:
    """Moves to the first record whose time is wanted, or to the end; all that come after one that is, are too.

    Raises NotRecords where one that is looked at is none.
    """

    def is_wanted(raw: bytes) -> bool:
        if not _RECORD.match(raw):
            raise NotRecords
        return wanted(raw.split(b" ", 1)[0].decode("ascii"))

    seek_line(file, is_wanted, LONGEST_LINE)


def seek_line(file: t.BinaryIO, wanted: t.Callable[[bytes], bool], longest: int) -> None:
    """Moves to the first line that is wanted, or to the end; all that come after one that is, are too.

    Looks at some thirty lines of a log of any size. Raises NotRecords where one before them has ``longest`` bytes.
    """
    low, high = 0, file.seek(0, os.SEEK_END)
    while low < high:
        middle = (low + high) // 2
        _next_line(file, middle, longest)
        raw = file.readline(longest)
        if not raw or wanted(raw):
            high = middle
        else:
            low = middle + 1
    _next_line(file, low, longest)


def _next_line(file: t.BinaryIO, position: int, longest: int) -> None:
    """Moves to the first line that begins here or later."""
    file.seek(max(position - 1, 0))
    if position and len(file.readline(longest)) == longest:
        raise NotRecords


def like_a_record(line: str) -> bool:
    """Whether a line would be taken for a record, without what a terminal does not show."""
    return _LIKE_A_RECORD.match(line) is not None


def without_records(text: str) -> str:
    """The text of a program, with an empty line for each that looks like a record: the engine prints none."""
    if " stderr" not in text and " stdout" not in text:
        return text
    lines = _BREAK.split(clean(text))
    if not any(like_a_record(line) for line in lines):
        return text
    return "\n".join("" if like_a_record(line) else line for line in lines)


def program_text(text: str) -> str:
    """The text of the program in a log that was read by other means: of its records where it is one of records.

    Its first line and its last may be cut. Of any other text what looks like a record is left out, as it is of a file.
    """
    lines = clean(text).split("\n")
    if not lines[-1]:
        lines.pop()
    raw = [f"{line}\n".encode("utf-8", "replace") for line in lines]
    inner = raw[1:-1]
    if not raw or not all(map(_RECORD.match, inner or raw[:1])):
        return without_records(text)
    joiner = Joiner()
    whole: list[bytes] = []
    for line in raw:
        try:
            found = joiner.take(0, line)
        except NotRecords:  # the rest of a line that was cut
            continue
        if found is not None:
            whole.append(found[1])
    return b"\n".join([*whole, joiner.rest()]).decode("utf-8", "replace")


class Joiner:
    """Makes the lines of the program again, from records in the order of the log."""

    def __init__(self) -> None:
        # By stream: where the line began in the log, and what there is of it.
        self._begun: dict[bytes, tuple[int, bytes]] = {}

    @property
    def within(self) -> bool:
        """Whether a line has begun that is not at its end."""
        return bool(self._begun)

    def take(self, position: int, raw: bytes) -> tuple[int, bytes] | None:
        """The line that this record ends, without its line feed, and where it began. Raises NotRecords.

        A record that is being written may be cut off before its text.
        """
        found = _RECORD.match(raw)
        if found is None:
            if raw.endswith(b"\n"):
                raise NotRecords
            return None
        stream, tag = found.groups()
        began, before = self._begun.pop(stream, (position, b""))
        whole = (before + raw[found.end() :].rstrip(b"\n"))[:LONGEST_LINE]
        if tag == b"P":
            self._begun[stream] = began, whole
            return None
        return began, whole

    def rest(self) -> bytes:
        """What has begun and not ended, in the order of the log."""
        return b"\n".join(text for _began, text in sorted(self._begun.values()))


class RecordText:
    """The program's text of the records from where a file stands up to ``end``, or to the end of the file."""

    def __init__(self, file: t.BinaryIO, end: int | None) -> None:
        self._file = file
        self._left = end - file.tell() if end is not None else None
        self._joiner = Joiner()
        self._line = b""
        self._ended = False

    def readline(self, limit: int, /) -> bytes:
        """The next line, or so much of it; one that was never ended has no line feed."""
        while not self._line and not self._ended:
            self._next()
        piece, self._line = self._line[:limit], self._line[limit:]
        return piece

    def _next(self) -> None:
        raw = self._record()
        if not raw:
            self._ended = True
            self._line = self._joiner.rest()
            return
        try:
            found = self._joiner.take(0, raw)
        except NotRecords:  # no line of the program; the engine's are all records
            return
        # The log's own last record may be cut off.
        self._line = found[1] + (b"\n" if raw.endswith(b"\n") else b"") if found is not None else b""

    def _record(self) -> bytes:
        raw = b""
        while not raw.endswith(b"\n") and (self._left is None or self._left > 0):
            piece = self._file.readline(LONGEST_LINE if self._left is None else min(LONGEST_LINE, self._left))
            if not piece:
                break
            if self._left is not None:
                self._left -= len(piece)
            if len(raw) < LONGEST_LINE:
                raw += piece
            elif piece.endswith(b"\n"):
                raw += b"\n"
        return raw
