# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the replies at a boundary, and all that was seen meanwhile, say together. Pure.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import Failure, Said
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cards import SPILL_MIB
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.corpus import Words
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.measure import most_at_once
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.watch import Sample, Witness, summarize

# A prompt whose count is below this part of what was sent was cut on its way; calibration is far closer.
WHOLE = 0.97
# What is judged as a failure of the pool or of the answers, the gravest first; everything else that is not whole
# proves nothing.
FAILED = (
    "foreign_marker",
    "gone",
    "spill",
    "engine_error",
    "refused_inside",
    "preempted",
    "pool_too_small",
    "truncated",
    "marker_lost",
    "wrong_after",
    "accepted_at_window",
)
# The one cause for which nothing else may be touched: an answer that belongs to somebody else.
CRITICAL = "foreign_marker"
_MARKER = re.compile(r"(?<![A-Z0-9-])[A-Z0-9]{4}(?:-[A-Z0-9]{4}){2}(?![A-Z0-9-])")
# The causes of asking.Failure's kinds, where they have a name of their own here.
_CAUSES = {"busy": "queue_full", "engine": "engine_error", "refused": "refused_inside", "other": "no_answer"}


class Plan(t.NamedTuple):
    """One boundary: ``chars`` of prompt that are about ``prompt_tokens``, then ``generate_tokens`` of answer.

    ``calibrated`` is whether the ratio behind it was measured here; a stated one may be that of another text.
    """

    sequences: int
    window: int
    generate_tokens: int
    prompt_tokens: int
    chars: int
    calibrated: bool = True


class Look(t.NamedTuple):
    """One reply as judged. ``cause`` is None where it is whole; ``marker`` and ``markers`` are what is returned."""

    cause: str | None
    marker: str
    markers: tuple[str, ...]
    says: str


class Finding(t.NamedTuple):
    """Something that stands against a pass, under the name of its cause."""

    cause: str
    says: str

    @property
    def failed(self) -> bool:
        """Whether it proves a failure; otherwise it only leaves something unproven."""
        return self.cause in FAILED


def cause_of(failure: Failure) -> str:
    """The cause under which a failed request stands in a result."""
    return _CAUSES.get(failure.kind, failure.kind)


def judge_reply(said: Said, own: Words, others: t.Collection[str], plan: Plan) -> Look:
    """Judge one reply to the prompt with the markers ``own``. Pure."""
    places = {"the answer": said.heard.content, "the reasoning": said.heard.reasoning}
    found = tuple(name for name, marker in own._asdict().items() if any(marker in text for text in places.values()))
    strange = next((marker for marker in others if any(marker in text for text in places.values())), None)
    if strange is not None:
        return Look(CRITICAL, "foreign", found, f"CRITICAL: the reply holds {strange}, the marker of another prompt")
    read = said.heard.prompt_tokens
    if said.failure is not None:
        refusal = said.failure.refusal
        if refusal is not None and (refusal.tokens is None or refusal.tokens >= plan.window):
            return Look("oversize", "error", found, f"the prompt was sized too long: {said.failure.says}")
        inside = f"refused inside a window of {plan.window:,} tokens: " if refusal is not None else ""
        return Look(cause_of(said.failure), "error", found, inside + said.failure.says)
    if read is not None and read < WHOLE * plan.prompt_tokens:
        short = f"about {plan.prompt_tokens:,} tokens were sent and {read:,} were read"
        if len(found) == len(own) and not plan.calibrated:
            says = f"{short}, with its head, its middle and its end: the chars_per_token that was stated is not its own"
            return Look("unsized", "found", found, says)
        return Look("truncated", "truncated", found, short)
    if read is not None and read > plan.window:
        says = f"the reply counts {read:,} prompt tokens, more than the window of {plan.window:,} that was to be filled"
        return Look("unsized", "found" if len(found) == len(own) else "error", found, says)
    if len(found) == len(own):
        says = "in " + " and ".join(place for place, text in places.items() if any(word in text for word in own))
        if read is None:
            return Look("unsized", "found", found, f"{says}; the reply does not say how many prompt tokens it read")
        return Look(None, "found", found, says)
    if not said.heard.content:
        spent = "all that was generated went into reasoning" if said.heard.reasoning else "the reply is empty"
        return Look("no_answer", "error", found, f"{spent}, so that nothing shows whether the markers were read")
    lost = [f"{marker} of its {name}" for name, marker in own._asdict().items() if name not in found]
    unknown = next((word for text in places.values() for word in _MARKER.findall(text) if word not in own), None)
    beside = f", and it holds {unknown}, which no prompt of this probe has" if unknown else ""
    return Look("marker_lost", "lost", found, f"the reply does not hold {', '.join(lost)}{beside}")


def findings_of(
    plan: Plan,
    looks: t.Sequence[Look],
    said: t.Sequence[Said],
    samples: t.Sequence[Sample],
) -> list[Finding]:
    """All that stands against a pass in the replies themselves: markers, pool, traffic, overlap. Pure."""
    overlap, stretch = _together(said)
    witness = summarize(samples, stretch)
    traffic = (witness.in_flight or 0) > plan.sequences
    found = [Finding(look.cause, f"sequence {i}: {look.says}") for i, look in enumerate(looks) if look.cause]
    short = [] if traffic else _pool_too_small(plan, overlap, witness)
    found += short
    if traffic:
        says = f"other traffic: {witness.in_flight:,} requests in flight where the probe sent {plan.sequences:,}"
        found.append(Finding("other_traffic", says))
    return found + ([] if short else _short_of_overlap(plan, overlap, said, witness))


