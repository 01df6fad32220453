# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens to a log between the engine and its reader. Each kind of damage is a function of a text and a chance."""

from __future__ import annotations

import random
import re
import typing as t

Damage = t.Callable[[str, random.Random], str]

_JUNK = (
    "Loading shards:  50%|##   | 2/4",
    "INFO 01-02 03:04:05 [worker.py:1] Available KV cache memory: 6.87 GiB",
    "amdgpu: [mmhub] page fault (src_id:0 ring:24 vmid:3)",
    "  kernel  7.00 GiB   text like a row",
    "Last login: Thu Oct 13 03:04:05 from 10.0.0.7",
    "\x7fELF\x02\x01\x01\x00\x00\ufffd\ufffd",
    "I sampling defaults for requests that send none: temperature 0.6",
    "D[1] mover.cpp:77  promoted 12",
    "",
)
_DUST = ("x", "\t", "\x1b[33m", "\x1b[0m", "\ufffd", "\x00", "|##  |", " ", "\r", "\u2028", "\x85")


def _lines(text: str) -> list[str]:
    """Lines as the engine broke them; there are always some."""
    return re.findall(r"[^\n]*\n|[^\n]+$", text) or ["\n"]


def drop(text: str, chance: random.Random) -> str:
    """A line, or some in a row, are not there."""
    lines = _lines(text)
    at = chance.randrange(len(lines))
    del lines[at : at + chance.choice((1, 1, 1, 2, 3, 8))]
    return "".join(lines)


def double(text: str, chance: random.Random) -> str:
    """A line, or some in a row, are there twice, the second time anywhere below."""
    lines = _lines(text)
    at = chance.randrange(len(lines))
    again = lines[at : at + chance.choice((1, 1, 1, 2, 5))]
    to = chance.choice((at + len(again), chance.randrange(at, len(lines) + 1)))
    lines[to:to] = again
    return "".join(lines)


def swap(text: str, chance: random.Random) -> str:
    """Two lines that follow each other come in the other order: two writers."""
    lines = _lines(text)
    at = chance.randrange(len(lines) - 1)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    return "".join(lines)


def late(text: str, chance: random.Random) -> str:
    """A whole message comes some lines later, into the middle of what another writer prints."""
    lines = _lines(text)
    begins = [number for number, line in enumerate(lines) if re.match(r"[EWI](\[\d\])? ", line)]
    at = chance.choice(begins)
    end = next((number for number in begins if number > at), len(lines))
    message = lines[at:end]
    del lines[at:end]
    to = min(len(lines), at + chance.randrange(1, 12))
    lines[to:to] = message
    return "".join(lines)


def cut_line(text: str, chance: random.Random) -> str:
    """A line ends too early."""
    lines = _lines(text)
    at = chance.randrange(len(lines))
    lines[at] = lines[at][: chance.randrange(len(lines[at]))] + "\n"
    return "".join(lines)


def behead_line(text: str, chance: random.Random) -> str:
    """A line begins too late."""
    lines = _lines(text)
    at = chance.randrange(len(lines))
    lines[at] = lines[at][chance.randrange(len(lines[at])) :]
    return "".join(lines)


def break_line(text: str, chance: random.Random) -> str:
    """A line is broken in two."""
    at = chance.randrange(len(text))
    return text[:at] + "\n" + text[at:]


def join(text: str, chance: random.Random) -> str:
    """Two lines are one."""
    lines = _lines(text)
    at = chance.randrange(len(lines))
    lines[at] = lines[at].rstrip("\n")
    return "".join(lines)


def tear(text: str, chance: random.Random) -> str:
    """One writer's line is in the middle of another's."""
    lines = _lines(text)
    at = chance.randrange(len(lines) - 1)
    into = chance.randrange(len(lines[at]))
    other = lines.pop(at + 1)
    lines[at] = lines[at][:into] + other + lines[at][into:]
    return "".join(lines)


