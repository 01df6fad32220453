# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predictions: numbers written down before the restart, each with the ledger line or the formula that it came from.

A prediction is ``{id, quantity, card, rank, low, high, unit, because}``, and ``stack`` (the engine version and the
image digest that it was made for, space separated) where either is known; one of prefill_tps has ``prompt_tokens``
where its arms tell it, and one of sequences_backed ``tokens``, the context of each. What a ledger prints with a
rounding is predicted as an interval with the roundings of every term.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.law import Law
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.situation import Situation
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.slots import rank_slots
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Json, mib, number, rounded, span
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import size_from_dict

# These follow from what the running stack was measured to do; on another stack they would only be guesses.
MEASURED_QUANTITIES = ("settled_free_mib", "unclaimed_mib", "slab_slots", "pool_slots", "lendable_slots")

# The engine prints full-length sessions with one decimal.
_SESSION_ROUNDING = 0.06


def predict(situation: Situation, law: Law, *, stack: str | None, stack_changes: bool) -> list[Json]:
    """All predictions for a candidate; with ``stack_changes`` none of MEASURED_QUANTITIES."""
    found: list[Json] = []
    if situation.pair is not None:
        weights_mib, kv_mib = situation.pair
        found += _pair(situation, weights_mib, kv_mib)
        found += [_sequences(situation, kv_mib)] if situation.figures.known else []
        if not stack_changes:
            found += _free(situation, weights_mib + kv_mib)
            found += _slots(situation, weights_mib)
            found += _lendable(situation, kv_mib)
    shape = situation.running.effective(situation.shape)
    rows = shape.sampler_rows
    found.append(
        _prediction(
            "sampler_rows",
            rows,
            rows,
            "rows",
            f"sampler rows = max_num_seqs {shape.max_num_seqs} x (num_speculative_tokens "
            f"{shape.num_speculative_tokens} + 1)",
        )
    )
    if law.low is not None and law.high is not None:
        prefill = _prediction("prefill_tps", law.low, law.high, "t/s", law.says)
        if law.prompt_tokens:
            prefill["prompt_tokens"] = law.prompt_tokens
        found.append(prefill)
    for prediction in found:
        if stack:
            prediction["stack"] = stack
    return found


def _prediction(
    quantity: str, low: float, high: float, unit: str, because: str, *, card: int | None = None, rank: int | None = None
) -> Json:
    suffix = f".card{card}" if card is not None else f".rank{rank}" if rank is not None else ""
    return {
        "id": quantity + suffix,
        "quantity": quantity,
        "card": card,
        "rank": rank,
        "low": low if isinstance(low, int) else rounded(low),
        "high": high if isinstance(high, int) else rounded(high),
        "unit": unit,
        "because": because,
    }


def _pair(s: Situation, weights_mib: float, kv_mib: float) -> t.Iterator[Json]:
    for quantity, flag, value, size in (
        ("weights_mib", "--vram-weights-mib", weights_mib, s.running.weights),
        ("kv_mib", "--vram-kv-mib", kv_mib, s.running.kv),
    ):
        kept = value == size.mib and size.plus_minus_mib > 0
        low, high = (size.low_mib, size.high_mib) if kept else (int(value), int(value))
        yield _prediction(quantity, low, high, "MiB", f"as it runs: {size.text}" if kept else f"{flag} {int(value)}")


def _sequences(s: Situation, pool: float) -> Json:
    return {**_backed(s, pool), "tokens": s.shape.max_model_len}


def _backed(s: Situation, pool: float) -> Json:
    filled = s.figures.filled_mib(s.shape)
    sequences = s.shape.max_num_seqs
    if pool >= filled - 1e-6:
        return _prediction(
            "sequences_backed",
            sequences,
            sequences,
            "sequences",
            f"a pool of {mib(pool)} holds {sequences:,} x {s.shape.max_model_len:,} tokens: {mib(filled)} "
            "with alignment",
        )
    backed = s.figures.backed_sequences(pool, s.shape)
    return _prediction(
        "sequences_backed",
        max(0.0, backed - _SESSION_ROUNDING),
        backed + _SESSION_ROUNDING,
        "sequences",
        f"a pool of {mib(pool)} of the {mib(filled)} that back {sequences:,} x {s.shape.max_model_len:,} "
        "tokens with alignment",
    )


