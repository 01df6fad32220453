# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a command line to an exit status: 0 stopped or help, 1 refused or not bound, 2 a bad command line."""

from __future__ import annotations

import os
import signal
import sys

from .boot import Boot, Refused
from .command_line import UsageError, parse, usage
from .faults import Faults
from .log import Log
from .machine import resolve
from .service import serve
from .world import WorldError, read_world


def main(argv: list[str]) -> int:
    """Boot, serve until a signal, stop."""
    # Until it serves, a signal ends the process at once.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    log = Log(os.environ.get("RADIANCE_LOG"))
    try:
        flags = parse(argv)
    except UsageError as error:
        log.error(str(error))
        sys.stderr.write(usage())
        return 2
    if flags.help:
        sys.stdout.write(usage())
        return 0
    model = flags.text("--model")
    try:
        world = read_world(model)
        faults = Faults(model)
        fault = faults.take()
    except WorldError as error:
        log.error(f"rehearsal: {error}")
        return 1
    log.ranks = flags.number("--tp")
    machine = resolve(world, flags, frozenset([fault] if fault else []))
    try:
        Boot(machine, log, stuck=fault == "never_ready").run()
    except Refused:
        return 1
    return serve(machine, log, faults)
