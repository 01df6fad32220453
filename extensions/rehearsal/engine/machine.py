# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that a boot resolves from its flags and its world, before a line of it is printed."""

from __future__ import annotations

from dataclasses import dataclass

from . import card_split, expert_slots, kv_arithmetic
from .command_line import Flags
from .sizes import MIB, from_mib
from .world import World

FAULT_SHORT_MIB = 60.0


@dataclass(frozen=True)
class Machine:
    """One boot's figures; byte sizes, per rank or per card where they are lists."""

    world: World
    flags: Flags
    shape: kv_arithmetic.Shape
    kv: kv_arithmetic.KvCosts
    split: card_split.Split
    slots: list[expert_slots.RankSlots]
    devices: list[int]
    settle_short: bool

    @property
    def tp(self) -> int:
        """Ranks, one a card."""
        return self.shape.tp

    @property
    def headroom(self) -> int:
        """``--gpu-headroom-mib`` in bytes."""
        return self.split.card.headroom

    @property
    def floor(self) -> int:
        """What a card is to keep free: the headroom and the static region."""
        return self.headroom + from_mib(self.world.static_region_mib)

    @property
    def rows(self) -> int:
        """Sampler rows: one a sequence and draft, and the sequence's own."""
        return self.shape.sequences * (self.shape.drafts + 1)

    @property
    def exact_rows(self) -> int:
        """The most rows that the lossy wire still carries exactly."""
        row = self.world.embedding * 2
        return -(-self.flags.number("--tp-wire-min-kb") * 1024 // row) - 1

    @property
    def chunk(self) -> int:
        """The most prompt tokens of one step."""
        return min(self.flags.number("--max-num-batched-tokens"), self.interval)

    @property
    def interval(self) -> int:
        """The checkpoint interval in whole attention blocks."""
        block = kv_arithmetic.BLOCK_TOKENS
        return max(block, self.flags.number("--checkpoint-interval") // block * block)

    @property
    def kv_tokens(self) -> int:
        """Tokens that the KV pool holds."""
        return self.kv.tokens(self.split.kv_pool)

    def free_before_withdrawal(self, rank: int) -> int:
        """Bytes free on a rank's card once everything is allocated, all checkpoint slots backed."""
        free = self.split.unclaimed - from_mib(self.world.after_budget(self.devices[rank]))
        if self.settle_short:
            free = min(free, self.floor) - from_mib(FAULT_SHORT_MIB)
        return free

    @property
    def withdrawn(self) -> int:
        """Checkpoint slots given up so that no card goes under its headroom."""
        lowest = min(self.free_before_withdrawal(rank) for rank in range(self.tp))
        short = self.headroom - lowest
        return 0 if short <= 0 else min(self.kv.checkpoint_slots, -(-short // self.kv.stride))

    def settled(self, rank: int) -> int:
        """Bytes free on a rank's card when the boot is over."""
        return max(0, self.free_before_withdrawal(rank) + self.withdrawn * self.kv.stride)

    def lendable(self) -> int:
        """Bytes of the KV pool beyond its fixed costs."""
        return max(0, self.split.kv_pool - self.kv.fixed)

    def arena_levels(self) -> list[tuple[int, int]]:
        """Smaller step sizes and the arena that they need: [(tokens, bytes)]."""
        arena, most = self.split.card.arena, self.chunk
        region = arena - from_mib(self.world.arena_mib_per_token) * min(most, self.world.arena_tokens)
        return [(size, region + from_mib(self.world.arena_mib_per_token) * size) for size in (512, 64) if size < most]


def resolve(world: World, flags: Flags, faults: frozenset[str] = frozenset()) -> Machine:
    """Compute a boot. A refusal is a state of the machine; the boot log tells it in its place."""
    drafts = world.auto_drafts if flags.drafts is None else flags.drafts
    shape = kv_arithmetic.Shape(
        sequences=flags.number("--max-num-seqs"),
        context=flags.number("--max-model-len") or world.trained_context,
        dtype=flags.text("--kv-cache-dtype"),
        drafts=drafts,
        tp=flags.number("--tp"),
        checkpoint_slots=flags.number("--checkpoint-slots"),
    )
    kv = kv_arithmetic.costs(shape)
    card = card_split.Card(
        total=from_mib(world.card_total_mib),
        held=from_mib(world.already_held_mib),
        headroom=flags.number("--gpu-headroom-mib") * MIB,
        arena=_arena(world, flags, shape),
        staging=_staging(world, shape),
        statics=from_mib(world.static_weights_mib),
        stated_weights=flags.number("--vram-weights-mib") * MIB,
        stated_kv=flags.number("--vram-kv-mib") * MIB,
        ratio=float(flags.text("--expert-vs-cache-ratio")),
        kv_ceiling=kv.ceiling,
        expert_ceiling=expert_slots.expert_ceiling(world, shape.tp),
        largest_layer=int(512 * expert_slots.mean_slot(world, shape.tp)),
        prefill_staging="--deterministic" not in flags.switches,
    )
    split = card_split.split(card)
    if "refuse_boot" in faults and split.claimable >= 0:
        # Something else sits on the card: what could be claimed is gone, and 512 MiB more.
        held = card.held + split.claimable + 512 * MIB
        split = card_split.split(card_split.Card(**{**vars(card), "held": held}))
    host = flags.number("--host-pool-mib") * MIB
    slots = [expert_slots.place(world, shape.tp, rank, split.weights_pool, host) for rank in range(shape.tp)]
    devices = world.used_devices()[: shape.tp]
    return Machine(world, flags, shape, kv, split, slots, devices, "settle_short" in faults)


def _arena(world: World, flags: Flags, shape: kv_arithmetic.Shape) -> int:
    """The activation arena: it grows with the tokens of the largest step and with the sampler's rows."""
    step = min(flags.number("--max-num-batched-tokens"), flags.number("--checkpoint-interval"))
    rows = shape.sequences * (shape.drafts + 1)
    mib = world.arena_mib + (step - world.arena_tokens) * world.arena_mib_per_token
    mib += (rows - world.arena_rows) * world.arena_mib_per_row
    return from_mib(max(64.0, mib))


def _staging(world: World, shape: kv_arithmetic.Shape) -> int:
    """The step staging: two buffers of four bytes a block and paged group for each sequence."""

    def tables(sequences: int, context: int) -> int:
        return 16 * sequences * -(-context // kv_arithmetic.BLOCK_TOKENS)

    change = tables(shape.sequences, shape.context) - tables(world.staging_sequences, world.staging_context)
    return max(MIB, from_mib(world.staging_mib) + change)
