# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ceiling: the largest pair sum that a card can take, from that boot's own settled lines.

``ceiling = settled free - floor + current pair sum``, a card each. Nothing else bounds it: what a management tool
shows as free is neither this nor spare. Checkpoint slots that a boot withdrew to keep its headroom are free in its
settled line and no longer once they are backed again, so they are taken off.

What is reserved for others on a card is taken off that card alone, so another card may bind. It is what they will take
once the engine has booted: what they held before is not free in the settled line.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Json, Ledger, mib, rounded
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.wishes import Reserved
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import Size, size_from_dict


class CardCeiling(t.NamedTuple):
    """One card's ceiling, MiB, with the roundings of every printed term, and the line it came from."""

    card: int
    mib: float
    plus_minus_mib: float
    free: Size
    floor: Size
    static_region: bool
    line: str
    withdrawn_mib: float = 0.0
    others: Reserved | None = None

    @property
    def low_mib(self) -> float:
        """What the ceiling is at least, whatever the roundings hide."""
        return rounded(self.mib - self.plus_minus_mib)

    @property
    def others_mib(self) -> int:
        """What is reserved for others on this card."""
        return 0 if self.others is None else self.others.mib

    @property
    def ours_mib(self) -> float:
        """The ceiling less what is reserved for others."""
        return rounded(self.mib - self.others_mib)

    @property
    def sure_mib(self) -> float:
        """The same of what the ceiling is at least."""
        return rounded(self.low_mib - self.others_mib)


class Ceiling(t.NamedTuple):
    """All used cards. ``surest`` has the lowest lower bound (a fill's limit), ``lowest`` the lowest ceiling; both less
    what is reserved for others, which ``tightest``, the card that the boot's own budget met first, does not count.
    """

    cards: tuple[CardCeiling, ...]
    pair_sum_mib: float
    reserve_mib: int
    reserve_reason: str | None

    @property
    def surest(self) -> CardCeiling:
        """The binding card: nothing that keeps under its lower bound passes any card's ceiling."""
        return min(self.cards, key=lambda card: (card.sure_mib, card.ours_mib, card.card))

    @property
    def lowest(self) -> CardCeiling:
        """The card that a stated pair meets first."""
        return min(self.cards, key=lambda card: (card.ours_mib, card.sure_mib, card.card))

    @property
    def tightest(self) -> CardCeiling:
        """The card that would bind if nothing were reserved for others."""
        return min(self.cards, key=lambda card: (card.low_mib, card.mib, card.card))

    @property
    def labels(self) -> list[str]:
        """The personal reserves of the card that a stated pair meets first, each with its reason."""
        said = [] if not self.reserve_mib else [str(self.reserve_reason)]
        others = self.lowest.others
        if others is not None and others.mib:
            said.append(f"{mib(others.mib)} of card {others.card} for others: {others.reason}")
        return said

    def sure_limit_mib(self, margin_mib: int = 0) -> int:
        """The largest whole pair sum that is clear of the roundings, the reserve and ``margin_mib``."""
        return math.floor(rounded(self.surest.sure_mib - self.reserve_mib - margin_mib))

    def stated_limit_mib(self) -> float:
        """Up to where a stated pair may go: the ceiling less the reserves."""
        return rounded(self.lowest.ours_mib - self.reserve_mib)

    def as_dict(self) -> Json:
        """The plan's ``ceiling``; ``mib`` is before the reserves, ``lines`` as printed, the binding card's first."""
        binding = self.surest
        others = [card.line for card in self.cards if card is not binding]
        return {
            "mib": binding.mib,
            "plus_minus_mib": binding.plus_minus_mib,
            "card": binding.card,
            "settled_free_mib": rounded(binding.free.mib),
            "floor_mib": rounded(binding.floor.mib),
            "pair_sum_mib": rounded(self.pair_sum_mib),
            "withdrawn_mib": rounded(binding.withdrawn_mib),
            "reserve_mib": self.reserve_mib,
            "reserve_reason": self.reserve_reason,
            "others_mib": binding.others_mib,
            "others": [card.others._asdict() for card in self.cards if card.others is not None],
            "lines": [binding.line, *others],
        }


def read_ceiling(
    ledger: Ledger,
    weights: Size,
    kv: Size,
    *,
    reserve_mib: int,
    reserve_reason: str | None,
    reserved: t.Sequence[Reserved] = (),
) -> Ceiling:
    """The ceiling of every used card; an inexact pair's roundings are part of ``plus_minus_mib``.

    Raises RadianceError ``no_settled_line`` where the ledger has none to compute from, and ``card_not_used`` where
    something is reserved on a card that this boot does not use.
    """
    used = (ledger.get("devices") or {}).get("used") or []
    settled = [row for row in ledger.get("settled") or [] if not used or row["card"] in used]
    if not settled:
        raise RadianceError(
            "The ledger has no settled line, so there is nothing to compute a ceiling from. "
            "Read the ledger of a boot that reached its listening line.",
            code="no_settled_line",
        )
    on_card = {entry.card: entry for entry in reserved}
    cards_used = sorted(int(row["card"]) for row in settled)
    for card in on_card:
        if card not in cards_used:
            raise RadianceError(
                f"reserved_for_others_mib keeps {mib(on_card[card].mib)} of card {card}, and this boot uses "
                f"{', '.join(f'card {used}' for used in cards_used)}: {settled[0]['line']!r}. Take it out, or name one "
                "of these.",
                code="card_not_used",
            )
    pair_sum = weights.mib + kv.mib
    pair_rounding = weights.plus_minus_mib + kv.plus_minus_mib
    withdrawn, withdrawn_rounding = _withdrawn_mib(ledger)
    cards = []
    for row in settled:
        free, floor = size_from_dict(row["free"]), size_from_dict(row["floor"])
        cards.append(
            CardCeiling(
                card=int(row["card"]),
                mib=rounded(free.mib - withdrawn - floor.mib + pair_sum),
                plus_minus_mib=rounded(free.plus_minus_mib + floor.plus_minus_mib + pair_rounding + withdrawn_rounding),
                free=free,
                floor=floor,
                static_region=row.get("static_region") is not None,
                line=str(row["line"]),
                withdrawn_mib=withdrawn,
                others=on_card.get(int(row["card"])),
            )
        )
    return Ceiling(tuple(cards), pair_sum, reserve_mib, reserve_reason)


def _withdrawn_mib(ledger: Ledger) -> tuple[float, float]:
    """What this boot freed by withdrawing checkpoint slots, a card, and its rounding."""
    printed = (ledger.get("kv") or {}).get("checkpoints") or {}
    slots, backed, each = printed.get("slots"), printed.get("backed"), printed.get("each")
    if slots is None or backed is None or each is None or backed >= slots:
        return 0.0, 0.0
    size = size_from_dict(each)
    return (slots - backed) * size.mib, (slots - backed) * size.plus_minus_mib
