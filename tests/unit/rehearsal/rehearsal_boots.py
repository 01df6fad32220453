# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boots of the stand-in inside the test's own process: what they print, without waiting for a load."""

from __future__ import annotations

import pathlib
from typing import Any

from engine.boot import Boot, Crashed, Refused
from engine.command_line import parse
from engine.fault_names import hits
from engine.log import Log
from engine.machine import resolve
from engine.world import World
from engine.world_files import build

PAIR = "--vram-weights-mib 24000 --vram-kv-mib 5120"
SHAPE = (
    "--tp 2 --tp-wire wht6 --max-num-seqs 3 --max-model-len 200000 --kv-cache-dtype fp8 --num-speculative-tokens 2 "
    "--host-pool-mib 16384"
)


def boot(capfd: Any, flags: str = f"{SHAPE} {PAIR}", faults: str | None = None, **world: Any) -> tuple[str, list[str]]:
    """(how it ended, the lines of its log): ``up``, ``refused`` or ``crashed``."""
    return boot_world(capfd, build({"load_speedup": 1e9, **world}), flags, faults)


def boot_world(capfd: Any, world: World, flags: str, faults: str | None = None) -> tuple[str, list[str]]:
    """The same in a world that is there already."""
    world.load_speedup = 1e9
    model = pathlib.Path(__file__)
    parsed = parse(["--model", str(model), *flags.split()], world.rules)
    log = Log(None)
    log.ranks = parsed.number("--tp")
    how = "up"
    try:
        Boot(resolve(world, parsed, hits(faults)), log).run()
    except Refused:
        how = "refused"
    except Crashed:
        how = "crashed"
    return how, capfd.readouterr().err.splitlines()
