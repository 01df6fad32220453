# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of a boot that lays out the KV cache: chunks, tiers, plan, and the prefix cache."""

from __future__ import annotations

import pathlib

from . import kv_report
from .boot_head import Part
from .sizes import MIB, humanb


class Cache(Part):
    """Every line from the chunk geometry to the prefill staging."""

    def lay_out(self) -> None:
        """Chunks, the KV plan and the prefix cache; a pool that cannot be laid out is refused."""
        machine, log, kv = self._machine, self._log, self._machine.kv
        self._chunks()
        if not self._world.virtual_memory:
            stays = "The split stays where --expert-vs-cache-ratio put it." if self._world.rules.ratio else ""
            log.warn(
                "this device has no virtual memory management, so the KV cache holds its whole carve and the expert "
                f"slab has nothing to grow into. {stays}".rstrip()
            )
        if not kv.checkpoint_slots and "--checkpoint-slots" in machine.flags.given and machine.shape.checkpoint_slots:
            log.warn(
                f"--checkpoint-slots {machine.shape.checkpoint_slots} ignored: this model declares no linear-attention "
                "state, so there is nothing to snapshot"
            )
        refusal = kv_report.refusal(machine)
        if refusal:
            self._refuse(refusal, 0)
        pool = machine.split.kv_pool
        self._fault(
            "kv_group_refused", f"KV group '{kv.groups[-1].name}': {humanb(64 * MIB)} did not fit the KV pool", True
        )
        self._fault(
            "checkpoint_refused",
            f"linear checkpoint slot {max(0, kv.checkpoint_slots - 1)} ({kv.stride} B) did not fit the KV pool",
            True,
        )
        self._fault(
            "carve_refused",
            f"KV pool: the carve reserved {humanb(pool)} of address space and the card would not back it",
            True,
        )
        self._tiers()
        log.info(kv_report.plan(machine))
        self._prefix()
        warning = kv_report.one_request(machine)
        if warning:
            log.warn(warning)
        if machine.split.staging_buffers:
            log.info(
                f"prefill staging: two {humanb(machine.split.staging_buffers // 2)} buffers at the top of the arena; "
                f"a step of more than 512 tokens copies the next of {self._world.layers} routed layers' pooled "
                "experts onto the card while the one before it runs"
            )

    def _chunks(self) -> None:
        machine, of = self._machine, self._world.cache
        most, quantum = machine.flags.number("--max-num-batched-tokens"), machine.quantum
        if most < quantum or "chunk_refused" in machine.hits:
            needs = quantum if most < quantum else most + 1
            self._refuse(
                f"--max-num-batched-tokens is {most} but this model's chunk geometry needs at least {needs}: one "
                "quantum a step"
            )
        if machine.interval % of.block_tokens or "interval_refused" in machine.hits:
            self._refuse(
                f"the checkpoint interval resolves to {machine.interval} (from --checkpoint-interval "
                f"{machine.flags.number('--checkpoint-interval')}, rounded up to the chunk quantum) and that is not a "
                f"multiple of the attention block size {of.block_tokens}. Choose one that is."
            )
        self._log.info(
            f"chunk geometry: quantum {quantum} (attn block {of.block_tokens}, state chunk {of.state_chunk}), "
            f"checkpoint interval {machine.interval}, max_tok {most} -> prefill chunks of at most {machine.chunk}"
            + (" (the checkpoint interval, not the budget)" if machine.interval < most else "")
        )

    def _tiers(self) -> None:
        machine, log = self._machine, self._log
        host = machine.flags.number("--prefix-cache-host-mib") * MIB
        disk = machine.flags.number("--prefix-cache-disk-mib") * MIB
        directory = machine.flags.text("--prefix-cache-dir")
        if disk and not host:
            log.warn(
                "kv tiers: --prefix-cache-disk-mib is set but --prefix-cache-host-mib is not, and the disk tier is "
                "filled from the host tier. The disk tier is off."
            )
        if not host:
            log.info(
                "kv tiers: off (no --prefix-cache-host-mib), so a finished conversation's KV stays in VRAM until the "
                "cache evicts it under pressure -- give --prefix-cache-host-mib to keep it"
            )
            return
        if "no_pinned_tier" in machine.hits:
            log.warn(f"kv tiers: no pinned host memory for {humanb(host)}, the host tier is off")
            return
        on_disk = disk > 0
        if disk and not directory:
            log.warn("kv tiers: --prefix-cache-disk-mib needs --prefix-cache-dir to say WHERE. The disk tier is off.")
            on_disk = False
        elif disk and not _folder(directory):
            log.error(f"cannot create {directory}")
            log.warn(f"kv tiers: the disk tier at {directory} would not open; it is off.")
            on_disk = False
        entry = int(machine.kv.token_bytes * machine.interval)
        middle = "no disk tier, so a full host tier drops its oldest entries"
        if on_disk:
            middle = (
                f"every host copy is written on to disk ({humanb(disk)}) and its slot is given up when another entry "
                "needs it"
            )
        text = (
            f"kv tiers: a finished conversation's KV is copied to host memory at once ({humanb(host)}, {host // entry} "
            f"entries) and its VRAM is given up when the expert loan or a request wants it; {middle}. One entry is "
            f"{humanb(entry)}"
        )
        if machine.kv.snapshot:
            snapshots = host // 4 // machine.kv.stride
            if "no_pinned_snapshots" in machine.hits:
                log.warn(
                    f"kv tiers: no pinned host memory for {humanb(snapshots * machine.kv.stride)} of linear-state "
                    "snapshots; an idle hybrid session comes back needing a full linear replay"
                )
                snapshots = 0
            none = " -- NONE, so an idle hybrid session comes back needing a full linear replay; give "
            text += (
                f"\nkv tiers: a session's linear state moves with its blocks -- {snapshots} snapshot(s) of "
                f"{humanb(machine.kv.stride)} in host memory, {disk // 4 // machine.kv.stride if on_disk else 0} on "
                "disk" + ("" if snapshots else f"{none}--prefix-cache-host-mib more room")
            )
        log.info(text)

    def _prefix(self) -> None:
        machine, log, kv = self._machine, self._log, self._machine.kv
        if "--no-prefix-cache" in machine.flags.switches:
            log.info("prefix cache: disabled by --no-prefix-cache")
            return
        paged = sum(1 for group in kv.groups if group.paged)
        text = f"prefix cache: {paged} paged group(s) at {kv.block_tokens}-token blocks"
        if kv.checkpoint_slots:
            text += (
                f"; linear checkpoints every {machine.interval} tokens ({humanb(kv.stride)} x {kv.checkpoint_slots} "
                f"slots), retention '{machine.flags.text('--checkpoint-policy')}'"
            )
        log.info(text)


def _folder(path: str) -> bool:
    """Whether the folder is there, or could be made; its parent is not made."""
    folder = pathlib.Path(path)
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return False
    return folder.is_dir()
