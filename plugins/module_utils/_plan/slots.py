# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expert slots: how many a slab holds, how many the host pool is left with, and whether it has the room.

``slab slots + pinned slots`` stays constant: every expert that the slab does not hold must be in the host pool. The
mean slot is the boot's own: (slab - statics) / slab slots where the slab is full. Where all experts are in the slab it
may have room to spare; then only what the idle cache lends (its size over its slots) tells how small a slot can be.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Ledger, digits, mib
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import Size, size_from_dict

# A slab takes whole slots of each of its size classes, so a slot or so a class is left over at either end; and the mix
# of classes, hence the mean, drifts a little as the slab grows.
_WHOLE_SLOTS = 4
_MEAN_DRIFT = 0.005
# Published pairs of ranks differ by 48 slots in one slab: an expert is split unevenly, and a rank may take its small
# units first. A boot whose slab holds all of them does not show which rank does.
_RANKS_DIFFER = 48


class RankSlots(t.NamedTuple):
    """One rank's slots as printed, its statics, and its mean slot in MiB (low, mid, high); low is 0 where unknown."""

    rank: int
    slots: int
    pool_slots: int
    static: Size
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
        if self.pool_slots == 0:
            return self._of_all(weights, to_mib)
        moves = (to_mib - weights.high_mib, to_mib - weights.low_mib)
        deltas = [move / slot for move in moves for slot in self.slot_mib]
        widen = _WHOLE_SLOTS + _MEAN_DRIFT * max(abs(delta) for delta in deltas)
        low, high = math.floor(min(deltas) - widen), math.ceil(max(deltas) + widen)
        return min(self.total, max(0, self.slots + low)), max(0, min(self.total, self.slots + high))

    def _of_all(self, weights: Size, to_mib: float) -> tuple[int, int]:
        """Where the slab holds every slot: by the room after the statics, since nothing tells how full it is."""
        if to_mib >= weights.high_mib:
            return self.total, self.total
        small, _mid, large = self.slot_mib
        least = max(0.0, to_mib - self.static.high_mib) / large * (1 - _MEAN_DRIFT) - _WHOLE_SLOTS
        most = (to_mib - self.static.low_mib) / small * (1 + _MEAN_DRIFT) if small else self.total
        return min(self.total, max(0, math.floor(least))), max(
            0, min(self.total, math.ceil(most) + _WHOLE_SLOTS + _RANKS_DIFFER)
        )


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
        if row["pool_slots"]:
            # A rank may take its small slots first, so those in the pool are another sample of the same two classes.
            pooled = _pooled_slot_mib(ledger, int(row["rank"]), int(row["pool_slots"]), mean[1])
            mean = (min(mean[0], *pooled), mean[1], max(mean[2], *pooled))
        else:
            small, large = _lent_slot_mib(ledger)
            high = min(mean[2], large)
            mean = (min(small, high), high, high)
        ranks.append(RankSlots(int(row["rank"]), slots, int(row["pool_slots"]), static, mean, line))
    return ranks


def is_dense(ledger: Ledger) -> bool:
    """Whether the boot says of every rank that it has no expert slot at all, so that its slab is statics alone."""
    rows = ledger.get("slab") or []
    return bool(rows) and all(row.get("slots") == 0 and row.get("pool_slots") == 0 for row in rows)


def statics_mib(ledger: Ledger) -> float:
    """What a slab holds at least, whatever it gives up: the largest rank's statics; 0.0 where none was printed."""
    return max(
        (size_from_dict(row["static"]).high_mib for row in ledger.get("slab") or [] if row.get("static")), default=0.0
    )


def _pooled_slot_mib(ledger: Ledger, rank: int, slots: int, mean_mib: float) -> tuple[float, float]:
    """The mean of a rank's slots in the host pool, MiB at least and at most; the slab's where it is not telling.

    A pool that holds more than slots, or that was printed before it was filled, gives no mean of theirs.
    """
    for row in ledger.get("host_pool") or []:
        if row.get("rank") == rank and row.get("used"):
            used = size_from_dict(row["used"])
            if 0.8 * mean_mib <= used.mib / slots <= 1.25 * mean_mib:
                return used.low_mib / slots, used.high_mib / slots
    return mean_mib, mean_mib


