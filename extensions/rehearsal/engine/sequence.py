# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One answer that is being computed, as the scheduler and the HTTP side share it."""

from __future__ import annotations

import itertools
import threading
import time
from array import array
from dataclasses import dataclass, field
from typing import Any

from .prefix_cache import Entry
from .reply import Reply

_ids = itertools.count(1)


@dataclass(eq=False)
class Sequence:
    """A prompt and its reply. Times are the scheduler's clock, in seconds; they follow the rates exactly."""

    prompt: array[int]
    reply: Reply
    id: int = field(default_factory=lambda: next(_ids))
    state: str = "waiting"
    target: int = 0
    computed: int = 0
    cached: int = 0
    produced: int = 0
    drafted: float = 0.0
    entry: Entry | None = None
    error: str | None = None
    fails_at: int | None = None
    cancelled: bool = False
    submitted: float = field(default_factory=time.monotonic)
    began: float | None = None
    first: float | None = None
    last: float | None = None
    changed: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def done(self) -> bool:
        """Whether nothing more will come."""
        return self.ended.is_set()

    def end(self) -> None:
        """Nothing more will come."""
        self.state = "done"
        self.ended.set()
        self.changed.set()

    @property
    def decoding(self) -> bool:
        """Whether its prompt is computed."""
        return self.computed >= self.target

    @property
    def held(self) -> int:
        """Tokens of its own in the pool, the whole prompt counted from its admission on."""
        return self.entry.charged if self.entry else 0

    @property
    def in_pool(self) -> int:
        """Tokens that it has in the pool now, a shared head included."""
        if self.entry is None:
            return 0
        return self.computed + self.produced - (self.target - len(self.prompt))

    @property
    def finish_reason(self) -> str:
        """``stop`` when the reply ended by itself, ``length`` when the tokens ran out."""
        reply = self.reply
        # On chat, the engine says stop also where thinking used up all tokens.
        return "stop" if reply.natural or reply.thinking >= len(reply.tokens) > 0 else "length"

    def text_tokens(self) -> array[int]:
        """Prompt and what was produced."""
        return self.prompt + self.reply.tokens[: self.produced]

    def timings(self) -> dict[str, Any]:
        """The ``timings`` object of an answer; a rate over no time is null."""
        first = self.first or 0.0
        prompt_ms = 1000 * (first - (self.began or first))
        predicted_ms = 1000 * ((self.last or first) - first)
        fresh = len(self.prompt) - self.cached
        return {
            "prompt_n": fresh,
            "cache_n": self.cached,
            "prompt_ms": round(prompt_ms, 3),
            "prompt_per_second": round(1000 * fresh / prompt_ms, 3) if prompt_ms > 0 else None,
            "predicted_n": self.produced,
            "predicted_ms": round(predicted_ms, 3),
            "predicted_per_second": round(1000 * (self.produced - 1) / predicted_ms, 3) if predicted_ms > 0 else None,
        }

    def usage(self) -> dict[str, Any]:
        """The ``usage`` object of an answer."""
        return {
            "prompt_tokens": len(self.prompt),
            "completion_tokens": self.produced,
            "total_tokens": len(self.prompt) + self.produced,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }

    def snapshot(self, context: int) -> dict[str, Any]:
        """The row of /stats."""
        now = time.monotonic()
        tokens = self.in_pool
        row: dict[str, Any] = {
            "id": self.id,
            "state": self.state,
            "prompt": len(self.prompt),
            "computed": min(self.computed, len(self.prompt)),
            "cached": self.cached,
            "output": self.produced,
            "max": len(self.reply.tokens),
            "ctx": context,
            "kv_tokens": tokens,
            "kv_blocks": -(-tokens // 4),
            "age_s": round(now - self.submitted, 3),
        }
        if self.first is not None:
            row["ttft_s"] = round(max(0.0, self.first - self.submitted), 3)
            elapsed = max(1e-9, (self.last or self.first) - self.first)
            row["tps"] = round((self.produced - 1) / elapsed, 2) if self.produced > 1 else 0.0
        return row
