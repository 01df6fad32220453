# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A well-behaved little endpoint whose every habit a test can change. It shares no code with the probes.

It counts a token for every 2.5 characters, refuses what fills its window, and streams: a first piece that holds the
prompt's markers, then filler. With ``together`` set, no long prompt's sequence ends before so many have begun.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
import typing as t

from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.endpoint_server import (
    Call,
    Server,
    serving,
)

CHARS_PER_TOKEN = 2.5
LONG = 1_000
TEMPLATE_TOKENS = 9
_MARKER = re.compile(r"[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{4}")


def recall(prompt: str) -> str:
    """The answer of a model that finds every marker of a prompt."""
    return ", ".join(_MARKER.findall(prompt))


def count(prompt: str) -> int:
    """The tokens of a prompt: each of a run of the same short word at its end is one."""
    words = (len(prompt) - len(prompt.rstrip(" a"))) // 2
    return int((len(prompt) - 2 * words) / CHARS_PER_TOKEN) + words


class Small:
    """The habits of the endpoint; a test sets what it wants to be different."""

    def __init__(self, *, window: int = 6000, sequences: int = 3, together: int = 1) -> None:
        self.window = window
        self.sequences = sequences
        self.prefill_tps = 80_000.0
        self.decode_tps = 2_000.0
        self.key: str | None = None
        self.in_flight = 0
        self.others = 0
        self.stats: dict[str, t.Any] = {}
        # Since its start: half of all drafts were accepted in an answer, and far fewer before.
        self.counters = {"draft_tokens": 1_000_000, "draft_accepted": 100_000, "engine_steps_decode": 500_000}
        # Of all prompts and answers since its start.
        self.totals = {"prompt_tokens": 5_000_000, "generation_tokens": 300_000}
        self.refuses = True
        # Each may be replaced: what a prompt counts, what the answer says, what usage and timings say.
        self.count: t.Callable[[str], int] = count
        self.text: t.Callable[[str, int], str] = lambda prompt, number: recall(prompt)
        self.usage: t.Callable[[int, int], t.Any] = lambda prompt, made: {
            "prompt_tokens": prompt,
            "completion_tokens": made,
            "prompt_tokens_details": {"cached_tokens": 0},
        }
        self.timings: t.Callable[[int, int, float, float], t.Any] = lambda prompt, made, prefill, decode: None
        self.instead: t.Callable[[Call, int], bool] = lambda call, number: False
        self.within: t.Callable[[Call, int], bool] = lambda call, number: False
        self.pieces = 32
        # The seconds of prefill and of decode that each streamed answer really took.
        self.took: list[tuple[float, float]] = []
        self.completions = 0
        self._lock = threading.Lock()
        self._begun = threading.Barrier(together)

    @contextlib.contextmanager
    def serving(self, port: int = 0) -> t.Iterator[Server]:
        """Serve for the length of the block, at any free port unless one is named."""
        answers = {
            "/health": lambda call: call.reply({"status": "ok"}),
            "/v1/models": self._guard(lambda call: call.reply({"data": [{"id": "small"}]})),
            "/load": self._guard(lambda call: call.reply({"running": self.in_flight + self.others, "waiting": 0})),
            "/stats": self._guard(self._stats),
            "/metrics": self._guard(self._metrics),
            "/server_info": self._guard(self._info),
            "/v1/completions": self._guard(self._complete),
            "/v1/chat/completions": self._guard(self._chat),
        }
        with serving(answers, port) as server:
            yield server

    def _guard(self, answer: t.Callable[[Call], None]) -> t.Callable[[Call], None]:
        def guarded(call: Call) -> None:
            if self.key is not None and call.headers.get("Authorization") != f"Bearer {self.key}":
                call.reply({"error": {"message": "invalid api key", "type": "authentication_error"}}, status=401)
            else:
                answer(call)

        return guarded

    def _stats(self, call: Call) -> None:
        said = {"running": self.in_flight + self.others, "waiting": 0, "draft_accept": 0.5}
        call.reply({**said, "requests": [{"state": "decode"}] * self.in_flight, **self.stats})

    def _metrics(self, call: Call) -> None:
        rows = "".join(f'radiance:{name}_total{{engine="0"}} {value}\n' for name, value in self.counters.items())
        rows += "".join(f'vllm:{name}_total{{engine="0"}} {value}\n' for name, value in self.totals.items())
        call.reply(rows.encode())

    def _info(self, call: Call) -> None:
        call.reply(
            {
                "server": {"max_model_len": self.window, "max_num_seqs": self.sequences},
                "engine": {"max_num_batched_tokens": 2048, "speculation": {"enabled": True, "depth": 2}},
            }
        )

    def _chat(self, call: Call) -> None:
        (message,) = call.content["messages"]
        tokens = self.count(message["content"]) + TEMPLATE_TOKENS
        if self.refuses and tokens >= self.window:
            self._refuse(call, "messages", tokens)
            return
        choice = {"message": {"role": "assistant", "content": "x"}, "finish_reason": "length"}
        call.reply({"choices": [choice], "usage": self.usage(tokens, 1)})

    def _refuse(self, call: Call, field: str, tokens: int) -> None:
        text = (
            f"{field}: {tokens} prompt tokens does not fit the {self.window} token context, which leaves nothing to"
            f" generate into; shorten the prompt by at least {tokens - self.window + 1} tokens"
        )
        error = {"message": text, "type": "invalid_request_error", "param": field, "code": "context_length_exceeded"}
        call.reply({"error": error}, status=400)

    def _complete(self, call: Call) -> None:
        with self._lock:
            number = self.completions
            self.completions += 1
            self.in_flight += 1
        try:
            if not self.instead(call, number):
                self._answer(call, number)
        finally:
            with self._lock:
                self.in_flight -= 1

    def _answer(self, call: Call, number: int) -> None:
        prompt, made = call.content["prompt"], call.content["max_tokens"]
        tokens = self.count(prompt)
        if self.refuses and tokens >= self.window:
            self._refuse(call, "prompt", tokens)
            return
        usage = self.usage(tokens, made)
        if not call.content.get("stream"):
            call.reply({"choices": [{"text": "x", "finish_reason": "length"}], "usage": usage})
            return
        begun = time.monotonic()
        time.sleep(tokens / self.prefill_tps)
        call.begin_events()
        first = time.monotonic()
        call.event({"choices": [{"text": self.text(prompt, number)}]})
        if tokens >= LONG:
            with contextlib.suppress(threading.BrokenBarrierError):
                self._begun.wait(timeout=5)
        if self.within(call, number):
            return
        for _piece in range(self.pieces):
            call.event({"choices": [{"text": " and so on"}]}, after=(made - 1) / self.decode_tps / self.pieces)
        prefill, decode = first - begun, time.monotonic() - first
        self.took.append((prefill, decode))
        with self._lock:
            for name, count in (
                ("draft_tokens", made),
                ("draft_accepted", made // 2),
                ("engine_steps_decode", made // 2),
            ):
                self.counters[name] += count
            self.totals["prompt_tokens"] += tokens
            self.totals["generation_tokens"] += made
        call.event({"choices": [{"text": "", "finish_reason": "length"}]})
        call.event({"choices": [], "usage": usage, "timings": self.timings(tokens, made, prefill, decode)})
        call.event("[DONE]")
