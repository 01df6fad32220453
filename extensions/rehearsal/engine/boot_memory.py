# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of a boot that divides memory: budget, placement, KV plan, loans, and where the cards settle."""

from __future__ import annotations

from . import budget_report, expert_slots, kv_report
from .boot_head import Part
from .kv_arithmetic import BLOCK_TOKENS
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
        if not card.stated_weights and split.elastic < 0:
            log.warn(
                f"the static (non-expert) weights alone want {humanb(card.statics)} of the {humanb(split.claimable)} "
                "this card has to give. Every expert will stream from host memory and the KV cache has nothing left "
                "-- lower --gpu-headroom-mib"
            )
        if not card.stated_kv:
            log.info(budget_report.derived_kv(machine))
        log.info(budget_report.budget(machine))
        slack = budget_report.slack(split)
        if split.weights_pool < MIB or split.kv_pool < MIB:
            self._refuse(budget_report.empty_pools(), 0)
        for rank in range(machine.tp):
            if slack:
                log.warn(slack, rank)
            log.info(budget_report.pools(machine, rank), rank)

    def placement(self) -> None:
        """Where the experts go; a host pool that is too small is refused."""
        machine = self._machine
        shown = "--debug-placement" in machine.flags.switches
        for rank, slots in enumerate(machine.slots):
            if shown or not slots.fits:
                self._log.bare(self._plan(rank))
        for rank, slots in enumerate(machine.slots):
            if not slots.fits:
                units = sum(count for _size, count in slots.left)
                host = machine.flags.number("--host-pool-mib") * MIB
                self._refuse(
                    f"placement: {units} unit(s) fit neither the weight budget of "
                    f"{humanb(machine.split.weights_pool)} nor the host pool of {humanb(host)}",
                    rank,
                )

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
        if not slots.fits:
            why = "the host pool is full and no --weights-disk-tier was given"
            if not host:
                why = "neither VRAM nor the host pool has room"
            rows.append("  DID NOT FIT")
            rows += [f"    {count} x expert ({humanb(size)}): {why}" for size, count in slots.left]
        return "\n".join(rows)

    def cache(self) -> None:
        """Chunks, the KV plan and the prefix cache."""
        machine, log = self._machine, self._log
        flags, kv = machine.flags, machine.kv
        batched = flags.number("--max-num-batched-tokens")
        by_interval = machine.interval < batched
        log.info(
            f"chunk geometry: quantum {BLOCK_TOKENS} (attn block {BLOCK_TOKENS}, state chunk {BLOCK_TOKENS}), "
            f"checkpoint interval {machine.interval}, max_tok {batched} -> prefill chunks of at most {machine.chunk}"
            + (" (the checkpoint interval, not the budget)" if by_interval else "")
        )
        refusal = kv_report.refusal(machine)
        if refusal:
            self._refuse(refusal, 0)
        host = flags.number("--prefix-cache-host-mib") * MIB
        if host:
            log.info(f"kv tiers: {humanb(host)} asked for; this stand-in keeps finished conversations in VRAM only")
        else:
            log.info(
                "kv tiers: off (no --prefix-cache-host-mib), so a finished conversation's KV stays in VRAM until the "
                "cache evicts it under pressure -- give --prefix-cache-host-mib to keep it"
            )
        log.info(kv_report.plan(machine))
        if "--no-prefix-cache" in flags.switches:
            log.info("prefix cache: disabled by --no-prefix-cache")
        else:
            log.info(
                f"prefix cache: 2 paged group(s) at {BLOCK_TOKENS}-token blocks; linear checkpoints every "
                f"{machine.interval} tokens ({humanb(kv.stride)} x {kv.checkpoint_slots} slots), retention "
                f"'{flags.text('--checkpoint-policy')}'"
            )
        warning = kv_report.one_request(machine)
        if warning:
            log.warn(warning)
        if machine.split.staging_buffers:
            log.info(
                f"prefill staging: two {humanb(machine.split.staging_buffers // 2)} buffers at the top of the arena; "
                f"a step of more than 512 tokens copies the next of {self._world.layers} routed layers' pooled "
                "experts onto the card while the one before it runs"
            )

    def loans(self) -> None:
        """What the experts may borrow; these lines have no rank tag."""
        machine, log = self._machine, self._log
        levels = machine.arena_levels()
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
        withdrawal = kv_report.withdrawal(machine)
        if withdrawal:
            log.warn(withdrawal)
        for rank in range(machine.tp):
            level, text = kv_report.settled(machine, rank)
            log.write(level, text, rank)
