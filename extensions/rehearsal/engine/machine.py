# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that a boot resolves from its flags and its world, before a line of it is printed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import card_split, expert_slots, kv_arithmetic
from .command_line import Flags
from .fault_names import Hits
from .sizes import MIB, align, from_mib
from .world import World


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
    hits: Hits

    @property
    def tp(self) -> int:
        """Ranks, one a card."""
        return self.shape.tp

    @property
    def ranks(self) -> list[int]:
        """The ranks in the order in which they speak."""
        ranks = list(range(self.tp))
        return ranks[::-1] if "ranks_reversed" in self.hits else ranks

    @property
    def headroom(self) -> int:
        """``--gpu-headroom-mib`` in bytes."""
        return self.split.card.headroom

    @property
    def floor(self) -> int:
        """What a card is to keep free: the headroom and, where the release says so, the static region."""
        if self.world.rules.old_settled_lines:
            return self.headroom
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
    def quantum(self) -> int:
        """Tokens of the smallest prefill chunk."""
        return self.world.cache.quantum

    @property
    def interval(self) -> int:
        """The checkpoint interval, rounded up to the chunk quantum."""
        return align(self.flags.number("--checkpoint-interval"), self.quantum)

    @property
    def kv_tokens(self) -> int:
        """Tokens that the KV pool holds."""
        return self.kv.tokens(self.split.kv_pool)

    def free_before_withdrawal(self, rank: int) -> int:
        """Bytes free on a rank's card once everything is allocated, all checkpoint slots backed."""
        card = self.devices[rank]
        own = from_mib(self.world.card_total(card)) - from_mib(self.world.card_held(card))
        # The budget is that of the smallest card; a larger one keeps the difference.
        more = max(0, own - self.budgeted_free)
        free = self.split.unclaimed + more - from_mib(self.world.after_budget(card))
        for name, hit in (("settle_short", True), ("one_card_short", rank == self.tp - 1)):
            if name in self.hits and hit:
                free = min(free, self.floor) - from_mib(self.hits.number(name))
        return free

    @property
    def budgeted_free(self) -> int:
        """Bytes that were free on the smallest card before the boot."""
        return _folded(self.world, self.devices)[1]

    @property
    def withdrawn(self) -> int:
        """Checkpoint slots given up so that no card goes under its headroom."""
        if self.kv.on_host or not self.kv.checkpoint_slots:
            return 0
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
        if not self.world.arena_levels or "arena_level_missing" in self.hits:
            return []
        arena, most = self.split.card.arena, self.chunk
        region = arena - from_mib(self.world.arena_mib_per_token) * min(most, self.world.arena_tokens)
        return [(size, region + from_mib(self.world.arena_mib_per_token) * size) for size in (512, 64) if size < most]


def resolve(world: World, flags: Flags, hits: Hits | None = None) -> Machine:
    """Compute a boot. A refusal is a state of the machine; the boot log tells it in its place."""
    hits = hits or Hits()
    drafts = world.auto_drafts if flags.drafts is None else flags.drafts
    shape = kv_arithmetic.Shape(
        sequences=flags.number("--max-num-seqs"),
        context=flags.number("--max-model-len") or world.trained_context,
        dtype=flags.text("--kv-cache-dtype"),
        drafts=drafts if world.draft_head else 0,
        tp=flags.number("--tp"),
        checkpoint_slots=flags.number("--checkpoint-slots"),
    )
    kv = kv_arithmetic.costs(shape, world.cache, world.rules.snapshots_on_host)
    devices = world.used_devices()[: shape.tp] if world.gpus else []
    total, free = _folded(world, devices)
    host = flags.number("--host-pool-mib") * MIB
    ceiling = expert_slots.expert_ceiling(world, shape.tp)
    card = card_split.Card(
        total=total,
        held=total - free,
        headroom=_headroom(world, flags),
        arena=_arena(world, flags, shape),
        staging=_staging(world, shape),
        statics=from_mib(world.static_weights_mib),
        stated_weights=flags.number("--vram-weights-mib") * MIB,
        stated_kv=flags.number("--vram-kv-mib") * MIB,
        ratio=float(flags.text("--expert-vs-cache-ratio")) if world.rules.ratio else None,
        kv_ceiling=kv.ceiling,
        expert_ceiling=ceiling,
        largest_layer=int(world.experts_a_layer * expert_slots.mean_slot(world, shape.tp)),
        prefill_staging="--deterministic" not in flags.switches and world.arena_levels,
        on_host=host,
    )
    if "other_pair" in hits and card.stated_weights:
        less = hits.whole("other_pair") * MIB
        card = replace(card, stated_weights=max(MIB, card.stated_weights - less))
    split = card_split.split(card)
    if "over_by" in hits and split.both_stated:
        card = replace(card, total=card.stated_weights + card.stated_kv - 512 * MIB)
        split = card_split.split(card)
    elif ("short_by" in hits or "over_by" in hits) and split.claimable >= 0:
        # Something else sits on the card: what could be claimed is gone, and 512 MiB more.
        split = card_split.split(replace(card, held=card.held + split.claimable + 512 * MIB))
    shadow = "--deterministic" not in flags.switches
    slots = [expert_slots.place(world, shape.tp, rank, split.weights_pool, host, shadow) for rank in range(shape.tp)]
    return Machine(world, flags, shape, kv, split, slots, devices, hits)


def _folded(world: World, devices: list[int]) -> tuple[int, int]:
    """(total, free) bytes of a card, each the smallest of all ranks."""
    cards = devices or [0]
    total = min(from_mib(world.card_total(card)) for card in cards)
    return total, min(from_mib(world.card_total(card)) - from_mib(world.card_held(card)) for card in cards)


def _headroom(world: World, flags: Flags) -> int:
    """What stays unclaimed on purpose; integrated graphics leave an eighth of its memory to the host."""
    asked = flags.number("--gpu-headroom-mib") * MIB
    return max(asked, from_mib(world.host_ram_mib / 8)) if world.integrated else asked


def _arena(world: World, flags: Flags, shape: kv_arithmetic.Shape) -> int:
    """The activation arena: it grows with the tokens of the largest step and with the sampler's rows."""
    step = min(flags.number("--max-num-batched-tokens"), flags.number("--checkpoint-interval"))
    rows = shape.sequences * (shape.drafts + 1)
    mib = world.arena_mib + (step - world.arena_tokens) * world.arena_mib_per_token
    mib += (rows - world.arena_rows) * world.arena_mib_per_row
    return from_mib(max(64.0, mib))


def _staging(world: World, shape: kv_arithmetic.Shape) -> int:
    """The step staging: two buffers of four bytes a block and paged group for each sequence."""
    block = world.cache.block_tokens

    def tables(sequences: int, context: int) -> int:
        return 16 * sequences * -(-context // block)

    change = tables(shape.sequences, shape.context) - tables(world.staging_sequences, world.staging_context)
    return max(MIB, from_mib(world.staging_mib) + change)
