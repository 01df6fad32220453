# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of the gates that the pool must pass, as the others in gate_rules.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.contract import (
    NO_BOUND,
    Figures,
    fitting_shapes,
    largest_request,
    live_words,
    most_beside_one,
    most_live_sessions,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.situation import Finding, Situation
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import counted, mib


def one_request_fits(s: Situation) -> Finding | str | None:
    """One full context, which the engine would refuse for good where it does not fit."""
    if s.pair is None:
        return None
    if not s.figures.known:
        return _not_judged("one_request_fits", s)
    needed = s.figures.filled_mib(s.shape, "one_request")
    holds = s.pair[1] >= needed - 1e-6
    says = (
        f"One request of {s.shape.max_model_len:,} tokens needs a pool of {mib(needed)}; the pool is {mib(s.pair[1])}."
    )
    if not holds:
        room = s.room_for_another_shape_mib
        longest, most = largest_request(s.figures, room, s.shape), most_beside_one(s.figures, room, s.shape)
        ways = [f"Give the pool at least {mib(math.ceil(needed))}"]
        ways += [f"a max_model_len of at most {longest:,}"] if longest else []
        ways += [f"a max_num_seqs of at most {most:,}"] if 0 < most < NO_BOUND else []
        says += f" The engine would refuse it for good. {', or '.join(ways)}."
    return Finding("one_request_fits", holds, says, _figures_source(s.figures), True)


def pool_meets_contract(s: Situation) -> Finding | str | None:
    """What the request wants backed at once."""
    if s.pair is None:
        return None
    if not s.figures.known:
        return _not_judged("pool_meets_contract", s)
    backing, pool = s.request.backing, s.pair[1]
    needed = s.figures.needed_mib(s.shape, backing)
    holds = pool >= needed - 1e-6
    backed = "One request" if backing == "one_request" else counted(s.shape.max_num_seqs, "sequence")
    needs = "needs" if backing == "one_request" or s.shape.max_num_seqs == 1 else "at once need"
    says = f"{backed} of {s.shape.max_model_len:,} tokens {needs} {mib(needed)}; the pool is {mib(pool)}."
    if backing == "one_request":
        says += (
            f" That is less than the contract: all {s.shape.max_num_seqs:,} need {mib(s.figures.needed_mib(s.shape))}."
        )
    if not holds:
        says += f" It is {mib(needed - pool)} short. {_smaller_shapes(s)}the shape asked needs a pool of "
        says += f"{mib(math.ceil(needed))}."
    worse = True
    if s.running_figures is not None:
        was = s.running.kv.mib - s.running_figures.needed_mib(s.running.shape, backing)
        worse = was >= 0 or pool - needed < was - 1e-6
    source = _figures_source(s.figures)
    if backing == "one_request":
        source = f"personal choice: backing one_request, {s.request.backing_reason}"
    return Finding("pool_meets_contract", holds, says, source, False, worse)


def pool_holds_live_sessions(s: Situation) -> Finding | str | None:
    """The blocks of finished sessions that shall stay."""
    live = s.request.live
    if s.pair is None or live is None:
        return None
    if not s.figures.known:
        return _not_judged("pool_holds_live_sessions", s)
    pool, needed = s.pair[1], s.figures.live_mib(s.shape, live)
    holds = pool >= needed - 1e-6
    said = live_words(live, s.shape)
    says = f"{said}, need a pool of {mib(needed)}; the pool is {mib(pool)}."
    if not holds:
        most = counted(most_live_sessions(s.figures, pool, s.shape, live), "session")
        says += (
            f" It is {mib(needed - pool)} short, so a next turn may prefill its whole context again. This pool holds "
            f"the blocks of {most}; pair: fill takes a pool of {mib(math.ceil(needed + s.figures.alignment_mib))}."
        )
    worse = True
    if s.running_figures is not None:
        was = s.running.kv.mib - s.running_figures.live_mib(s.running.shape, live)
        worse = was >= 0 or pool - needed < was - 1e-6
    source = f"as asked in live_sessions; {live.factor:g} x context is by {live.factor_from}, and an estimate"
    return Finding("pool_holds_live_sessions", holds, says, source, False, worse)


def _not_judged(name: str, s: Situation) -> str:
    return (
        f"{name} could not be judged: no line of this boot tells the KV figures of {s.shape.kv_cache_dtype} at "
        f"speculation depth {s.shape.num_speculative_tokens}. Its own boot prints them."
    )


def _smaller_shapes(s: Situation) -> str:
    """What this pool does hold, each a request that the gates of the pool let pass."""
    room, request = s.room_for_another_shape_mib, s.request
    held = fitting_shapes(s.figures, room, s.shape, request.live, request.backing, s.exact_sequences)
    return f"This pool holds {held or 'no such shape'}; "


def _figures_source(figures: Figures) -> str:
    return ("kv: " if figures.figures_from == "ledger" else "") + "; ".join(figures.lines)
