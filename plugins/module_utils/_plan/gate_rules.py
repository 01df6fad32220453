# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of the gates, one function each: a finding, a sentence where this ledger cannot tell, or None.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.contract import fitting_shapes
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.pool_rules import (
    one_request_fits,
    pool_holds_live_sessions,
    pool_meets_contract,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.running import was_stated
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import (
    KNOWN_DTYPES,
    NO_PAIR_FROM,
    at_least,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.situation import Finding, Situation
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.slots import (
    host_pool_check,
    smallest_slab_mib,
    statics_mib,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import mib, number, rounded
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import size_from_dict

# --max-num-batched-tokens of an engine that was given none (1.0.x).
DEFAULT_STEP_TOKENS = 8192


def _dtype_known(s: Situation) -> Finding:
    dtype = s.shape.kv_cache_dtype
    holds = dtype in KNOWN_DTYPES or dtype == s.running.shape.kv_cache_dtype or s.request.ran_before is not None
    says = f"The cache dtype {dtype} is one that the engine takes: bf16, fp8, or what runs or ran here."
    if not holds:
        says = f"The cache dtype {dtype} is not one that the engine takes: bf16 or fp8."
    return Finding("dtype_known", holds, says, "the engine's option: --kv-cache-dtype takes bf16 or fp8", True)


def _engine_takes_pair(s: Situation) -> Finding | str:
    budget = s.ledger.get("budget") or {}
    rows = budget.get("rows") or {}
    if s.version is not None:
        takes = not at_least(s.version, NO_PAIR_FROM)
        label = f"engine version {s.version}"
        if s.pair is None:
            return Finding(
                "engine_takes_pair", True, f"Engine {s.version} splits the card itself; no pair is stated.", label, True
            )
        says = f"Engine {s.version} takes a stated pair."
        if not takes:
            says = (
                f"Engine {s.version} has no --vram-weights-mib and no --vram-kv-mib (gone since 1.3.0), and a pair of "
                f"{_pair_text(s.pair)} is stated. Plan with pair: fill, which leaves the split to the engine."
            )
        return Finding("engine_takes_pair", takes, says, label, True)
    if s.stack_changes:
        return "engine_takes_pair could not be judged: nothing tells the version of the engine that will run."
    if not was_stated(s.ledger):
        return (
            "engine_takes_pair could not be judged: neither the ledger nor engine_version tells the engine's version, "
            "and this boot derived its pair."
        )
    row, name = (
        ("vram_weights", "--vram-weights-mib") if budget.get("weights") == "stated" else ("vram_kv", "--vram-kv-mib")
    )
    text = (rows.get(row) or {}).get("text", "")
    says = "The engine of this boot took a stated pair."
    return Finding("engine_takes_pair", True, says, " ".join(f"{row} {text} stated by {name}".split()), True)


def _pair_within_ceiling(s: Situation) -> Finding | None:
    if s.pair is None:
        return None
    asked, limit, card = sum(s.pair), s.ceiling.stated_limit_mib(), s.ceiling.lowest
    kept = [f"a reserve of {mib(s.ceiling.reserve_mib)}"] if s.ceiling.reserve_mib else []
    kept += [f"{mib(card.others_mib)} reserved for others"] if card.others_mib else []
    reserve = f", less {' and '.join(kept)}" if kept else ""
    held_back = asked <= card.mib
    source = f"personal reserve: {'; '.join(s.ceiling.labels)}" if kept and held_back else card.line
    says = (
        f"The pair {_pair_text(s.pair)} is {mib(asked)}; the ceiling of card {card.card} is {mib(card.mib)}{reserve}."
    )
    holds = asked <= limit
    if not holds and s.pair == (s.running.weights.mib, s.running.kv.mib):
        # It was planned from another print of the same memory: it is over only where no rounding explains it.
        holds = asked <= limit + card.plus_minus_mib
        says += f" What runs is within the rounding, ± {card.plus_minus_mib:g}."
    if not holds:
        fits = int(limit - s.pair[1])
        clear = s.ceiling.sure_limit_mib() - int(s.pair[1])
        also = "and it is" if clear == fits else f"and {mib(clear)} is"
        says = (
            f"Asked {mib(asked)} ({_pair_text(s.pair)}), ceiling {mib(card.mib)} ± {card.plus_minus_mib:g} on "
            f"card {card.card}{reserve}: {mib(asked - limit)} too much. "
            + (
                f"With this pool the largest slab that fits is {mib(fits)}, {also} clear of the rounding."
                if clear > 0
                else f"A pool of {mib(s.pair[1])} leaves no room for a slab; the pair together can have "
                f"{mib(max(0.0, limit))}."
            )
        )
    return Finding("pair_within_ceiling", holds, says, source, True)


def _host_pool_holds_the_rest(s: Situation) -> Finding | str | None:
    if s.pair is None:
        return None
    statics = statics_mib(s.ledger)
    if s.pair[0] < statics and s.pair[0] < s.running.weights.low_mib:
        says = (
            f"A slab of {mib(s.pair[0])} does not hold the {mib(statics)} that never leave the card. The smallest that "
            f"holds them is {mib(math.ceil(statics))}."
        )
        return Finding("host_pool_holds_the_rest", False, says, f"mover: {number(statics)} MiB static vram", True)
    check = host_pool_check(s.ledger, s.running.weights, s.pair[0], s.request.host_pool_mib)
    if isinstance(check, str):
        return f"host_pool_holds_the_rest could not be judged: {check}"
    says = check.says if check.holds else f"{check.says} {_beside_a_larger_slab(s)}"
    return Finding("host_pool_holds_the_rest", check.holds, says, check.line, True)


def _beside_a_larger_slab(s: Situation) -> str:
    """The smallest slab that the host pool allows, and what a fill beside it could back."""
    smallest = smallest_slab_mib(s.ledger, s.running.weights, s.request.host_pool_mib)
    if smallest is None:
        return "No slab that this boot tells of is large enough for that host pool."
    says = f"As it is, the slab must have {mib(smallest)}"
    request = s.request
    limit = s.ceiling.sure_limit_mib(request.shape_margin_mib)
    if smallest >= limit:
        return f"{says}, and the pair together can have {mib(max(0, limit))}."
    if not s.figures.known:
        return f"{says}."
    pool = limit - smallest
    held = fitting_shapes(
        s.figures, pool - s.figures.alignment_mib, s.shape, request.live, request.backing, s.exact_sequences
    )
    return f"{says}; a pool beside that holds {held or 'no such shape'}."


def _rows_within_exact_wire(s: Situation) -> Finding | str | None:
    wire = s.ledger.get("wire") or {}
    mode, exact = wire.get("mode"), wire.get("exact_rows")
    if mode is None or (mode != "exact" and exact is None):
        return (
            "rows_within_exact_wire could not be judged: the boot does not tell its tensor-parallel wire "
            "and its exact rows."
        )
    if mode == "exact" or exact is None:
        return None
    effective = s.running.effective
    rows, was = effective(s.shape).sampler_rows, effective(s.running.shape).sampler_rows
    holds = rows <= exact
    says = f"A full decode step has {rows:,} rows; steps of at most {exact:,} rows are exact on the {mode} wire."
    if not holds:
        depth = effective(s.shape).num_speculative_tokens
        most = exact // (depth + 1)
        says += f" At depth {depth} at most {most:,} sequences stay exact." if most else " No sequence stays exact."
    source = next(
        (w["text"] for w in s.ledger.get("warnings") or [] if str(w.get("text", "")).startswith("tp wire:")),
        f"tp wire: Steps of at most {exact} rows are exact",
    )
    return Finding("rows_within_exact_wire", holds, says, source, False, was <= exact or rows > was)


def _chunk_within_interval(s: Situation) -> Finding | str:
    chunk = s.ledger.get("chunk") or {}
    tokens, bound_by = chunk.get("prefill_tokens"), chunk.get("bound_by")
    if tokens is None or bound_by is None:
        return "chunk_within_interval could not be judged: the boot does not tell its chunk geometry."
    holds = bound_by != "checkpoint_interval"
    says = f"Prefill chunks of {tokens:,} tokens stay within the checkpoint interval."
    if not holds:
        says = (
            f"Prefill chunks are cut to {tokens:,} tokens by the checkpoint interval, so {_step_budget(s)} only costs "
            f"arena: {_arena_lost(s, tokens)} Lower --max-num-batched-tokens to {tokens}, or raise "
            "--checkpoint-interval."
        )
    source = f"chunk geometry: prefill chunks of at most {tokens}" + (
        "" if holds else " (the checkpoint interval, not the budget)"
    )
    # No request of ours moves the step budget or the interval, so none can make this worse.
    return Finding("chunk_within_interval", holds, says, source, False, False)


def _step_budget(s: Situation) -> str:
    """The step budget that was asked for; the command line of a boot that was given none has the engine's default."""
    flags = s.ledger.get("flags") or {}
    text = flags.get("max-num-batched-tokens")
    if text is not None:
        return f"the larger step budget (--max-num-batched-tokens {text})"
    return f"the engine's default step budget of {DEFAULT_STEP_TOKENS:,}" if flags else "the larger step budget"


def _arena_lost(s: Situation, tokens: int) -> str:
    """MiB of arena that the chunk does not use, as far as one boot tells.

    The arena is printed for the whole step budget. What it lends to the slab is what a still smaller step does without,
    hence the most that a step of ``tokens`` can do without.
    """
    printed = ((s.ledger.get("budget") or {}).get("rows") or {}).get("activation_arena")
    if printed is None:
        return "how many MiB cannot be told, the boot prints no arena."
    arena = size_from_dict(printed)
    lent = [
        size_from_dict(row["size"]).high_mib
        for row in s.ledger.get("lent") or []
        if row.get("from") == "activation_arena" and row.get("size")
    ]
    most = f"at most {mib(max(lent))} of its {arena.text}, which is what it lends at its smallest step" if lent else ""
    one_boot = f"one boot at {tokens} prints the arena to compare"
    return f"{most}; {one_boot}." if most else f"how many of its {arena.text} cannot be told, {one_boot}."


def _headroom_kept(s: Situation) -> Finding | None:
    if s.pair is None:
        return None
    card = s.ceiling.lowest
    limit = s.ceiling.stated_limit_mib()
    left = rounded(limit - sum(s.pair))
    if left < 0:
        # Past the ceiling itself: pair_within_ceiling says it, with the numbers.
        return None
    holds = left >= s.margin_mib
    reserves = " and the personal reserves" if s.ceiling.labels else ""
    says = f"{mib(left)} stay free above the floor of {mib(card.floor.mib)}{reserves}"
    source = card.line
    if s.margin_mib:
        what = "another stack" if s.stack_changes else "a grown shape"
        source = f"personal reserve: shape_margin_mib {s.margin_mib}, for what {what} moves in arena and staging"
        says += f"; {what} is given {mib(s.margin_mib)} for its arena and staging"
    says += "." if holds else ". Plan with pair: fill, which leaves it, or state a smaller pair."
    return Finding(
        "headroom_kept", holds, says, source, False, left < rounded(limit - s.running.sum_mib) or bool(s.margin_mib)
    )


def _pair_text(pair: tuple[float, float]) -> str:
    return f"{number(pair[0])} + {number(pair[1])}"


RULES: tuple[t.Callable[[Situation], Finding | str | None], ...] = (
    _dtype_known,
    _engine_takes_pair,
    _pair_within_ceiling,
    one_request_fits,
    _host_pool_holds_the_rest,
    pool_meets_contract,
    pool_holds_live_sessions,
    _rows_within_exact_wire,
    _chunk_within_interval,
    _headroom_kept,
)
