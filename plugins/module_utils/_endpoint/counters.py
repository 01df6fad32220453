# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engine has counted over one run: draft tokens, those it accepted, and the steps that decoded.

/stats gives the acceptance as one ratio since the engine's start, which says nothing of a run. /metrics has the
counters behind it: their growth from just before a run to its end is that run's own.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.client import Client

_QUICK_SECONDS = 15.0
# Name, labels, value; with or without the engine's prefix. A label may hold a brace.
_ROW = re.compile(
    r"^(?:radiance:|vllm:)?([a-z_]+)(?:\{.*\})?[ \t]+([0-9]+(?:\.[0-9]+)?(?:[eE]\+?[0-9]+)?)(?:[ \t]+[0-9]+)?$"
)
# More than this nothing counts, and what it would be of two readings is no number.
_MOST = 1e15
# The counters of an answer may be read a step later or earlier than its end.
_LEAST_OTHERS = 16
_OTHERS_PART = 0.02
_NAMES = {
    "draft_tokens_total": "drafted",
    "draft_accepted_total": "accepted",
    "engine_steps_decode_total": "steps",
    "prompt_tokens_total": "prompted",
    "generation_tokens_total": "generated",
}


class Counters(t.NamedTuple):
    """Counts since the engine's start, or over one run; None where the engine does not say.

    ``drafted`` and ``accepted`` are draft tokens, ``steps`` the steps that decoded at least one sequence, ``prompted``
    and ``generated`` the tokens of all prompts and answers.
    """

    drafted: int | None = None
    accepted: int | None = None
    steps: int | None = None
    prompted: int | None = None
    generated: int | None = None

    @property
    def acceptance(self) -> float | None:
        """The accepted part of the draft tokens, None where there were none or they are not counted."""
        if not self.drafted or self.accepted is None or self.accepted > self.drafted:
            return None
        return round(self.accepted / self.drafted, 4)


UNCOUNTED = Counters()


def parse_counters(text: str) -> Counters:
    """Read the text of /metrics; rows of the same name (one for each engine) are summed. Pure."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        row = _ROW.match(line)
        name = _NAMES.get(row.group(1)) if row else None
        if row and name:
            found[name] = found.get(name, 0.0) + float(row.group(2))
    return Counters(**{name: int(value) for name, value in found.items() if value <= _MOST})


def read_counters(client: Client) -> Counters:
    """What the engine has counted until now."""
    reply = client.get("/metrics", timeout=min(client.timeout, _QUICK_SECONDS))
    return parse_counters(reply.body.decode("utf-8", "replace")) if reply.ok else UNCOUNTED


def growth(before: Counters, after: Counters, tokens: bool = True) -> Counters:
    """What was counted between two readings; None where one does not say, or the engine began anew. Pure.

    Without ``tokens``, those of prompts and answers are left out.
    """

    def grown(one: int | None, other: int | None) -> int | None:
        return None if one is None or other is None or other < one else other - one

    counted = Counters(*(grown(one, other) for one, other in zip(before, after)))
    return counted if tokens else counted._replace(prompted=None, generated=None)


def others_counted(counted: Counters, prompt_tokens: int | None, generated_tokens: int | None) -> str | None:
    """Why the engine must have served others meanwhile, beside what the probe's replies count; None where not. Pure."""
    for what, said, own in (
        ("prompt", counted.prompted, prompt_tokens),
        ("generated", counted.generated, generated_tokens),
    ):
        if said is not None and own is not None and said > own + max(_LEAST_OTHERS, _OTHERS_PART * own):
            return f"other traffic: the engine counted {said:,} {what} tokens, and the replies to the probe {own:,}"
    return None


def total(parts: t.Iterable[Counters]) -> Counters:
    """Several runs together; what one of them does not say is None. Pure."""
    columns = list(zip(*parts))
    return Counters(*(None if None in column else sum(column) for column in columns)) if columns else UNCOUNTED
