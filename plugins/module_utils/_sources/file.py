# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boot's text out of a log file, without holding the log in memory: requests fill it for months after a boot."""

from __future__ import annotations

import os
import stat
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.boots import BootCounter, is_listening
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import Line, read_line, split_lines

# A boot prints some hundred lines; one traced step by step stays under this.
LONGEST_BOOT = 16 * 1024 * 1024
_LONGEST_PIECE = 64 * 1024
_CHUNK = 256 * 1024
# Every line that begins a boot has one of these in it (``m --``: the end of a colour before an option's name), so that
# whole chunks of traffic are passed over at the speed of a search.
_MARKS = (
    b"device: ",
    b"E --",
    b"m --",
    b"unknown ",
    b"unrecogni",
    b"unsupported ",
    b"removed ",
    b"RADIANCE_LOG=",
)
_LISTENING_MARK = b"server: listening on"


def read_log(
    path: str, offset: int = 0, *, boot: int = -1, bounded: bool | None = None
) -> tuple[str, dict[str, t.Any]]:
    """The text of one boot, and where it stands: ``{inode, offset, boots_seen, boot}``.

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
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise RadianceError(f"{path} is not a file. Name the log file itself.", code="log_unreadable")
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if offset > status.st_size:
                offset = 0
            starts = _find_starts(file, offset, to_listening=bounded)
            if bounded:
                boot = -1
            index = boot if boot >= 0 else len(starts) + boot
            place: dict[str, t.Any] = {
                "inode": status.st_ino,
                "offset": offset,
                "boots_seen": len(starts),
                "boot": None,
            }
            if not starts:
                return _read_boot(file, offset, None), place
            if not 0 <= index < len(starts):
                return "", place
            end = starts[index + 1] if index + 1 < len(starts) else None
            place["offset"], place["boot"] = starts[index], index
            return _read_boot(file, starts[index], end), place
    except OSError as error:
        raise RadianceError(
            f"The log {path} cannot be read ({error.strerror or error}). Name the file that the engine's stderr "
            "goes to, and run as a user who may read it.",
            code="log_unreadable",
        ) from error


def _find_starts(file: t.BinaryIO, offset: int, to_listening: bool) -> list[int]:
    marks = (*_MARKS, _LISTENING_MARK) if to_listening else _MARKS
    counter = BootCounter()
    starts: list[int] = []
    for beginning, chunk in _chunks(file, offset):
        if not any(mark in chunk for mark in marks):
            continue
        position = beginning
        # A carriage return ends a line as well: a progress bar has the engine's next line behind it.
        for piece in chunk.splitlines(keepends=True):
            if any(mark in piece for mark in marks):
                line = _read(piece)
                if counter.starts(line):
                    starts.append(position)
                if to_listening and is_listening(line):
                    return starts
            position += len(piece)
    return starts


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


def _read_boot(file: t.BinaryIO, start: int, end: int | None) -> str:
    file.seek(start)
    return boot_text(file, LONGEST_BOOT if end is None else min(LONGEST_BOOT, end - start))[0]


def boot_text(file: t.BinaryIO, limit: int) -> tuple[str, bool]:
    """The text from here to a listening line, to the end, or over ``limit`` bytes; of an overlong line the beginning.

    Also whether that was to the end. A pipe will do: nothing behind the listening line is waited for.
    """
    pieces: list[bytes] = []
    whole = False
    while limit > 0:
        piece = file.readline(min(_LONGEST_PIECE, limit))
        limit -= len(piece)
        pieces.append(piece)
        while piece and limit > 0 and not piece.endswith(b"\n"):  # the rest of an overlong line is dropped
            piece = file.readline(min(_LONGEST_PIECE, limit))
            limit -= len(piece)
            if piece.endswith(b"\n"):
                pieces.append(b"\n")
        if not piece:
            whole = True
            break
        if _LISTENING_MARK in pieces[-1] and any(is_listening(_read(part)) for part in pieces[-1].splitlines()):
            break
    return b"".join(pieces).decode("utf-8", "replace"), whole


def _read(raw: bytes) -> Line:
    lines = split_lines(raw.decode("utf-8", "replace"))
    return read_line(lines[-1]) if lines else Line("", None, "")
