# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The full form's further rates: the second turn of a talk, whose head is warm, and decode of several streams at once.

Both go on from the prompts of the runs before them, which the prefix cache still knows, so that they cost little.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import threading
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import corpus
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import Said, ask, fields
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import json_body
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cost import (
    LATER_TOKENS,
    LEAST_GENERATED,
    MOST_STREAMS,
    streamed_tokens,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.counters import (
    UNCOUNTED,
    Counters,
    growth,
    others_counted,
    read_counters,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.facts import (
    Facts,
    Inconclusive,
    wait_for_idle,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.measure import median
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import Settings
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.replies import Heard
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.scoring import (
    LEAST_PIECES,
    accepted,
    beyond_steps,
    decode_rate,
    first_token_seconds,
    rounded,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.watch import (
    CLOCK,
    Clock,
    Watch,
    read_clock,
    summarize,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.whole import spoilt

# Less than this together tells no rate.
_LEAST_SECONDS = 1.0
# The stretch in common is timed by the wall clock alone, so that more than this part between two accounts of it is a
# host too busy to tell: the server's against the wall clock's, and its first half against its second.
_PART = 0.03


class Talk(t.NamedTuple):
    """The prompt of one run: its head and its seed."""

    nonce: str
    seed: int


class Sizes(t.NamedTuple):
    """What every prompt of a rate probe has: about ``tokens`` tokens in ``chars`` characters, and its answer."""

    tokens: int
    chars: int
    generate: int


def second_turn(settings: Settings, facts: Facts, sizes: Sizes, talk: Talk, alone: bool = True) -> dict[str, t.Any]:
    """Ask the second turn of ``talk``: what of it came from the cache, and how soon it was answered.

    ``alone`` is whether the engine's count of tokens shows nothing but the probe's own where nobody else is served.
    """
    try:
        wait_for_idle(settings.client, settings.require_idle, settings.timeout)
    except Inconclusive as reason:
        return judge_turn(None, sizes.tokens, None, whole=reason.says)
    before = read_counters(settings.client)
    with Watch(settings.client) as watch:
        said = _ask(settings, facts, sizes, talk)
    counted = growth(before, read_counters(settings.client), alone)
    clock = read_clock(watch.samples, said.heard.first_at, said.heard.last_at)
    in_flight = summarize(watch.samples).in_flight
    return judge_turn(said, sizes.tokens, in_flight, counted, facts.speculative_tokens, clock, generate=sizes.generate)


def judge_turn(
    said: Said | None,
    tokens: int,
    in_flight: int | None,
    counted: Counters = UNCOUNTED,
    depth: int | None = None,
    clock: Clock = CLOCK,
    whole: str | None = None,
    generate: int | None = None,
) -> dict[str, t.Any]:
    """``{measured, prompt_tokens, cached_tokens, effective, ttft_seconds, decode_tps, draft_acceptance, says}``. Pure.

    ``effective`` is whether the prefix cache knew any of it, None where the reply does not say. ``whole`` is why
    nothing was asked.
    """
    heard = Heard() if said is None else said.heard
    if said is not None:
        whole = spoilt(said, tokens, in_flight, generate=generate, more=LATER_TOKENS)
        whole = whole or others_counted(counted, heard.prompt_tokens, heard.generated_tokens)
    decode = None if whole else decode_rate(heard, counted.steps, depth, clock)
    acceptance = None if whole else counted.acceptance
    cached, first = heard.cached_tokens, None if said is None else first_token_seconds(said)
    measured = decode is not None and decode.tps is not None and cached is not None
    if whole or decode is None:
        says = whole or ""
    elif cached is None:
        says = "the reply does not say how many tokens came from a cache"
    elif decode.tps is None:
        says = decode.says or ""
    else:
        known = "none of it: the prefix cache had no effect" if not cached else f"{cached:,} of it came from the cache"
        drafts = "" if acceptance is None else f" at {accepted(acceptance)}"
        says = f"{heard.prompt_tokens or 0:,} tokens, {known}; first token after {first:.2f} s, then {decode.tps:,.1f}"
        says += f" tokens/s{drafts}"
    return {
        "measured": measured,
        "prompt_tokens": heard.prompt_tokens,
        "cached_tokens": cached,
        "effective": None if cached is None else cached > 0,
        "ttft_seconds": first,
        "decode_tps": None if decode is None else rounded(decode.tps),
        "draft_acceptance": acceptance,
        "says": says,
    }


def concurrent_decode(
    settings: Settings,
    facts: Facts,
    sizes: Sizes,
    talks: t.Sequence[Talk],
    decode_tps: float | None,
    alone: bool = True,
) -> dict[str, t.Any] | None:
    """Ask as many later turns at once as the endpoint runs sequences; None where it runs one at a time.

    ``decode_tps`` is the rate of one stream: a fast endpoint generates more, so that there is a time to be measured;
    ``alone`` as of the second turn.
    """
    streams = min(facts.max_num_seqs or 0, MOST_STREAMS)
    if streams == 1:
        return None
    if streams == 0:
        return _unmeasured(0, "the endpoint does not say how many sequences it runs")
    try:
        wait_for_idle(settings.client, settings.require_idle, settings.timeout)
    except Inconclusive as reason:
        return _unmeasured(streams, reason.says)
    longer = streamed_tokens(sizes.generate, decode_tps)
    room = longer if facts.max_model_len is None else facts.max_model_len - sizes.tokens - LATER_TOKENS
    sizes = sizes._replace(generate=min(longer, room))
    said: list[Said | None] = [None] * streams

    def one(index: int) -> None:
        said[index] = _ask(settings, facts, sizes, talks[index % len(talks)])

    threads = [threading.Thread(target=one, args=(index,), daemon=True) for index in range(streams)]
    before = read_counters(settings.client)
    with Watch(settings.client) as watch:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    answered = [one_said for one_said in said if one_said is not None]
    counted = growth(before, read_counters(settings.client), alone)
    in_flight = summarize(watch.samples).in_flight
    depth = facts.speculative_tokens
    return judge_streams(answered, streams, sizes.tokens, in_flight, counted, depth, sizes.generate)


def judge_streams(
    said: t.Sequence[Said],
    streams: int,
    tokens: int,
    in_flight: int | None,
    counted: Counters = UNCOUNTED,
    depth: int | None = None,
    generate: int | None = None,
) -> dict[str, t.Any]:
    """``{measured, streams, decode_tps, least_tps, most_tps, tokens, draft_acceptance, says}``. Pure.

    Only the stretch counts in which all of them decode: from the last one's first token to the first one's end.
    """
    whole = next(
        (why for why in (spoilt(one, tokens, in_flight, streams, generate, LATER_TOKENS) for one in said) if why), None
    )
    if whole is None and len(said) < streams:
        whole = f"{streams - len(said):,} of {streams:,} requests could not be made"
    if whole is not None:
        return _unmeasured(streams, whole)
    acceptance = counted.acceptance
    whole = next((why for why in map(_contradicts, said) if why), None)
    made = sum(one.heard.generated_tokens or 0 for one in said)
    whole = whole or others_counted(counted, sum(one.heard.prompt_tokens or 0 for one in said), made)
    whole = whole or beyond_steps(made, counted.steps, depth, streams)
    if whole is not None:
        return _unmeasured(streams, whole, acceptance)
    start = max(one.heard.first_at or 0.0 for one in said)
    end = min(one.heard.last_at or 0.0 for one in said)
    within = [one.heard.tokens_within(start, end) or 0.0 for one in said]
    least = int(min(within))
    if end <= start or least < LEAST_GENERATED:
        says = f"they decoded together for only {max(0, least):,} tokens each, which takes {LEAST_GENERATED}"
        return _unmeasured(streams, says, acceptance)
    if end - start < _LEAST_SECONDS:
        says = f"they decoded together for {end - start:.2f} s, which is too short for the wall clock alone"
        return _unmeasured(streams, says, acceptance)
    middle_at = (start + end) / 2
    first_half = sum(one.heard.tokens_within(start, middle_at) or 0.0 for one in said)
    if abs(2 * first_half - sum(within)) > 2 * _PART * sum(within):
        says = "their pace was uneven: the host was too busy to tell it, or the endpoint did something else meanwhile"
        return _unmeasured(streams, says, acceptance)
    rates = [count / (end - start) for count in within]
    middle = rounded(median(rates)) or 0.0
    return {
        "measured": True,
        "streams": streams,
        "decode_tps": middle,
        "least_tps": rounded(min(rates)),
        "most_tps": rounded(max(rates)),
        "tokens": least,
        "draft_acceptance": acceptance,
        "says": f"{middle:,.1f} tokens/s for each of {streams:,} streams"
        + ("" if acceptance is None else f" at {accepted(acceptance)}"),
    }


def _contradicts(said: Said) -> str | None:
    """Why a stream's pace cannot be told, None where it can: both clocks are asked, as for a single stream."""
    heard = said.heard
    count, first, last = heard.generated_tokens, heard.first_at, heard.last_at
    if count is None or first is None or last is None:
        return "a reply does not count what it generated"
    if heard.pieces < LEAST_PIECES:
        return f"{count:,} tokens arrived in {heard.pieces:,} pieces, which shows no pace"
    server = heard.timings.decode_tps
    if server is not None and abs(last - first - (count - 1) / server) > _PART * (last - first):
        wall = (count - 1) / (last - first) if last > first else 0.0
        return f"timings say {server:,.1f} tokens/s of decode, the wall clock {wall:,.1f}"
    return None


def _unmeasured(streams: int, says: str, acceptance: float | None = None) -> dict[str, t.Any]:
    return {
        "measured": False,
        "streams": streams,
        "decode_tps": None,
        "least_tps": None,
        "most_tps": None,
        "tokens": None,
        "draft_acceptance": acceptance,
        "says": says,
    }


def _ask(settings: Settings, facts: Facts, sizes: Sizes, talk: Talk) -> Said:
    prompt = corpus.later_prompt(talk.nonce, sizes.chars, talk.seed, corpus.fresh_seed())
    wanted = fields(facts.model, sizes.generate, ignore_eos=True, stream=True, stream_options={"include_usage": True})
    return ask(settings.client, json_body(wanted, prompt), settings.timeout)
