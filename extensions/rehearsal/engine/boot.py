# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One boot: its parts in the engine's order, the load, and the waits."""

from __future__ import annotations

import time

from . import expert_slots
from .boot_cache import Cache
from .boot_head import Crashed, Head, Part, Refused
from .boot_memory import Memory
from .log import Log
from .machine import Machine
from .sizes import GIB, MIB, humanb
from .sysfs import Cards

__all__ = ["Boot", "Crashed", "Refused"]

_PROGRESS = 12
_STUCK_AT = 0.62


class Boot(Part):
    """Prints one boot of a machine."""

    def __init__(self, machine: Machine, log: Log, cards: Cards | None = None) -> None:
        super().__init__(machine, log)
        self._cards = cards

    def run(self) -> None:
        """Everything up to the settled lines; Refused where the engine would give up, Crashed where it dies."""
        head, memory = Head(self._machine, self._log), Memory(self._machine, self._log)
        head.devices()
        head.model()
        self._pause(1)
        head.declare()
        memory.budget()
        memory.placement()
        if self._cards is not None:
            self._cards.take(self._machine)
        self._load()
        Cache(self._machine, self._log).lay_out()
        memory.loans()
        self._pause(1)
        memory.settle()

    def _pause(self, seconds: float) -> None:
        hits = self._machine.hits
        slower = hits.number("slow_boot") if "slow_boot" in hits else 1
        time.sleep(seconds * slower / self._world.load_speedup)

    def _load(self) -> None:
        machine, log, world = self._machine, self._log, self._world
        statics = machine.split.card.statics
        self._mover()
        tier = ", file tier open" if machine.flags.text("--weights-disk-tier") else ""
        for rank in machine.ranks:
            slots = machine.slots[rank]
            log.info(
                f"mover: {slots.slab} slab slots ({slots.shadow} shadow), {slots.pool} pinned pool slots, "
                f"{humanb(statics)} static vram{tier}",
                rank,
            )
        for rank in machine.ranks:
            if "pageable" in machine.hits:
                log.info(f"mover: {humanb(512 * MIB)} of pageable host memory for the units no tier could hold", rank)
            pool, taken = machine.split.weights_pool, machine.slots[rank].slab_bytes
            log.info(
                f"load: rank {rank}, mover took {humanb(taken)}, "
                f"weights pool {humanb(pool - taken)} free of {humanb(pool)}",
                rank,
            )
        size = int(world.container_gib * GIB)
        seconds = world.load_seconds
        rate = size / 1e9 / max(seconds, 0.001)
        for step in range(1, _PROGRESS + 1):
            if "never_ready" in machine.hits and step / _PROGRESS > _STUCK_AT:
                read = int(size * _STUCK_AT)
                log.info(f"load: {humanb(read)} of {humanb(size)} read, {rate:.1f} GB/s, at container offset {read}")
                while True:
                    time.sleep(3600)
            self._pause(seconds / _PROGRESS)
            read = size * step // _PROGRESS
            log.info(f"load: {humanb(read)} of {humanb(size)} read, {rate:.1f} GB/s, at container offset {read}")
        log.info(
            f"load: one pass over the container, {humanb(size)} read in {seconds:.1f} s ({rate:.1f} GB/s) for "
            f"{machine.tp} rank(s); {seconds * 0.8:.1f} s of that was the disk ({rate / 0.8:.1f} GB/s)"
        )
        log.info(f"load: 1187 weights, {humanb(size)} placed from {humanb(size)} of {humanb(size)} read")

    def _mover(self) -> None:
        """Refuse what the mover cannot place."""
        machine = self._machine
        slots, pool = machine.slots[0], machine.split.weights_pool
        unit, statics = humanb(expert_slots.class_sizes(self._world, machine.tp)[0]), humanb(machine.split.card.statics)
        self._fault("slab_refused", f"mover: no VRAM for the 'experts' slab: {slots.slab} slots of {unit}", True)
        self._fault(
            "host_pool_refused",
            f"mover: no pinned host memory for the 'experts' pool: {slots.pool} slots of {unit}",
            True,
        )
        self._fault(
            "weights_left_short",
            f"mover: the weight budget is {humanb(pool)} and the slab already took {humanb(slots.slab_bytes)} of it, "
            f"leaving {humanb(max(0, pool - slots.slab_bytes))}",
            True,
        )
        self._fault("statics_refused", f"mover: no VRAM for the {statics} of statically placed weights", True)
