# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one streamed reply says of prefill and decode, and what all runs say together. Pure.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import Said
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cost import LEAST_GENERATED
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.counters import (
    UNCOUNTED,
    Counters,
    others_counted,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.measure import (
    agree_on_decode,
    agree_on_prefill,
    apart,
    median,
    spread,
    stalled,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.replies import Heard
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.watch import CLOCK, Clock
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.whole import spoilt

# Fewer uncached tokens than this measure the fixed cost of a request, not a rate.
LEAST_PREFILLED = 512
# Fewer moments of arrival than this say nothing of the pace between them: the reply was buffered on its way.
LEAST_PIECES = 8
# Until the first token, the wall clock also sees a prompt being sent, parsed and tokenized: by itself it tells the rate
# to 5 % only where this is less than 5 % of it.
_AROUND_SECONDS = 0.05
_AROUND_SECONDS_A_TOKEN = 4e-6
_PART = 0.05
# Between the first token and the last, it sees a few hundredths of a second of the network and of a busy host.
LEAST_WALL_SECONDS = 1.25
# Of two runs further apart than this, the median is no rate that either had. What is decoded has its own luck with the
# drafts, so that decode may differ by more.
_MOST_APART = {"prefill": 0.10, "decode": 0.20}
# Nothing that makes prefill faster (a larger slab, another release) has made it half faster again at once; a prompt
# that a cache knew comes back more than ten times as fast. Decode at the same depth is no other.
_SUSPECT = 1.5


class Rate(t.NamedTuple):
    """A rate in tokens/s and its method, timings or wall_clock; both None, and ``says`` why, where not measured."""

    tps: float | None
    method: str | None
    says: str | None


class Bounds(t.NamedTuple):
    """What a rate cannot pass, as far as it is known: the fastest arm, in tokens/s, and the drafts of a step."""

    prefill_tps: float | None = None
    decode_tps: float | None = None
    depth: int | None = None


UNBOUNDED = Bounds()


def prefill_rate(heard: Heard, started: float, clock: Clock = CLOCK) -> Rate:
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
        if _PART * wall < _AROUND_SECONDS + _AROUND_SECONDS_A_TOKEN * tokens:
            return Rate(None, None, f"no timings, and {wall:.2f} s is too short for the wall clock alone")
        held = _held_back(heard, wall, clock)
        return Rate(None, None, held) if held else Rate(tokens / wall, "wall_clock", None)
    counted = timings.prompt_tokens
    if counted is not None and abs(counted - tokens) > 0.02 * tokens:
        return Rate(None, None, f"timings count {counted:,} prompt tokens and usage counts {tokens:,}")
    if not agree_on_prefill(wall, timings.prompt_seconds, tokens):
        return Rate(
            None, None, f"timings put the prefill at {timings.prompt_seconds:.2f} s, the wall clock at {wall:.2f} s"
        )
    return Rate(timings.prefill_tps, "timings", None)


def decode_rate(heard: Heard, steps: int | None = None, depth: int | None = None, clock: Clock = CLOCK) -> Rate:
    """The decode rate of one streamed reply, its first token apart. Pure.

    ``steps`` is how many steps of decode the engine counted meanwhile, ``depth`` how many drafts one of them has.
    """
    tokens = heard.generated_tokens
    if tokens is None or heard.first_at is None or heard.last_at is None:
        return Rate(None, None, "the reply does not count what it generated")
    if tokens < LEAST_GENERATED:
        return Rate(
            None, None, f"{tokens:,} generated tokens are too few for a decode rate, which takes {LEAST_GENERATED}"
        )
    if heard.pieces < LEAST_PIECES:
        return Rate(None, None, f"{tokens:,} tokens arrived in {heard.pieces:,} pieces, which shows no pace")
    impossible = beyond_steps(tokens, steps, depth)
    if impossible:
        return Rate(None, None, impossible)
    wall = heard.last_at - heard.first_at
    server = heard.timings.decode_tps
    if server is None:
        if wall < LEAST_WALL_SECONDS:
            return Rate(None, None, f"no timings, and {wall:.2f} s is too short for the wall clock alone")
        held = _held_back(heard, wall, clock) or _uneven(heard, wall)
        return Rate(None, None, held) if held else Rate((tokens - 1) / wall, "wall_clock", None)
    if not agree_on_decode(wall, (tokens - 1) / server):
        return Rate(
            None, None, f"timings say {server:,.1f} tokens/s of decode, the wall clock {(tokens - 1) / wall:,.1f}"
        )
    return Rate(server, "timings", None)


def beyond_steps(tokens: int, steps: int | None, depth: int | None, streams: int = 1) -> str | None:
    """Why so many generated tokens cannot be, by the engine's own count of its steps; None where they can. Pure.

    A step yields a token of each stream, and as many more as it has drafts. The first token of each is prefill's, and
    the counters may have been read within a step.
    """
    if not steps or depth is None:
        return None
    most = (steps + 1) * streams * (1 + depth) + streams
    if tokens <= most:
        return None
    return (
        f"suspect: {tokens:,} generated tokens by usage, where {steps:,} steps of decode by the engine's own count "
        f"yield at most {most:,} at a depth of {depth:,}"
    )


def _held_back(heard: Heard, wall: float, clock: Clock) -> str | None:
    """Why the times at which tokens arrived are not those at which they were made."""
    if clock.ended_early is not None and heard.last_at is not None:
        return (
            f"no timings, and the engine had ended {heard.last_at - clock.ended_early:.2f} s before its last token "
            "arrived: something between holds tokens back"
        )
    if clock.late_seconds > _PART * wall:
        return (
            f"no timings, and what is answered from memory came {clock.late_seconds:.2f} s late: a host this busy "
            f"tells nothing of {wall:.2f} s by the wall clock alone"
        )
    return None


def _uneven(heard: Heard, wall: float) -> str | None:
    """Why the wall clock alone tells no pace: what is between them and the engine let tokens go in bursts."""
    if heard.first_share > _PART:
        return f"no timings, and {100 * heard.first_share:.0f} % of the text arrived in its first moment"
    lost = stalled(heard.moments)
    if lost > _PART * wall:
        return f"no timings, and for {lost:.2f} of {wall:.2f} s nothing arrived that should have"
    return None


def score(
    said: Said,
    asked_tokens: int,
    in_flight: int | None,
    counted: Counters = UNCOUNTED,
    bounds: Bounds = UNBOUNDED,
    clock: Clock = CLOCK,
    generate: int | None = None,
) -> dict[str, t.Any]:
    """One run as the module returns it; ``says`` is null where all of it was measured. Pure.

    ``counted`` is what the engine counted from just before the run to its end, ``generate`` what was to be generated.
    """
    heard = said.heard
    whole = spoilt(said, asked_tokens, in_flight, generate=generate)
    whole = whole or others_counted(counted, heard.prompt_tokens, heard.generated_tokens)
    prefill = Rate(None, None, whole) if whole else prefill_rate(heard, said.started, clock)
    decode = Rate(None, None, whole) if whole else decode_rate(heard, counted.steps, bounds.depth, clock)
    notes = list(dict.fromkeys(rate.says for rate in (prefill, decode) if rate.says))
    fastest = prefill.tps or (None if whole else _apparent(heard, said.started))
    beyond = [
        _beyond("prefill", fastest, bounds.prefill_tps, "a cache that does not show itself looks like this"),
        _beyond("decode", decode.tps, bounds.decode_tps, "another speculation depth than the arm's may look like this"),
    ]
    notes += [note for note in beyond if note]
    return {
        "prompt_tokens": heard.prompt_tokens,
        "generated_tokens": heard.generated_tokens,
        "cached_tokens": heard.cached_tokens,
        "ttft_seconds": first_token_seconds(said),
        "prefill_tps": rounded(prefill.tps),
        "decode_tps": rounded(decode.tps),
        # Others' drafts would be among them.
        "draft_acceptance": None if whole else counted.acceptance,
        "method": _method([prefill.method, decode.method]),
        "suspect": any("suspect: " in note for note in notes),
        "says": "; ".join(notes) or None,
    }


def _beyond(name: str, tps: float | None, most: float | None, looks_like: str) -> str | None:
    """Why a rate is too good to be passed, None where it is not or nothing is known that it could pass."""
    if tps is None or most is None or tps <= _SUSPECT * most:
        return None
    return f"suspect: {tps:,.0f} tokens/s of {name}, where the fastest arm has {most:,.0f}; {looks_like}"


def _apparent(heard: Heard, started: float) -> float | None:
    """What a prompt that is said to be cold seems to have been prefilled at, where no rate could be told."""
    tokens, first = heard.prompt_tokens or 0, heard.first_at
    if heard.cached_tokens != 0 or tokens < LEAST_PREFILLED or first is None or first <= started:
        return None
    return tokens / (first - started)


def first_token_seconds(said: Said) -> float | None:
    """Seconds from the start of a request to its first token."""
    first = said.heard.first_at
    return None if first is None else round(first - said.started, 3)


def conclude(
    runs: t.Sequence[t.Mapping[str, t.Any]],
    wanted: int,
    counted: Counters = UNCOUNTED,
    second_turn: t.Mapping[str, t.Any] | None = None,
    concurrent: t.Mapping[str, t.Any] | None = None,
) -> dict[str, t.Any]:
    """The medians and the verdict over the scored runs, and over the full form's further parts. Pure.

    Passed means measured: every wanted run gave both rates, and neither is suspect. Nothing that a rate can be makes a
    verdict of failed. ``counted`` is what the engine counted over all scored runs.
    """
    notes = [f"run {index}: {run['says']}" for index, run in enumerate(runs) if run["says"]]
    if len(runs) < wanted:
        notes.append(f"{len(runs):,} of {wanted:,} runs were made")
    prefill, decode = rounded(median(r["prefill_tps"] for r in runs)), rounded(median(r["decode_tps"] for r in runs))
    tokens = _count(median(r["prompt_tokens"] for r in runs))
    generated = _count(median(r["generated_tokens"] for r in runs))
    spreads = [spread(run[rate] for run in runs) for rate in ("prefill_tps", "decode_tps")]
    for name, most in _MOST_APART.items():
        gap = apart(run[f"{name}_tps"] for run in runs)
        if gap is not None and gap > most:
            notes.append(
                f"the runs lie {100 * gap:.0f} % apart in {name}, so that the median is the rate of none of them"
            )
    acceptance = counted.acceptance
    drafts = "" if acceptance is None else f" at {accepted(acceptance)}"
    parts = [
        f"prefill {prefill:,.0f} tokens/s over {tokens:,} tokens" if prefill and tokens else "prefill not measured",
        f"decode {decode:,.1f} tokens/s over {generated:,} tokens{drafts}"
        if decode and generated
        else "decode not measured",
        f"median of {len(runs):,} runs",
    ]
    if None not in spreads:
        parts.append("spread " + " and ".join(f"{100 * (part or 0):.1f} %" for part in spreads))
    remarks: list[str] = []
    for name, part in (("second turn", second_turn), ("concurrent decode", concurrent)):
        if part is not None:
            (remarks if part["measured"] else notes).append(f"{name}: {part['says']}")
    return {
        "prefill_tps": prefill,
        "decode_tps": decode,
        "prefill_spread": spreads[0],
        "decode_spread": spreads[1],
        "prompt_tokens": tokens,
        "generated_tokens": generated,
        "cached_tokens": max((r["cached_tokens"] for r in runs if r["cached_tokens"] is not None), default=None),
        "concurrent_decode_tps": None if concurrent is None else concurrent["decode_tps"],
        "draft_acceptance": acceptance,
        "method": _method([r["method"] for r in runs]),
        "suspect": any(run["suspect"] for run in runs),
        "verdict": "inconclusive" if notes or not runs else "passed",
        "says": "; ".join([", ".join(parts), *remarks, *notes]),
        "runs": [dict(run) for run in runs],
        "second_turn": None if second_turn is None else dict(second_turn),
        "concurrent": None if concurrent is None else dict(concurrent),
    }


def _method(methods: t.Sequence[str | None]) -> str | None:
    found = {method for method in methods if method is not None}
    return None if not found else found.pop() if len(found) == 1 else "mixed"


def accepted(acceptance: float) -> str:
    """The words of a draft acceptance, for beside a decode rate."""
    return f"{100 * acceptance:.0f} % of drafts accepted"


def rounded(value: float | None) -> float | None:
    """A rate as it is returned."""
    return None if value is None else round(value, 2)


def _count(value: float | None) -> int | None:
    return None if value is None else int(value)
