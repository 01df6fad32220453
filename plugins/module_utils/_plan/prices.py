# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The price table: what each shape would cost on this card, in slab and in what the slab was measured to do.

A grid of cache dtype x sequences x context around what runs, what is left beside the slab of the best measured arm, and
a pool for one request. Every row that fits passes its own gates and has the command's arguments that get it. Prefill
is the law's or nothing, decode only what an arm measured before. Costs are against a fill of the present shape.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import statistics
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.alternatives import (
    arguments,
    filled_of,
    reason_argument,
    situated,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.contract import largest_context
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.gates import judge
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.law import Law, comparable, series, slab_law
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.predictions import lendable_slots
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import KNOWN_DTYPES, Shape
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.situation import Situation
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.slots import rank_slots
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Json, counted, mib, rounded

# The usual windows; the neighbours of a context are the next ones below and above it.
_WINDOWS = (8192, 16384, 32768, 65536, 98304, 131072, 163840, 200000, 262144, 393216, 524288, 1048576)
_REASON = "WHY"


class _Wish(t.NamedTuple):
    """A row to be priced; ``slab`` is the slab that its context was chosen for, ``shown`` whether a screen has it."""

    name: str
    shape: Shape
    shown: bool
    backing: str = "full"
    slab: int | None = None


def prices(base: Situation) -> list[Json]:
    """The rows; ``base.shape`` and ``base.pair`` are not read. Empty where the running shape has no known figures."""
    if base.running_figures is None:
        return []
    now = base._replace(shape=base.running.shape, figures=base.running_figures, pair=None)
    # Figures follow the dtype alone: sequences and context are counted with them.
    of_dtype = {
        dtype: situated(now, now.shape._replace(kv_cache_dtype=dtype), base.shape, "full") for dtype in _dtypes(now)
    }
    present = of_dtype[now.shape.kv_cache_dtype]
    filled = None if present is None else filled_of(present)
    rows = []
    seen: set[tuple[Shape, str]] = set()
    for wish in [*_grid(now), *_beside_best_arm(now, of_dtype), *_one_request(now)]:
        if (wish.shape, wish.backing) not in seen:
            seen.add((wish.shape, wish.backing))
            rows.append(_row(now, of_dtype[wish.shape.kv_cache_dtype], wish, filled))
    return rows


def _dtypes(now: Situation) -> list[str]:
    """The present dtype first."""
    present = now.shape.kv_cache_dtype
    return [present, *(dtype for dtype in KNOWN_DTYPES if dtype != present)]


def _counts(now: Situation) -> list[int]:
    most = now.shape.max_num_seqs
    return [count for count in (most, most - 1, most + 1) if count >= 1]


def _grid(now: Situation) -> t.Iterator[_Wish]:
    shape, trained = now.shape, int((now.ledger.get("model") or {}).get("trained_context") or 0)
    below = [window for window in _WINDOWS if window < shape.max_model_len][-1:]
    above = [window for window in (*_WINDOWS, trained) if window > shape.max_model_len]
    above = [min(above)] if above and (not trained or min(above) <= trained) else []
    for dtype in _dtypes(now):
        for sequences in _counts(now):
            for context in (shape.max_model_len, *below, *above):
                wanted = shape._replace(max_num_seqs=sequences, max_model_len=context, kv_cache_dtype=dtype)
                moved = sum(getattr(wanted, name) != getattr(shape, name) for name in Shape._fields)
                yield _Wish("present" if not moved else "neighbour", wanted, moved <= 1)


def _beside_best_arm(now: Situation, of_dtype: t.Mapping[str, Situation | None]) -> t.Iterator[_Wish]:
    """The longest context beside the slab that was measured to be the fastest, for each dtype and count."""
    slab = _best_slab(now)
    if slab is None:
        return
    trained = int((now.ledger.get("model") or {}).get("trained_context") or 0)
    for dtype in _dtypes(now):
        for sequences in _counts(now):
            shape, found = now.shape._replace(max_num_seqs=sequences, kv_cache_dtype=dtype), of_dtype[dtype]
            if found is None:
                continue
            # The context is not known yet: it is taken for another than the present one.
            pool = now.ceiling.sure_limit_mib(now.request.shape_margin_mib) - slab
            longest = largest_context(found.figures, pool - found.figures.alignment_mib, shape, now.request.live)
            if trained:
                longest = min(longest, trained)
            if longest:
                shown = sequences == now.shape.max_num_seqs or dtype == now.shape.kv_cache_dtype
                yield _Wish("best_arm", shape._replace(max_model_len=longest), shown, slab=slab)


def _one_request(now: Situation) -> t.Iterator[_Wish]:
    for dtype in _dtypes(now):
        yield _Wish("one_request", now.shape._replace(kv_cache_dtype=dtype), True, "one_request")


def _best_slab(now: Situation) -> int | None:
    """The slab whose arms have the highest median prefill in the present dtype; None where none was measured."""
    arms = [arm for arm in now.request.arms if arm.prefill_tps is not None]
    found = series(arms, now.shape.kv_cache_dtype, now.request.stack, now.version, now.digest)
    # Short prompts run at other rates: the series with the most slabs tells, and of several the latest.
    members = max(
        enumerate(found), key=lambda one: (len({arm.weights_mib for arm in one[1]}), one[0]), default=(0, [])
    )[1]
    by_slab: dict[int, list[float]] = {}
    for arm in members:
        by_slab.setdefault(arm.weights_mib, []).append(arm.prefill_tps or 0.0)
    return max(by_slab, key=lambda slab: (statistics.median(by_slab[slab]), slab), default=None)


def _row(now: Situation, known: Situation | None, wish: _Wish, filled: Situation | None) -> Json:
    """One row; ``known`` has the figures of its dtype, None where they are not known."""
    asked_for: Situation | None = None
    if known is not None:
        asked_for = known._replace(shape=wish.shape, request=known.request._replace(backing=wish.backing))
    found = None if asked_for is None else filled_of(asked_for)
    stated: int | None = None
    if found is not None and found.pair is not None and wish.slab is not None and found.pair[0] != wish.slab:
        # Whole blocks leave a pool a little short of the rest: the slab is stated, so that it is the arm's own.
        limit = now.ceiling.sure_limit_mib(found.fill_margin_mib)
        if found.pair[0] > wish.slab and limit > wish.slab:
            found, stated = found._replace(pair=(wish.slab, limit - wish.slab)), wish.slab
    runs = found is not None and found.pair is not None and _stays(found)
    if found is not None and runs:
        found = found._replace(pair=(now.running.weights.mib, now.running.kv.mib))
    verdict = None if found is None else judge(found, restart=not runs)
    fits = found is not None and verdict is not None and not verdict.blocked
    row: Json = {
        "name": wish.name,
        "shown": wish.shown,
        "fits": fits,
        "to": wish.shape.with_pair(*(found.pair if found is not None and found.pair and fits else (None, None))),
        "backing": wish.backing,
        "sequences_backed": None,
        "prefill": None,
        "decode": None,
        "slots_lost": None,
        "lendable_slots": None,
        "against_now_mib": None,
        "against_fill_mib": None,
        "against_fill_prefill": None,
        "request": None,
        "reason": None,
    }
    if found is None or found.pair is None or verdict is None:
        return {**row, **_why_none(asked_for)}
    if not fits:
        return {**row, "reason": verdict.blocked[0].name, "says": verdict.blocked[0].says}
    slab, pool = found.pair
    asked = "" if runs else arguments(now.running.shape, wish.shape, stated, _asked_backing(now, wish.backing))
    if asked and wish.backing == "one_request":
        asked += f" {reason_argument(now.request.backing_reason or _REASON)}"
    return {**row, **_costs(found, slab, pool, filled), "request": asked or None}


def _stays(found: Situation) -> bool:
    """Whether a fill of what runs would gain nothing, so that it stays as it is."""
    return (
        found.shape == found.running.shape
        and found.pair is not None
        and found.pair[0] - found.running.weights.mib < 1
        and found.running.kv.mib >= found.filled_mib - found.figures.alignment_mib - 1e-6
    )


def _asked_backing(now: Situation, backing: str) -> str | None:
    """What the command must say of the backing: nothing where it is full and nothing else was asked."""
    return backing if backing == "one_request" or now.request.backing != "full" else None


def _costs(found: Situation, slab: float, pool: float, filled: Situation | None) -> Json:
    shape = found.shape
    law = _law(found, slab, shape.kv_cache_dtype)
    lent = lendable_slots(found, pool)
    backed = min(float(shape.max_num_seqs), found.figures.backed_sequences(pool, shape))
    costs: Json = {
        "sequences_backed": rounded(backed),
        "prefill": None if law.low is None else {"low": law.low, "high": law.high},
        "decode": _decode(found, shape.kv_cache_dtype, slab),
        "lendable_slots": None if lent is None else (lent[0] + lent[1]) // 2,
        "against_now_mib": rounded(slab - found.running.weights.mib),
        "says": law.says,
    }
    if filled is None or filled.pair is None:
        return costs
    best = filled.pair[0]
    same = _law(found, best, filled.shape.kv_cache_dtype)
    comparable_laws = (law.prompt_tokens, law.stack) == (same.prompt_tokens, same.stack)
    if law.tps is not None and same.tps and comparable_laws:
        costs["against_fill_prefill"] = rounded(law.tps / same.tps - 1)
    ranks = rank_slots(found.ledger, found.running.weights)
    lost = [sum(rank.slab_slots(found.running.weights, best)) for rank in ranks]
    kept = [sum(rank.slab_slots(found.running.weights, slab)) for rank in ranks]
    costs["slots_lost"] = max(((was - now) // 2 for was, now in zip(lost, kept)), default=None)
    costs["against_fill_mib"] = rounded(slab - best)
    return costs


def _law(found: Situation, slab: float, dtype: str) -> Law:
    request = found.request
    return slab_law(request.arms, slab, dtype, stack=request.stack, version=found.version, digest=found.digest)


def _decode(now: Situation, dtype: str, slab: float) -> Json | None:
    """Decode as arms of this dtype measured it, the median at the nearest slab; it is no prediction."""
    request = now.request
    arms = [
        arm for arm in request.arms if arm.decode_tps and comparable(arm, dtype, request.stack, now.version, now.digest)
    ]
    if not arms:
        return None
    nearest = min(arms, key=lambda one: abs(one.weights_mib - slab)).weights_mib
    rates = [arm.decode_tps or 0.0 for arm in arms if arm.weights_mib == nearest]
    return {"tps": rounded(statistics.median(rates)), "weights_mib": nearest}


def _why_none(asked_for: Situation | None) -> Json:
    if asked_for is None:
        return {"reason": "kv_figures_unknown", "says": "One boot of this dtype would tell its figures."}
    limit = asked_for.ceiling.sure_limit_mib(asked_for.fill_margin_mib)
    needed = asked_for.filled_mib
    sequences = counted(asked_for.shape.max_num_seqs, "sequence")
    return {
        "reason": "contract_does_not_fit",
        "says": f"{sequences} need a pool of {mib(needed)}, and the pair together can have {mib(limit)}.",
    }
