# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of a boot that divides memory: budget, placement, KV plan, loans, and where the cards settle."""

from __future__ import annotations

from . import budget_report, expert_slots, kv_report
from .boot_head import Crashed, Part
from .sizes import MIB, humanb


class Memory(Part):
    """Every line that speaks of pools, slots and free memory."""

    def budget(self) -> None:
        """The card's split and each rank's pools."""
        machine, log = self._machine, self._log
        split = machine.split
        card = split.card
        # Two pools that pass the card by themselves are told apart from a card that is merely short.
        if split.both_stated and card.stated_weights + card.stated_kv > card.total:
            self._refuse(budget_report.over_by(split), 0)
        if split.claimable < 0:
            self._refuse(budget_report.short_by(split))
        warning = budget_report.statics_too_large(split)
        if warning:
            log.warn(warning)
        if not card.stated_kv:
            log.info(budget_report.derived_kv(machine))
        log.info(budget_report.budget(machine))
        if "crash_after_table" in machine.hits:
            raise Crashed("the driver lost the device")
        slack = budget_report.slack(split)
        if split.weights_pool < MIB or split.kv_pool < MIB:
            self._refuse(budget_report.empty_pools(split), 0)
        self._fault("empty_pools", budget_report.empty_pools(split, both=True), tagged=True)
        for rank in machine.ranks:
            if slack:
                log.warn(slack, rank)
            log.info(budget_report.pools(machine, rank), rank)
        rank = min(machine.hits.whole("pool_refused"), machine.tp - 1) if "pool_refused" in machine.hits else 0
        self._fault("pool_refused", budget_report.pool_refused(machine, rank), tagged=True)

    def placement(self) -> None:
        """Where the experts go; a host pool that is too small is refused."""
        machine, log = self._machine, self._log
        strategy, host = machine.flags.text("--placement"), machine.flags.number("--host-pool-mib") * MIB
        statics, weights = machine.split.card.statics, machine.split.weights_pool
        if strategy == "layer_offload" and not machine.split.card.stated_weights:
            self._refuse(f"placement: {strategy} needs --vram-weights-mib; there is nothing to spill against")
        if machine.flags.text("--weights-disk-tier"):
            windows = 4 * 32 * MIB + 4 * max(expert_slots.class_sizes(self._world, machine.tp))
            if host < windows:
                self._refuse(
                    f"placement: the file tier needs {humanb(windows)} of pinned staging (4 unit slots and 4 windows "
                    f"of 32.00 MiB) and --host-pool-mib is {humanb(host)}. Raise it, or drop --weights-disk-tier."
                )
        if statics > weights:
            log.warn(
                f"placement: the non-routed weights alone need {humanb(statics)} against a {humanb(weights)} weight "
                "budget; falling through to layer offload for them"
            )
        for rank, slots in enumerate(machine.slots):
            log.debug("planner.cpp:412", f"slab {slots.slab}, pool {slots.pool}, shadow {slots.shadow}", rank)
        shown = "--debug-placement" in machine.flags.switches
        failing = [rank for rank in range(machine.tp) if self._left(rank)]
        for rank in range(machine.tp):
            if shown or rank in failing:
                log.bare(self._plan(rank))
        for rank in failing:
            units = sum(count for _size, count in self._left(rank))
            self._refuse(
                f"placement: {units} unit(s) fit neither the weight budget of {humanb(weights)} nor the host pool of "
                f"{humanb(host)}",
                rank,
            )

    def _left(self, rank: int) -> list[tuple[int, int]]:
        """What found no place on a rank: [(bytes, count)]; a file tier takes it all."""
        machine = self._machine
        if "did_not_fit" in machine.hits and rank == min(machine.hits.whole("did_not_fit"), machine.tp - 1):
            return machine.slots[rank].left or [(expert_slots.class_sizes(self._world, machine.tp)[0], 77)]
        return [] if machine.flags.text("--weights-disk-tier") else machine.slots[rank].left

    def _plan(self, rank: int) -> str:
        machine, slots = self._machine, self._machine.slots[rank]
        host = machine.flags.number("--host-pool-mib") * MIB
        rows = [
            f"placement plan  rank {rank}/{machine.tp}  strategy expert_tiered  {machine.flags.text('--placement')}",
            "  pool                budget          used",
            f"  vram weights  {humanb(machine.split.weights_pool):>12}  {humanb(slots.slab_bytes):>12}",
            f"  host pinned   {humanb(host):>12}  {humanb(slots.pool_bytes):>12}",
            "  slab               stride       slots     shadow      stage",
        ]
        for size in sorted(set(expert_slots.class_sizes(self._world, machine.tp)), reverse=True):
            rows.append(f"  {'experts':<16} {humanb(size):>10}  {slots.slab // 2:10d} {slots.shadow // 2:10d} {4:10d}")
        left = self._left(rank)
        if left:
            why = "the host pool is full and no --weights-disk-tier was given"
            if not host:
                why = "neither VRAM nor the host pool has room"
            rows.append("  DID NOT FIT")
            rows += [f"    {count} x expert ({humanb(size)}): {why}" for size, count in left]
        return "\n".join(rows)

    def loans(self) -> None:
        """What the experts may borrow; these lines have no rank tag."""
        machine, log = self._machine, self._log
        if self._world.dense or not self._world.virtual_memory:
            return
        bound = "arena_unbound" not in machine.hits
        levels = machine.arena_levels() if bound else []
        idle = machine.lendable()
        for _rank in range(machine.tp):
            slots = expert_slots.lendable(idle, self._world, machine.tp)
            log.info(f"mover: {slots} slots can be lent out of the KV cache ({humanb(idle)}), filled as it lends them")
            if levels:
                spare = machine.split.card.arena - levels[-1][1]
                slots = expert_slots.lendable(spare, self._world, machine.tp)
                log.info(
                    f"mover: {slots} slots can be lent out of the activation arena ({humanb(spare)}), filled as it "
                    "lends them"
                )
        if not bound:
            log.warn("activation arena: a level would not bind; nothing is lent")
        if levels:
            arena = machine.split.card.arena
            lends = ", ".join(
                f"{humanb(arena - size)} while steps are at most {tokens} tokens" for tokens, size in levels
            )
            log.info(f"activation arena: lends {lends}")

    def settle(self) -> None:
        """What is left free on each card."""
        machine, log = self._machine, self._log
        pools = machine.split.weights_pool + machine.split.kv_pool
        total = pools + machine.split.card.arena + machine.split.card.staging
        log.info(
            f"device allocations: 214 totalling {humanb(total)}, of which {humanb(pools)} is the two pools -- the "
            "rest is the activation arena and the step staging. Anything on the card past this is the driver or a "
            "kernel plugin's own hipMalloc, which this cannot see."
        )
        if not self._world.returns_memory:
            log.info(
                f"this driver does not return decommitted VRAM to the card ({humanb(2 * MIB)} unmapped, the free "
                "counter did not move), so a freed checkpoint slot keeps its pages. The expert slab is unaffected: it "
                "borrows the cache's idle blocks in place."
            )
        withdrawal = kv_report.withdrawal(machine)
        if withdrawal:
            log.warn(withdrawal)
        for rank in machine.ranks:
            level, text = kv_report.settled(machine, rank)
            log.write(level, text, rank)
