# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates: bounds that must hold before a restart, each with the ledger line it came from or its label.

Hard gates are what the engine or the card cannot take. Soft gates block only what a request makes worse, and can be
accepted with a reason. A gate whose rows this ledger lacks is not judged, and a warning says so.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.ceiling import Ceiling
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.contract import (
    Figures,
    largest_context,
    most_sequences,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.running import Running, was_stated
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import (
    KNOWN_DTYPES,
    NO_PAIR_FROM,
    Shape,
    at_least,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.slots import host_pool_check
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Json, Ledger, mib, number, rounded

# Gates that another pair could mend; the others speak of the shape or the engine alone.
PAIR_GATES = (
    "pair_within_ceiling",
    "one_request_fits",
    "host_pool_holds_the_rest",
    "pool_meets_contract",
    "headroom_kept",
)


class Situation(t.NamedTuple):
    """All that a gate is judged by: what runs, and one candidate (pair None where the engine splits the card)."""

    ledger: Ledger
    request: Request
    running: Running
    running_figures: Figures | None
    ceiling: Ceiling
    shape: Shape
    pair: tuple[float, float] | None
    figures: Figures
    version: str | None

    @property
    def margin_mib(self) -> int:
        """What a grown shape's arena and staging may want beyond today's; 0 for a shape that does not grow."""
        return self.request.shape_margin_mib if self.shape.grows_from(self.running.shape) else 0


class Finding(t.NamedTuple):
    """A gate judged. ``worse`` tells whether the request worsens what runs (a hard gate always counts as worse)."""

    name: str
    holds: bool
    says: str
    source: str
    hard: bool
    worse: bool = True


class Verdict(t.NamedTuple):
    """The gates of a candidate: those in the plan, those of them that block, and the sentences beside them."""

    gates: list[Json]
    blocked: list[Finding]
    warnings: list[str]


def judge(situation: Situation, *, restart: bool = True) -> Verdict:
    """Judge a candidate. Without a restart nothing is gated: what fails today is a warning."""
    verdict = Verdict([], [], [])
    for rule in _RULES:
        finding = rule(situation)
        if isinstance(finding, str):
            verdict.warnings.append(finding)
            continue
        if finding is None:
            continue
        accepted = situation.request.accept.get(finding.name) if not (finding.hard or finding.holds) else None
        if not finding.holds and accepted is None and (not restart or not finding.worse):
            verdict.warnings.append(f"What runs already fails {finding.name}: {finding.says}")
            continue
        verdict.gates.append(
            {
                "name": finding.name,
                "holds": finding.holds,
                "says": finding.says,
                "from": finding.source,
                "hard": finding.hard,
                "accepted": accepted,
            }
        )
        if not finding.holds and accepted is None:
            verdict.blocked.append(finding)
    return verdict


def pair_holds(situation: Situation) -> bool:
    """Whether no gate that another pair could mend fails unaccepted for the candidate."""
    findings = [rule(situation) for rule in _RULES]
    return all(
        finding.holds or finding.name in situation.request.accept
        for finding in findings
        if isinstance(finding, Finding) and finding.name in PAIR_GATES
    )


def _dtype_known(s: Situation) -> Finding:
    dtype = s.shape.kv_cache_dtype
    holds = dtype in KNOWN_DTYPES or dtype == s.running.shape.kv_cache_dtype
    says = f"The cache dtype {dtype} is one that the engine takes: bf16, fp8, or what already runs."
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
    if not was_stated(s.ledger):
        return (
            "engine_takes_pair could not be judged: neither the ledger nor engine_version tells the engine's version, "
            "and this boot derived its pair."
        )
    row, name = (
        ("vram_weights", "--vram-weights-mib") if budget.get("weights") == "stated" else ("vram_kv", "--vram-kv-mib")
    )
    text = (rows.get(row) or {}).get("text", "")
    says = "The engine that runs took a stated pair."
    return Finding("engine_takes_pair", True, says, " ".join(f"{row} {text} stated by {name}".split()), True)


def _pair_within_ceiling(s: Situation) -> Finding | None:
    if s.pair is None:
        return None
    asked, limit, card = sum(s.pair), s.ceiling.stated_limit_mib(), s.ceiling.lowest
    reserve = f", less a reserve of {mib(s.ceiling.reserve_mib)}" if s.ceiling.reserve_mib else ""
    held_back = asked <= card.mib
    source = f"personal reserve: {s.ceiling.reserve_reason}" if s.ceiling.reserve_mib and held_back else card.line
    says = (
        f"The pair {_pair_text(s.pair)} is {mib(asked)}; the ceiling of card {card.card} is {mib(card.mib)}{reserve}."
    )
    if asked > limit:
        fits = int(limit - s.pair[1])
        clear = s.ceiling.sure_limit_mib() - int(s.pair[1])
        says = (
            f"Asked {mib(asked)} ({_pair_text(s.pair)}), ceiling {mib(card.mib)} ± {card.plus_minus_mib:g} on "
            f"card {card.card}{reserve}: {mib(asked - limit)} too much. "
            + (
                f"With this pool the largest slab that fits is {mib(fits)}, and {mib(clear)} is clear of the rounding."
                if clear > 0
                else f"A pool of {mib(s.pair[1])} leaves no room for a slab; the pair together can have {mib(limit)}."
            )
        )
    return Finding("pair_within_ceiling", asked <= limit, says, source, True)


def _one_request_fits(s: Situation) -> Finding | None:
    if s.pair is None:
        return None
    needed = s.figures.filled_mib(s.shape, "one_request")
    holds = s.pair[1] >= needed - 1e-6
    says = (
        f"One request of {s.shape.max_model_len:,} tokens needs a pool of {mib(needed)}; the pool is {mib(s.pair[1])}."
    )
    if not holds:
        says += (
            f" The engine would refuse it for good. Give the pool at least {mib(math.ceil(needed))}, or "
            "a shorter max_model_len."
        )
    return Finding("one_request_fits", holds, says, _figures_source(s.figures), True)


def _host_pool_holds_the_rest(s: Situation) -> Finding | str | None:
    if s.pair is None:
        return None
    check = host_pool_check(s.ledger, s.running.weights, s.pair[0], s.request.host_pool_mib)
    if isinstance(check, str):
        return f"host_pool_holds_the_rest could not be judged: {check}"
    return Finding("host_pool_holds_the_rest", check.holds, check.says, check.line, True)


def _pool_meets_contract(s: Situation) -> Finding | None:
    if s.pair is None:
        return None
    backing, pool = s.request.backing, s.pair[1]
    needed = s.figures.needed_mib(s.shape, backing)
    holds = pool >= needed - 1e-6
    sequences = "one request" if backing == "one_request" else f"{s.shape.max_num_seqs:,} sequences"
    says = f"{sequences} of {s.shape.max_model_len:,} tokens at once need {mib(needed)}; the pool is {mib(pool)}."
    says = says[0].upper() + says[1:]
    if not holds:
        says += f" It is {mib(needed - pool)} short. {_smaller_shapes(s, pool)}the shape asked needs a pool of "
        says += f"{mib(math.ceil(needed))}."
    worse = True
    if s.running_figures is not None:
        was = s.running.kv.mib - s.running_figures.needed_mib(s.running.shape, backing)
        worse = was >= 0 or pool - needed < was - 1e-6
    source = _figures_source(s.figures)
    if backing == "one_request":
        source = f"personal choice: backing one_request, {s.request.backing_reason}"
    return Finding("pool_meets_contract", holds, says, source, False, worse)


def _smaller_shapes(s: Situation, pool: float) -> str:
    """What this pool does hold, each a request that the gates of the pool let pass; empty where it is nothing."""
    context = largest_context(s.figures, pool, s.shape)
    count = most_sequences(s.figures, pool, s.shape)
    held = [f"{context:,} tokens for {_sequences(s.shape.max_num_seqs)}"] if context else []
    held += [f"{_sequences(count)} of {s.shape.max_model_len:,} tokens"] if count else []
    return f"This pool holds {', or '.join(held)}; " if held else "This pool holds no such shape; "


def _sequences(count: int) -> str:
    return f"{count:,} sequence{'' if count == 1 else 's'}"


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
        most = exact // (effective(s.shape).num_speculative_tokens + 1)
        says += f" At this speculation depth {most:,} sequences stay exact."
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
            f"Prefill chunks are cut to {tokens:,} tokens by the checkpoint interval, so a larger step budget only "
            "costs arena. Lower --max-num-batched-tokens to it, or raise --checkpoint-interval."
        )
    source = f"chunk geometry: prefill chunks of at most {tokens}" + (
        "" if holds else " (the checkpoint interval, not the budget)"
    )
    # No request of ours moves the step budget or the interval, so none can make this worse.
    return Finding("chunk_within_interval", holds, says, source, False, False)


def _headroom_kept(s: Situation) -> Finding | None:
    if s.pair is None:
        return None
    card = s.ceiling.lowest
    left = rounded(card.mib - sum(s.pair))
    if left < 0:
        # Past the ceiling itself: pair_within_ceiling says it, with the numbers.
        return None
    holds = left >= s.margin_mib
    says = f"{mib(left)} stay free above the floor of {mib(card.floor.mib)}"
    source = card.line
    if s.margin_mib:
        source = f"personal reserve: shape_margin_mib {s.margin_mib}, for what a grown shape moves in arena and staging"
        says += f"; a grown shape is given {mib(s.margin_mib)} for its arena and staging"
    says += "." if holds else ". Plan with pair: fill, which leaves it, or state a smaller pair."
    return Finding(
        "headroom_kept", holds, says, source, False, left < rounded(card.mib - s.running.sum_mib) or bool(s.margin_mib)
    )


def _pair_text(pair: tuple[float, float]) -> str:
    return f"{number(pair[0])} + {number(pair[1])}"


def _figures_source(figures: Figures) -> str:
    return ("kv: " if figures.figures_from == "ledger" else "") + "; ".join(figures.lines)


_RULES: tuple[t.Callable[[Situation], Finding | str | None], ...] = (
    _dtype_known,
    _engine_takes_pair,
    _pair_within_ceiling,
    _one_request_fits,
    _host_pool_holds_the_rest,
    _pool_meets_contract,
    _rows_within_exact_wire,
    _chunk_within_interval,
    _headroom_kept,
)
