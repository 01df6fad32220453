# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge of the window itself: one token less than it is served, exactly as many are refused with their count.

Prompts above the window are refused before any prefill, so that the size is found at no cost. The text begins as one
that the boundary has just sent, so that the one prompt that is served is nearly all in the prefix cache.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import corpus
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import Said, ask, fields
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import json_body
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.facts import Facts, refuse_key
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.judging import (
    WHOLE,
    Finding,
    Plan,
    cause_of,
    gravest,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import Settings

# Each try is as far from the wanted count as the one before it was read, so that one or two suffice.
_TRIES = 5
# The words at the end by which the size is set, beside what the ratio may be off to either side.
_LEAST_UNITS = 64


class Seat(t.NamedTuple):
    """What one sequence was sent: its markers and the seed of its filler."""

    words: corpus.Words
    seed: int


class _Answer(t.NamedTuple):
    """One prompt near the edge: what was said, how many tokens it had by any account, and whether it was served."""

    said: Said
    tokens: int | None
    served: bool


class _Edge:
    """Sends prompts of the same text with ``units`` more tokens at their end."""

    def __init__(self, settings: Settings, facts: Facts, plan: Plan, seat: Seat, reserve: float) -> None:
        self.limit = facts.max_model_len or plan.window
        self.units = _LEAST_UNITS + int(2 * self.limit * reserve)
        self._settings = settings
        self._seat = seat
        self._chars = plan.chars
        # With half of the units, the prompt would be as long as the window.
        short = self.limit - self.units // 2 - plan.prompt_tokens
        self._more = max(0, int(short * plan.chars / plan.prompt_tokens))
        self._fields = fields(facts.model, 1, stream=True, stream_options={"include_usage": True})

    def reach(self, wanted: int) -> _Answer:
        """Send prompts until one has ``wanted`` tokens, or shows no count, or is none that more words would mend."""
        for _try in range(_TRIES):
            answer = self._ask()
            if answer.tokens is None or answer.tokens == wanted or answer.tokens < WHOLE * wanted:
                break
            self.units = max(0, self.units + wanted - answer.tokens)
        return answer

    def _ask(self) -> _Answer:
        prompt = corpus.edge_prompt(self._seat.words, self._chars, self._seat.seed, self._more, self.units)
        said = ask(self._settings.client, json_body(self._fields, prompt), self._settings.timeout)
        if said.failure is not None and said.failure.kind == "key":
            refuse_key(said.status)
        if said.failure is None:
            return _Answer(said, said.heard.prompt_tokens, True)
        refusal = said.failure.refusal
        return _Answer(said, None if refusal is None else refusal.tokens, False)


def check_edge(
    settings: Settings, facts: Facts, plan: Plan, seat: Seat, reserve: float
) -> tuple[dict[str, t.Any], list[Finding]]:
    """``{verdict, cause, limit, refused_tokens, served_tokens, cached_tokens, says}``, and what stands against it.

    ``reserve`` is the part by which the ratio behind ``plan`` may be off.
    """
    edge = _Edge(settings, facts, plan, seat, reserve)
    limit = edge.limit
    refused, served = edge.reach(limit), None
    found = judge_refused(refused.said, refused.tokens, limit)
    if not found:
        edge.units -= 1
        served = edge.reach(limit - 1)
        found = judge_served(served.said, served.tokens, limit)
    cause = gravest(found)
    says = f"{limit - 1:,} tokens are served and {limit:,} are refused with their count"
    return {
        "verdict": "failed" if any(f.failed for f in found) else "inconclusive" if found else "passed",
        "cause": cause,
        "limit": limit,
        "refused_tokens": None if refused.served else refused.tokens,
        "served_tokens": served.tokens if served is not None and served.served else None,
        "cached_tokens": served.said.heard.cached_tokens if served is not None else None,
        "says": "; ".join(finding.says for finding in found) or says,
    }, [Finding(finding.cause, f"at the edge: {finding.says}") for finding in found]


def judge_refused(said: Said, tokens: int | None, limit: int) -> list[Finding]:
    """What stands against the refusal of a prompt of as many tokens as the window has. Pure."""
    failure = said.failure
    if failure is None:
        return [_accepted(tokens, limit)]
    refusal = failure.refusal
    if refusal is None:
        return [
            Finding(cause_of(failure), f"a prompt of the whole window was not refused by its count: {failure.says}")
        ]
    stated = refusal.limit
    if (tokens is not None and tokens < limit) or (stated is not None and stated < limit):
        return [Finding("refused_inside", f"refused inside a window of {limit:,} tokens: {refusal.says}")]
    if not refusal.exact or tokens != limit:
        return [Finding("unsized", f"no refusal named exactly {limit:,} tokens: {refusal.says}")]
    return []


def judge_served(said: Said, tokens: int | None, limit: int) -> list[Finding]:
    """What stands against the answer to a prompt of one token less than the window has. Pure."""
    failure = said.failure
    if failure is not None:
        inside = f"a prompt of about {limit - 1:,} tokens in a window of {limit:,}"
        if failure.refusal is not None and tokens is not None and tokens >= limit:
            return [Finding("unsized", f"{inside} was sized too long: {failure.says}")]
        return [Finding(cause_of(failure), f"{inside} was not served: {failure.says}")]
    if tokens == limit - 1:
        return []
    if tokens is not None and tokens < WHOLE * limit:
        return [_accepted(tokens, limit)]
    counted = "no count" if tokens is None else f"{tokens:,} tokens"
    return [Finding("unsized", f"the prompt that was served has {counted}, and {limit - 1:,} were to be tried")]


def _accepted(tokens: int | None, limit: int) -> Finding:
    if tokens is None:
        return Finding("unsized", "a prompt of the whole window was served, and its reply does not count it")
    if tokens >= limit:
        return Finding("accepted_at_window", f"{tokens:,} tokens were served in a window of {limit:,}")
    if tokens < WHOLE * limit:
        return Finding("truncated", f"about {limit:,} tokens were sent and {tokens:,} were read")
    return Finding("unsized", f"no prompt came to exactly {limit:,} tokens: the last one had {tokens:,}")
