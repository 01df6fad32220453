# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arithmetic over times and rates. Pure.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import statistics
import typing as t

# Two accounts of one time may differ by this part, or by a constant: what parsing, tokenizing, the network and a busy
# host add. At a prompt that takes ten seconds or more the part decides.
AGREE_PART = 0.05
AGREE_SECONDS = 0.5
# Between the first and the last token nothing is parsed. Only where all of it is over in a second is half a second let
# pass, which then shows no more than that the order is right.
_AGREE_DECODE_SECONDS = 0.2
_SHORT_SECONDS = 1.0
# Of a longer time the wall clock sees enough to be held to more: what parsing and tokenizing take, and a tenth of a
# second for all else.
_LONG_SECONDS = 1.0
_LONG_DECODE_SECONDS = 2.0
_AGREE_LONG_SECONDS = 0.1
_AGREE_SECONDS_A_TOKEN = 4e-6
# What stands around a span is shorter than it: else the clock would bear out a time that is half of the true one. The
# clock may see the first token late, and so too little of what comes after it.
AGREE_TIMES = 0.9
_AGREE_DECODE_TIMES = 0.5
# A step may yield a few tokens or one, and a busy host may be late by a step; a longer gap is neither.
_UNUSUAL = 3


def median(values: t.Iterable[float | None]) -> float | None:
    """The median of the values that are there; None where none is."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def spread(values: t.Iterable[float | None]) -> float | None:
    """How far the values lie apart, as a part of their median; None for fewer than two."""
    known = [value for value in values if value is not None]
    middle = median(known)
    return round((max(known) - min(known)) / middle, 4) if len(known) > 1 and middle else None


def apart(values: t.Iterable[float | None]) -> float | None:
    """How far the two values lie apart whose mean the median is, as a part of it; None where it is one of them."""
    known = sorted(value for value in values if value is not None)
    middle = median(known)
    if not known or len(known) % 2 or not middle:
        return None
    return (known[len(known) // 2] - known[len(known) // 2 - 1]) / middle


def most_at_once(intervals: t.Iterable[tuple[float, float]]) -> tuple[int, tuple[float, float] | None]:
    """The largest number of intervals that have a moment in common, and the first stretch in which they do.

    An interval that ends as another begins does not overlap it; one without length overlaps nothing.
    """
    edges = sorted(edge for start, end in intervals if end > start for edge in ((start, 1), (end, -1)))
    best, now = 0, 0
    stretch: tuple[float, float] | None = None
    for index, (at, step) in enumerate(edges):
        now += step
        if step > 0 and now > best:
            best, stretch = now, (at, edges[index + 1][0])
    return best, stretch


def stalled(moments: t.Sequence[float]) -> float:
    """The seconds that arrivals were held up: what each gap between them is longer than three times the usual one."""
    gaps = [later - earlier for earlier, later in zip(moments, moments[1:])]
    usual = median(gaps) or 0.0
    return sum(max(0.0, gap - _UNUSUAL * usual) for gap in gaps)


def agree(wall: float, server: float, seconds: float = AGREE_SECONDS, times: float = AGREE_TIMES) -> bool:
    """Whether a time on the wall clock bears out the server's own, both in seconds for the same span.

    The wall clock sees the server's span and what stands around it, so it may be longer by a part or by ``seconds``. It
    can hardly be shorter: then the server counts something else.
    """
    if wall >= server:
        return wall - server <= max(AGREE_PART * wall, min(seconds, times * server))
    return server - wall <= AGREE_PART * wall


def agree_on_prefill(wall: float, server: float, tokens: int) -> bool:
    """The same for the span until the first token of an answer to ``tokens`` of prompt."""
    long = min(AGREE_SECONDS, _AGREE_LONG_SECONDS + _AGREE_SECONDS_A_TOKEN * tokens)
    return agree(wall, server, AGREE_SECONDS if wall < _LONG_SECONDS else long)


def agree_on_decode(wall: float, server: float) -> bool:
    """The same for the span from the first token to the last."""
    seconds = AGREE_SECONDS if wall < _SHORT_SECONDS else _AGREE_DECODE_SECONDS
    if wall >= _LONG_DECODE_SECONDS:
        seconds = _AGREE_LONG_SECONDS
    return agree(wall, server, seconds, _AGREE_DECODE_TIMES)
