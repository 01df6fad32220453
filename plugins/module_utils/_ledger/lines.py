# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of a log to lines, and lines to messages.

The engine writes ``I text``, ``W[1] text`` and so on; a report of several lines carries the prefix on its first
line only. What runtimes and terminals add (colours, carriage returns, timestamps, names, split records) is taken off
first.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import Size, parse_size

# One call of the engine's logger is cut at 4,095 bytes, so a longer line is not its own.
LONGEST_LINE = 8192

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours
    r"|\x1b\][^\x07\x1b\r\n]*(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|\x1b[@-Z\\^_]"
)
# Only these break a line: Python's splitlines() also breaks at characters that a prompt can carry.
_BREAK = re.compile(r"\r\n|\n|\r")
# A reservation that was never written (a file that was truncated under its writer), and a mark of the byte order.
_NOTHING = re.compile("[\x00\ufeff]")
_WHO = r"\S{1,64} \S{1,64}\[\d{1,10}\]: "  # host, unit and process, as journalctl names them
_DATE = r"\d{4}-\d\d-\d\d"
_RUNTIME_PREFIX = re.compile(
    rf"^(?:{_DATE}T[0-9:.,]{{8,18}}(?:Z|[+-]\d\d:?\d\d) (?:{_WHO})?"  # podman and docker -t, journalctl -o short-iso
    rf"|[A-Z][a-z]{{2}} (?:[ 0-3][0-9]|{_DATE}) \d\d:\d\d:\d\d(?:\.\d{{6}})?(?: [A-Z]{{1,5}})? {_WHO}"  # journalctl
    rf"|\[ {{0,8}}\d{{1,10}}\.\d{{6}}\] {_WHO}|\d{{1,12}}\.\d{{6}} {_WHO}"  # journalctl -o short-monotonic, short-unix
    r"|[0-9a-f]{12} "  # podman pod logs
    r"|[A-Za-z0-9_.-]{1,64} +\| )"  # compose
)
_PREFIX = re.compile(r"^([EWIDT])(?:\[(\d{1,3})\])? (.*)$")


class Line(t.NamedTuple):
    """One line: ``level`` is E, W, I, D, T, or empty for a bare line; ``rank`` is the tag; ``text`` the rest."""

    level: str
    rank: int | None
    text: str


class Message(t.NamedTuple):
    """One call of the engine's logger: its first line, and the bare lines that belong to it."""

    level: str
    rank: int | None
    text: str
    rows: list[str]


def clean(text: str) -> str:
    """A text without what a terminal does not show."""
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    if "\x00" in text or "\ufeff" in text:
        text = _NOTHING.sub("", text)
    return text


def split_lines(text: str) -> list[str]:
    """Lines of a text without escape sequences; a carriage return breaks a line as well (progress bars)."""
    lines = _BREAK.split(clean(text))
    if lines and lines[-1] == "":
        lines.pop()
    return lines


def read_line(raw: str) -> Line:
    """A line without escapes to its level, rank and text."""
    raw = raw[:LONGEST_LINE].rstrip()
    found = _PREFIX.match(raw)
    for _prefix in range(2):  # a compose name, and a timestamp behind it
        runtime = None if found else _RUNTIME_PREFIX.match(raw)
        if runtime:
            raw = raw[runtime.end() :]
            found = _PREFIX.match(raw)
    if not found:
        return Line("", None, raw)
    level, rank, text = found.groups()
    return Line(level, None if rank is None else int(rank), text)


# The first lines of reports that go on over several lines.
_OPENS = re.compile(
    r"^(?:VRAM budget, per card:|VRAM does not cover |VRAM budgets do not fit:|VRAM pool budgets are empty"
    r"|vram_kv does not fit its fixed costs:|pool allocation refused:|pools:|kv: KV layer bundles |placement plan )"
)


def messages(lines: t.Sequence[Line]) -> list[Message]:
    """Group bare lines under the report that they belong to.

    A bare line belongs to the last report that was opened: one-line messages of other ranks may fall in between.
    Bare lines before any report come first, as a message without level and text: a log whose head was cut starts so.
    """
    orphans = Message("", None, "", [])
    result = [orphans]
    report = orphans
    for line in lines:
        opens = bool(_OPENS.match(line.text))
        if line.level or opens:
            message = Message(line.level, line.rank, line.text, [])
            result.append(message)
            if opens:
                report = message
        elif line.text.startswith("radiance: "):
            result.append(Message("", None, line.text, []))
        elif line.text:
            report.rows.append(line.text)
    return result


def read_size(text: str) -> Size | None:
    """A size as the engine prints it, or None for any other text. Never raises."""
    if len(text) > 24:
        return None
    try:
        return parse_size(text)
    except RadianceError:
        return None
