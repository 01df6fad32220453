# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a command line to an exit status: 0 stopped or help, 1 refused or not bound, 2 a bad command line, 70 dead."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace

from . import fault_names
from .boot import Boot, Crashed, Refused
from .command_line import UsageError, model_of, parse, usage
from .faults import Faults
from .log import Log
from .machine import resolve
from .service import serve
from .sysfs import Cards
from .world import World, WorldError
from .world_files import read_world


def main(argv: list[str]) -> int:
    """Boot, serve until a signal, stop."""
    # Until it serves, a signal ends the process at once.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    log = Log(os.environ.get("RADIANCE_LOG"))
    try:
        model = model_of(argv)
        world = read_world(model) if model else World()
        flags = parse(argv, world.rules, os.environ)
    except WorldError as error:
        log.error(f"rehearsal: {error}")
        return 1
    except UsageError as error:
        log.error(str(error))
        sys.stderr.write(usage(world.rules))
        return 2
    if flags.help:
        sys.stdout.write(usage(world.rules))
        return 0
    try:
        faults = Faults(flags.text("--model"))
        hits = fault_names.hits(faults.take())
    except WorldError as error:
        log.error(f"rehearsal: {error}")
        return 1
    log.ranks = flags.number("--tp")
    if "-v" in flags.switches or "-vv" in flags.switches:
        log.level = 4 if "-vv" in flags.switches else 3
    for variable in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        world = world.seen_through(os.environ.get(variable))
    cards = None
    if world.sysfs or "hold_memory" in hits or "spill" in hits:
        cards = Cards(flags.text("--model"), world)
        # What a process before this one still holds is not free.
        world = replace(world, cards_held_mib=cards.held_mib())
    machine = resolve(world, flags, hits)
    try:
        Boot(machine, log, cards).run()
    except Refused:
        return 1
    except Crashed as crash:
        return log.fatal(str(crash))
    return serve(machine, log, faults, cards)