def _lent_slot_mib(ledger: Ledger) -> tuple[float, float]:
    """A slot, MiB at least and at most, by what the idle cache lends: so many bytes hold so many whole slots."""
    small, large = [], []
    for row in ledger.get("lent") or []:
        if row.get("from") == "kv_cache" and row.get("slots") and row.get("size"):
            size = size_from_dict(row["size"])
            small.append(size.low_mib / (int(row["slots"]) + 1))
            large.append(size.high_mib / int(row["slots"]))
    return min(small, default=0.0), max(large, default=float("inf"))


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


def smallest_slab_mib(ledger: Ledger, weights: Size, host_pool_mib: int | None) -> int | None:
    """The smallest slab, MiB, whose rest the host pool takes; what holds the statics where that cannot be judged.

    It is larger than the slab that runs where ``host_pool_mib`` makes the host pool smaller than what it holds, and
    None where by this boot's figures even one that holds every expert is not large enough.
    """

    def enough(slab: int) -> bool:
        check = host_pool_check(ledger, weights, slab, host_pool_mib)
        return isinstance(check, str) or check.holds

    low, high = math.ceil(statics_mib(ledger)), math.ceil(weights.high_mib)
    if low >= high:
        return high
    if not enough(high):
        low, high = high, useful_slab_mib(ledger, weights) or high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low if enough(low) else None


def useful_slab_mib(ledger: Ledger, weights: Size) -> int | None:
    """Where every expert would be resident, so that a larger slab holds nothing more; None where nothing tells."""
    sizes = [
        weights.high_mib + (rank.pool_slots + 2 * _WHOLE_SLOTS) * rank.slot_mib[2]
        for rank in rank_slots(ledger, weights)
    ]
    return math.ceil(max(sizes)) if sizes else None


def _of_rank(
    rank: RankSlots,
    pool: t.Mapping[str, t.Any],
    ledger: Ledger,
    weights: Size,
    to_mib: float,
    host_pool_mib: int | None,
) -> tuple[float, HostPoolCheck]:
    gives_up = rank.slots - rank.slab_slots(weights, to_mib)[0]
    if to_mib >= weights.high_mib:
        gives_up = min(0, gives_up)
    # What the slab takes back leaves the host pool; how much of it, the smallest slot tells.
    wanted = gives_up * rank.slot_mib[2 if gives_up > 0 else 0]
    free, used = size_from_dict(pool["free"]), size_from_dict(pool["used"])
    room, room_text = free.low_mib, f"{free.text} free"
    if host_pool_mib is not None:
        size = host_pool_mib * _share(pool, ledger)
        room = size - used.high_mib
        room_text = f"{used.text} in use now, and {mib(size)} in all at host_pool_mib {host_pool_mib:,}"
    # A pool that is not touched needs no room; roundings alone must not refuse it.
    holds = wanted <= room if gives_up > 0 or host_pool_mib is not None else True
    does = f"gives up {gives_up:,} slots of rank {rank.rank} to the host pool, {mib(wanted)}"
    if gives_up < 0:
        does = f"takes {-gives_up:,} slots of rank {rank.rank} from the host pool, {mib(-wanted)}"
    elif not gives_up:
        does = f"gives up no slots of rank {rank.rank} to the host pool"
    says = f"The slab {does}; it has {room_text}."
    if not holds:
        budget = max(0, math.ceil((used.high_mib + wanted) / _share(pool, ledger)))
        says += f" Raise host_pool_mib to at least {budget:,}, or keep a larger slab."
    budget_text = (pool.get("budget") or {}).get("text", "?")
    line = f"host_pool {budget_text} budget, {used.text} used, {free.text} free; {rank.line}"
    return room - wanted, HostPoolCheck(holds, says, line)


def _share(pool: t.Mapping[str, t.Any], ledger: Ledger) -> float:
    """One rank's part of ``--host-pool-mib``: what was printed for it over what the command line says, else all."""
    stated = digits((ledger.get("flags") or {}).get("host-pool-mib"))
    if stated and pool.get("budget") is not None:
        share = size_from_dict(pool["budget"]).mib / stated
        tp = int(ledger.get("tp") or 1)
        # The print is rounded; the true share is all of it, or an even part a rank.
        return min((1.0, 1.0 / tp), key=lambda candidate: abs(candidate - share))
    return 1.0