def junk(text: str, chance: random.Random) -> str:
    """Another program's line."""
    lines = _lines(text)
    at = chance.randrange(len(lines))
    lines.insert(at, chance.choice(_JUNK) + chance.choice(("\n", "\r", "\r\n")))
    return "".join(lines)


def dust(text: str, chance: random.Random) -> str:
    """A character or a sequence in the middle of anything, or in the place of some that are no digits."""
    at = chance.randrange(len(text))
    end = at
    for _gone in range(chance.choice((0, 0, 1, 1, 4))):
        end += not text[end : end + 1].isdigit()
    return text[:at] + chance.choice(_DUST) + text[end:]


def truncate(text: str, chance: random.Random) -> str:
    """The log ends anywhere."""
    return text[: chance.randrange(len(text))]


def behead(text: str, chance: random.Random) -> str:
    """The log begins anywhere."""
    return text[chance.randrange(len(text)) :]


def hole(text: str, chance: random.Random) -> str:
    """A stretch is not there: a rotation between two reads."""
    at = chance.randrange(len(text))
    return text[:at] + text[at + chance.randrange(20, 4000) :]


def silence(text: str, chance: random.Random) -> str:
    """One rank's lines are not there."""
    rank = chance.randrange(4)
    return "".join(line for line in _lines(text) if not re.match(rf"[EWI]\[{rank}\]", line))


def untag(text: str, chance: random.Random) -> str:
    """The ranks' tags are not there."""
    return re.sub(r"(?m)^([EWI])\[\d\] ", r"\1 ", text)


def commas(text: str, chance: random.Random) -> str:
    """One decimal point is a comma, or all are."""
    points = [found.start() for found in re.finditer(r"(?<=\d)\.(?=\d)", text)]
    if chance.random() < 0.3:
        return re.sub(r"(?<=\d)\.(?=\d)", ",", text)
    at = chance.choice(points)
    return text[:at] + "," + text[at + 1 :]


def thousands(text: str, chance: random.Random) -> str:
    """A number has a separator."""
    numbers = [found.start() for found in re.finditer(r"(?<=\d)(?=\d{3}\b)", text)]
    at = chance.choice(numbers)
    return text[:at] + chance.choice((",", ".", " ", "_")) + text[at:]


def again(text: str, chance: random.Random) -> str:
    """An older boot that did not come to its end stands before this one."""
    return text[: chance.randrange(len(text))].rpartition("\n")[0] + "\n" + text


def digit(text: str, chance: random.Random) -> str:
    """A digit is another one."""
    places = [found.start() for found in re.finditer(r"\d", text)]
    at = chance.choice(places)
    return text[:at] + chance.choice([one for one in "0123456789" if one != text[at]]) + text[at + 1 :]


def unit(text: str, chance: random.Random) -> str:
    """A unit is another one."""
    found = chance.choice(list(re.finditer(r"\b[KMGT]iB\b|(?<=\d )B\b", text)))
    return text[: found.start()] + chance.choice(("B", "KiB", "MiB", "GiB", "GB")) + text[found.end() :]


def stray(text: str, chance: random.Random) -> str:
    """A digit more, or one less."""
    at = chance.choice([found.start() for found in re.finditer(r"\d", text)])
    return text[:at] + chance.choice(("", text[at] + chance.choice("0123456789"))) + text[at + 1 :]


def damaged(kind: Damage, text: str, chance: random.Random) -> str:
    """The text with one damage of a kind, or as it is where there is nothing of what that damages."""
    try:
        return kind(text, chance)
    except (IndexError, ValueError):  # from an empty range of places
        return text


# These take away, repeat, or disorder what the engine printed; they never make another figure of one.
SHAPES: dict[str, Damage] = {
    kind.__name__: kind
    for kind in (
        *(drop, double, swap, late, cut_line, behead_line, break_line, join, tear, junk, dust, truncate, behead),
        *(hole, silence, untag, commas, thousands, again),
    )
}
# These make another figure of one.
FIGURES: dict[str, Damage] = {kind.__name__: kind for kind in (digit, unit, stray)}
