# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the pool holds N sequences of the full window at the same time, each with its own text.

N prompts that fill the window but for what they generate, each with its marker as the first word, are sent at once
and streamed. Every sequence goes on generating until the last one has its first token, so that all of them hold the
pool together; that they did is shown by the times of their tokens, and by the engine's own /stats.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import threading
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import client as http
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import corpus
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import Said, ask, fields
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import json_body
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.calibration import (
    RESERVES,
    Calibration,
    calibrate,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cost import (
    CHUNK_TOKENS,
    SPECULATIVE_TOKENS,
    boundary_generate_tokens,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.facts import (
    QUICK_SECONDS,
    Facts,
    Inconclusive,
    read_facts,
    refuse_key,
    wait_for_idle,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.measure import most_at_once
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import Settings
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.watch import Sample, Watch, Witness, summarize
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

# A prompt whose count is below this part of what was sent was cut on its way; calibration is far closer.
_WHOLE = 0.97
# What is judged as a failure of the pool or of the answers; everything else that is not whole proves nothing.
_FAILED = frozenset({"lost", "foreign", "truncated", "engine", "refused", "gone"})


class Plan(t.NamedTuple):
    """One boundary: ``chars`` of prompt that are about ``prompt_tokens``, then ``generate_tokens`` of answer."""

    sequences: int
    window: int
    generate_tokens: int
    prompt_tokens: int
    chars: int


class Look(t.NamedTuple):
    """One reply as judged. ``kind``: found, unsized, oversize, or one of asking.Failure's, or one of ``_FAILED``."""

    kind: str
    marker: str
    says: str


def plan_boundary(facts: Facts, settings: Settings) -> tuple[int, int, int]:
    """(sequences, window, generate_tokens): as asked, or the endpoint's own.

    Raises Inconclusive where more is asked than the endpoint serves, RadianceError where neither says.
    """
    sequences = settings.sequences or facts.max_num_seqs
    window = settings.max_model_len or facts.max_model_len
    if sequences is None or window is None:
        unknown = "max_num_seqs. State sequences" if sequences is None else "max_model_len. State it"
        raise RadianceError(f"The endpoint does not say its {unknown}.", code="shape_unknown")
    if facts.max_num_seqs is not None and sequences > facts.max_num_seqs:
        raise Inconclusive(
            f"sequences: {sequences:,} asked, and the endpoint runs {facts.max_num_seqs:,} at a time; the rest would "
            "queue and prove nothing"
        )
    if facts.max_model_len is not None and window > facts.max_model_len:
        raise Inconclusive(
            f"max_model_len: a window of {window:,} tokens asked, and the endpoint serves {facts.max_model_len:,}"
        )
    depth = SPECULATIVE_TOKENS if facts.speculative_tokens is None else facts.speculative_tokens
    # What the endpoint says is the budget of a step. The checkpoint interval may cut prefill to smaller chunks, which
    # only the boot's log tells: more chunks are more decode steps, so the smaller of both is the safe one.
    chunk = min(facts.chunk_tokens or CHUNK_TOKENS, CHUNK_TOKENS)
    generate = settings.generate_tokens or boundary_generate_tokens(sequences, window, chunk, depth)
    if generate >= window:
        raise RadianceError(
            f"generate_tokens: {generate:,} leaves no room for a prompt in a window of {window:,} tokens. State less "
            f"than {window:,}.",
            code="window_too_small",
        )
    return sequences, window, generate


def size_boundary(sequences: int, window: int, generate: int, chars_per_token: float, method: str | None) -> Plan:
    """The prompt that fills the window but for the answer and a small reserve for what the ratio may be off."""
    room = window - generate
    prompt_tokens = max(1, int(room * (1 - RESERVES[method])) - 8)
    return Plan(sequences, window, generate, prompt_tokens, int(prompt_tokens * chars_per_token))


def judge_reply(said: Said, own: str, others: t.Collection[str], plan: Plan) -> Look:
    """Judge one reply to the prompt with the marker ``own``. Pure."""
    places = {"the answer": said.heard.content, "the reasoning": said.heard.reasoning}
    strange = next((marker for marker in others if any(marker in text for text in places.values())), None)
    if strange is not None:
        return Look("foreign", "foreign", f"CRITICAL: the reply holds {strange}, the marker of another prompt")
    read = said.heard.prompt_tokens
    if said.failure is not None:
        refusal = said.failure.refusal
        if refusal is not None and (refusal.tokens is None or refusal.tokens >= plan.window):
            return Look("oversize", "error", f"the prompt was sized too long: {said.failure.says}")
        inside = f"refused inside a window of {plan.window:,} tokens: " if refusal is not None else ""
        return Look(said.failure.kind, "error", inside + said.failure.says)
    if read is not None and read < _WHOLE * plan.prompt_tokens:
        return Look("truncated", "truncated", f"about {plan.prompt_tokens:,} tokens were sent and {read:,} were read")
    where = next((place for place, text in places.items() if own in text), None)
    if where is not None:
        if read is None:
            return Look("unsized", "found", f"in {where}; the reply does not say how many prompt tokens it read")
        return Look("found", "found", f"in {where}")
    if not said.heard.content:
        spent = "all that was generated went into reasoning" if said.heard.reasoning else "the reply is empty"
        return Look("other", "error", f"{spent}, so that nothing shows whether the marker was read")
    return Look("lost", "lost", f"the reply does not hold {own}")


def judge(
    plan: Plan,
    looks: t.Sequence[Look],
    said: t.Sequence[Said],
    samples: t.Sequence[Sample],
) -> dict[str, t.Any]:
    """The verdict over all replies, with the second witness. Pure.

    Returns ``{asked, retrieved, overlap, verdict, says, replies, witness, max_model_len, generate_tokens}``.
    """
    spans = [(s.heard.first_at, s.heard.last_at) for s in said]
    overlap, stretch = most_at_once((a, b) for a, b in spans if a is not None and b is not None)
    witness = summarize(samples, stretch)
    retrieved = sum(look.marker == "found" for look in looks)
    traffic = (witness.in_flight or 0) > plan.sequences
    failed = [f"sequence {i}: {look.says}" for i, look in enumerate(looks) if look.kind in _FAILED]
    unclear = [f"sequence {i}: {look.says}" for i, look in enumerate(looks) if look.kind not in {*_FAILED, "found"}]
    short = [] if traffic else _pool_too_small(plan, overlap, witness)
    failed += short
    if traffic:
        unclear.append(
            f"other traffic: {witness.in_flight:,} requests in flight where the probe sent {plan.sequences:,}"
        )
    unclear += [] if short else _short_of_overlap(plan, overlap, said, witness)
    verdict = "failed" if failed else "inconclusive" if unclear else "passed"
    says = (
        f"{retrieved:,} of {plan.sequences:,} markers came back and {overlap:,} sequences of about "
        f"{plan.prompt_tokens:,} tokens held the pool at the same time"
    )
    return {
        "asked": plan.sequences,
        "retrieved": retrieved,
        "overlap": overlap,
        "verdict": verdict,
        "says": "; ".join([says, *failed, *unclear]),
        "replies": [
            {
                "index": index,
                "status": one.status,
                "prompt_tokens": one.heard.prompt_tokens,
                "marker": look.marker,
                "says": look.says,
            }
            for index, (look, one) in enumerate(zip(looks, said))
        ],
        "witness": witness.as_dict(),
        "max_model_len": plan.window,
        "generate_tokens": plan.generate_tokens,
    }


def _pool_too_small(plan: Plan, overlap: int, witness: Witness) -> list[str]:
    """What the engine's own account says against the pool: only that can tell a short pool from a short overlap."""
    if witness.preempted:
        return [f"the engine preempted {witness.preempted:,} of them: the pool does not hold them all"]
    needed, total = plan.sequences * plan.prompt_tokens, witness.kv_tokens_total
    if overlap < plan.sequences and total is not None and 0 < total < needed:
        return [f"the pool has {total:,} tokens and they need about {needed:,}: it does not hold them all"]
    return []


def _short_of_overlap(plan: Plan, overlap: int, said: t.Sequence[Said], witness: Witness) -> list[str]:
    if overlap < plan.sequences:
        least = min((s.heard.generated_tokens or 0 for s in said), default=0)
        why = (
            f"one stopped after {least:,} of {plan.generate_tokens:,} tokens"
            if 0 < least < plan.generate_tokens
            else f"more than {plan.generate_tokens:,} generate_tokens would keep them together"
        )
        return [f"only {overlap:,} of {plan.sequences:,} sequences were seen to hold the pool together: {why}"]
    if witness.decoding_within is not None and witness.decoding_within < plan.sequences:
        return [f"/stats shows {witness.decoding_within:,} sequences decoding while {overlap:,} were streaming"]
    return []


def inconclusive(sequences: int | None, says: str) -> dict[str, t.Any]:
    """The boundary of a probe that did not get to ask anything."""
    return {
        "asked": sequences,
        "retrieved": 0,
        "overlap": 0,
        "verdict": "inconclusive",
        "says": says,
        "replies": [],
        "witness": None,
        "max_model_len": None,
        "generate_tokens": None,
    }


def probe(settings: Settings) -> dict[str, t.Any]:
    """Run the probe: ``{boundary, calibration}``. Raises RadianceError for a wrong key or nothing listening."""
    calibration: Calibration | None = None
    sequences = settings.sequences
    try:
        facts = read_facts(settings.client, settings.model, settings.timeout)
        sequences, window, generate = plan_boundary(facts, settings)
        wait_for_idle(settings.client, settings.require_idle, settings.timeout)
        ratio, method = settings.chars_per_token, None
        if ratio is None:
            calibration = calibrate(settings.client, facts, settings.timeout)
            ratio, method = calibration.chars_per_token, calibration.method
            if ratio is None:
                raise Inconclusive(f"the prompts cannot be sized: {calibration.says}")
        plan = size_boundary(sequences, window, generate, ratio, method)
        wait_for_idle(settings.client, settings.require_idle, settings.timeout)
        boundary = _run(settings, facts, plan)
    except Inconclusive as reason:
        boundary = inconclusive(sequences, reason.says)
    return {"boundary": boundary, "calibration": calibration.as_dict() if calibration else None}


def _run(settings: Settings, facts: Facts, plan: Plan) -> dict[str, t.Any]:
    words = corpus.markers(plan.sequences)
    said: list[Said | None] = [None] * plan.sequences
    give_up = threading.Event()
    common = fields(
        facts.model, plan.generate_tokens, ignore_eos=True, stream=True, stream_options={"include_usage": True}
    )

    def one(index: int) -> None:
        prompt = corpus.recall_prompt(words[index], plan.chars, corpus.fresh_seed())
        heard = ask(settings.client, json_body(common, prompt), settings.timeout, give_up)
        said[index] = heard
        if heard.failure is not None and heard.failure.kind == "late":
            give_up.set()

    threads = [threading.Thread(target=one, args=(index,), daemon=True) for index in range(plan.sequences)]
    with Watch(settings.client) as watch:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    answered = [one_said for one_said in said if one_said is not None]
    if len(answered) < plan.sequences:
        raise Inconclusive(f"{plan.sequences - len(answered):,} of {plan.sequences:,} requests could not be made")
    for one_said in answered:
        if one_said.failure is not None and one_said.failure.kind == "key":
            refuse_key(one_said.status)
    looks = [
        judge_reply(one_said, words[index], [w for w in words if w != words[index]], plan)
        for index, one_said in enumerate(answered)
    ]
    if any(look.kind == "cut" for look in looks):
        looks = _after_a_cut(settings.client, looks)
    return judge(plan, looks, answered, watch.samples)


def _after_a_cut(client: http.Client, looks: t.Sequence[Look]) -> list[Look]:
    """A connection that ended early proves nothing, unless the endpoint is gone with it."""
    fault = client.get("/health", timeout=min(client.timeout, QUICK_SECONDS)).fault
    if fault is None or fault.code != "not_listening":
        return list(looks)
    return [
        Look("gone", look.marker, look.says + "; nothing listens there any more") if look.kind == "cut" else look
        for look in looks
    ]
