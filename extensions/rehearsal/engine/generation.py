# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One completion request from its sequences to its answer, plain or as events."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any, Callable

from . import api_answers
from .api_requests import ApiError, Asked
from .machine import Machine
from .misbehaviour import Misbehaviour, overloaded
from .reply import compose
from .scheduler import Scheduler
from .sequence import Sequence
from .tokenizer import Tokenizer

_WATCH_SECONDS = 0.25


class Generation:
    """The sequences of one request. ``gone`` tells whether its client has gone away."""

    def __init__(
        self, asked: Asked, model: str, machine: Machine, tokenizer: Tokenizer, misbehaviour: Misbehaviour
    ) -> None:
        self._timings = misbehaviour.timings
        self._asked = asked
        self._model = model
        self._flags = machine.flags
        self._sequences: list[Sequence] = []
        for tokens, text in asked.prompts:
            reply = compose(
                tokenizer,
                misbehaviour.words(text, len(tokens)),
                most=asked.max_tokens,
                natural=int(machine.world.reply_tokens),
                ignore_eos=asked.ignore_eos,
                stop=asked.stop,
                thinking=int(machine.world.thinking_tokens) if asked.thinking else 0,
            )
            self._sequences += [Sequence(tokens, reply, fails_at=misbehaviour.fails_at) for _choice in range(asked.n)]

    @contextlib.contextmanager
    def running(self, scheduler: Scheduler) -> Iterator[None]:
        """Queue the sequences; those that are not done at the end are cancelled."""
        if not scheduler.submit(self._sequences, self._flags.queue_cap):
            raise overloaded(self._flags.number("--retry-after"))
        try:
            yield
        finally:
            for sequence in self._sequences:
                if not sequence.done:
                    scheduler.cancel(sequence)

    def whole(self, gone: Callable[[], bool]) -> dict[str, Any]:
        """Wait for all sequences: the plain answer."""
        for sequence in self._sequences:
            _wait(sequence.ended, gone)
            if sequence.error:
                raise _failed(sequence.error)
        return api_answers.whole(self._asked, self._model, self._sequences, self._timings)

    def wait_first(self, gone: Callable[[], bool]) -> None:
        """Wait for the first step: a request that fails before it gets a plain error."""
        first = self._sequences[0]
        _wait(first.changed, gone)
        if first.error:
            raise _failed(first.error)

    def events(self, gone: Callable[[], bool]) -> Iterator[str]:
        """The data of the server-sent events, tokens as they come."""
        asked, model, sequences = self._asked, self._model, self._sequences
        for chunk in api_answers.opening(asked, model, sequences):
            yield json.dumps(chunk)
        for index, sequence in enumerate(sequences):
            sent = 0
            done = False
            while not done:
                _wait(sequence.changed, gone)
                # Cleared before it is read, so that what comes after is not missed.
                sequence.changed.clear()
                done, produced = sequence.done, sequence.produced
                for chunk in api_answers.piece(asked, model, sequences, index, sent, produced):
                    yield json.dumps(chunk)
                sent = produced
            if sequence.error:
                yield json.dumps(_failed(sequence.error).body)
            else:
                yield json.dumps(api_answers.closing(asked, model, sequences, index, self._timings))
        if asked.include_usage:
            yield json.dumps(api_answers.final_usage(asked, model, sequences, self._timings))
        yield "[DONE]"


def _wait(event: threading.Event, gone: Callable[[], bool]) -> None:
    while not event.wait(_WATCH_SECONDS):
        if gone():
            raise ConnectionError("the client went away")


def _failed(why: str) -> ApiError:
    return ApiError(500, f"the engine failed this request: {why}", "internal_server_error")
