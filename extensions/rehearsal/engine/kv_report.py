# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of the KV plan, of its refusals, and of the settled line."""

from __future__ import annotations

from .kv_arithmetic import BLOCK_TOKENS
from .machine import Machine
from .sizes import MIB, humanb

UNUSED_ALLOWANCE = 256 * MIB


def refusal(machine: Machine) -> str | None:
    """Why a pool cannot be laid out, or None: it does not cover its fixed costs, or leaves not one block."""
    kv, pool, shape = machine.kv, machine.split.kv_pool, machine.shape
    if kv.fixed >= pool:
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
    if kv.blocks(pool) < 1:
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
    full = kv.groups[0].layers
    rows = [
        f"kv: KV layer bundles {full} full + 36 linear + 36 conv ({machine.world.layers} real layers)",
        f"    vLLM stock    size {full:2d} -> {4:2d} groups, {4 * full:3d} slots ({4 * full - machine.world.layers} "
        "padding)",
        f"    least-waste   size {12:2d} -> {4:2d} groups, {48:3d} slots (0 padding)",
        f"    radiance      per state kind, own pool -> {5:2d} groups, {84 + 2 * full:3d} slots (0 padding)",
    ]
    for group in kv.groups:
        head = f"    {group.name:<14} {group.kind:<6} {group.layers:3d} layers  "
        if group.paged:
            rows.append(
                f"{head}block {BLOCK_TOKENS:4d} tok  page {humanb(group.page):>8}  {blocks:7d} blocks = "
                f"{humanb(blocks * group.page):>9}  ({tokens} tokens)"
            )
        else:
            rows.append(
                f"{head}state {humanb(group.page):>8}  {group.slots:7d} slots = {humanb(group.page * group.slots):>9}"
            )
    rows.append(f"    {'(none)':<14} {'?':<6} {0:3d} layers  state {humanb(0):>8}  {0:7d} slots = {humanb(0):>9}")
    end = pool - kv.checkpoint_bytes
    rows.append(f"    pool at 0x7f0000000000, {humanb(pool)}; groups at +0..+{end}, checkpoints at +{end}")
    if kv.checkpoint_slots:
        rows.append(
            f"    {'checkpoints':<14} {'linear':<6}      {kv.checkpoint_slots} slots x {humanb(kv.stride)} = "
            f"{humanb(kv.checkpoint_bytes)}  (address space; backed as slots are taken)"
        )
    return "\n".join(rows)


def one_request(machine: Machine) -> str | None:
    """The warning of a pool that one request at full length does not fit."""
    tokens, context = machine.kv_tokens, machine.shape.context
    if tokens >= context:
        return None
    more = -(-int((context - tokens) * machine.kv.token_bytes) // MIB)
    return (
        f"kv group '{machine.kv.groups[0].name}' holds {tokens} tokens but the context limit is {context}: ONE request "
        f"longer than {tokens} tokens is accepted by the API and then refused as too large to ever fit -- this is a "
        f"hard limit, not a backing ratio. Raise --expert-vs-cache-ratio toward the cache (about {more} MiB more for "
        f"the whole context), halve the cost a token with --kv-cache-dtype fp8, or lower --max-model-len to {tokens}."
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
    """(level, text) of one card's settled line, in the form of 1.0.13."""
    free, floor = machine.settled(rank), machine.floor
    unused = machine.split.both_stated and free > floor + UNUSED_ALLOWANCE
    text = (
        f"card {machine.devices[rank]} settled at {humanb(free)} free against {humanb(floor)} (the "
        f"{humanb(machine.headroom)} --gpu-headroom-mib and {humanb(floor - machine.headroom)} kept for the static "
        "region)"
    )
    return ("W" if free < floor or unused else "I"), text
