# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the pool holds N sequences of the full window at the same time, each with its own text.

N prompts that fill the window but for what they generate, each with a marker as its first word, one in its middle and
one at its end, are sent at once and streamed. Every sequence goes on generating until the last one has its first token,
so that all of them hold the pool together; that they did is shown by the times of their tokens, and by the engine's own
/stats. Meanwhile the cards are watched, and a short prompt must still be answered right when the long ones are through.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import threading
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import client as http
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import corpus
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.after import check_after
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import Said, ask, fields
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import json_body
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.calibration import (
    RESERVES,
    Calibration,
    calibrate,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cards import CardWatch
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cost import (
    CHUNK_TOKENS,
    SPECULATIVE_TOKENS,
    boundary_generate_tokens,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.edge import Seat, check_edge
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.facts import (
    QUICK_SECONDS,
    Facts,
    Inconclusive,
    read_facts,
    refuse_key,
    wait_for_idle,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.judging import (
    Look,
    Plan,
    conclude,
    findings_of,
    judge_reply,
    queued,
    spilled,
    unasked,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import Settings
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.watch import Watch
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

# After these nothing more is asked: the endpoint is gone, or hangs.
_ENDS = frozenset({"gone", "late"})


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
            "queue and prove nothing",
            "not_served",
        )
    if facts.max_model_len is not None and window > facts.max_model_len:
        raise Inconclusive(
            f"max_model_len: a window of {window:,} tokens asked, and the endpoint serves {facts.max_model_len:,}",
            "not_served",
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
    return Plan(sequences, window, generate, prompt_tokens, int(prompt_tokens * chars_per_token), method is not None)


def probe(settings: Settings) -> dict[str, t.Any]:
    """Run the probe: ``{boundary, calibration}``. Raises RadianceError for a wrong key or nothing listening."""
    calibration: Calibration | None = None
    sequences = settings.sequences
    try:
        facts = read_facts(settings.client, settings.model, settings.timeout, settings.load_timeout)
        sequences, window, generate = plan_boundary(facts, settings)
        wait_for_idle(settings.client, settings.require_idle, settings.timeout)
        ratio, method = settings.chars_per_token, None
        if ratio is None:
            calibration = calibrate(settings.client, facts, settings.timeout)
            ratio, method = calibration.chars_per_token, calibration.method
            if ratio is None:
                raise Inconclusive(f"the prompts cannot be sized: {calibration.says}", "no_ratio")
        plan = size_boundary(sequences, window, generate, ratio, method)
        wait_for_idle(settings.client, settings.require_idle, settings.timeout)
        boundary = _run(settings, facts, plan, RESERVES[method])
    except Inconclusive as reason:
        boundary = unasked(sequences, reason.cause, reason.says)
    return {"boundary": boundary, "calibration": calibration.as_dict() if calibration else None}


def _run(settings: Settings, facts: Facts, plan: Plan, reserve: float) -> dict[str, t.Any]:
    seats = [Seat(words, corpus.fresh_seed()) for words in corpus.code_words(plan.sequences)]
    with CardWatch(settings.cards) as cards:
        with Watch(settings.client) as watch:
            said = _ask_all(settings, facts, plan, seats)
        looks = _looks(plan, seats, said)
        if any(look.cause == "cut" for look in looks):
            looks = _after_a_cut(settings.client, looks)
        findings = findings_of(plan, looks, said, watch.samples)
        if not settings.require_idle:
            findings += queued(said)
        after = edge = None
        if not any(look.cause in _ENDS for look in looks):
            after, more = check_after(settings, facts, [word for seat in seats for word in seat.words])
            findings += more
        if settings.full and not any(finding.failed or finding.cause in _ENDS for finding in findings):
            # The first reply has counted the text that the edge goes on from.
            counted = said[0].heard.prompt_tokens or plan.prompt_tokens
            edge, more = check_edge(settings, facts, plan._replace(prompt_tokens=counted), seats[0], reserve)
            findings += more
    memory = cards.memory()
    findings += spilled(memory)
    boundary = conclude(plan, looks, said, watch.samples, findings)
    if edge is not None and edge["verdict"] == "passed":
        boundary["says"] += f"; {edge['says']}"
    return {**boundary, "memory": memory, "after": after, "edge": edge}


def _ask_all(settings: Settings, facts: Facts, plan: Plan, seats: t.Sequence[Seat]) -> list[Said]:
    """Send all prompts at once and hear all replies. Raises Inconclusive, and RadianceError for a wrong key."""
    said: list[Said | None] = [None] * plan.sequences
    give_up = threading.Event()
    common = fields(
        facts.model, plan.generate_tokens, ignore_eos=True, stream=True, stream_options={"include_usage": True}
    )

    def one(index: int) -> None:
        prompt = corpus.recall_prompt(seats[index].words, plan.chars, seats[index].seed)
        heard = ask(settings.client, json_body(common, prompt), settings.timeout, give_up)
        said[index] = heard
        if heard.failure is not None and heard.failure.kind == "late":
            give_up.set()

    threads = [threading.Thread(target=one, args=(index,), daemon=True) for index in range(plan.sequences)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answered = [one_said for one_said in said if one_said is not None]
    if len(answered) < plan.sequences:
        unmade = plan.sequences - len(answered)
        raise Inconclusive(f"{unmade:,} of {plan.sequences:,} requests could not be made", "no_answer")
    for one_said in answered:
        if one_said.failure is not None and one_said.failure.kind == "key":
            refuse_key(one_said.status)
    return answered


def _looks(plan: Plan, seats: t.Sequence[Seat], said: t.Sequence[Said]) -> list[Look]:
    looks = []
    for index, one_said in enumerate(said):
        others = [word for other, seat in enumerate(seats) if other != index for word in seat.words]
        looks.append(judge_reply(one_said, seats[index].words, others, plan))
    return looks


def _after_a_cut(client: http.Client, looks: t.Sequence[Look]) -> list[Look]:
    """A connection that ended early proves nothing, unless the endpoint is gone with it."""
    fault = client.get("/health", timeout=min(client.timeout, QUICK_SECONDS)).fault
    if fault is None or fault.code != "not_listening":
        return list(looks)
    return [
        look._replace(cause="gone", says=look.says + "; nothing listens there any more")
        if look.cause == "cut"
        else look
        for look in looks
    ]
