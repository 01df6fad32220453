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

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import client as http
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import corpus
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import Said, ask, fields
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import json_body
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.calibration import Calibration, calibrate
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cost import (
    LEAST_GENERATED,
    RATE_GENERATE_TOKENS,
    RATE_PROMPT_TOKENS,
    RATE_RUNS,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.facts import (
    QUICK_SECONDS,
    Facts,
    Inconclusive,
    read_facts,
    refuse_key,
    wait_for_idle,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.measure import agree, median
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import Settings
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.replies import Heard
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.watch import Watch, summarize

# Fewer uncached tokens than this measure the fixed cost of a request, not a rate.
LEAST_PREFILLED = 512
# Fewer moments of arrival than this say nothing of the pace between them: the reply was buffered on its way.
LEAST_PIECES = 8
# Below this the wall clock alone measures parsing and the network as much as the prefill.
LEAST_WALL_SECONDS = 0.5
_WHOLE = 0.95


class Rate(t.NamedTuple):
    """A rate in tokens/s and its method, timings or wall_clock; both None, and ``says`` why, where not measured."""

    tps: float | None
    method: str | None
    says: str | None


def prefill_rate(heard: Heard, started: float) -> Rate:
    """The prefill rate of one streamed reply that was asked for at ``started``. Pure."""
    tokens, cached, timings = heard.prompt_tokens, heard.cached_tokens, heard.timings
    if tokens is None or heard.first_at is None:
        return Rate(None, None, "the reply does not count its prompt" if tokens is None else "no token came")
    if cached is None:
        return Rate(None, None, "the reply does not say how many tokens came from a cache")
    if cached:
        return Rate(None, None, f"{cached:,} of {tokens:,} prompt tokens came from a cache: this was not cold")
    if tokens < LEAST_PREFILLED:
        return Rate(None, None, f"{tokens:,} prompt tokens are too few for a prefill rate")
    wall = heard.first_at - started
    if timings.prefill_tps is None or timings.prompt_seconds is None:
        if wall < LEAST_WALL_SECONDS:
            return Rate(None, None, f"no timings, and {wall:.2f} s is too short for the wall clock alone")
        return Rate(tokens / wall, "wall_clock", None)
    counted = timings.prompt_tokens
    if counted is not None and abs(counted - tokens) > 0.02 * tokens:
        return Rate(None, None, f"timings count {counted:,} prompt tokens and usage counts {tokens:,}")
    if not agree(wall, timings.prompt_seconds):
        return Rate(
            None, None, f"timings put the prefill at {timings.prompt_seconds:.2f} s, the wall clock at {wall:.2f} s"
        )
    return Rate(timings.prefill_tps, "timings", None)


def decode_rate(heard: Heard) -> Rate:
    """The decode rate of one streamed reply, its first token apart. Pure."""
    tokens = heard.generated_tokens
    if tokens is None or heard.first_at is None or heard.last_at is None:
        return Rate(None, None, "the reply does not count what it generated")
    if tokens < LEAST_GENERATED:
        return Rate(
            None, None, f"{tokens:,} generated tokens are too few for a decode rate, which takes {LEAST_GENERATED}"
        )
    if heard.pieces < LEAST_PIECES:
        return Rate(None, None, f"{tokens:,} tokens arrived in {heard.pieces:,} pieces, which shows no pace")
    wall = heard.last_at - heard.first_at
    server = heard.timings.decode_tps
    if server is None:
        if wall < LEAST_WALL_SECONDS:
            return Rate(None, None, f"no timings, and {wall:.2f} s is too short for the wall clock alone")
        return Rate((tokens - 1) / wall, "wall_clock", None)
    if not agree(wall, (tokens - 1) / server):
        return Rate(
            None, None, f"timings say {server:,.1f} tokens/s of decode, the wall clock {(tokens - 1) / wall:,.1f}"
        )
    return Rate(server, "timings", None)


def score(said: Said, asked_tokens: int, in_flight: int | None) -> dict[str, t.Any]:
    """One run as the module returns it; ``says`` is null where all of it was measured. Pure."""
    heard = said.heard
    tokens = heard.prompt_tokens
    whole: str | None = None
    if said.failure is not None:
        whole = said.failure.says
    elif in_flight is not None and in_flight > 1:
        whole = f"other traffic: {in_flight:,} requests in flight where the probe sent 1"
    elif tokens is not None and tokens < _WHOLE * asked_tokens:
        whole = f"about {asked_tokens:,} prompt tokens were sent and {tokens:,} were read: the prompt was cut"
    prefill = Rate(None, None, whole) if whole else prefill_rate(heard, said.started)
    decode = Rate(None, None, whole) if whole else decode_rate(heard)
    notes = list(dict.fromkeys(rate.says for rate in (prefill, decode) if rate.says))
    first = heard.first_at
    return {
        "prompt_tokens": tokens,
        "generated_tokens": heard.generated_tokens,
        "cached_tokens": heard.cached_tokens,
        "ttft_seconds": None if first is None else round(first - said.started, 3),
        "prefill_tps": _rounded(prefill.tps),
        "decode_tps": _rounded(decode.tps),
        "method": _method([prefill.method, decode.method]),
        "says": "; ".join(notes) or None,
    }


def conclude(runs: t.Sequence[t.Mapping[str, t.Any]], wanted: int, draft_acceptance: float | None) -> dict[str, t.Any]:
    """The medians and the verdict over the scored runs. Pure.

    Passed means measured: every wanted run gave both rates. Nothing that a rate can be makes a verdict of failed.
    """
    notes = [f"run {index}: {run['says']}" for index, run in enumerate(runs) if run["says"]]
    if len(runs) < wanted:
        notes.append(f"{len(runs):,} of {wanted:,} runs were made")
    prefill, decode = _rounded(median(r["prefill_tps"] for r in runs)), _rounded(median(r["decode_tps"] for r in runs))
    tokens = _count(median(r["prompt_tokens"] for r in runs))
    generated = _count(median(r["generated_tokens"] for r in runs))
    parts = [
        f"prefill {prefill:,.0f} tokens/s over {tokens:,} tokens" if prefill and tokens else "prefill not measured",
        f"decode {decode:,.1f} tokens/s over {generated:,} tokens" if decode and generated else "decode not measured",
    ]
    return {
        "prefill_tps": prefill,
        "decode_tps": decode,
        "prompt_tokens": tokens,
        "generated_tokens": generated,
        "cached_tokens": max((r["cached_tokens"] for r in runs if r["cached_tokens"] is not None), default=None),
        "concurrent_decode_tps": None,
        "draft_acceptance": draft_acceptance,
        "method": _method([r["method"] for r in runs]),
        "verdict": "inconclusive" if notes or not runs else "passed",
        "says": "; ".join([f"{parts[0]}, {parts[1]}, median of {len(runs):,} runs", *notes]),
        "runs": [dict(run) for run in runs],
    }


def probe(settings: Settings) -> dict[str, t.Any]:
    """Run the probe: ``{rates, calibration}``. Raises RadianceError for a wrong key, nothing listening, bad options."""
    calibration: Calibration | None = None
    runs_wanted = settings.runs or RATE_RUNS
    prompt_tokens = settings.prompt_tokens or RATE_PROMPT_TOKENS
    generate_tokens = settings.generate_tokens or RATE_GENERATE_TOKENS
    try:
        facts = read_facts(settings.client, settings.model, settings.timeout)
        window = facts.max_model_len
        if window is not None and prompt_tokens + generate_tokens > window:
            raise Inconclusive(
                f"prompt_tokens: {prompt_tokens:,} and {generate_tokens:,} to generate do not fit the {window:,} token "
                "window that the endpoint serves",
                "not_served",
            )
        wait_for_idle(settings.client, settings.require_idle, settings.timeout)
        ratio = settings.chars_per_token
        if ratio is None:
            calibration = calibrate(settings.client, facts, settings.timeout)
            ratio = calibration.chars_per_token
            if ratio is None:
                raise Inconclusive(f"the prompts cannot be sized: {calibration.says}", "no_ratio")
        rates = _run(settings, facts, runs_wanted, prompt_tokens, generate_tokens, ratio)
    except Inconclusive as reason:
        rates = {**conclude([], runs_wanted, None), "says": reason.says}
    return {"rates": rates, "calibration": calibration.as_dict() if calibration else None}


def _run(
    settings: Settings, facts: Facts, runs_wanted: int, prompt_tokens: int, generate_tokens: int, ratio: float
) -> dict[str, t.Any]:
    common = fields(facts.model, generate_tokens, ignore_eos=True, stream=True, stream_options={"include_usage": True})
    runs: list[dict[str, t.Any]] = []
    # The first one pays for compiling and is not scored.
    for index in range(runs_wanted + 1):
        wait_for_idle(settings.client, settings.require_idle, settings.timeout)
        prompt = corpus.cold_prompt(corpus.marker(), int(prompt_tokens * ratio), corpus.fresh_seed())
        with Watch(settings.client) as watch:
            said = ask(settings.client, json_body(common, prompt), settings.timeout)
        if said.failure is not None:
            if said.failure.kind == "key":
                refuse_key(said.status)
            if not index:
                raise Inconclusive(f"warm-up: {said.failure.says}", said.failure.kind)
        if index:
            runs.append(score(said, prompt_tokens, summarize(watch.samples).in_flight))
        if said.failure is not None:
            break
    return conclude(runs, runs_wanted, _draft_acceptance(settings.client))


def _draft_acceptance(client: http.Client) -> float | None:
    """The engine's own figure over its draft tokens, a part of 1; None where it has none."""
    stats = client.get("/stats", timeout=min(client.timeout, QUICK_SECONDS)).json()
    value = stats.get("draft_accept") if isinstance(stats, dict) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    return None


def _method(methods: t.Sequence[str | None]) -> str | None:
    found = {method for method in methods if method is not None}
    return None if not found else found.pop() if len(found) == 1 else "mixed"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _count(value: float | None) -> int | None:
    return None if value is None else int(value)
