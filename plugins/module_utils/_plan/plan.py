# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan: a pure function of a ledger and a request.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.ceiling import read_ceiling
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.contract import UNKNOWN_FIGURES, Figures
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.evidence import require_complete
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.figures import kv_figures
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.gates import Verdict, judge
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.law import slab_law
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.options import compared, filled_present, options
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.other_tp import refuse_other_tp
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.pairing import choose_pair
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.predictions import predict, prefill_staging
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.prices import prices
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import (
    NO_KV_MODEL,
    Request,
    read_request,
    refuse_dtype,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.running import Running, read_running, was_stated
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import (
    NO_PAIR_FROM,
    SHAPE_NAMES,
    Shape,
    at_least,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.situation import Finding, Situation
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.spare import ceiling_about, unexplained
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.stack import Stack
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Json, Ledger, counted, mib
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import size_from_dict

SCHEMA = "kvfleet.radiance/plan/1"

# A published sweep of an expert-offload engine on the same cards found garbage after long prompts at 122 MiB free and
# clean answers from 162 MiB on.
CLEAN_FREE_MIB = 162


def make_plan(ledger: Ledger, request: t.Mapping[str, t.Any], *, alternatives: bool = True) -> Json:
    """Plan a resize; ``request`` holds pair_plan's options but the ledger, as they were given.

    Without ``alternatives`` there are neither options nor prices in it, which is most of the work.

    Raises RadianceError: with ``result={"plan": plan}`` and the name of the first failed gate as its code where a gate
    blocks and ``on_gate`` is fail; otherwise for what cannot be planned at all.
    """
    require_complete(ledger)
    asked = read_request(request)
    running = read_running(ledger, asked.running)
    refuse_dtype(asked, running.shape.kv_cache_dtype)
    shape = Shape(**{**running.shape._asdict(), **asked.shape})
    refuse_other_tp(ledger, asked, running, shape)
    ceiling = read_ceiling(
        ledger,
        running.weights,
        running.kv,
        reserve_mib=asked.reserve_mib,
        reserve_reason=asked.reserve_reason,
        reserved=asked.reserved,
    )
    stack = Stack(ledger, asked)
    figures, warnings = _wanted_figures(ledger, running, shape, asked, at_least(stack.version, NO_PAIR_FROM))
    _refuse_sessions_without_cache(ledger, asked)
    base = Situation(
        ledger,
        asked._replace(arms=stack.comparable_arms(asked.arms)),
        running,
        _running_figures(ledger, running, shape, asked),
        ceiling,
        shape,
        None,
        figures,
        stack.version,
        bool(stack.changes),
        stack.digest,
    )
    choice = choose_pair(base)
    warnings += choice.warnings
    candidate = base._replace(pair=choice.pair)
    changes = _changes(candidate, stack)
    if changes and choice.pair == (running.weights.mib, running.kv.mib) and not running.exact:
        raise RadianceError(
            f"The running pair is only known as printed, {running.weights.text} + {running.kv.text}, and a restart "
            "needs whole MiB. State running.weights_mib and running.kv_mib, or plan with pair: fill.",
            code="pair_not_exact",
        )
    verdict = judge(candidate, restart=bool(changes))
    law = slab_law(
        base.request.arms,
        choice.pair[0] if choice.pair else running.weights.mib,
        shape.kv_cache_dtype,
        stack=asked.stack,
        version=stack.version,
        digest=stack.digest,
    )
    if choice.pair is None:
        law = law._replace(
            status="none", tps=None, says="The engine splits the card itself: its slab is not known yet."
        )
    predictions = predict(candidate, law, stack=stack.text, stack_changes=bool(stack.changes))
    about_ceiling = ceiling_about(ledger, running, ceiling, choice.pair)
    warnings += unexplained(about_ceiling)
    warnings += [*stack.warnings(asked.arms), *verdict.warnings, *_remarks(candidate, predictions, bool(changes))]
    alternatives = alternatives and not at_least(stack.version, NO_PAIR_FROM)
    pool = None if choice.pair is None else choice.pair[1]
    plan: Json = {
        "schema": SCHEMA,
        "from": running.shape.with_pair(running.weights.mib, running.kv.mib),
        "to": shape.with_pair(*(choice.pair or (None, None))),
        "changes": changes,
        "restart": bool(changes),
        "ceiling": {**ceiling.as_dict(), **about_ceiling},
        "contract": figures.as_dict(shape, pool, asked.backing, asked.live),
        "gates": verdict.gates,
        "options": options(base) if alternatives else [],
        "prices": prices(base) if alternatives else [],
        "predictions": predictions,
        "law": law.as_dict(),
        "warnings": list(dict.fromkeys(warnings)),
        "fingerprint": ledger.get("fingerprint"),
    }
    if verdict.blocked and asked.on_gate == "fail":
        raise RadianceError(_refusal(verdict), code=verdict.blocked[0].name, result={"plan": plan})
    return plan


def attempt_id(plan: t.Mapping[str, t.Any], image: str | None = None) -> str:
    """The id of an attempt to carry out a plan: the same for the same boot and the same wanted pair and shape.

    ``image`` is another image that is asked for with it, where one is.
    """
    goal = {"fingerprint": plan["fingerprint"], "to": plan["to"], **({"image": image} if image else {})}
    text = json.dumps(goal, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:12]


def _refuse_sessions_without_cache(ledger: Ledger, request: Request) -> None:
    if request.live is not None and "no-prefix-cache" in (ledger.get("flags") or {}):
        raise RadianceError(
            f"{counted(request.live.sessions, 'live session')} shall stay in the pool, and this service runs with "
            "--no-prefix-cache: no pool keeps a block of a finished session. Take live_sessions out, or the flag.",
            code="prefix_cache_off",
        )


def _wanted_figures(
    ledger: Ledger, running: Running, shape: Shape, request: Request, engine_splits: bool
) -> tuple[Figures, list[str]]:
    """The figures of the wanted shape, and warnings; unknown ones only where no pair has to be found by them.

    That is a stated pair that ran here before, and an engine that splits the card itself.
    """
    effective = running.effective
    try:
        return kv_figures(
            ledger,
            effective(running.shape),
            effective(shape),
            request.kv_model,
            request.engine_version,
            running.kv,
        )
    except RadianceError as error:
        whole = request.weights_mib is not None and request.kv_mib is not None
        ran = request.ran_before is not None and whole
        if not (ran or engine_splits):
            raise
        why = f"It ran here before ({request.ran_before})" if ran else "The engine splits the card itself"
        said = f"{error.text.split(':')[0]}: the contract is not told. {why}, so it is not refused."
        return UNKNOWN_FIGURES, [said]


def _running_figures(ledger: Ledger, running: Running, shape: Shape, request: Request) -> Figures | None:
    """The figures of the running shape; a kv_model speaks for it only where the cache stays the same."""
    now = running.effective(running.shape)
    model = request.kv_model if running.effective(shape).same_cache(now) else NO_KV_MODEL
    try:
        return kv_figures(ledger, now, now, model, None, running.kv)[0]
    except RadianceError:
        return None


def _changes(candidate: Situation, stack: Stack) -> list[str]:
    running, request = candidate.running, candidate.request
    changes = []
    if candidate.pair is not None:
        changes += [
            name
            for name, now, to in (
                ("weights_mib", running.weights, candidate.pair[0]),
                ("kv_mib", running.kv, candidate.pair[1]),
            )
            if to != now.mib
        ]
    elif was_stated(candidate.ledger):
        changes += ["weights_mib", "kv_mib"]
    changes += [name for name in SHAPE_NAMES if getattr(candidate.shape, name) != getattr(running.shape, name)]
    if request.host_pool_mib is not None and not _is_host_pool(candidate.ledger, request.host_pool_mib):
        changes.append("host_pool_mib")
    return changes + stack.changes


def _is_host_pool(ledger: Ledger, wanted: int) -> bool:
    """Whether the host pool already has this size: by the command line, else by what was printed for each rank."""
    flag = (ledger.get("flags") or {}).get("host-pool-mib")
    if flag is not None:
        return bool(flag == str(wanted))
    budgets = [size_from_dict(row["budget"]) for row in ledger.get("host_pool") or [] if row.get("budget")]
    return bool(budgets) and all(size.low_mib <= wanted <= size.high_mib for size in budgets)


def _remarks(candidate: Situation, predictions: t.Sequence[Json], restart: bool) -> list[str]:
    """Warnings that are neither a gate's nor the stack's."""
    said = []
    request, figures, shape = candidate.request, candidate.figures, candidate.shape
    if candidate.running.drafts is not None:
        said.append(_fewer_drafts(candidate.running))
    staging, _rounding = prefill_staging(candidate)
    if staging and restart and candidate.pair is not None and request.pair != "keep":
        said.append(
            f"This boot derived its slab, and {mib(staging)} of it went into prefill staging that a stated slab is not "
            "charged: the ceiling does not count on them, and a second fill may find them free."
        )
    if request.backing == "one_request" and figures.known:
        said.append(
            f"The pool is asked to back one request of {shape.max_model_len:,} tokens ({request.backing_reason}); all "
            f"{shape.max_num_seqs:,} sequences at once would need {mib(figures.needed_mib(shape))}."
        )
    flags = candidate.ledger.get("flags") or {}
    tier = flags.get("prefix-cache-host-mib", "0")
    if request.live is not None and tier not in ("", "0"):
        said.append(
            f"This service copies finished sessions to host memory (--prefix-cache-host-mib {tier}): one whose blocks "
            "the pool gave up comes back from there, so live_sessions asks for speed here, not for survival."
        )
    trained = (candidate.ledger.get("model") or {}).get("trained_context")
    if trained and shape.max_model_len > trained:
        said.append(
            f"A context of {shape.max_model_len:,} tokens is beyond the {trained:,} that the model was trained for."
        )
    cache = flags.get("prefix-cache-dir")
    if cache and shape.kv_cache_dtype != candidate.running.shape.kv_cache_dtype:
        said.append(
            f"The prefix cache in {cache} was written in {candidate.running.shape.kv_cache_dtype}: what it holds is of "
            f"no use to a cache in {shape.kv_cache_dtype}."
        )
    if figures.checkpoint_slots and figures.checkpoint_slots < shape.max_num_seqs:
        said.append(
            f"{figures.checkpoint_slots} checkpoint slots are fewer than {shape.max_num_seqs} sequences: "
            "the prefix cache cannot keep a snapshot for each. --checkpoint-slots sets them."
        )
    free = [prediction for prediction in predictions if prediction["quantity"] == "settled_free_mib"]
    without_region = {card.card for card in candidate.ceiling.cards if not card.static_region}
    for prediction in free:
        if prediction["card"] in without_region and prediction["low"] < CLEAN_FREE_MIB:
            said.append(
                f"Card {prediction['card']} may settle at {mib(max(0.0, prediction['low']))} free, and this engine "
                "prints no static region: a public sweep of an expert-offload engine on such a card found wrong "
                f"answers after long prompts at 122 MiB and clean ones from {CLEAN_FREE_MIB} MiB. reserve_mib keeps "
                "more free."
            )
    if restart and candidate.pair is not None:
        filled = filled_present(candidate)
        if filled is not None and candidate.pair[0] < filled[0]:
            said.append(compared(candidate, candidate.pair[0], filled))
    return said


def _fewer_drafts(running: Running) -> str:
    asked, drafts = running.shape.num_speculative_tokens, running.drafts or 0
    at_most = f"at most {drafts}" if drafts else "none"
    return (
        f"A speculation depth of {asked} is asked for, and this boot's sampler has the rows of {drafts}: the model "
        f"drafts {at_most}, so no more than that counts in rows, cache and contract."
    )


def _refusal(verdict: Verdict) -> str:
    """Every blocking gate: what was asked, what there is, the line it came from, and the way out."""
    return " ".join(_refused(finding) for finding in verdict.blocked)


def _refused(finding: Finding) -> str:
    accepting = json.dumps({"accept": [{"gate": finding.name, "reason": "WHY"}]})
    way_out = "" if finding.hard else f" Or accept {finding.name} with a reason: -e '{accepting}'."
    return f"{finding.name}: {finding.says}{way_out} From: {finding.source!r}."
