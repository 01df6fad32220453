# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prefill and decode rates of one stream, cold, by the server's timings and by the wall clock.

Each run sends a prompt that no cache can know. Prefill is the prompt's tokens over the time to the first token,
decode the further tokens over the time from the first to the last. The server's own figure is returned where the wall
clock bears it out, the wall clock's where there is none, and none at all where the two contradict each other.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import corpus
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import ask, fields
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import json_body
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.calibration import Calibration, calibrate
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cost import (
    LATER_TOKENS,
    RATE_GENERATE_TOKENS,
    RATE_PROMPT_TOKENS,
    RATE_RUNS,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.counters import (
    Counters,
    growth,
    others_counted,
    read_counters,
    total,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.facts import (
    Facts,
    Inconclusive,
    read_facts,
    refuse_key,
    wait_for_idle,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.measure import median
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import Settings
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.scoring import Bounds, conclude, score
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.turns import (
    Sizes,
    Talk,
    concurrent_decode,
    second_turn,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.watch import Watch, read_clock, summarize


def probe(settings: Settings) -> dict[str, t.Any]:
    """Run the probe: ``{rates, calibration}``. Raises RadianceError for a wrong key, nothing listening, bad options."""
    calibration: Calibration | None = None
    runs_wanted = settings.runs or RATE_RUNS
    prompt_tokens = settings.prompt_tokens or RATE_PROMPT_TOKENS
    generate_tokens = settings.generate_tokens or RATE_GENERATE_TOKENS
    try:
        facts = read_facts(settings.client, settings.model, settings.timeout, settings.load_timeout)
        window = facts.max_model_len
        wanted = prompt_tokens + generate_tokens + (LATER_TOKENS if settings.full else 0)
        if window is not None and wanted > window:
            later = f", and {LATER_TOKENS:,} for a second turn," if settings.full else ""
            raise Inconclusive(
                f"prompt_tokens: {prompt_tokens:,} and {generate_tokens:,} to generate{later} do not fit the "
                f"{window:,} token window that the endpoint serves",
                "not_served",
            )
        wait_for_idle(settings.client, settings.require_idle, settings.timeout)
        ratio = settings.chars_per_token
        if ratio is None:
            calibration = calibrate(settings.client, facts, settings.timeout)
            ratio = calibration.chars_per_token
            if ratio is None:
                raise Inconclusive(f"the prompts cannot be sized: {calibration.says}", "no_ratio")
        sizes = Sizes(prompt_tokens, int(prompt_tokens * ratio), generate_tokens)
        rates = _run(settings, facts, runs_wanted, sizes)
    except Inconclusive as reason:
        rates = {**conclude([], runs_wanted), "says": reason.says}
    return {"rates": rates, "calibration": calibration.as_dict() if calibration else None}


def _run(settings: Settings, facts: Facts, runs_wanted: int, sizes: Sizes) -> dict[str, t.Any]:
    common = fields(facts.model, sizes.generate, ignore_eos=True, stream=True, stream_options={"include_usage": True})
    runs: list[dict[str, t.Any]] = []
    talks: list[Talk] = []
    counts: list[Counters] = []
    bounds = Bounds(settings.most_prefill_tps, settings.most_decode_tps, facts.speculative_tokens)
    alone = True
    # The first one pays for compiling and is not scored.
    for index in range(runs_wanted + 1):
        wait_for_idle(settings.client, settings.require_idle, settings.timeout)
        talks.append(Talk(corpus.marker(), corpus.fresh_seed()))
        prompt = corpus.cold_prompt(talks[-1].nonce, sizes.chars, talks[-1].seed)
        before = read_counters(settings.client)
        with Watch(settings.client) as watch:
            said = ask(settings.client, json_body(common, prompt), settings.timeout)
        if said.failure is not None:
            if said.failure.kind == "key":
                refuse_key(said.status)
            if not index:
                raise Inconclusive(f"warm-up: {said.failure.says}", said.failure.kind)
        counted = growth(before, read_counters(settings.client), alone)
        others = summarize(watch.samples).in_flight
        if index:
            counts.append(counted)
            clock = read_clock(watch.samples, said.heard.first_at, said.heard.last_at)
            runs.append(score(said, sizes.tokens, others, counts[-1], bounds, clock, sizes.generate))
        elif others is None or others <= 1:
            # A count of more than the tokens of a warm-up that was alone would take every run for others' as well.
            alone = not others_counted(counted, said.heard.prompt_tokens, said.heard.generated_tokens)
        if said.failure is not None:
            break
    turn = streams = None
    if settings.full and said.failure is None:
        turn = second_turn(settings, facts, sizes, talks[-1], alone)
        streams = concurrent_decode(settings, facts, sizes, talks, median(run["decode_tps"] for run in runs), alone)
    # Where others were served meanwhile, their drafts are among a run's.
    own = [counted for counted, run in zip(counts, runs) if run["draft_acceptance"] is not None]
    return conclude(runs, runs_wanted, total(own), turn, streams)
