# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON shapes of completions, plain and streamed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Callable

from .api_requests import Asked
from .sequence import Sequence

# Gives ``{"timings": …}`` of a sequence, or nothing.
Timings = Callable[[Sequence], dict[str, Any]]


def _base(asked: Asked, model: str, sequences: list[Sequence], streamed: bool) -> dict[str, Any]:
    kind = "text_completion" if not asked.chat else "chat.completion.chunk" if streamed else "chat.completion"
    prefix = "chatcmpl" if asked.chat else "cmpl"
    return {"id": f"{prefix}-{sequences[0].id:016x}", "object": kind, "created": int(time.time()), "model": model}


def usage(sequences: list[Sequence]) -> dict[str, Any]:
    """The usage of a request: each of its sequences counts."""
    rows = [sequence.usage() for sequence in sequences]
    total: dict[str, Any] = {
        name: sum(row[name] for row in rows) for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    }
    cached = sum(row["prompt_tokens_details"]["cached_tokens"] for row in rows)
    return {**total, "prompt_tokens_details": {"cached_tokens": cached}}


def whole(asked: Asked, model: str, sequences: list[Sequence], timings: Timings) -> dict[str, Any]:
    """A plain answer."""
    choices = []
    for index, sequence in enumerate(sequences):
        reply, produced = sequence.reply, sequence.produced
        choice: dict[str, Any] = {"index": index, "logprobs": None, "finish_reason": sequence.finish_reason}
        if asked.chat:
            message = {"role": "assistant", "content": reply.text(reply.thinking, produced)}
            if reply.thinking:
                message["reasoning_content"] = reply.text(0, min(reply.thinking, produced))
            choice["message"] = message
        else:
            choice["text"] = reply.text(0, produced)
        choices.append(choice)
    base = _base(asked, model, sequences, streamed=False)
    return {**base, "choices": choices, "usage": usage(sequences), **timings(sequences[0])}


def opening(asked: Asked, model: str, sequences: list[Sequence]) -> Iterator[dict[str, Any]]:
    """The chunks that precede the text: a chat's role."""
    if asked.chat:
        for index in range(len(sequences)):
            yield _chunk(asked, model, sequences, index, {"role": "assistant", "content": ""}, None)


def piece(
    asked: Asked, model: str, sequences: list[Sequence], index: int, start: int, end: int
) -> Iterator[dict[str, Any]]:
    """The chunks of the tokens from ``start`` to ``end`` of one sequence."""
    reply = sequences[index].reply
    turn = min(max(start, reply.thinking), end)
    if start < turn:
        yield _chunk(asked, model, sequences, index, {"reasoning_content": reply.text(start, turn)}, None)
    if turn < end:
        yield _chunk(asked, model, sequences, index, {"content": reply.text(turn, end)}, None)


def closing(asked: Asked, model: str, sequences: list[Sequence], index: int, timings: Timings) -> dict[str, Any]:
    """The last chunk of one sequence."""
    chunk = _chunk(asked, model, sequences, index, {}, sequences[index].finish_reason)
    return {**chunk, **timings(sequences[index])}


def final_usage(asked: Asked, model: str, sequences: list[Sequence], timings: Timings) -> dict[str, Any]:
    """The chunk that ``stream_options.include_usage`` asks for."""
    base = _base(asked, model, sequences, streamed=True)
    return {**base, "choices": [], "usage": usage(sequences), **timings(sequences[0])}


def _chunk(
    asked: Asked, model: str, sequences: list[Sequence], index: int, delta: dict[str, str], reason: str | None
) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": index}
    if asked.chat:
        choice["delta"] = delta
    else:
        choice["text"] = delta.get("content", "")
    choice.update(logprobs=None, finish_reason=reason)
    return {**_base(asked, model, sequences, streamed=True), "choices": [choice]}
