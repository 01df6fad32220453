# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole bytes behind the sizes that a KV plan prints with two decimals.

A page or a state of one MiB or more is printed to 10 KiB, which over a long context is many MiB of pool. Two things of
the same boot narrow it: a page is ``block x heads x head size x bytes x 2 x layers``, a multiple of what is known of
that; and so many blocks fit the pool that was given, one more did not. Where several values remain, the largest speaks,
so that a pool is rather too large than too small.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.architecture import MIB
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import Size, size_from_dict

# Heads times head size is a multiple of this in every published model.
_HEADS = 64
_GRANULE = 2 * MIB
_PAGE = 4096

Group = t.Mapping[str, t.Any]


class Range(t.NamedTuple):
    """Whole bytes, the ends included."""

    low: int
    high: int

    def cut(self, low: float, high: float) -> Range:
        """What both ranges hold; this one where they hold nothing in common."""
        cut = Range(max(self.low, math.ceil(low)), min(self.high, math.floor(high)))
        return cut if cut.low <= cut.high else self

    def largest_multiple(self, *units: int) -> int:
        """The largest multiple of the first unit that has one in the range; its upper end where none has."""
        for unit in units:
            if unit > 0 and self.high // unit * unit >= self.low:
                return self.high // unit * unit
        return self.high


def printed_bytes(size: Size) -> Range:
    """All whole bytes that print as this text."""
    return Range(math.ceil(size.low_mib * MIB - 1e-3), math.floor(size.high_mib * MIB + 1e-3))


def pages(paged: t.Sequence[Group], fixed: Range, pool: Size) -> list[int]:
    """Bytes of a page of each paged group; ``fixed`` is what the pool spends before it holds a block."""
    ranges = [printed_bytes(size_from_dict(group["page"])) for group in paged]
    blocks = {(group.get("blocks"), group["block_tokens"]) for group in paged}
    count = int(paged[0].get("blocks") or 0) if len(blocks) == 1 else 0
    if count > 1:
        low, high = printed_bytes(pool)
        least, most = (low - fixed.high) / (count + 1), (high - fixed.low) / count
        ranges = [
            one.cut(
                least - sum(other.high for n, other in enumerate(ranges) if n != here),
                most - sum(other.low for n, other in enumerate(ranges) if n != here),
            )
            for here, one in enumerate(ranges)
        ]
    return [
        one.largest_multiple(*(2 * int(group["block_tokens"]) * int(group["layers"]) * heads for heads in (_HEADS, 1)))
        for one, group in zip(ranges, paged)
    ]


def state(group: Group) -> int:
    """Bytes of one state of a stateful group."""
    return printed_bytes(size_from_dict(group["state"])).largest_multiple(2 * int(group["layers"]) * _HEADS)


def stride(each: Size) -> int:
    """Bytes from one checkpoint to the next: whole granules, or whole pages where a checkpoint is less than one."""
    return printed_bytes(each).largest_multiple(*((_GRANULE,) if each.high_mib * MIB >= _GRANULE else ()), _PAGE)


def fixed_costs(ledger: Ledger, states: t.Sequence[Group], paged: int, in_pool: bool | None) -> Range:
    """What a pool spends on states, checkpoints and alignment, at least and at most."""
    low = high = 0
    for group in states:
        one = printed_bytes(size_from_dict(group["state"]))
        low, high = low + one.low * int(group["slots"]), high + one.high * int(group["slots"]) + _PAGE
    slots, each = _checkpoints(ledger)
    if in_pool is not False and slots:
        # Aligning the first may cost as much as one more.
        low, high = low + (slots * each.low if in_pool else 0), high + (slots + 1) * each.high
    return Range(low, high + paged * _PAGE)


def checkpoints_in_pool(ledger: Ledger, groups: t.Sequence[Group], pool: Size) -> bool | None:
    """Whether the pool pays for the printed checkpoints, by what its states and blocks leave of it; None if unclear.

    A release that keeps them in pinned host memory prints their slots and sizes all the same.
    """
    slots, each = _checkpoints(ledger)
    paged = [group for group in groups if group.get("page") is not None]
    if not slots or not paged or any(not group.get("blocks") for group in paged):
        return None
    states = fixed_costs(ledger, [group for group in groups if group.get("page") is None], len(paged), False)
    pages = [printed_bytes(size_from_dict(group["page"])) for group in paged]
    blocks = int(paged[0]["blocks"])
    given = printed_bytes(pool)
    most = given.high - states.low - sum(page.low for page in pages) * blocks
    least = given.low - states.high - sum(page.high for page in pages) * (blocks + 1)
    if 0 <= most < slots * each.low:
        return False
    return True if least > 0 else None


def _checkpoints(ledger: Ledger) -> tuple[int, Range]:
    printed = (ledger.get("kv") or {}).get("checkpoints") or {}
    if not printed.get("slots") or not printed.get("each"):
        return 0, Range(0, 0)
    return int(printed["slots"]), printed_bytes(size_from_dict(printed["each"]))
