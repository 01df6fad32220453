# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prompt heads beyond VRAM: a host tier that ends with the process, and a disk tier that the next process finds.

An ended sequence is copied to the host tier at once, and from there to a file in ``--prefix-cache-dir``. A tier gives
up what was used longest ago. A file holds a line of JSON, which says what cache it fits, and the token ids.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import zlib
from array import array
from dataclasses import dataclass, field
from typing import Any

from .machine import Machine
from .prefix_cache import common_head
from .sizes import MIB

_SHORTEST_HEAD = 64
_SUFFIX = ".kv"


@dataclass
class Tier:
    """Token arrays, the one used last at the end; ``room`` bytes at most."""

    room: int
    entries: list[array[int]] = field(default_factory=list)


class Tiers:
    """The host and disk tiers of one process; both are off without ``--prefix-cache-host-mib``."""

    def __init__(self, machine: Machine) -> None:
        flags = machine.flags
        self._block = machine.world.cache.block_tokens
        self._token_bytes = machine.kv.token_bytes
        self._state_bytes = machine.kv.stride
        shape = machine.shape
        self._fits = {
            "arch": machine.world.arch,
            "dtype": shape.dtype,
            "tp": shape.tp,
            "speculates": shape.drafts > 0,
        }
        on = "--no-prefix-cache" not in flags.switches and "no_pinned_tier" not in machine.hits
        self.host = Tier(flags.number("--prefix-cache-host-mib") * MIB if on else 0)
        self.disk = Tier(0)
        self._folder = pathlib.Path(flags.text("--prefix-cache-dir") or ".")
        if self.host.room and flags.text("--prefix-cache-dir") and self._folder.is_dir():
            self.disk.room = flags.number("--prefix-cache-disk-mib") * MIB
        if self.disk.room:
            self._read_folder()

    def keep(self, tokens: array[int]) -> None:
        """A sequence ended with these tokens."""
        if not self.host.room or len(tokens) < _SHORTEST_HEAD:
            return
        for _gone in self._put(self.host, tokens):
            pass
        if self.disk.room:
            gone = self._put(self.disk, tokens)
            self._write(tokens)
            for old in gone:
                self._path(old).unlink(missing_ok=True)

    def match(self, tokens: array[int], more_than: int) -> int:
        """The longest head, in whole blocks, that a tier holds; 0 where it is no longer than ``more_than``."""
        longest, where = more_than, None
        for tier in (self.host, self.disk):
            for entry in tier.entries:
                head = common_head(entry, tokens, len(tokens) - 1)
                head -= head % self._block
                if head > longest and head >= _SHORTEST_HEAD:
                    longest, where = head, (tier, entry)
        if where is None:
            return 0
        tier, entry = where
        tier.entries.remove(entry)
        tier.entries.append(entry)
        return longest

    def reset(self) -> int:
        """Forget everything: how many entries."""
        dropped = len(self.host.entries) + len(self.disk.entries)
        for entry in self.disk.entries:
            self._path(entry).unlink(missing_ok=True)
        self.host.entries, self.disk.entries = [], []
        return dropped

    def snapshot(self) -> list[dict[str, Any]]:
        """What /sessions says of the tiers."""
        rows = []
        for name, tier in (("host", self.host), ("disk", self.disk)):
            used = sum(self._size(entry) for entry in tier.entries)
            rows.append({"name": name, "entries": len(tier.entries), "bytes_used": used, "bytes_total": tier.room})
        return rows

    def _size(self, tokens: array[int]) -> int:
        return int(len(tokens) * self._token_bytes) + self._state_bytes

    def _put(self, tier: Tier, tokens: array[int]) -> list[array[int]]:
        """Add an entry, and give up those that it covers or that have no room: they are returned."""
        gone = [entry for entry in tier.entries if common_head(entry, tokens, len(entry)) == len(entry)]
        stay = [entry for entry in tier.entries if not any(entry is old for old in gone)]
        stay.append(tokens)
        while stay and sum(self._size(entry) for entry in stay) > tier.room:
            gone.append(stay.pop(0))
        tier.entries = stay
        return [entry for entry in gone if entry != tokens]

    def _path(self, tokens: array[int]) -> pathlib.Path:
        return self._folder / (hashlib.sha256(tokens.tobytes()).hexdigest()[:32] + _SUFFIX)

    def _write(self, tokens: array[int]) -> None:
        # A folder that cannot be written loses the entry, and nothing else.
        with contextlib.suppress(OSError):
            if not any(entry is tokens for entry in self.disk.entries):
                return
            part = self._path(tokens).with_suffix(f".{os.getpid()}")
            head = json.dumps(self._fits, sort_keys=True).encode()
            part.write_bytes(head + b"\n" + zlib.compress(tokens.tobytes(), 1))
            os.replace(part, self._path(tokens))

    def _read_folder(self) -> None:
        for path in sorted(self._folder.glob(f"*{_SUFFIX}"), key=lambda item: (item.stat().st_mtime_ns, item.name)):
            # A file that is torn, or of another cache, is left alone.
            with contextlib.suppress(OSError, ValueError, zlib.error):
                head, _newline, body = path.read_bytes().partition(b"\n")
                if json.loads(head) == self._fits:
                    self._put(self.disk, array("I", zlib.decompress(body)))
