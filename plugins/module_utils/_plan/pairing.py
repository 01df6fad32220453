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
    smallest_slab_mib,
    useful_slab_mib,
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
    useful = useful_slab_mib(base.ledger, running.weights)
    if useful is None:
        # A dense model's slab is its statics, and they are in it already.
        return math.ceil(running.weights.high_mib) if is_dense(base.ledger) else 2**40
    return useful


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
            f"{name} {number(given)} leaves nothing for {other}: {_together(limit, base)} "
            + ("Keep a smaller reserve." if limit < 2 else f"State a smaller {name}, of at most {number(limit - 1)}."),
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
    backing, smallest = base.request.backing, smallest_slab_mib(base.ledger, running, base.request.host_pool_mib)
    # Another shape than the one that is asked for leaves its own margin.
    limit_of_another = base.ceiling.sure_limit_mib(base.request.shape_margin_mib)
    ways = []
    slabs = [("the slab that runs", running.mib)] if smallest is not None and running.low_mib >= smallest else []
    slabs += [("the smallest that the host pool allows", smallest)] if smallest is not None else []
    for what, slab in slabs:
        room = max(0.0, limit_of_another - slab - figures.alignment_mib)
        held = fitting_shapes(figures, room, shape, live, backing, base.exact_sequences)
        holds_this = live is not None and figures.needed_mib(shape, backing) <= room
        sessions = most_live_sessions(figures, room, shape, live) if live is not None and holds_this else 0
        said = [f"the pool can back {held}"] if held else []
        said += [f"it can hold this shape and {counted(sessions, 'live session')}"] if sessions else []
        ways += [f"beside {what}, {mib(slab)}, {', or '.join(said)}"] if said else []
    asked = f"{shape.max_num_seqs:,} sequences of {shape.max_model_len:,} tokens ({shape.kv_cache_dtype})"
    if backing == "one_request":
        asked = f"One request of {shape.max_model_len:,} tokens ({shape.kv_cache_dtype}) beside the states of "
        asked += counted(shape.max_num_seqs, "sequence")
    beside = "" if live is None else f", and {live_words(live, shape)},"
    none = "No shape of fewer sequences or tokens fits beside a slab either."
    reserve = " A smaller reserve leaves the pair more." if base.ceiling.labels else ""
    out = f"Ways out: {'; '.join(ways)}." if ways else none
    needs = "needs" if backing == "one_request" and live is None else "need"
    return f"{asked}{beside} {needs} a pool of {mib(pool)}: {_together(limit, base)} {out}{reserve}"


def _together(limit: int, base: Situation) -> str:
    """What the pair can have at most, and the line that says so; a reserve may be more than all of it."""
    had = f"the pair together can have {mib(limit)}" if limit > 0 else "reserves and margins leave the pair nothing"
    return f"{had}, from {base.ceiling.surest.line!r}."
