# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the stand-in prints in random worlds, against what it tells of itself over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.anonymous import anonymous_log, figures
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.cross_check import check_endpoint
from engine.boot import Boot, Crashed, Refused
from engine.command_line import parse
from engine.introspection import Introspection
from engine.log import Log
from engine.machine import Machine, resolve
from engine.random_worlds import random_world


class Idle:
    """A scheduler that has nothing to do."""

    load = (0, 0)


def boot(capfd: Any, seed: int) -> tuple[str, Machine | None]:
    """The log of a random world's boot, and its machine where it came up."""
    world = random_world(seed)
    world.load_speedup = 1e9
    flags = parse(["--model", __file__, *world.flags.split()], world.rules)
    log = Log(None)
    log.ranks = flags.number("--tp")
    machine = resolve(world, flags)
    try:
        Boot(machine, log).run()
    except (Refused, Crashed):
        return capfd.readouterr().err, None
    return capfd.readouterr().err + "I server: listening on http://127.0.0.1:8000 (8 threads, up to 64)\n", machine


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_a_log_agrees_with_the_endpoint_of_its_own_boot(capfd: Any, first: int) -> None:
    compared = 0
    for seed in range(first, first + 20):
        log, machine = boot(capfd, seed)
        if machine is None:
            continue
        info = Introspection(machine, Idle(), []).server_info()  # type: ignore[arg-type]
        checks = check_endpoint(read_ledger(log, source={}), info, 0.0)
        assert [check for check in checks if not check["holds"]] == [], f"seed {seed}"
        compared += len(checks)
    assert compared > 200


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_an_anonymous_log_reads_back_with_the_same_figures(capfd: Any, first: int) -> None:
    read = 0
    for seed in range(first, first + 20):
        log = boot(capfd, seed)[0]
        anonymous = anonymous_log(log, names=[__file__])
        assert anonymous is not None
        assert figures(anonymous) == figures(log), f"seed {seed}"
        assert __file__ not in anonymous
        assert anonymous_log(anonymous) == anonymous
        read += figures(anonymous)["status"] == "complete"
    assert read > 10
