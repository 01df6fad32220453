# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a KV pool costs and holds: the formulas of the engine's kv.cpp."""

from __future__ import annotations

from dataclasses import dataclass

from .sizes import ALIGN_UNIT, MIB, align

_BF16 = 2
_F32 = 4


@dataclass(frozen=True)
class Dimensions:
    """What a model keeps of a sequence; the defaults are those of the architecture qwen4exp.

    A count of 0 leaves a group out: no ``linear_layers`` is a model without a recurrent state.
    """

    block_tokens: int = 4
    state_chunk: int = 4
    full_layers: int = 12
    draft_layers: int = 1
    kv_heads: int = 2
    head_dim: int = 256
    block_key_dim: int = 16
    linear_layers: int = 36
    linear_heads: int = 48
    linear_dim: int = 128
    conv_channels: int = 10240
    conv_width: int = 4
    tail_rows: int = 4
    granule_mib: int = 2

    @property
    def quantum(self) -> int:
        """Tokens of the smallest prefill chunk."""
        return max(self.block_tokens, self.state_chunk if self.linear_layers else 0)


@dataclass(frozen=True)
class Shape:
    """What a service asks of its cache."""

    sequences: int
    context: int
    dtype: str
    drafts: int
    tp: int
    checkpoint_slots: int


@dataclass(frozen=True)
class Group:
    """One KV group of a rank: ``page`` is bytes a block of a paged one, bytes a state of one with ``slots``."""

    name: str
    kind: str
    layers: int
    page: int
    slots: int

    @property
    def paged(self) -> bool:
        """Whether the group grows with tokens."""
        return self.kind == "full"


def groups(shape: Shape, of: Dimensions) -> list[Group]:
    """The groups of one rank, in the order in which the engine lists them."""
    full = of.full_layers + (of.draft_layers if shape.drafts > 0 else 0)
    element = 1 if shape.dtype == "fp8" else _BF16
    copies = 2 if shape.drafts > 0 else 1

    def local(count: int) -> int:
        return max(1, -(-count // shape.tp))

    attention = of.block_tokens * local(of.kv_heads) * of.head_dim * element * 2 * full
    found = [Group("kv_attn", "full", full, attention, 0)]
    if of.block_key_dim:
        # Replicated on every rank, and bf16 whatever the cache is.
        found.append(Group("kv_qsa_bkey", "full", full, of.block_tokens * of.block_key_dim * _BF16 * 2 * full, 0))
    if of.linear_layers:
        state = local(of.linear_heads) * of.linear_dim * of.linear_dim * _F32 * of.linear_layers
        found.append(Group("kv_gdn_state", "linear", of.linear_layers, state, shape.sequences * copies))
        conv = (of.conv_width - 1 + shape.drafts) * local(of.conv_channels) * _BF16 * of.linear_layers
        found.append(Group("kv_gdn_conv", "conv", of.linear_layers, conv, shape.sequences))
    if of.tail_rows:
        tail = (of.tail_rows + shape.drafts) * of.head_dim * _BF16 * full
        found.append(Group("kv_qsa_tail", "linear", full, tail, shape.sequences))
    return found


@dataclass(frozen=True)
class KvCosts:
    """The costs of a shape on one rank, in bytes."""

    groups: list[Group]
    block_bytes: int
    state_bytes: int
    snapshot: int
    stride: int
    checkpoint_slots: int
    fixed: int
    ceiling: int
    block_tokens: int = 4
    on_host: bool = False

    @property
    def token_bytes(self) -> float:
        """Bytes that one token takes."""
        return self.block_bytes / self.block_tokens

    @property
    def checkpoint_bytes(self) -> int:
        """What all checkpoint slots take of the pool."""
        return 0 if self.on_host else self.checkpoint_slots * self.stride

    def blocks(self, pool: int) -> int:
        """Blocks that a pool of this many bytes holds beyond its fixed costs."""
        return max(0, pool - self.fixed) // self.block_bytes

    def tokens(self, pool: int) -> int:
        """Tokens that a pool of this many bytes holds."""
        return self.blocks(pool) * self.block_tokens


def costs(shape: Shape, of: Dimensions | None = None, on_host: bool = False) -> KvCosts:
    """Fixed costs, worst case and the size of one checkpoint of a shape.

    ``on_host``: the checkpoints lie in host memory and are no cost of the pool.
    """
    of = of or Dimensions()
    listed = groups(shape, of)
    block = sum(group.page for group in listed if group.paged)
    states = sum(align(group.page * group.slots, ALIGN_UNIT) for group in listed if not group.paged)
    snapshot = sum(group.page for group in listed if not group.paged)
    granule = of.granule_mib * MIB
    stride = align(snapshot, granule if snapshot >= granule else ALIGN_UNIT)
    slots = shape.checkpoint_slots if snapshot else 0
    fixed = states + ALIGN_UNIT * sum(1 for group in listed if group.paged)
    if slots and not on_host:
        # One more stride is lost to the alignment of the first.
        fixed += (slots + 1) * stride
    worst = shape.sequences * -(-shape.context // of.block_tokens) * block
    return KvCosts(
        listed, block, states, snapshot, stride, slots, fixed, fixed + worst, of.block_tokens, on_host and slots > 0
    )
