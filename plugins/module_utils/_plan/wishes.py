# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a request may ask beyond pair and shape: memory kept for others on a card, and sessions that stay in the pool.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.reading import (
    known,
    list_of,
    plain_number,
    reason_missing,
    reason_of,
    unreadable,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import whole_number

# The engine's guide (4.3): a finished session keeps about this many times its context in blocks, with prefix caching.
# One pair of published measurements stands behind it: two sessions of 184,000 tokens came back in 3 s where the pool
# held that much, and in 173 s where it did not.
SESSION_FACTOR = 1.8
FACTOR_SOURCE = "the engine's guide, 4.3"


class Reserved(t.NamedTuple):
    """Memory of one card, MiB, that others will take after the engine has booted, and who they are."""

    card: int
    mib: int
    reason: str | None


class LiveSessions(t.NamedTuple):
    """Finished sessions whose blocks should stay; ``tokens`` is None for the context of the planned shape."""

    sessions: int
    tokens: int | None
    factor: float
    factor_from: str

    def context(self, max_model_len: int) -> int:
        """Tokens of one session."""
        return self.tokens or max_model_len

    def held_tokens(self, max_model_len: int) -> int:
        """Tokens of blocks that all of them hold together."""
        return math.ceil(round(self.sessions * self.context(max_model_len) * self.factor, 6))


def read_reserved(raw: object) -> tuple[Reserved, ...]:
    """``[{card, mib, reason}]``, each card once; an entry of 0 MiB says that nothing is kept there.

    Raises RadianceError ``request_unreadable``, ``not_a_whole_number``, ``reason_missing``.
    """
    found: dict[int, Reserved] = {}
    for index, entry in enumerate(list_of(raw, "reserved_for_others_mib")):
        where = f"reserved_for_others_mib[{index}]"
        given = known(entry, Reserved._fields, where)
        for name in ("card", "mib"):
            if name not in given:
                raise unreadable(f"{where} has no {name}; it takes card, mib and a reason.")
        card = whole_number(given["card"], f"{where}.card")
        size = whole_number(given["mib"], f"{where}.mib")
        if card in found:
            raise unreadable(f"reserved_for_others_mib names card {card} twice. State it once, in all.")
        reason = reason_of(given, "reason")
        if size and not reason:
            raise reason_missing(f"{where}.mib is {size}", f"{where}.reason")
        found[card] = Reserved(card, size, reason if size else None)
    return tuple(found[card] for card in sorted(found))


def read_live_sessions(raw: object) -> LiveSessions | None:
    """``{sessions, tokens, factor}``; None where nothing is asked.

    Raises RadianceError ``request_unreadable``, ``not_a_whole_number``, ``not_a_number``.
    """
    given = known(raw, ("sessions", "tokens", "factor"), "live_sessions")
    if not given:
        return None
    if "sessions" not in given:
        raise unreadable("live_sessions has no sessions; it takes sessions, and tokens and factor.")
    sessions = whole_number(given["sessions"], "live_sessions.sessions")
    tokens = None if "tokens" not in given else whole_number(given["tokens"], "live_sessions.tokens")
    if sessions == 0:
        return None
    if tokens == 0:
        raise RadianceError(
            "live_sessions.tokens is 0: a session has a context. Leave it out for the planned one.",
            code="not_a_whole_number",
        )
    factor, whence = SESSION_FACTOR, FACTOR_SOURCE
    if "factor" in given:
        factor, whence = plain_number(given["factor"], "live_sessions.factor"), "the request"
        if factor < 1:
            raise RadianceError(
                f"live_sessions.factor is {factor:g}: a session holds at least its own context. State 1 or more.",
                code="not_a_number",
            )
    return LiveSessions(sessions, tokens, factor, whence)
