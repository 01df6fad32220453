# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocks of ours in a file of somebody else: each between two marker lines, everything around them byte for byte.

Text in, text out. A file keeps its line ends (CRLF where its first line has it) and what it had at its end; one that is
not UTF-8 is refused. Lines are counted from 0 here and from 1 in messages. A marker without its counterpart is refused:
nobody can tell where the block ended, and a guess would take somebody's lines.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import MASK
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _files


class Style(t.NamedTuple):
    """How a file writes comments, and whether a block in it keeps a blank line from its markers."""

    opens: str
    closes: str
    airy: bool


class Block(t.NamedTuple):
    """A block by its name, with the lines of its two markers."""

    name: str
    begin: int
    end: int


MARKDOWN = Style("<!--", "-->", True)
HASH = Style("#", "", False)


def found(text: str, style: Style = MARKDOWN) -> list[Block]:
    """The blocks of a text in their order.

    Raises RadianceError ``marker_damaged``, naming the line and the block, and ``not_utf8``: the text would come back
    with other bytes.
    """
    if "\ufffd" in text:
        where = text.count("\n", 0, text.index("\ufffd")) + 1
        raise RadianceError(
            f"line {where} is not UTF-8 text. Nothing was changed. Convert the file first.", code="not_utf8"
        )
    marker = re.compile(
        rf"\s*{style.opens}\s*(?P<mark>BEGIN|END)\s+{re.escape(_files.MARKER)};\s*(?P<name>\S.*?)\s*{style.closes}\s*"
    )
    # A line that was a marker before somebody's editor came upon it.
    almost = re.compile(rf"\s*{style.opens}\s*(?:BEGIN|END)\s+kvfleet\.radiance\b")
    out: list[Block] = []
    open_block: tuple[str, int] | None = None
    for number, line in enumerate(text.split("\n")):
        read = marker.fullmatch(line)
        if read is None:
            if almost.match(line):
                raise _damaged(number, f"{line.strip()!r} is no whole marker")
            continue
        name = read["name"]
        if read["mark"] == "BEGIN":
            if open_block is not None:
                raise _damaged(open_block[1], f"the block {open_block[0]!r} begins there and has no END")
            if any(block.name == name for block in out):
                raise _damaged(number, f"the block {name!r} begins there a second time")
            open_block = (name, number)
        elif open_block is None or open_block[0] != name:
            raise _damaged(number, f"the block {name!r} ends there and has no BEGIN before it")
        else:
            out.append(Block(name, open_block[1], number))
            open_block = None
    if open_block is not None:
        raise _damaged(open_block[1], f"the block {open_block[0]!r} begins there and has no END")
    return out


def _damaged(number: int, what: str) -> RadianceError:
    return RadianceError(
        f"line {number + 1}: {what}. Nothing was changed. Put the missing marker line back, or take the rest of the "
        "block out, markers included, and it is written anew.",
        code="marker_damaged",
    )


def body_of(text: str, block: Block) -> list[str]:
    """The lines between the markers of a block, without their line ends."""
    return [line.removesuffix("\r") for line in text.split("\n")[block.begin + 1 : block.end]]


def placed(text: str, name: str, body: t.Sequence[str], style: Style = MARKDOWN, *, before: int | None = None) -> str:
    """``text`` with the block ``name`` holding the lines of ``body``.

    A block that is there stays where it is. A new one goes before the line ``before``, or else in the order of names
    among ours: after the last lesser one, before the first where none is less, at the end where there is none.
    """
    blocks = found(text, style)
    air = [""] if style.airy else []
    # What the engine printed may have it, and it would keep this text from being taken for UTF-8.
    content = [*air, *(line.replace("\ufffd", "?") for line in body), *air]
    if style is MARKDOWN:
        # A mask would stand for a secret that the file has; only a comment may say one.
        content = [line.replace(MASK, "…") for line in content]
    here = next((block for block in blocks if block.name == name), None)
    if here is not None:
        return with_body(text, here, content)
    whole = [marker("BEGIN", name, style), *content, marker("END", name, style)]
    return _inserted(text, _place(blocks, name) if before is None else before, whole)


def with_body(text: str, block: Block, body: t.Sequence[str]) -> str:
    """``text`` with other lines between the markers of a block that is there."""
    if body_of(text, block) == list(body):
        return text
    lines, end = text.split("\n"), _line_end(text)
    fresh = [line + end[:-1] for line in body]
    return "\n".join([*lines[: block.begin + 1], *fresh, *lines[block.end :]])


def after_last(text: str) -> int:
    """The line before which something goes that goes to the end of a file."""
    lines = text.split("\n")
    # What follows the last line end is no line, unless the file ends without one.
    return len(lines) - (0 if lines[-1] else 1)


def _line_end(text: str) -> str:
    return "\r\n" if text.partition("\n")[0].endswith("\r") and "\n" in text else "\n"


def marker(mark: str, name: str, style: Style) -> str:
    """A marker line: BEGIN or END of the block ``name``."""
    return f"{style.opens} {mark} {_files.MARKER}; {name} {style.closes}".rstrip()


def _place(blocks: t.Sequence[Block], name: str) -> int | None:
    """The line before which a new block goes, None for the end of the file."""
    less = [block.end + 1 for block in blocks if block.name < name]
    return max(less) if less else min((block.begin for block in blocks), default=None)


def _inserted(text: str, before: int | None, block: t.Sequence[str]) -> str:
    """``text`` with further lines, a blank one around them where there is none."""
    lines, end = text.split("\n"), _line_end(text)
    at = after_last(text) if before is None else before
    head, tail = lines[:at], lines[at:]
    fresh = list(block)
    if head and head[-1].strip():
        fresh.insert(0, "")
    if any(tail) and tail[0].strip():
        fresh.append("")
    fresh = [line + end[:-1] for line in fresh]
    if head and not tail:
        # The last line had no line end, or the first half of one.
        head[-1] = head[-1].removesuffix(end[:-1]) + end[:-1]
    return "\n".join([*head, *fresh, *(tail or [""])])


def with_row(text: str, name: str, row: str, key: str, head: t.Sequence[str]) -> str:
    """``text`` with ``row`` in the block ``name``, which holds one table or one list for many.

    The row is the line of the block that begins with ``key``, blanks aside: a table may be laid out anew by hand.
    Other lines of the block stay. A new row goes before the first greater one. ``head`` begins a new block.
    """
    here = next((block for block in found(text) if block.name == name), None)
    lines = [] if here is None else body_of(text, here)
    while lines and not lines[0].strip():
        lines = lines[1:]
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    if not lines:
        return placed(text, name, [*head, row])
    for number, line in enumerate(lines):
        if _squeezed(line).startswith(_squeezed(key)):
            if _squeezed(line) == _squeezed(row):
                return text
            return placed(text, name, [*lines[:number], row, *lines[number + 1 :]])
    first = next((number + 1 for number, line in enumerate(lines) if re.fullmatch(r"\s*\|[-:|\s]+", line)), 0)
    rows = [number for number in range(first, len(lines)) if lines[number].lstrip().startswith(row[0])]
    greater = [number for number in rows if _squeezed(lines[number]) > _squeezed(row)]
    at = greater[0] if greater else rows[-1] + 1 if rows else first or len(lines)
    return placed(text, name, [*lines[:at], row, *lines[at:]])


def _squeezed(line: str) -> str:
    return " ".join(line.split())
