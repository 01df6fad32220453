# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reply holds, plain or streamed, where every field may be missing, null, zero or of another type. Pure.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math
import typing as t

TEXT_LIMIT = 512 * 1024
# A reply has a piece for each step of decode; these are far more than any probe asks for.
_MOST_MARKS = 32_768
_REASONING = ("reasoning_content", "reasoning")
# No endpoint counts as far as this; a longer number is nonsense, and no float can be told of it.
_MOST = 10**12
_SHOWN = 300


def count_of(value: t.Any) -> int | None:
    """A count from JSON, or None: booleans, negatives, fractions, text and what nothing counts as far as are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        return None
    return int(value) if 0 <= value <= _MOST else None


def shown(text: str) -> str:
    """The words of a server as a person gets to see them: one line, bounded, and nothing that moves a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 2 * _SHOWN]).split())
    return line if len(line) <= _SHOWN else line[:_SHOWN] + " ..."


def positive(value: t.Any) -> float | None:
    """A number above zero from JSON, or None: a rate of 0 is a rate that was not measured."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def _dict(value: t.Any) -> dict[str, t.Any]:
    return value if isinstance(value, dict) else {}


class Timings(t.NamedTuple):
    """The server's own account of one request: seconds and tokens, None where it does not say."""

    prompt_tokens: int | None
    cached_tokens: int | None
    prompt_seconds: float | None
    prefill_tps: float | None
    decode_tps: float | None


def read_timings(value: t.Any) -> Timings:
    """``timings`` as llama-server and radiance from 1.0.8 write it, of whatever type and completeness."""
    raw = _dict(value)
    tokens = count_of(raw.get("prompt_n"))
    milliseconds = positive(raw.get("prompt_ms"))
    seconds = milliseconds / 1000 if milliseconds else None
    prefill = tokens / seconds if tokens and seconds else positive(raw.get("prompt_per_second"))
    if seconds is None and tokens and prefill:
        seconds = tokens / prefill
    decode = positive(raw.get("predicted_per_second"))
    generated, took = count_of(raw.get("predicted_n")), positive(raw.get("predicted_ms"))
    if decode is None and generated and generated > 1 and took:
        decode = (generated - 1) * 1000 / took
    return Timings(tokens, count_of(raw.get("cache_n")), seconds, prefill, decode)


class Heard:
    """A reply as it arrives. ``take`` every event of a stream, or the one object of a plain reply.

    ``first_at`` and ``last_at`` are the arrival (monotonic seconds) of the first and the last event that carried
    text or reasoning: a chunk with only a role, or with empty text, is no token. ``pieces`` counts the moments at
    which such events arrived, which is not a count of tokens.
    """

    def __init__(self) -> None:
        self.content = ""
        self.reasoning = ""
        self.first_at: float | None = None
        self.last_at: float | None = None
        self.pieces = 0
        self.finish: str | None = None
        self.error: t.Any = None
        # (moment, characters until and with it) of each piece.
        self._chars = 0
        self._marks: list[tuple[float, int]] = []
        self._usage: dict[str, t.Any] = {}
        self._timings: dict[str, t.Any] = {}

    def take(self, data: t.Any, at: float) -> None:
        """Add one event or plain reply that arrived ``at``; what is not an object adds nothing."""
        data = _dict(data)
        if data.get("error") is not None:
            self.error = data
        for key, kept in (("usage", self._usage), ("timings", self._timings)):
            kept.update({k: v for k, v in _dict(data.get(key)).items() if v is not None})
        choices = data.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            self._choice(_dict(choice), at)

    def _choice(self, choice: dict[str, t.Any], at: float) -> None:
        if isinstance(choice.get("finish_reason"), str):
            self.finish = choice["finish_reason"]
        spoken = [_dict(choice.get("delta")), _dict(choice.get("message"))]
        content = "".join(_text(part.get("content")) for part in spoken) + _text(choice.get("text"))
        reasoning = "".join(
            next((_text(part.get(k)) for k in _REASONING if _text(part.get(k))), "") for part in [*spoken, choice]
        )
        if not content and not reasoning:
            return
        if self.first_at is None:
            self.first_at = at
        if at != self.last_at:
            self.pieces += 1
        self.last_at = at
        self._chars += len(content) + len(reasoning)
        if len(self._marks) < _MOST_MARKS:
            self._marks.append((at, self._chars))
        self.content = (self.content + content)[:TEXT_LIMIT]
        self.reasoning = (self.reasoning + reasoning)[:TEXT_LIMIT]

    def tokens_within(self, start: float, end: float) -> float | None:
        """The generated tokens that arrived after ``start`` and until ``end``, by their share of the text.

        Usage counts all of them; which piece holds how many, no reply says. None where usage does not count.
        """
        if self.generated_tokens is None or not self._chars:
            return None
        until = [max((chars for at, chars in self._marks if at <= moment), default=0) for moment in (start, end)]
        return self.generated_tokens * (until[1] - until[0]) / self._chars

    @property
    def moments(self) -> list[float]:
        """When pieces arrived, each moment once."""
        return sorted({at for at, _chars in self._marks})

    @property
    def first_share(self) -> float:
        """The part of the text that arrived in the first moment of it."""
        return max((chars for at, chars in self._marks if at == self.first_at), default=0) / max(1, self._chars)

    @property
    def timings(self) -> Timings:
        """The server's timings, every field None where there are none."""
        return read_timings(self._timings)

    @property
    def prompt_tokens(self) -> int | None:
        """The prompt's tokens as the reply counts them."""
        return count_of(self._usage.get("prompt_tokens"))

    @property
    def generated_tokens(self) -> int | None:
        """The generated tokens as the reply counts them, reasoning included. Chunks are never counted."""
        return count_of(self._usage.get("completion_tokens"))

    @property
    def cached_tokens(self) -> int | None:
        """The prompt's tokens that came from a cache: the larger of the two accounts; None where neither says."""
        said = (
            count_of(_dict(self._usage.get("prompt_tokens_details")).get("cached_tokens")),
            self.timings.cached_tokens,
        )
        return max((n for n in said if n is not None), default=None)


def _text(value: t.Any) -> str:
    return value if isinstance(value, str) else ""
