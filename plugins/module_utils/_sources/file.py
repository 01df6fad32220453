# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boot's text out of a log file, without holding the log in memory: requests fill it for months after a boot."""

from __future__ import annotations

import os
import re
import sys
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.boots import BootCounter, is_listening
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import (
    Line,
    clean,
    read_line,
    split_lines,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import open_regular
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import records

# A boot prints some hundred lines. What is longer is none, and is not read into memory to find that out.
LONGEST_BOOT = 4 * 1024 * 1024
_LINE_COST = 100  # what a line takes beside its text, so that short ones do not take more memory than long ones
_LONGEST_PIECE = 64 * 1024
_CHUNK = 48 * 1024  # what is larger than twice that, malloc(3) takes from the kernel anew each time
# Where a boot may begin, so that nothing else of the traffic is looked at: an error line, and the inventory. What a
# search costs is how often the letter occurs that it begins with. These two are rare, and all the inventory's forms
# have a b there; a chunk without the letter is passed over at the speed of memchr(3).
_ESCAPE = rb"(?:\x1b|\xc2\x9b)[^A-Za-z\r\n]{0,32}[A-Za-z]"
_ERROR = re.compile(rb"E(?:\[\d{1,3}\]|" + _ESCAPE + rb")* (?:" + _ESCAPE + rb")*(?:-|un|removed |RADIANCE_LOG=)")
_INVENTORY = re.compile(rb"b(?:(?<=device: AQL b)|(?<=device: host b)|(?<=device: b))")
_COLOURED_INVENTORY = re.compile(rb"device: ")  # a colour may stand before the b
_LISTENING_MARK = b"server: listening on"
_LISTENING = re.compile(_LISTENING_MARK)
# So many boots before the last are looked at for whether they came to listen.
_LOOKED_BACK = 100


def read_log(
    path: str, offset: int = 0, *, boot: int = -1, bounded: bool | None = None
) -> tuple[str, dict[str, t.Any]]:
    """The text of one boot, and where it stands: ``{inode, offset, boots_seen, boot, failed}``.

    ``failed``: how many boots in a row up to this one, itself included, never came to listen (0 where it did). The log
    may be one of records (``records``): then the text and the boots are those of the program that they are of.

    ``offset``: bytes of the log that are known to be older than the boot (a log that is shorter by now was replaced,
    and is read from its beginning). ``boot``: 0 is the first boot after it, -1 the last.
    ``bounded``: only one boot can stand after the offset, so nothing after its listening line counts (the default
    where an offset is given).

    The text ends with the listening line, or where the next boot begins, or with the file. It is empty when the log
    does not hold that boot. A log without any beginning of a boot gives its text up to a listening line.

    Raises RadianceError ``log_unreadable``.
    """
    bounded = offset > 0 if bounded is None else bounded
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            status = os.fstat(file.fileno())
            if offset > status.st_size:
                offset = 0
            of_records = records.begin_with_record(file, offset)
            try:
                starts = _find_starts(file, offset, bounded, of_records)
            except records.NotRecords:
                of_records = False
                starts = _find_starts(file, offset, bounded, of_records)
            if bounded:
                boot = -1
            index = boot if boot >= 0 else len(starts) + boot
            place: dict[str, t.Any] = {
                "inode": status.st_ino,
                "offset": offset,
                "boots_seen": len(starts),
                "boot": None,
                "failed": 0,
            }
            if not starts:
                return _read_boot(file, offset, None, of_records), place
            if not 0 <= index < len(starts):
                return "", place
            ends = [*starts[1:], None]
            text = _read_boot(file, starts[index], ends[index], of_records)
            place.update(offset=starts[index], boot=index)
            for before in range(index, max(-1, index - _LOOKED_BACK), -1):
                told = text if before == index else _read_boot(file, starts[before], ends[before], of_records)
                if _listens(told):
                    break
                place["failed"] += 1
            return text, place
    except OSError as error:
        raise RadianceError(
            f"The log {path} cannot be read ({error.strerror or error}). Name the file that the engine's stderr "
            "goes to, and run as a user who may read it.",
            code="log_unreadable",
        ) from error


def _find_starts(file: t.BinaryIO, offset: int, to_listening: bool, of_records: bool) -> list[int]:
    counter = BootCounter()
    starts: list[int] = []
    lines = _record_lines(file, offset, to_listening) if of_records else _plain_lines(file, offset, to_listening)
    for position, raw in lines:
        line = _read(raw)
        if counter.starts(line):
            starts.append(position)
        if to_listening and is_listening(line):
            return starts
    return starts


def _plain_lines(file: t.BinaryIO, offset: int, listening: bool) -> t.Iterator[tuple[int, bytes]]:
    """The candidates of a log, with their positions."""
    for beginning, chunk in _chunks(file, offset):
        for position, raw in _candidates(chunk, listening):
            yield beginning + position, raw


def _record_lines(file: t.BinaryIO, offset: int, listening: bool) -> t.Iterator[tuple[int, bytes]]:
    """The same of a log of records, which are looked at alone where no line of the chunk is in parts.

    Raises NotRecords.
    """
    joiner = records.Joiner()
    for beginning, chunk in _chunks(file, offset):
        records.check(chunk)
        if joiner.within or (b"P" in chunk and b" P" in chunk):  # one letter is looked for much faster than two
            positions: t.Iterable[int] = _line_starts(chunk)
        else:
            positions = sorted({chunk.rfind(b"\n", 0, at) + 1 for at, _raw in _candidates(chunk, listening)})
            if positions:
                records.check(chunk, whole=True)
        for position in positions:
            found = joiner.take(beginning + position, chunk[position : chunk.find(b"\n", position) + 1 or None])
            if found is not None:
                yield from ((found[0], part) for part in found[1].split(b"\r"))


def _line_starts(chunk: bytes) -> t.Iterator[int]:
    position = 0
    while position < len(chunk):
        yield position
        position = chunk.find(b"\n", position) + 1 or len(chunk)


def _candidates(chunk: bytes, listening: bool) -> t.Iterator[tuple[int, bytes]]:
    """The lines of a chunk that may begin a boot, or say that it listens, with their positions."""
    marks: list[int] = []
    if b"E" in chunk:
        marks += (found.start() for found in _ERROR.finditer(chunk))
    if b"b" in chunk:
        coloured = b"\x1b" in chunk or b"\x9b" in chunk
        marks += (found.start() for found in (_COLOURED_INVENTORY if coloured else _INVENTORY).finditer(chunk))
    if listening:
        marks += (found.start() for found in _LISTENING.finditer(chunk))
    end = 0
    for mark in sorted(marks):
        if mark < end:  # on the line before
            continue
        # A carriage return ends a line as well: a progress bar has the engine's next line behind it.
        start = chunk.rfind(b"\n", end, mark) + 1 or end
        start = chunk.rfind(b"\r", start, mark) + 1 or start
        end = chunk.find(b"\n", mark) + 1 or len(chunk)
        end = chunk.find(b"\r", mark, end) + 1 or end
        yield start, chunk[start:end]


def _chunks(file: t.BinaryIO, offset: int) -> t.Iterator[tuple[int, bytes]]:
    """The file in chunks of whole lines, with their positions; a line that is longer than two chunks is left out."""
    file.seek(offset)
    position = offset
    rest = b""
    overlong = False
    while True:
        data = file.read(_CHUNK)
        if not data:
            break
        if overlong:
            newline = data.find(b"\n") + 1
            position += newline or len(data)
            if not newline:
                continue
            data, overlong = data[newline:], False
        whole = rest + data
        end = whole.rfind(b"\n") + 1
        if end:
            yield position - len(rest), whole[:end]
        position += len(data)
        rest = whole[end:]
        if len(rest) > _CHUNK:
            rest, overlong = b"", True
    if rest:
        yield position - len(rest), rest


def _read_boot(file: t.BinaryIO, start: int, end: int | None, of_records: bool) -> str:
    file.seek(start)
    if of_records:
        text = boot_text(records.RecordText(file, end))[0]
    else:
        text = boot_text(file, None if end is None else end - start)[0]
    return records.without_records(text)


def _listens(text: str) -> bool:
    lines = text.rstrip("\r\n").rpartition("\n")[2].encode("utf-8")
    return any(is_listening(_read(part)) for part in lines.splitlines())


def boot_text(file: records.BinaryLines, length: int | None = None) -> tuple[str, bool]:
    """The text from here to a listening line, to the end, or over ``length`` bytes, and no more than a boot can be.

    Of an overlong line it has the beginning. Also whether it goes to the end. A pipe will do: nothing behind the
    listening line is waited for.
    """
    pieces: list[bytes] = []
    left, room = sys.maxsize if length is None else length, LONGEST_BOOT
    while left > 0 and room > 0:
        piece = file.readline(min(_LONGEST_PIECE, left))
        if not piece:
            return _decoded(pieces), True
        left -= len(piece)
        room -= len(piece) + _LINE_COST * (1 + piece.count(b"\r"))
        pieces.append(piece)
        rest = piece
        while rest and left > 0 and not rest.endswith(b"\n"):  # what an overlong line goes on with is dropped
            rest = file.readline(min(_LONGEST_PIECE, left))
            left -= len(rest)
            if rest.endswith(b"\n"):
                pieces.append(b"\n")
        if _LISTENING_MARK in piece and any(is_listening(_read(part)) for part in piece.splitlines()):
            break
    return _decoded(pieces), False


def _decoded(pieces: list[bytes]) -> str:
    return b"".join(pieces).decode("utf-8", "replace")


def _read(raw: bytes) -> Line:
    text = raw.decode("utf-8", "replace")
    lines = [] if records.like_a_record(clean(text)) else split_lines(text)
    return read_line(lines[-1]) if lines else Line("", None, "")
