# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arithmetic over times and rates. Pure.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import statistics
import typing as t

# Two accounts of one time may differ by this part, or by this constant: what parsing,
# tokenizing, the network and a busy host add. At a prompt that takes five seconds or more the part decides.
AGREE_PART = 0.10
AGREE_SECONDS = 0.5
# What stands around a span is at most so many times as long: else a span of no length at all would be borne out.
AGREE_TIMES = 9


def median(values: t.Iterable[float | None]) -> float | None:
    """The median of the values that are there; None where none is."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


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


def agree(wall: float, server: float) -> bool:
    """Whether a time on the wall clock bears out the server's own, both in seconds for the same span.

    The wall clock sees the server's span and what stands around it, so it may be longer by a part or by a small
    constant. It can hardly be shorter: then the server counts something else.
    """
    if wall >= server:
        return wall - server <= max(AGREE_PART * wall, min(AGREE_SECONDS, AGREE_TIMES * server))
    return server - wall <= AGREE_PART * wall
