# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults by name: what injects each, and on which hosts."""

from __future__ import annotations

import functools
import sys
import typing as t

import hands
import kills
import machines
from hosts import CHECKOUT, A, B
from trial import Trial

sys.path.insert(0, str(CHECKOUT / "collections"))

from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import BACK, FORWARD  # noqa: E402

Injection = t.Callable[[Trial], "t.Iterator[None] | None"]


class Fault(t.NamedTuple):
    """``next_words`` are further words of the next run, which asks for nothing else if ``plain``."""

    name: str
    inject: Injection
    hosts: tuple[str, ...] = (A,)
    next_words: tuple[str, ...] = ()
    plain: bool = False
    of_both: bool = False


def _faults() -> t.Iterator[Fault]:
    for number, phase in enumerate(FORWARD):
        yield Fault(
            f"module killed in {phase}", functools.partial(kills.module_killed, phase=phase), ((A, B)[number % 2],)
        )
    for number, phase in enumerate(name for name in BACK if name != "hand_back"):
        yield Fault(
            f"module killed in {phase} of the way back",
            functools.partial(kills.module_killed_back, phase=phase),
            ((B, A)[number % 2],),
        )
    yield Fault(
        "controller killed while the new pair loads", functools.partial(kills.controller_killed, phase="ready"), (A, B)
    )
    yield Fault(
        "controller killed after the switch, before it wrote the fleet directory",
        functools.partial(kills.controller_killed, phase="keep"),
        (B,),
    )
    yield Fault("engine killed while it loads", kills.engine_killed_loading, (A, B))
    yield Fault("engine killed after the switch", kills.engine_killed_ready, (A,))
    yield Fault(
        "engine killed after the switch, in its probation",
        functools.partial(kills.engine_killed_ready_in_probation),
        (A, B),
    )
    yield Fault("sshd stopped for 20 s after the stop", machines.sshd_stopped, (A,))
    yield Fault("host restarted while the new pair loads", functools.partial(machines.rebooted, phase="ready"), (A, B))
    yield Fault("host restarted after the stop", functools.partial(machines.rebooted, phase="release"), (A,))
    yield Fault(
        "disk of the state directory full before the run", functools.partial(machines.full_state, phase=None), (A,)
    )
    yield Fault(
        "disk of the state directory full from the stop on",
        functools.partial(machines.full_state, phase="stop"),
        (A, B),
    )
    yield Fault("disk of the target directory full", machines.full_target, (B,))
    yield Fault("target directory read-only before the run", functools.partial(machines.read_only, phase=None), (A,))
    yield Fault(
        "target directory read-only from the stop on", functools.partial(machines.read_only, phase="stop"), (B,)
    )
    yield Fault("unit that cannot start either pair", hands.unit_cannot_start, (A, B))
    yield Fault("image missing before the run", functools.partial(hands.image_gone, phase=None), (B,))
    yield Fault("image removed after the precheck", functools.partial(hands.image_gone, phase="drain"), (A,))
    yield Fault("two operators at once", hands.two_operators, (A,))
    yield Fault("pair refused in a unit with Restart=always", hands.refused_with_restart, (A, B))
    yield Fault("disk of the fleet directory full", machines.fleet_full, (B,))
    yield Fault("drift: fleet directory edited", hands.fleet_edited, (A,), ("-e", "drift=apply"), True)
    yield Fault("drift: target directory edited", hands.target_edited, (B,), ("-e", "drift=apply"), True)
    yield Fault(
        "drift: process restarted by hand with another pair", hands.process_by_hand, (A,), ("-e", "drift=adopt"), True
    )
    for when in ("before", "while", "after"):
        yield Fault(
            f"first host of a fleet of two lost {when} its switch",
            functools.partial(machines.host_lost, when=when),
            (A,),
            of_both=True,
        )


FAULTS = tuple(_faults())

# What no container can be given, and what holds the code to it instead.
UNTESTED = {
    "module killed in hand_back of the way back": "each host has one service, and no cards are handed over; "
    "test_switch_handover.py",
    "card memory held after the stop": "the driver's files are the machine's, and the stand-in opens no card; "
    "test_switch_state.py and test_switch_card_holders.py have the phase release over files in the driver's shape",
    "clock set in the middle": "a container has the machine's clock; moments are of the clock that nobody sets, and "
    "test_switch_state.py and test_switch_scripts.py have moments and a probation's deadline",
}