def _moved_mib(s: Situation, pair_sum_mib: float) -> tuple[float, float, float, str]:
    """By how much the pair sum grows, its roundings, what a changed shape may move besides, and how to say it."""
    moved = pair_sum_mib - s.running.sum_mib
    rounding = s.running.weights.plus_minus_mib + s.running.kv.plus_minus_mib
    shape = float(s.request.shape_margin_mib) if s.shape != s.running.shape else 0.0
    says = ", and the pair stays"
    if moved:
        says = f" less {mib(moved)} that the pair grows" if moved > 0 else f" and {mib(-moved)} that the pair shrinks"
    if shape:
        says += f", ± {mib(shape)} for what a changed shape moves in arena and staging"
    return moved, rounding, shape, says


def _free(s: Situation, pair_sum_mib: float) -> t.Iterator[Json]:
    moved, rounding, shape, says = _moved_mib(s, pair_sum_mib)
    staging, staging_rounding = prefill_staging(s)
    for card in s.ceiling.cards:
        middle = card.free.mib - card.withdrawn_mib - moved + staging
        wide = card.free.plus_minus_mib + rounding + shape + staging_rounding
        because = f"{card.free.text} free now{says}"
        again = 0.0
        if card.withdrawn_mib:
            because += f", less {mib(card.withdrawn_mib)} that withdrawn checkpoint slots gave back"
            # Under its floor a card may have to withdraw them again.
            again = card.withdrawn_mib if middle - wide < card.floor.high_mib else 0.0
        if staging:
            because += f", and {mib(staging)} of prefill staging that a stated slab is not charged"
        yield _prediction(
            "settled_free_mib", middle - wide, middle + wide + again, "MiB", f"{because}; {card.line}", card=card.card
        )
    budget = s.ledger.get("budget") or {}
    printed = (budget.get("rows") or {}).get("unclaimed")
    # A split that the engine derived also pays for prefill staging, which a stated pair is not charged.
    if printed is not None and budget.get("weights") == "stated":
        size = size_from_dict(printed)
        wide = size.plus_minus_mib + rounding + shape
        middle = size.mib - moved
        yield _prediction("unclaimed_mib", middle - wide, middle + wide, "MiB", f"unclaimed {size.text} now{says}")


def prefill_staging(s: Situation) -> tuple[float, float]:
    """The prefill staging of a slab that this boot derived, and its rounding; the planned one is stated."""
    budget = s.ledger.get("budget") or {}
    printed = (budget.get("rows") or {}).get("prefill_staging")
    if printed is None or budget.get("weights") != "derived":
        return 0.0, 0.0
    size = size_from_dict(printed)
    return size.mib, size.plus_minus_mib


def _slots(s: Situation, weights_mib: float) -> t.Iterator[Json]:
    for rank in rank_slots(s.ledger, s.running.weights):
        low, high = rank.slab_slots(s.running.weights, weights_mib)
        mean = f"{rank.slot_mib[1]:.4f} MiB a slot from (slab - statics) / slots; {rank.line}"
        yield _prediction("slab_slots", low, high, "slots", mean, rank=rank.rank)
        rest = (
            f"{rank.total:,} slots in all stay constant, less the slab's {span(number(low), number(high))}; {rank.line}"
        )
        yield _prediction(
            "pool_slots", max(0, rank.total - high), max(0, rank.total - low), "slots", rest, rank=rank.rank
        )


def lendable_slots(s: Situation, pool_mib: float) -> tuple[int, int, str] | None:
    """What an idle cache lends, at least and at most, and why: the printed count, scaled by what holds tokens."""
    printed = [
        int(row["slots"]) for row in s.ledger.get("lent") or [] if row.get("from") == "kv_cache" and row.get("slots")
    ]
    if not printed or s.running_figures is None or not s.figures.known:
        return None
    was = s.running.kv.mib - s.running_figures.fixed_mib(s.running.shape)
    becomes = pool_mib - s.figures.fixed_mib(s.shape)
    if was <= 0 or becomes <= 0:
        return None
    unchanged = s.shape == s.running.shape and pool_mib == s.running.kv.mib
    factor = becomes / was
    # A pool that is only known as printed may hold a little more or less for tokens than it seems.
    rounding = s.running.kv.plus_minus_mib / was
    widen = 0.0 if unchanged else 4 + (0.01 + rounding) * max(printed) * factor
    because = (
        f"mover: {', '.join(number(slots) for slots in printed)} slots can be lent out of the KV cache now, times the "
        f"part of the pool that holds tokens: {mib(becomes)} over {mib(was)}"
    )
    return max(0, int(min(printed) * factor - widen)), int(max(printed) * factor + widen), because


def _lendable(s: Situation, pool_mib: float) -> t.Iterator[Json]:
    found = lendable_slots(s, pool_mib)
    if found is not None:
        yield _prediction("lendable_slots", found[0], found[1], "slots", found[2])
