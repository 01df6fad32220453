# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One boot: its log lines in the engine's order, its waits, and where it is refused."""

from __future__ import annotations

import os
import time

from . import budget_report, expert_slots, kv_report
from .kv_arithmetic import BLOCK_TOKENS
from .log import Log
from .machine import Machine
from .sizes import GIB, KIB, MIB, from_mib, humanb

_PROGRESS = 12
_STUCK_AT = 0.62


class Refused(Exception):
    """The boot ended with the engine's own E line; the process exits 1."""


class Boot:
    """Prints one boot of a machine. ``stuck`` loads to 62 % and stays there."""

    def __init__(self, machine: Machine, log: Log, stuck: bool = False) -> None:
        self._machine = machine
        self._world = machine.world
        self._log = log
        self._stuck = stuck

    def run(self) -> None:
        """Everything up to the settled lines; Refused where the engine would give up."""
        self._devices()
        self._model()
        self._declare()
        self._budget()
        self._placement()
        self._load()
        self._cache()
        self._loans()
        self._settle()

    def _refuse(self, text: str, rank: int | None = None) -> None:
        self._log.error(text, rank)
        raise Refused(text)

    def _pause(self, seconds: float) -> None:
        time.sleep(seconds / self._world.load_speedup)

    def _devices(self) -> None:
        gpus, used = self._world.gpus, self._world.used_devices()

        def listed(which: list[int]) -> str:
            return " ".join(f"{index}:{gpus[index]}" for index in which)

        everything = list(range(len(gpus)))
        self._log.info(f"device: AQL backend, {len(gpus)} device(s) [{listed(everything)}]")
        ignored = [index for index in everything if index not in used]
        if ignored:
            self._log.warn(
                f"device: using {len(used)} of {len(gpus)} [{listed(used)}], ignoring [{listed(ignored)}]: integrated graphics "
                "beside a discrete card, or a different architecture from the first card used, and a rank placed on one runs "
                "slowly and wrongly. ROCR_VISIBLE_DEVICES chooses the devices explicitly"
            )
        tp = self._machine.tp
        if tp > len(used):
            self._refuse(f"--tp {tp} needs {tp} devices of one architecture; {len(used)} are usable [{listed(used)}]")

    def _model(self) -> None:
        world, log, model = self._world, self._log, self._machine.flags.text("--model")
        if not os.path.isfile(model):
            self._refuse(f"cannot open {model}")
        name = os.path.basename(model)
        name = name[:-4] if name.endswith(".rad") else name
        log.info(
            f"model: {name}  arch={world.arch}  quant={world.quant}  {world.layers} layers  {world.trained_context} ctx"
        )
        log.info(f"vocab: {world.vocabulary} tokens, bos=248044 eos=248046")
        log.info(f"gbnf: vocabulary index built in 44 ms, {humanb(6 * MIB + 312 * KIB)}")
        self._pause(1)

    def _declare(self) -> None:
        machine, log, world = self._machine, self._log, self._world
        drafts = machine.shape.drafts
        if machine.flags.drafts is None:
            log.info(
                f"speculation: depth {drafts}, this drafter's own operating point (--num-speculative-tokens N overrides it)"
            )
        if machine.tp > 1 and machine.flags.text("--tp-wire") == "wht6":
            log.warn(
                f"tp wire: LOSSY (--tp-wire wht6) at {machine.flags.number('--tp-wire-min-kb')} KiB a message and above. A "
                "cross-rank all-reduce of that size carries a Walsh-Hadamard-rotated 6-bit payload instead of bf16, so this "
                f"process does not compute the same function the exact wire does. Steps of at most {machine.exact_rows} rows are "
                "exact: single-sequence decode, and a decode step until sequences x (1 + speculative depth) passes that; prefill "
                "and a busy decode step are lossy. --tp-wire-min-kb moves the floor."
            )
        scores = machine.flags.number("--max-num-batched-tokens") * -(-machine.shape.context // BLOCK_TOKENS)
        if scores > 512 * MIB:
            log.bare(
                f"radiance: {world.arch}: the QSA score plane would be {scores * 4 // MIB} MiB -- --max-num-batched-tokens "
                f"{machine.flags.number('--max-num-batched-tokens')} by --max-ctx {machine.shape.context} / compress ratio "
                f"{BLOCK_TOKENS}. Lower either."
            )
            self._refuse(f"{world.arch}: rad_arch_declare returned invalid argument", 0)
        # The first declare, and one more for every arena level: the sampler line repeats with each.
        levels = machine.arena_levels()
        for _declare in range(1 + len(levels)):
            for rank in range(machine.tp):
                log.info(self._sampler(), rank)
        for rank in range(machine.tp):
            log.info("declare: 2231 ops, 1187 weights, 96 buffers, 5 KV groups", rank)
        if drafts:
            log.info(
                f"speculation: 'mtp' drafts {drafts} token(s) a step in {drafts} serial pass(es); prompt lookup fills in for any "
                "sequence it declines"
            )
        arena = machine.split.card.arena
        if levels:
            uses = ", ".join(f"{tokens} tokens use {humanb(size)}" for tokens, size in levels)
            region = levels[-1][1] - from_mib(world.arena_mib_per_token) * levels[-1][0]
            log.info(
                f"activation arena: {uses} of {humanb(arena)} (the fixed region is {humanb(region)}); the rest is lent to the "
                "expert slab while the steps are that small"
            )

    def _sampler(self) -> str:
        local = self._world.vocabulary // self._machine.tp
        words = -(-self._world.vocabulary // 32)
        return (
            f"sampler: {self._world.vocabulary}-token vocabulary ({local} this rank), {self._machine.rows} rows, {words} mask "
            f"words ({humanb(words * 4)} per row)"
        )

    def _budget(self) -> None:
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
                f"the static (non-expert) weights alone want {humanb(card.statics)} of the {humanb(split.claimable)} this card "
                "has to give. Every expert will stream from host memory and the KV cache has nothing left -- lower "
                "--gpu-headroom-mib"
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

    def _placement(self) -> None:
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
                    f"placement: {units} unit(s) fit neither the weight budget of {humanb(machine.split.weights_pool)} nor the "
                    f"host pool of {humanb(host)}",
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

    def _load(self) -> None:
        machine, log, world = self._machine, self._log, self._world
        statics = machine.split.card.statics
        for rank, slots in enumerate(machine.slots):
            log.info(
                f"mover: {slots.slab} slab slots ({slots.shadow} shadow), {slots.pool} pinned pool slots, {humanb(statics)} "
                "static vram",
                rank,
            )
        for rank, slots in enumerate(machine.slots):
            free = machine.split.weights_pool - slots.slab_bytes
            pool = machine.split.weights_pool
            log.info(
                f"load: rank {rank}, mover took {humanb(slots.slab_bytes)}, weights pool {humanb(free)} free of {humanb(pool)}",
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
            f"load: one pass over the container, {humanb(size)} read in {seconds:.1f} s ({rate:.1f} GB/s) for {machine.tp} "
            f"rank(s); {seconds * 0.8:.1f} s of that was the disk ({rate / 0.8:.1f} GB/s)"
        )
        log.info(f"load: 1187 weights, {humanb(size)} placed from {humanb(size)} of {humanb(size)} read")

    def _cache(self) -> None:
        machine, log = self._machine, self._log
        flags, kv = machine.flags, machine.kv
        by_interval = machine.interval < flags.number("--max-num-batched-tokens")
        log.info(
            f"chunk geometry: quantum {BLOCK_TOKENS} (attn block {BLOCK_TOKENS}, state chunk {BLOCK_TOKENS}), checkpoint interval "
            f"{machine.interval}, max_tok {flags.number('--max-num-batched-tokens')} -> prefill chunks of at most {machine.chunk}"
            + (" (the checkpoint interval, not the budget)" if by_interval else "")
        )
        refusal = kv_report.refusal(machine)
        if refusal:
            self._refuse(refusal, 0)
        log.info(
            "kv tiers: off (no --prefix-cache-host-mib), so a finished conversation's KV stays in VRAM until the cache evicts it "
            "under pressure -- give --prefix-cache-host-mib to keep it"
            if not flags.number("--prefix-cache-host-mib")
            else f"kv tiers: {humanb(flags.number('--prefix-cache-host-mib') * MIB)} of host memory asked for; this stand-in keeps "
            "finished conversations in VRAM only"
        )
        log.info(kv_report.plan(machine))
        if "--no-prefix-cache" in flags.switches:
            log.info("prefix cache: disabled by --no-prefix-cache")
        else:
            log.info(
                f"prefix cache: 2 paged group(s) at {BLOCK_TOKENS}-token blocks; linear checkpoints every {machine.interval} tokens "
                f"({humanb(kv.stride)} x {kv.checkpoint_slots} slots), retention '{flags.text('--checkpoint-policy')}'"
            )
        warning = kv_report.one_request(machine)
        if warning:
            log.warn(warning)
        if machine.split.staging_buffers:
            log.info(
                f"prefill staging: two {humanb(machine.split.staging_buffers // 2)} buffers at the top of the arena; a step of "
                f"more than 512 tokens copies the next of {self._world.layers} routed layers' pooled experts onto the card while "
                "the one before it runs"
            )

    def _loans(self) -> None:
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
                    f"mover: {slots} slots can be lent out of the activation arena ({humanb(spare)}), filled as it lends them"
                )
        if levels:
            arena = machine.split.card.arena
            lends = ", ".join(
                f"{humanb(arena - size)} while steps are at most {tokens} tokens" for tokens, size in levels
            )
            log.info(f"activation arena: lends {lends}")

    def _settle(self) -> None:
        machine, log = self._machine, self._log
        self._pause(1)
        pools = machine.split.weights_pool + machine.split.kv_pool
        total = pools + machine.split.card.arena + machine.split.card.staging
        log.info(
            f"device allocations: 214 totalling {humanb(total)}, of which {humanb(pools)} is the two pools -- the rest is the "
            "activation arena and the step staging. Anything on the card past this is the driver or a kernel plugin's own "
            "hipMalloc, which this cannot see."
        )
        withdrawal = kv_report.withdrawal(machine)
        if withdrawal:
            log.warn(withdrawal)
        for rank in range(machine.tp):
            level, text = kv_report.settled(machine, rank)
            log.write(level, text, rank)
