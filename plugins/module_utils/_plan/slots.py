# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expert slots: how many a slab holds, how many the host pool is left with, and whether it has the room.

``slab slots + pinned slots`` stays constant: every expert that the slab does not hold must be in the host pool. The
mean slot is the boot's own: (slab - statics) / slab slots.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Ledger, mib
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import Size, size_from_dict

# A slab takes whole slots of each of its size classes, so a slot or so a class is left over at either end; and the mix
# of classes, hence the mean, drifts a little as the slab grows.
_WHOLE_SLOTS = 4
_MEAN_DRIFT = 0.005


class RankSlots(t.NamedTuple):
    """One rank's slots as printed, and its mean slot in MiB (low, mid, high)."""

    rank: int
    slots: int
    pool_slots: int
    slot_mib: tuple[float, float, float]
    line: str

    @property
    def total(self) -> int:
        """All slots, slab and host pool: a constant of the model and rank."""
        return self.slots + self.pool_slots

    def slab_slots(self, weights: Size, to_mib: float) -> tuple[int, int]:
        """The slots, low and high, of a slab of ``to_mib`` when one of ``weights`` holds ``slots``."""
        if to_mib == weights.mib and weights.plus_minus_mib == 0:
            return self.slots, self.slots
        moves = (to_mib - weights.high_mib, to_mib - weights.low_mib)
        deltas = [move / slot for move in moves for slot in self.slot_mib]
        widen = _WHOLE_SLOTS + _MEAN_DRIFT * max(abs(delta) for delta in deltas)
        low, high = math.floor(min(deltas) - widen), math.ceil(max(deltas) + widen)
        return max(0, self.slots + low), max(0, min(self.total, self.slots + high))


class HostPoolCheck(t.NamedTuple):
    """Whether the host pool takes what the slab gives up; ``line`` is where the numbers were printed."""

    holds: bool
    says: str
    line: str


def rank_slots(ledger: Ledger, weights: Size) -> list[RankSlots]:
    """Every rank whose slab line was printed with its statics; an empty list where none was."""
    ranks = []
    for row in ledger.get("slab") or []:
        if not row.get("slots") or row.get("pool_slots") is None or row.get("static") is None:
            continue
        slots, static = int(row["slots"]), size_from_dict(row["static"])
        used = weights.mib - static.mib
        rounding = weights.plus_minus_mib + static.plus_minus_mib
        if used <= rounding:
            continue
        line = (
            f"mover: {slots} slab slots ({row.get('shadow_slots') or 0} shadow), {row['pool_slots']} pinned pool "
            f"slots, {static.text} static vram"
        )
        mean = ((used - rounding) / slots, used / slots, (used + rounding) / slots)
        ranks.append(RankSlots(int(row["rank"]), slots, int(row["pool_slots"]), mean, line))
    return ranks


def host_pool_check(ledger: Ledger, weights: Size, to_mib: float, host_pool_mib: int | None) -> HostPoolCheck | str:
    """Judge the rank that comes out worst; a sentence where the ledger lacks the rows."""
    ranks = rank_slots(ledger, weights)
    pools = {int(row["rank"]): row for row in ledger.get("host_pool") or [] if row.get("free") is not None}
    judged = [
        _of_rank(rank, pools[rank.rank], ledger, weights, to_mib, host_pool_mib) for rank in ranks if rank.rank in pools
    ]
    if not judged:
        return "the boot does not print its slab slots and its host pool."
    return min(judged)[1]


def _of_rank(
    rank: RankSlots,
    pool: t.Mapping[str, t.Any],
    ledger: Ledger,
    weights: Size,
    to_mib: float,
    host_pool_mib: int | None,
) -> tuple[float, HostPoolCheck]:
    gives_up = rank.slots - rank.slab_slots(weights, to_mib)[0] if to_mib < weights.high_mib else 0
    wanted = max(0, gives_up) * rank.slot_mib[2]
    free, used = size_from_dict(pool["free"]), size_from_dict(pool["used"])
    room, room_text = free.low_mib, f"{free.text} free"
    if host_pool_mib is not None:
        room = host_pool_mib * _share(pool, ledger) - used.high_mib
        room_text = f"{mib(max(0.0, room))} free at host_pool_mib {host_pool_mib:,}"
    # A pool that is not touched needs no room; roundings alone must not refuse it.
    holds = wanted <= room if gives_up > 0 or host_pool_mib is not None else True
    says = (
        f"The slab gives up {gives_up:,} slots of rank {rank.rank} to the host pool, {mib(wanted)}; it has {room_text}."
        if gives_up > 0
        else f"The slab gives up no slots of rank {rank.rank}; the host pool has {room_text}."
    )
    if not holds:
        budget = math.ceil((used.high_mib + wanted) / _share(pool, ledger))
        says += f" Raise host_pool_mib to at least {budget:,}, or keep a larger slab."
    budget_text = (pool.get("budget") or {}).get("text", "?")
    line = f"host_pool {budget_text} budget, {used.text} used, {free.text} free; {rank.line}"
    return room - wanted, HostPoolCheck(holds, says, line)


def _share(pool: t.Mapping[str, t.Any], ledger: Ledger) -> float:
    """One rank's part of ``--host-pool-mib``: what was printed for it over what the command line says, else all."""
    flag = (ledger.get("flags") or {}).get("host-pool-mib", "")
    if flag.isdigit() and int(flag) > 0 and pool.get("budget") is not None:
        share = size_from_dict(pool["budget"]).mib / int(flag)
        tp = int(ledger.get("tp") or 1)
        # The print is rounded; the true share is all of it, or an even part a rank.
        return min((1.0, 1.0 / tp), key=lambda candidate: abs(candidate - share))
    return 1.0
