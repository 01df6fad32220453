# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of the KV plan, of its refusals, and of the settled line."""

from __future__ import annotations

from .machine import Machine
from .sizes import MIB, humanb

UNUSED_ALLOWANCE = 256 * MIB


def refusal(machine: Machine) -> str | None:
    """Why a pool cannot be laid out, or None: it does not cover its fixed costs, or leaves not one block."""
    kv, pool, shape = machine.kv, machine.split.kv_pool, machine.shape
    if kv.fixed >= pool or "kv_short" in machine.hits:
        pool = min(pool, kv.fixed - 64 * MIB) if "kv_short" in machine.hits else pool
        rows = [
            "vram_kv does not fit its fixed costs:",
            f"  {'linear/conv state':<18} {humanb(kv.state_bytes):>10}  ({shape.sequences} sequences)",
            f"  {'checkpoints':<18} {humanb(kv.checkpoint_bytes):>10}  ({kv.checkpoint_slots} x {humanb(kv.stride)})",
            "  ------------------------------",
            f"  {'fixed':<18} {humanb(kv.fixed):>10}",
            f"  {'--vram-kv-mib':<18} {humanb(pool):>10}",
            f"  {'SHORT BY':<18} {humanb(kv.fixed - pool):>10}",
            "Lower --max-seqs or the checkpoint slot count, or raise --vram-kv-mib. The engine will not shrink one "
            "of them for you (spec §6).",
        ]
        return "\n".join(rows)
    if kv.blocks(pool) < 1 or "kv_no_blocks" in machine.hits:
        return (
            f"KV group '{kv.groups[0].name}': a {humanb(pool)} KV pool leaves 0 blocks ({humanb(kv.block_bytes)} a "
            f"page) after the fixed linear/conv costs of {humanb(kv.fixed)}. Raise --vram-kv-mib, lower "
            "--expert-vs-cache-ratio, or lower --max-seqs."
        )
    return None


def plan(machine: Machine) -> str:
    """The KV plan of one rank."""
    kv, pool = machine.kv, machine.split.kv_pool
    blocks, tokens = kv.blocks(pool), machine.kv_tokens
    of, layers = machine.world.cache, machine.world.layers
    full = kv.groups[0].layers
    kinds = [(full, "full"), (of.linear_layers, "linear"), (of.linear_layers, "conv")]
    listed = " + ".join(f"{count} {kind}" for count, kind in kinds if count)
    real = sum(group.layers for group in kv.groups)
    rows = [
        f"kv: KV layer bundles {listed} ({layers} real layers)",
        f"    vLLM stock    size {full:2d} -> {4:2d} groups, {4 * full:3d} slots ({max(0, 4 * full - layers)} padding)",
        f"    least-waste   size {12:2d} -> {4:2d} groups, {layers:3d} slots (0 padding)",
        f"    radiance      per state kind, own pool -> {len(kv.groups):2d} groups, {real:3d} slots (0 padding)",
    ]
    for group in kv.groups:
        head = f"    {group.name:<14} {group.kind:<6} {group.layers:3d} layers  "
        if group.paged:
            rows.append(
                f"{head}block {kv.block_tokens:4d} tok  page {humanb(group.page):>8}  {blocks:7d} blocks = "
                f"{humanb(blocks * group.page):>9}  ({tokens} tokens)"
            )
        else:
            rows.append(
                f"{head}state {humanb(group.page):>8}  {group.slots:7d} slots = {humanb(group.page * group.slots):>9}"
            )
    rows.append(f"    {'(none)':<14} {'?':<6} {0:3d} layers  state {humanb(0):>8}  {0:7d} slots = {humanb(0):>9}")
    end = pool - kv.checkpoint_bytes
    first = end if kv.checkpoint_slots else 0
    rows.append(f"    pool at 0x7f0000000000, {humanb(pool)}; groups at +0..+{end}, checkpoints at +{first}")
    if kv.snapshot:
        rows.append(
            f"    {'checkpoints':<14} {'linear':<6}      {kv.checkpoint_slots} slots x {humanb(kv.stride)} = "
            f"{humanb(kv.checkpoint_slots * kv.stride)}  "
            f"({'pinned host memory' if kv.on_host else 'address space; backed as slots are taken'})"
        )
    return "\n".join(rows)


