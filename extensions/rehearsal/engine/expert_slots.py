# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many expert slots a weight pool and a host pool hold.

At two ranks an expert's five columns are split three to two, by turns: a rank's units are of two sizes. A rank fills
its slab in turns, rank 0 beginning with the larger unit; a unit that does not fit ends the slab (an assumption that
gives the operator's published counts). Rank 1 takes some small units first, so that it holds about 48 slots more, as
published pairs of ranks do.
"""

from __future__ import annotations

from dataclasses import dataclass

from .sizes import ALIGN_UNIT, from_mib
from .world import World


@dataclass(frozen=True)
class RankSlots:
    """Where one rank's slots lie, and how many of each size class found no place: [(bytes, count)]."""

    slab: int
    slab_bytes: int
    shadow: int
    pool: int
    pool_bytes: int
    left: list[tuple[int, int]]

    @property
    def fits(self) -> bool:
        """Whether every slot has a place."""
        return not any(count for _size, count in self.left)


def class_sizes(world: World, tp: int) -> tuple[int, int]:
    """Bytes of the larger and the smaller slot class on one rank."""
    big, small = world.slot_pages
    if tp == 1:
        return (big + small) * ALIGN_UNIT, (big + small) * ALIGN_UNIT
    if tp == 2:
        return big * ALIGN_UNIT, small * ALIGN_UNIT
    part = -(-(big + small) // tp)
    return part * ALIGN_UNIT, part * ALIGN_UNIT


def mean_slot(world: World, tp: int) -> float:
    """Mean bytes of a slot."""
    return sum(class_sizes(world, tp)) / 2


def total_slots(world: World) -> int:
    """Every slot of a rank: resident, shadow and stage."""
    return 0 if world.dense else world.expert_units + world.shadow_slots + world.stage_slots


def expert_ceiling(world: World, tp: int) -> int:
    """Bytes that hold every slot of a rank."""
    big, small = class_sizes(world, tp)
    return total_slots(world) // 2 * (big + small)


def lendable(size: int, world: World, tp: int) -> int:
    """Slots that fit what a pool can lend."""
    return 0 if world.dense else max(0, int(size // mean_slot(world, tp)))


def place(world: World, tp: int, rank: int, weight_pool: int, host_pool: int, shadows: bool = True) -> RankSlots:
    """Fill the slab from the weight pool after its statics, and the pinned pool with the rest."""
    big, small = class_sizes(world, tp)
    half = total_slots(world) // 2
    order = _Order(big, small, half, min(half, world.rank1_small_first) if tp == 2 and rank % 2 else 0)
    slab, slab_bytes = order.take(weight_pool - from_mib(world.static_weights_mib))
    pool, pool_bytes = order.take(host_pool)
    shadow = min(world.shadow_slots, slab // 4) if shadows else 0
    return RankSlots(slab, slab_bytes, shadow, pool, pool_bytes, order.left())


class _Order:
    """A rank's units in the order of their placement: some small ones, then by turns, then the rest of a class."""

    def __init__(self, big: int, small: int, half: int, small_first: int) -> None:
        self._runs: list[list[int]] = [[small, 0, small_first]]
        # A run is [even unit, odd unit (0: the same), count]; the order alternates inside a run.
        alternating = half - small_first
        self._runs.append([small, big, 2 * alternating] if small_first else [big, small, 2 * alternating])
        self._runs.append([big, 0, small_first])
        self._turn = 0

    def take(self, room: int) -> tuple[int, int]:
        """Place units into this many bytes until the next does not fit: (count, bytes)."""
        count, used = 0, 0
        while self._runs:
            run = self._runs[0]
            taken, size = self._take_run(run, max(0, room - used))
            count, used = count + taken, used + size
            if run[2]:
                break
            self._runs.pop(0)
            self._turn = 0
        return count, used

    def _take_run(self, run: list[int], room: int) -> tuple[int, int]:
        first, second, left = run[0], run[1] or run[0], run[2]
        pairs = min(left // 2, room // (first + second))
        count, used = 2 * pairs, pairs * (first + second)
        following = (second if self._turn else first), (first if self._turn else second)
        for unit in following:
            if count < left and used + unit <= room:
                count, used = count + 1, used + unit
                self._turn ^= 1
            else:
                break
        run[2] -= count
        return count, used

    def left(self) -> list[tuple[int, int]]:
        """Units without a place, by size."""
        totals: dict[int, int] = {}
        for first, second, count in self._runs:
            other = count // 2 if second else 0
            totals[first] = totals.get(first, 0) + count - other
            if second:
                totals[second] = totals.get(second, 0) + other
        return sorted(((size, count) for size, count in totals.items() if count), reverse=True)
