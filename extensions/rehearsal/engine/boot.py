# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One boot: its parts in the engine's order, the load, and the waits."""

from __future__ import annotations

import time

from .boot_head import Head, Part, Refused
from .boot_memory import Memory
from .log import Log
from .machine import Machine
from .sizes import GIB, humanb

__all__ = ["Boot", "Refused"]

_PROGRESS = 12
_STUCK_AT = 0.62


class Boot(Part):
    """Prints one boot of a machine. ``stuck`` loads to 62 % and stays there."""

    def __init__(self, machine: Machine, log: Log, stuck: bool = False) -> None:
        super().__init__(machine, log)
        self._stuck = stuck

    def run(self) -> None:
        """Everything up to the settled lines; Refused where the engine would give up."""
        head, memory = Head(self._machine, self._log), Memory(self._machine, self._log)
        head.devices()
        head.model()
        self._pause(1)
        head.declare()
        memory.budget()
        memory.placement()
        self._load()
        memory.cache()
        memory.loans()
        self._pause(1)
        memory.settle()

    def _pause(self, seconds: float) -> None:
        time.sleep(seconds / self._world.load_speedup)

    def _load(self) -> None:
        machine, log, world = self._machine, self._log, self._world
        statics = machine.split.card.statics
        for rank, slots in enumerate(machine.slots):
            log.info(
                f"mover: {slots.slab} slab slots ({slots.shadow} shadow), {slots.pool} pinned pool slots, "
                f"{humanb(statics)} static vram",
                rank,
            )
        for rank, slots in enumerate(machine.slots):
            pool, taken = machine.split.weights_pool, slots.slab_bytes
            log.info(
                f"load: rank {rank}, mover took {humanb(taken)}, "
                f"weights pool {humanb(pool - taken)} free of {humanb(pool)}",
                rank,
            )
        size = int(world.container_gib * GIB)
        seconds = world.load_seconds
        rate = size / 1e9 / max(seconds, 0.001)
        for step in range(1, _PROGRESS + 1):
            if self._stuck and step / _PROGRESS > _STUCK_AT:
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