def one_request(machine: Machine) -> str | None:
    """The warning of a pool that one request at full length does not fit."""
    tokens, context = machine.kv_tokens, machine.shape.context
    if tokens >= context:
        return None
    more = -(-int((context - tokens) * machine.kv.token_bytes) // MIB)
    raise_it = "Raise --vram-kv-mib" if machine.world.rules.pair else "Lower --gpu-headroom-mib"
    if machine.world.rules.ratio:
        raise_it = "Raise --expert-vs-cache-ratio toward the cache"
    return (
        f"kv group '{machine.kv.groups[0].name}' holds {tokens} tokens but the context limit is {context}: ONE request "
        f"longer than {tokens} tokens is accepted by the API and then refused as too large to ever fit -- this is a "
        f"hard limit, not a backing ratio. {raise_it} (about {more} MiB more for the whole context), halve the cost a "
        f"token with --kv-cache-dtype fp8, or lower --max-model-len to {tokens}."
    )


def withdrawal(machine: Machine) -> str | None:
    """The warning of checkpoint slots that were given up for the headroom."""
    gone, kv = machine.withdrawn, machine.kv
    if not gone:
        return None
    kept = kv.checkpoint_slots - gone
    short = machine.headroom - min(machine.free_before_withdrawal(rank) for rank in range(machine.tp))
    return (
        f"checkpoint slots: {kept} of {kv.checkpoint_slots} backed ({humanb(kv.stride)} each), {gone} withdrawn -- "
        f"one more would take a card under the {humanb(machine.headroom)} --gpu-headroom-mib, the room a kernel's "
        f"first launch allocates from. The prefix cache holds {kept} linear-state snapshots on the card and its "
        f"retention policy decides which. The budget counted all {kv.checkpoint_slots}; the card is {humanb(short)} "
        "short of them, which is allocations made after the budget was resolved."
    )


def settled(machine: Machine, rank: int) -> tuple[str, str]:
    """(level, text) of one card's settled line, in the form of 1.0.13 or in that of 1.0.5."""
    if machine.world.rules.old_settled_lines:
        return _settled_old(machine, rank)
    free, floor = machine.settled(rank), machine.floor
    unused = machine.split.both_stated and free > floor + UNUSED_ALLOWANCE
    text = (
        f"card {machine.devices[rank]} settled at {humanb(free)} free against {humanb(floor)} (the "
        f"{humanb(machine.headroom)} --gpu-headroom-mib and {humanb(floor - machine.headroom)} kept for the static "
        "region)"
    )
    return ("W" if free < floor or unused else "I"), text


def _settled_old(machine: Machine, rank: int) -> tuple[str, str]:
    free, want = machine.settled(rank), machine.headroom
    head = f"card {machine.devices[rank]} settled at {humanb(free)} free"
    against = f"against the {humanb(want)} --gpu-headroom-mib asked to keep"
    if free < want:
        return "W", (
            f"{head} {against}. The difference is allocations made after the budget was resolved, and it is the room "
            f"a kernel's first launch allocates from. Raise --gpu-headroom-mib by at least {humanb(want - free)} so "
            "the budget is resolved against the right number."
        )
    if free <= want + UNUSED_ALLOWANCE:
        return "I", f"{head}, {against}"
    if machine.split.both_stated:
        return "W", (
            f"{head} {against}, so {humanb(free - want)} is unused. On a model that does not fit in VRAM every unused "
            "GiB is weight that has to be moved instead of read, and that is decode step time."
        )
    return "I", (
        f"{head} {against}. The split accounted for it: neither pool could address another byte, which is the "
        "`unusable` line of the VRAM budget above."
    )
