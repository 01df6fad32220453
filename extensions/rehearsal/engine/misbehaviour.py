# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a serving stand-in does wrong when a fault says so; without a fault, everything here changes nothing."""

from __future__ import annotations

import threading
import time
from typing import Any

from .api_requests import ApiError
from .machine import Machine
from .reply import markers
from .sequence import Sequence

_COMPLETIONS = ("/v1/completions", "/v1/chat/completions")
_PIECES = 20
_NEVER_ASKED = "FOREIGN-0000-MARKER"


def is_long(tokens: int, machine: Machine) -> bool:
    """Whether a prompt is one of the long ones after which some faults begin: a fifth of the context or more."""
    return 5 * tokens >= machine.shape.context


class Misbehaviour:
    """The serving faults of one boot."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._hits = machine.hits
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._refused = 0
        self._markers: list[str] = []
        self._long_seen = False

    def admit(self, path: str, retry_after: int) -> None:
        """Refuse a request at the door: 503 for a while, 429 for some."""
        if "unavailable" in self._hits and path in (*_COMPLETIONS, "/health", "/ping"):
            left = self._began + self._hits.number("unavailable") - time.monotonic()
            if left > 0:
                raise ApiError(503, "Loading model", "unavailable_error")
        if "queue_full" in self._hits and path in _COMPLETIONS:
            with self._lock:
                self._refused += 1
                refused = self._refused <= self._hits.whole("queue_full")
            if refused:
                raise overloaded(retry_after)

    @property
    def longest_prompt(self) -> int | None:
        """Tokens that prompts are cut to, or None."""
        if "truncate_prompt" not in self._hits:
            return None
        return self._hits.whole("truncate_prompt") or self._machine.shape.context // 2

    def words(self, text: str, tokens: int) -> list[str] | None:
        """The marker words of an answer; None for garbage."""
        own = markers(text)
        with self._lock:
            others, self._markers = self._markers, own or self._markers
            garbage, self._long_seen = self._long_seen, self._long_seen or is_long(tokens, self._machine)
        if "garbage" in self._hits and garbage:
            return None
        if "lose_marker" in self._hits:
            return own[:-1]
        if "foreign_marker" in self._hits and own:
            return others or [_NEVER_ASKED]
        return own

    def timings(self, sequence: Sequence) -> dict[str, Any]:
        """The part of an answer that holds its timings: ``{"timings": …}`` or nothing."""
        if "no_timings" in self._hits or not self._machine.world.rules.timings:
            return {}
        timings = sequence.timings()
        if "null_timings" in self._hits:
            return {"timings": None}
        if "null_rates" in self._hits:
            return {"timings": dict.fromkeys(timings)}
        if "wrong_timings" in self._hits:
            factor = self._hits.number("wrong_timings")
            for name, value in timings.items():
                if value is not None and name.endswith("_ms"):
                    timings[name] = round(value / factor, 3)
                elif value is not None and name.endswith("_per_second"):
                    timings[name] = round(value * factor, 3)
        return {"timings": timings}

    def pieces(self, data: bytes) -> list[bytes]:
        """What is written at once, of one answer."""
        if "slow_drip" not in self._hits or not data:
            return [data]
        size = -(-len(data) // _PIECES)
        return [data[at : at + size] for at in range(0, len(data), size)]

    def drip(self) -> None:
        """Wait before a piece of an answer."""
        if "slow_drip" in self._hits:
            time.sleep(self._hits.number("slow_drip") / 1000)

    @property
    def fails_at(self) -> int | None:
        """Tokens after which an answer fails, or None."""
        return self._hits.whole("fail_midway") if "fail_midway" in self._hits else None


def overloaded(retry_after: int) -> ApiError:
    """The answer of a full queue."""
    return ApiError(
        429,
        f"the admission queue is full; retry after {retry_after}s. The server refuses rather than queueing without "
        "bound",
        "rate_limit_error",
        code="server_overloaded",
        retry_after=retry_after,
    )
