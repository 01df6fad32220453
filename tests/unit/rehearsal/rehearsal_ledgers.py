# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a world of the stand-in and a command line to the ledger of that boot, inside the test's own process."""

from __future__ import annotations

import pathlib
from typing import Any

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import flags_of
from engine.boot import Boot, Refused
from engine.command_line import parse
from engine.log import Log
from engine.machine import resolve
from engine.world import World

FLAG_OF = {
    "weights_mib": "--vram-weights-mib",
    "kv_mib": "--vram-kv-mib",
    "max_num_seqs": "--max-num-seqs",
    "max_model_len": "--max-model-len",
    "kv_cache_dtype": "--kv-cache-dtype",
    "num_speculative_tokens": "--num-speculative-tokens",
}


class _Kept(Log):
    """A log that is kept instead of written."""

    def __init__(self, ranks: int) -> None:
        super().__init__(None)
        self._colour, self.ranks, self.written = False, ranks, bytearray()

    def _put(self, data: bytes) -> None:
        self.written += data


def ledger_of(world: World, flags: str) -> dict[str, Any]:
    """The ledger of a boot in ``world``; one that the engine refuses has the status refused."""
    world.load_speedup = 1e12
    argv = ["--model", str(pathlib.Path(__file__)), *flags.split()]
    parsed = parse(argv, world.rules)
    log = _Kept(parsed.number("--tp"))
    try:
        Boot(resolve(world, parsed), log).run()
        log.info("server: listening on http://127.0.0.1:8000 (8 threads, up to 64)")
    except Refused:
        pass
    source = {"kind": "text", "name": None}
    return dict(read_ledger(log.written.decode(), source=source, flags=flags_of(["radiance", *argv])))


def with_pair_and_shape(flags: str, to: dict[str, Any], **more: Any) -> str:
    """A command line with the pair and shape of a plan's ``to``, and further flags by their names."""
    given = {FLAG_OF[name]: value for name, value in to.items() if value is not None}
    given.update({"--" + name.replace("_", "-"): value for name, value in more.items()})
    return " ".join([flags, *(f"{flag} {value}" for flag, value in given.items())])
