# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prompt heads that are still in the KV pool, by whole blocks.

A sequence's tokens are one entry from its admission on; it stays when the sequence ends, until the pool needs its room.
"""

from __future__ import annotations

import itertools
from array import array
from dataclasses import dataclass, field

_MOST_IDLE = 64
# A shorter head is computed again: a few words or a chat template in common are no hit worth a saved state.
_SHORTEST_HEAD = 64
_turns = itertools.count(1)


@dataclass(eq=False)
class Entry:
    """The tokens of one sequence: ``computed`` of them are in the pool, ``charged`` are its own and not another's."""

    tokens: array[int]
    computed: int = 0
    charged: int = 0
    live: bool = True
    users: int = 0
    source: Entry | None = None
    turn: int = field(default_factory=lambda: next(_turns))


def common_head(left: array[int], right: array[int], most: int) -> int:
    """How many first tokens two arrays share, at most ``most``."""
    low, high = 0, min(len(left), len(right), most)
    if left[: min(16, high)] != right[: min(16, high)]:
        high = min(16, high)
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _is_head(head: array[int], tokens: array[int]) -> bool:
    return common_head(head, tokens, len(head)) == len(head)


class PrefixCache:
    """The entries of all sequences, running and ended."""

    def __init__(self, enabled: bool, block: int = 4) -> None:
        self._enabled = enabled
        self._block = block
        self._entries: list[Entry] = []
        self.evictions = 0

    def match(self, tokens: array[int]) -> tuple[Entry | None, int]:
        """The entry with the longest head in common, in whole blocks; one token at least is left to compute."""
        best: Entry | None = None
        longest = _SHORTEST_HEAD - 1
        if self._enabled:
            for entry in self._entries:
                head = common_head(entry.tokens, tokens, min(entry.computed, len(tokens) - 1))
                head -= head % self._block
                if head > longest:
                    best, longest = entry, head
        return best, longest if best is not None else 0

    def open(self, tokens: array[int], source: Entry | None, shared: int) -> Entry:
        """The entry of a sequence that begins, over the head that it shares with another; without a source, the head
        came from another tier and is the sequence's own."""
        entry = Entry(tokens, computed=shared, charged=len(tokens) - (shared if source else 0), source=source)
        if source is not None:
            source.users += 1
            source.turn = next(_turns)
        self._entries.append(entry)
        return entry

    def close(self, entry: Entry, tokens: array[int], keep: bool) -> None:
        """A sequence ended with these tokens: its entry goes idle, or goes."""
        source, entry.source = entry.source, None
        entry.live = False
        if source is not None:
            source.users -= 1
        if not keep or not self._enabled:
            self._entries.remove(entry)
            return
        entry.tokens = tokens
        entry.computed = len(tokens)
        entry.turn = next(_turns)
        if source is not None and not source.live and source.users == 0 and _is_head(source.tokens, tokens):
            entry.charged += source.charged
            self._entries.remove(source)
        while len(self._idle()) > _MOST_IDLE and self.evict():
            pass

    def _idle(self) -> list[Entry]:
        return [entry for entry in self._entries if not entry.live]

    @property
    def idle_tokens(self) -> int:
        """Tokens that ended sequences still hold."""
        return sum(entry.charged for entry in self._entries if not entry.live)

    def evict(self) -> bool:
        """Give up the entry that was used longest ago; False when every idle one is in use."""
        idle = [entry for entry in self._idle() if entry.users == 0]
        if not idle:
            return False
        self._entries.remove(min(idle, key=lambda entry: entry.turn))
        self.evictions += 1
        return True

    def reset(self) -> int:
        """Drop every idle entry that no sequence uses: how many."""
        dropped = 0
        while self.evict():
            dropped += 1
        return dropped
