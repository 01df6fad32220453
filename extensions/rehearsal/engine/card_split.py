# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a card is split: the arithmetic of the engine's vram_budget.cpp, in bytes."""

from __future__ import annotations

from dataclasses import dataclass

from .sizes import ALIGN_UNIT, MIB, align


@dataclass(frozen=True)
class Card:
    """What is known of the card before it is split; ``stated_weights`` and ``stated_kv`` are 0 where derived.

    ``ratio`` is None from 1.1 on: there the experts get what the host pool (``on_host`` bytes) cannot hold, the cache
    what is left.
    """

    total: int
    held: int
    headroom: int
    arena: int
    staging: int
    statics: int
    stated_weights: int
    stated_kv: int
    ratio: float | None
    kv_ceiling: int
    expert_ceiling: int
    largest_layer: int
    prefill_staging: bool
    on_host: int = 0


@dataclass(frozen=True)
class Split:
    """One card's budget; ``claimable`` under 0 is the refusal and leaves the rest 0."""

    card: Card
    claimable: int
    elastic: int = 0
    experts: int = 0
    kv: int = 0
    unusable: int = 0
    staging_buffers: int = 0
    weights_pool: int = 0
    kv_pool: int = 0
    unclaimed: int = 0

    @property
    def both_stated(self) -> bool:
        """Whether neither pool was derived."""
        return self.card.stated_weights > 0 and self.card.stated_kv > 0


def split(card: Card) -> Split:
    """Divide a card: stated pools come first, then the statics, then experts and cache by the ratio."""
    fixed = card.held + card.headroom + card.arena + card.staging + card.stated_weights + card.stated_kv
    claimable = card.total - fixed
    if claimable < 0:
        return Split(card, claimable)
    elastic = claimable - (0 if card.stated_weights else card.statics)
    room = max(0, elastic)
    experts, kv, unusable = 0, card.stated_kv, 0
    if not card.stated_weights and not card.stated_kv:
        kv = int(room * (1 - card.ratio)) if card.ratio is not None else _left_for_kv(room, card)
        experts, kv, unusable = _capped(room, kv, card)
    elif not card.stated_weights:
        experts = min(room, card.expert_ceiling)
        unusable = room - experts
    elif not card.stated_kv:
        kv = min(room, card.kv_ceiling)
        unusable = room - kv
    buffers = _staging_buffers(card, experts)
    experts -= buffers
    weights_pool = card.stated_weights or align(card.statics + experts, MIB)
    kv_pool = kv // MIB * MIB
    unclaimed = card.total - card.held - card.arena - card.staging - buffers - weights_pool - kv_pool
    return Split(card, claimable, elastic, experts, kv, unusable, buffers, weights_pool, kv_pool, unclaimed)


def _left_for_kv(room: int, card: Card) -> int:
    return max(0, room - max(0, card.expert_ceiling - card.on_host))


def _capped(room: int, kv: int, card: Card) -> tuple[int, int, int]:
    experts = min(room - kv, card.expert_ceiling)
    kv = min(kv, card.kv_ceiling)
    spare = room - experts - kv
    more = min(spare, card.expert_ceiling - experts)
    experts, spare = experts + more, spare - more
    more = min(spare, card.kv_ceiling - kv)
    return experts, kv + more, spare - more


def _staging_buffers(card: Card, experts: int) -> int:
    """Two buffers of one layer's non-resident experts, where the weights are derived and not all resident."""
    if card.stated_weights or not card.prefill_staging or experts >= card.expert_ceiling:
        return 0
    missing = (card.expert_ceiling - experts) / card.expert_ceiling
    both = 2 * align(int(missing * card.largest_layer) + 1, ALIGN_UNIT)
    return both if both < experts else 0