def conclude(
    plan: Plan,
    looks: t.Sequence[Look],
    said: t.Sequence[Said],
    samples: t.Sequence[Sample],
    findings: t.Sequence[Finding],
) -> dict[str, t.Any]:
    """The boundary as the module returns it, but for memory, the check after it and the edge. Pure."""
    overlap, stretch = _together(said)
    witness = summarize(samples, stretch)
    retrieved = sum(look.marker == "found" for look in looks)
    failed = [finding for finding in findings if finding.failed]
    unclear = [finding for finding in findings if not finding.failed]
    says = (
        f"{retrieved:,} of {plan.sequences:,} markers came back and {overlap:,} sequences of about "
        f"{plan.prompt_tokens:,} tokens held the pool at the same time"
    )
    return {
        "asked": plan.sequences,
        "retrieved": retrieved,
        "overlap": overlap,
        "verdict": "failed" if failed else "inconclusive" if unclear else "passed",
        "cause": gravest(findings),
        "critical": any(finding.cause == CRITICAL for finding in findings),
        "says": "; ".join([says, *(finding.says for finding in [*failed, *unclear])]),
        "replies": [
            {
                "index": index,
                "status": one.status,
                "prompt_tokens": one.heard.prompt_tokens,
                "marker": look.marker,
                "markers": list(look.markers),
                "cause": look.cause,
                "says": look.says,
            }
            for index, (look, one) in enumerate(zip(looks, said))
        ],
        "witness": witness.as_dict(),
        "max_model_len": plan.window,
        "generate_tokens": plan.generate_tokens,
    }


def unasked(sequences: int | None, cause: str, says: str) -> dict[str, t.Any]:
    """The boundary of a probe that did not get to ask anything."""
    return {
        "asked": sequences,
        "retrieved": 0,
        "overlap": 0,
        "verdict": "inconclusive",
        "cause": cause,
        "critical": False,
        "says": says,
        "replies": [],
        "witness": None,
        "memory": None,
        "after": None,
        "edge": None,
        "max_model_len": None,
        "generate_tokens": None,
    }


def gravest(findings: t.Sequence[Finding]) -> str | None:
    """The cause that a verdict is named after: the gravest failure, else what left something unproven first."""
    causes = [finding.cause for finding in findings]
    return next((cause for cause in FAILED if cause in causes), causes[0] if causes else None)


def spilled(memory: t.Mapping[str, t.Any] | None) -> list[Finding]:
    """The finding of memory that moved to the host, by what ``cards.memory_of`` says."""
    if memory is None or memory["grown_mib"] <= SPILL_MIB:
        return []
    says = (
        f"GTT of a card grew by {memory['grown_mib']:,} MiB, and {SPILL_MIB:,} MiB is the most that is no spill: what "
        "does not fit the card lies in host memory"
    )
    return [Finding("spill", says)]


def queued(said: t.Sequence[Said]) -> list[Finding]:
    """The finding of requests that a full queue refused before it served them: somebody else stood in it."""
    refused = [one for one in said if one.refused and one.failure is None]
    if not refused:
        return []
    times = sum(one.refused for one in refused)
    says = (
        f"other traffic: a full queue refused {len(refused):,} of {len(said):,} requests {times:,} times in all (429), "
        "and served them later"
    )
    return [Finding("queue_full", says)]


def _together(said: t.Sequence[Said]) -> tuple[int, tuple[float, float] | None]:
    spans = [(one.heard.first_at, one.heard.last_at) for one in said]
    known = [(first, last) for first, last in spans if first is not None and last is not None]
    most, stretch = most_at_once(known)
    # One whose tokens all arrived in the same moment overlaps no other, yet it held the pool.
    return max(most, min(1, len(known))), stretch


def _pool_too_small(plan: Plan, overlap: int, witness: Witness) -> list[Finding]:
    """What the engine's own account says against the pool: only that can tell a short pool from a short overlap."""
    if witness.preempted:
        says = f"the engine preempted {witness.preempted:,} of them: the pool does not hold them all"
        return [Finding("preempted", says)]
    needed, total = plan.sequences * plan.prompt_tokens, witness.kv_tokens_total
    if overlap < plan.sequences and total is not None and 0 < total < needed:
        says = f"the pool has {total:,} tokens and they need about {needed:,}: it does not hold them all"
        return [Finding("pool_too_small", says)]
    return []


def _short_of_overlap(plan: Plan, overlap: int, said: t.Sequence[Said], witness: Witness) -> list[Finding]:
    if overlap < plan.sequences:
        least = min((s.heard.generated_tokens or 0 for s in said), default=0)
        why = (
            f"one stopped after {least:,} of {plan.generate_tokens:,} tokens"
            if 0 < least < plan.generate_tokens
            else f"more than {plan.generate_tokens:,} generate_tokens would keep them together"
        )
        says = f"only {overlap:,} of {plan.sequences:,} sequences were seen to hold the pool together: {why}"
        return [Finding("overlap_short", says)]
    if witness.decoding is None and plan.sequences > 1:
        says = (
            "nothing but the arrival of tokens shows that they held the pool together, since the endpoint does not say "
            "in /stats what it decodes: something between may have held tokens back"
        )
        return [Finding("no_witness", says)]
    if witness.decoding_within is not None and witness.decoding_within < plan.sequences:
        says = f"/stats shows {witness.decoding_within:,} sequences decoding while {overlap:,} were streaming"
        return [Finding("witness_differs", says)]
    return []
