# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The choice of a pair: fill, keep, or as stated.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.contract import (
    fitting_shapes,
    live_words,
    most_live_sessions,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.gates import pair_holds
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.running import was_stated
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import NO_PAIR_FROM, at_least
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.situation import Situation
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.slots import (
    is_dense,
    rank_slots,
    smallest_slab_mib,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import counted, mib, number


class Choice(t.NamedTuple):
    """The pair (None where the engine splits the card), and sentences about how it came out."""

    pair: tuple[float, float] | None
    warnings: tuple[str, ...] = ()


def choose_pair(base: Situation) -> Choice:
    """The pair that the request asks for; ``base.pair`` is not read.

    Raises RadianceError ``contract_does_not_fit`` (a fill with no room for a slab), ``nothing_left`` (one half stated,
    nothing left for the other), ``pair_not_exact`` (keep, with a restart, a pair that is only known rounded).
    """
    request, running = base.request, base.running
    engine_splits = at_least(base.version, NO_PAIR_FROM)
    as_runs = (running.weights.mib, running.kv.mib)
    if request.pair == "stated":
        return _stated(base)
    if engine_splits and (request.pair == "fill" or not was_stated(base.ledger)):
        return Choice(None, (_split_by_engine(base),))
    if request.pair == "keep":
        return _kept_for_another_stack(base, as_runs) if base.stack_changes else Choice(as_runs)
    filled = fill_pair(base, margin_mib=base.fill_margin_mib)
    if base.shape != running.shape:
        return Choice(filled)
    gain = filled[0] - running.weights.mib
    if gain < max(request.min_gain_mib, 1) and pair_holds(base._replace(pair=as_runs)):
        said = (
            f"A fill would gain {mib(gain)} of slab, less than min_gain_mib {request.min_gain_mib}: the "
            "running pair stays."
        )
        return Choice(as_runs, (said,) if gain >= 1 else ())
    return Choice(filled)


def _kept_for_another_stack(base: Situation, as_runs: tuple[float, float]) -> Choice:
    """The running pair, its slab smaller by as much as the first boot of another stack lacks of its margin."""
    margin = base.request.shape_margin_mib
    weights, kv = as_runs
    left = base.ceiling.sure_limit_mib(margin) - math.ceil(kv)
    if not margin or weights <= left or left < 1 or not base.running.exact:
        return Choice(as_runs)
    said = (
        f"The slab gives up {mib(weights - left)}: shape_margin_mib {margin} is left free for the first boot of "
        "another stack, and what runs leaves less. shape_margin_mib 0 keeps the pair as it is."
    )
    return Choice((left, kv), (said,))


def fill_pair(base: Situation, *, margin_mib: int) -> tuple[int, int]:
    """The pool that the contract asks for, and the rest of the ceiling's lower bound to the slab."""
    pool = math.ceil(base.filled_mib - 1e-6)
    limit = base.ceiling.sure_limit_mib(margin_mib)
    if pool >= limit:
        raise RadianceError(_does_not_fit(pool, limit, base), code="contract_does_not_fit")
    return min(limit - pool, _useful_slab_mib(base)), pool


def _useful_slab_mib(base: Situation) -> int:
    """Where every expert would be resident, so that a larger slab holds nothing more."""
    running = base.running
    ranks = rank_slots(base.ledger, running.weights)
    if not ranks:
        # A dense model's slab is its statics, and they are in it already.
        return math.ceil(running.weights.high_mib) if is_dense(base.ledger) else 2**40
    return max(math.ceil(running.weights.high_mib + (rank.pool_slots + 8) * rank.slot_mib[2]) for rank in ranks)


def _split_by_engine(base: Situation) -> str:
    said = f"Engine {base.version} splits the card itself: the plan states no pair, only the shape."
    asked = [f"the reserve ({label})" for label in base.ceiling.labels]
    asked += ["the live sessions"] if base.request.live is not None else []
    if asked:
        said += f" It keeps nothing for {' and '.join(asked)}: --gpu-headroom-mib is what that engine leaves free."
    return said


def _stated(base: Situation) -> Choice:
    request = base.request
    weights, kv = request.weights_mib, request.kv_mib
    if weights is not None and kv is not None:
        return Choice((weights, kv))
    limit = base.ceiling.sure_limit_mib(base.fill_margin_mib)
    name, given, other = ("weights_mib", weights or 0, "kv_mib") if kv is None else ("kv_mib", kv, "weights_mib")
    rest = limit - given
    if rest < 1:
        raise RadianceError(
            f"{name} {number(given)} leaves nothing for {other}: the pair together can have {mib(limit)}, from "
            f"{base.ceiling.surest.line!r}. State a smaller {name}.",
            code="nothing_left",
        )
    pair = (given, rest) if kv is None else (rest, given)
    as_runs = (base.running.weights.mib, base.running.kv.mib)
    now, now_other = as_runs if kv is None else as_runs[::-1]
    gain = rest - now_other
    if given == now and base.shape == base.running.shape and _not_worth_it(base, as_runs, pair, gain):
        why = f"{name} {number(given)} runs, and the rest would give {other} {mib(gain)} more, less than min_gain_mib "
        return Choice(as_runs, (f"{why}{request.min_gain_mib}: the running pair stays.",) if gain >= 1 else ())
    said = f"{name} was stated alone, so {other} takes the rest of the ceiling: {mib(rest)}."
    return Choice(pair, (said,))


def _not_worth_it(base: Situation, as_runs: tuple[float, float], pair: tuple[float, float], gain: float) -> bool:
    """Whether the rest of the ceiling is hardly more than what runs has of it, and mends nothing.

    The rest is known to another rounding after each boot, and a command given twice must not restart twice.
    """
    if gain >= max(base.request.min_gain_mib, 1):
        return False
    return pair_holds(base._replace(pair=as_runs)) or (gain >= 0 and not pair_holds(base._replace(pair=pair)))


def _does_not_fit(pool: int, limit: int, base: Situation) -> str:
    """The numbers, and what the card can back instead: beside the slab that runs, and beside the smallest possible."""
    running, figures, shape, live = base.running.weights, base.figures, base.shape, base.request.live
    smallest = smallest_slab_mib(base.ledger, running, base.request.host_pool_mib)
    ways = []
    for what, slab in (("the slab that runs", running.mib), ("the smallest that the host pool allows", smallest)):
        room = max(0.0, limit - slab - figures.alignment_mib)
        held = fitting_shapes(figures, room, shape) or "no such shape"
        if live is not None:
            held += f"; it can hold {counted(most_live_sessions(figures, room, shape, live), 'live session')}"
        ways.append(f"beside {what}, {mib(slab)}, the pool can back {held}")
    beside = "" if live is None else f", and {live_words(live, shape)},"
    return (
        f"{shape.max_num_seqs:,} sequences of {shape.max_model_len:,} tokens ({shape.kv_cache_dtype}){beside} need a "
        f"pool of {mib(pool)}, and the pair together can have {mib(limit)}, from {base.ceiling.surest.line!r}. Ways "
        f"out: {'; '.join(ways)}."
    )
