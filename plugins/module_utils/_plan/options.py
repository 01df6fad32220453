# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the free VRAM could buy: named alternatives to what runs, each with the command arguments that get it.

Every alternative is a fill (its shape's pool, the rest to the slab), passes its own gates, and is compared with what
runs now and with a fill of the present shape: what looks free against today may be paid in prefill.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.alternatives import (
    arguments,
    candidate_of,
    reason_argument,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.contract import (
    largest_context,
    most_sequences,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.gates import judge
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.law import slab_law
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import Shape
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.situation import Situation
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Json, counted, mib

_CONTEXT_STEP = 1000


def options(base: Situation) -> list[Json]:
    """The alternatives to what runs; ``base.shape`` and ``base.pair`` are not read."""
    now = base._replace(shape=base.running.shape, figures=base.running_figures or base.figures, pair=None)
    if base.running_figures is None:
        return []
    found = []
    filled = candidate_of(now, now.running.shape, base.shape)
    for name, shape in _shapes(now):
        candidate = filled if shape == now.running.shape else candidate_of(now, shape, base.shape)
        if candidate is None or candidate.pair is None or candidate.pair[0] < 1:
            continue
        if shape == now.running.shape and candidate.pair[0] <= now.running.weights.mib:
            continue
        verdict = judge(candidate)
        if verdict.blocked:
            continue
        found.append(
            {
                "name": name,
                "to": shape.with_pair(*candidate.pair),
                "says": _what(candidate)
                + " "
                + compared(candidate, candidate.pair[0], filled.pair if filled else None),
                "gates": verdict.gates,
                "request": _asked(candidate),
            }
        )
    return found


def filled_present(base: Situation) -> tuple[float, float] | None:
    """The pair of a fill of the present shape; None where it has no room or its figures are not known."""
    if base.running_figures is None:
        return None
    candidate = candidate_of(base._replace(figures=base.running_figures), base.running.shape, base.shape)
    return candidate.pair if candidate else None


def compared(candidate: Situation, slab_mib: float, filled: tuple[float, float] | None) -> str:
    """A candidate's slab against what runs and a fill of the present shape, with prefill where arms tell it."""
    running = candidate.running.weights.mib
    parts = [f"{_signed(slab_mib - running)} against what runs{_prefill_change(candidate, slab_mib, running)}"]
    if filled is not None and filled[0] != slab_mib:
        parts.append(
            f"{_signed(slab_mib - filled[0])} against a fill of the present shape"
            + _prefill_change(candidate, slab_mib, filled[0])
        )
    return f"The slab is {mib(slab_mib)}: " + ", ".join(parts) + "."


def _shapes(now: Situation) -> t.Iterator[tuple[str, Shape]]:
    """The present shape; one sequence more; what fits beside the running slab (sequences, context); the other dtype."""
    shape, figures = now.running.shape, now.figures
    margin = now.request.shape_margin_mib
    pool = now.ceiling.sure_limit_mib(margin) - now.running.weights.mib - figures.alignment_mib
    yield "fill", shape
    yield "one_more_sequence", shape._replace(max_num_seqs=shape.max_num_seqs + 1)
    most = most_sequences(figures, pool, shape, now.request.live)
    if most > shape.max_num_seqs + 1:
        yield "most_sequences", shape._replace(max_num_seqs=most)
    trained = (now.ledger.get("model") or {}).get("trained_context")
    longest = largest_context(figures, pool, shape, now.request.live)
    if trained:
        longest = min(longest, int(trained))
    if longest != trained:
        longest -= longest % _CONTEXT_STEP
    if longest > shape.max_model_len:
        yield "longest_context", shape._replace(max_model_len=longest)
    other = {"fp8": "bf16", "bf16": "fp8"}.get(shape.kv_cache_dtype)
    if other is not None:
        yield f"{other}_cache", shape._replace(kv_cache_dtype=other)


def _what(candidate: Situation) -> str:
    running, shape = candidate.running.shape, candidate.shape
    sequences = f"{counted(shape.max_num_seqs, 'sequence')} of {shape.max_model_len:,} tokens"
    one = "one of them backed at once, which is less than the contract"
    if shape == running:
        backed = f" ({one})" if candidate.request.backing == "one_request" else ""
        return f"{sequences} as now{backed}, the rest of the ceiling to the slab."
    backed = one if candidate.request.backing == "one_request" else "all backed at once"
    return f"{sequences} in {shape.kv_cache_dtype}, {backed}."


def _asked(candidate: Situation) -> str:
    """The command's arguments; a pool for one request is asked for with its reason."""
    request = candidate.request
    if request.backing == "full":
        return arguments(candidate.running.shape, candidate.shape)
    asked = arguments(candidate.running.shape, candidate.shape, backing=request.backing)
    return f"{asked} {reason_argument(request.backing_reason or '')}"


def _signed(value: float) -> str:
    return ("+" if value >= 0 else "−") + mib(abs(value))


def _prefill_change(candidate: Situation, slab_mib: float, other_mib: float) -> str:
    request, running = candidate.request, candidate.running.shape
    if candidate.shape.kv_cache_dtype != running.kv_cache_dtype:
        return ""
    rates = [
        slab_law(
            request.arms,
            slab,
            running.kv_cache_dtype,
            stack=request.stack,
            version=candidate.version,
            digest=candidate.digest,
        )
        for slab in (slab_mib, other_mib)
    ]
    same = rates[0].prompt_tokens == rates[1].prompt_tokens and rates[0].stack == rates[1].stack
    if not same or rates[0].tps is None or not rates[1].tps:
        return ""
    change = rates[0].tps / rates[1].tps - 1
    return f" ({'+' if change >= 0 else '−'}{abs(change):.0%} prefill)"
