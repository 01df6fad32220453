# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's step loop: a chunk of the first prompt that is not computed, and one decode of every other sequence."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Any

from .counters import Counters
from .log import Log
from .machine import Machine
from .misbehaviour import is_long
from .pace import Pace
from .prefix_cache import PrefixCache
from .sequence import Sequence
from .sysfs import Cards
from .tiers import Tiers


class Scheduler:
    """Runs sequences; every public method may be called from any thread."""

    def __init__(self, machine: Machine, log: Log, cards: Cards | None = None) -> None:
        world = machine.world
        self._log = log
        self._machine = machine
        self._cards = cards
        self._sequences = 1 if "serve_one" in machine.hits else machine.shape.sequences
        self._drafts = machine.shape.drafts
        self._acceptance = world.draft_acceptance
        self._chunk = machine.chunk
        self.capacity = machine.kv_tokens
        self._pace = Pace(machine)
        self._spilled = "spill" not in machine.hits
        self._says_requests = world.request_log or world.rules.request_log
        self.cache = PrefixCache("--no-prefix-cache" not in machine.flags.switches, world.cache.block_tokens)
        self.tiers = Tiers(machine)
        self._wake = threading.Condition()
        self._waiting: deque[Sequence] = deque()
        self._running: list[Sequence] = []
        self.counters = Counters()
        self.totals = self.counters.totals
        self._rates = {"prefill_tps": 0.0, "decode_tps": 0.0}
        threading.Thread(target=self._run, daemon=True, name="scheduler").start()

    def submit(self, sequences: list[Sequence], cap: int) -> bool:
        """Queue a request's sequences; False when the queue would pass its cap."""
        with self._wake:
            if len(self._waiting) + len(self._running) + len(sequences) > cap:
                self.totals["refused"] += 1
                return False
            self.totals["requests"] += 1
            for sequence in sequences:
                if len(sequence.prompt) + 1 > self.capacity:
                    self._too_large(sequence, " at any occupancy")
                else:
                    self._waiting.append(sequence)
            self._wake.notify()
            return True

    def cancel(self, sequence: Sequence) -> None:
        """The client is gone."""
        with self._wake:
            sequence.cancelled = True

    def reset_cache(self) -> int:
        """Forget every ended sequence: how many."""
        with self._wake:
            dropped = self.cache.reset() + self.tiers.reset()
        self._log.info(f"prefix cache: reset, {dropped} entries dropped")
        return dropped

    @property
    def load(self) -> tuple[int, int]:
        """(running, waiting)."""
        return len(self._running), len(self._waiting)

    def snapshot(self, context: int) -> dict[str, Any]:
        """What /stats says of sequences, pool and rates."""
        with self._wake:
            used = min(self.capacity, sum(item.in_pool for item in self._running))
            totals = self.totals
            waiting = list(self._waiting)
            prompts = totals["prompt_tokens"]
            hit_rate = round(totals["cached_tokens"] / prompts, 4) if prompts else 0.0
            return {
                "running": len(self._running),
                "waiting": len(waiting),
                "preempted": sum(1 for item in waiting if item.state == "preempted"),
                "preemptions": int(totals["preemptions"]),
                "kv_util": round(used / self.capacity, 4) if self.capacity else 0.0,
                "kv_tokens_used": used,
                "kv_tokens_total": self.capacity,
                "kv_tokens_cached": self.cache.idle_tokens,
                "prefix_hit_rate": hit_rate,
                "prefix_evictions": self.cache.evictions,
                "checkpoints_written": int(totals["checkpoints"]),
                "linear_cached_tokens": self.cache.idle_tokens if self._machine.kv.snapshot else 0,
                "linear_hit_rate": hit_rate if self._machine.kv.snapshot else 0.0,
                **self._bytes(used),
                "draft_accept": round(totals["accepted"] / totals["drafted"], 4) if totals["drafted"] else 0.0,
                "total_requests": int(totals["requests"]),
                "steps": int(totals["steps"]),
                **{name: round(rate, 2) for name, rate in self._rates.items()},
                "requests": [item.snapshot(context) for item in [*self._running, *waiting]],
            }

    def _bytes(self, tokens: int) -> dict[str, int]:
        """The pool in bytes, all groups together, this many tokens being in it."""
        kv, pool = self._machine.kv, self._machine.split.kv_pool
        used = int(tokens * kv.token_bytes) + kv.state_bytes * len(self._running) // max(1, self._sequences)
        return {"kv_bytes_used": used, "kv_bytes_total": pool, "kv_bytes_carved": pool}

    def _run(self) -> None:
        while True:
            with self._wake:
                self._admit()
                while not self._running:
                    self._rates = {"prefill_tps": 0.0, "decode_tps": 0.0}
                    self._wake.wait()
                    self._pace.wake()
                    self._admit()
                prefilling = next((item for item in self._running if not item.decoding), None)
                decoding = [item for item in self._running if item.decoding]
                tokens = min(self._chunk, prefilling.target - prefilling.computed) if prefilling else 0
                if prefilling is not None and prefilling.began is None:
                    prefilling.began = self._pace.clock
                self._misbehave(prefilling)
                seconds = self._pace.seconds(tokens, len(decoding))
            self._pace.wait(seconds)
            with self._wake:
                self._finish_step(prefilling, tokens, decoding, seconds)

    def _misbehave(self, prefilling: Sequence | None) -> None:
        """Spill at the first long prompt, die under load, where a fault says so."""
        hits = self._machine.hits
        if not self._spilled and prefilling is not None and is_long(len(prefilling.prompt), self._machine):
            self._spilled = True
            self._pace.spill()
            if self._cards is not None:
                self._cards.spill(hits.whole("spill"))
        if "crash_under_load" in hits and len(self._running) >= (hits.whole("crash_under_load") or self._sequences):
            os._exit(self._log.fatal("the device was lost while a step ran"))

    def _admit(self) -> None:
        for item in [item for item in [*self._running, *self._waiting] if item.cancelled]:
            self._end(item)
        while self._waiting and len(self._running) < self._sequences:
            item = self._waiting[0]
            tokens = item.text_tokens()
            if len(tokens) + 1 > self.capacity:
                self._waiting.popleft()
                self._too_large(item, " and nothing lower-priority is left to preempt")
                continue
            source, shared = self.cache.match(tokens)
            from_tier = self.tiers.match(tokens, shared)
            if from_tier:
                source, shared = None, from_tier
            if source is not None:
                source.users += 1
            room = self._room(len(tokens) - (shared if source else 0) + 1)
            if source is not None:
                source.users -= 1
            if not room:
                return
            self._waiting.popleft()
            item.entry = self.cache.open(tokens, source, shared)
            item.target, item.computed = len(item.prompt) + item.produced, shared
            if item.state == "waiting":
                item.cached = shared
                self.totals["prompt_tokens"] += len(item.prompt)
                self.totals["cached_tokens"] += shared
            item.state = "prefill"
            self._running.append(item)

    def _room(self, tokens: int) -> bool:
        """Make room for this many more tokens by giving up ended sequences."""
        while sum(item.held for item in self._running) + self.cache.idle_tokens + tokens > self.capacity:
            if not self.cache.evict():
                return False
        return True

    def _finish_step(self, prefilling: Sequence | None, tokens: int, decoding: list[Sequence], seconds: float) -> None:
        self.totals["steps"] += 1
        self.totals["prefill_steps"] += prefilling is not None
        self.totals["decode_steps"] += bool(decoding)
        self.totals["checkpoints"] += prefilling is not None and tokens == self._chunk
        before = self.totals["generated"]
        if prefilling is not None and prefilling.entry is not None:
            prefilling.computed += tokens
            prefilling.entry.computed = prefilling.computed
            if prefilling.decoding:
                prefilling.state = "decode"
                self._produce(prefilling, 1)
        for item in decoding:
            if item.entry is None:
                continue
            item.drafted += self._acceptance * self._drafts
            accepted = int(item.drafted)
            item.drafted -= accepted
            self.totals["drafted"] += self._drafts
            self.totals["accepted"] += accepted
            self._produce(item, 1 + accepted)
        if prefilling is not None:
            self._rates["prefill_tps"] = tokens / seconds if seconds else 0.0
        if decoding:
            self._rates["decode_tps"] = (self.totals["generated"] - before) / seconds if seconds else 0.0

    def _produce(self, item: Sequence, count: int) -> None:
        count = min(count, len(item.reply.tokens) - item.produced)
        while item.entry is not None and not self._room(count):
            youngest = self._running[-1]
            if youngest is item and len(self._running) == 1:
                self._running.remove(item)
                self._too_large(item, " and nothing lower-priority is left to preempt")
                return
            self._preempt(youngest)
        if item.entry is None:
            return
        item.entry.charged += count
        item.produced += count
        self.totals["generated"] += count
        item.first = self._pace.clock if item.first is None else item.first
        item.last = self._pace.clock
        if item.fails_at is not None and item.produced >= item.fails_at:
            self._running.remove(item)
            self._fail(item, "a step of it failed on the device")
        elif item.produced >= len(item.reply.tokens) or item.cancelled:
            self._end(item)
        else:
            item.changed.set()

    def _preempt(self, item: Sequence) -> None:
        self.totals["preemptions"] += 1
        self._running.remove(item)
        if item.entry is not None:
            self.cache.close(item.entry, item.entry.tokens, keep=False)
        item.entry, item.state = None, "preempted"
        item.target = item.computed = 0
        self._waiting.appendleft(item)

    def _end(self, item: Sequence) -> None:
        if item in self._running:
            self._running.remove(item)
        elif item in self._waiting:
            self._waiting.remove(item)
        if item.entry is not None:
            whole = item.computed >= item.target
            self.cache.close(item.entry, item.text_tokens(), keep=whole)
            item.entry = None
            if whole:
                self.tiers.keep(item.text_tokens())
        if self._says_requests:
            self._log.info(
                f"request {item.id}: {len(item.prompt)} prompt tokens ({item.cached} cached), {item.produced} output "
                f"tokens, {'cancelled' if item.cancelled else item.finish_reason}"
            )
        self.counters.ended(item)
        item.end()

    def _too_large(self, item: Sequence, why: str) -> None:
        tokens = len(item.prompt) + item.produced + 1
        self._fail(item, f"the KV pool cannot hold {tokens} tokens{why}")

    def _fail(self, item: Sequence, error: str) -> None:
        item.error = error
        self._log.warn(f"request {item.id} failed: {item.error}")
        if item.entry is not None:
            self.cache.close(item.entry, item.entry.tokens, keep=False)
            item.entry = None
        self.counters.ended(item)
        item.end()
