# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a KV pool costs and holds: the formulas of the engine's kv.cpp, for the architecture qwen4exp."""

from __future__ import annotations

from dataclasses import dataclass

from .sizes import ALIGN_UNIT, MIB, align

BLOCK_TOKENS = 4
_HEAD_DIM = 256
_KV_HEADS = 2
_BKEY_DIM = 16
_GDN_HEADS = 48
_GDN_STATE = 128
_GDN_LAYERS = 36
_CONV_CHANNELS = 10240
_CONV_WIDTH = 4
_TAIL_ROWS = 4
_FULL_LAYERS = 12
_BF16 = 2
_F32 = 4
GRANULE = 2 * MIB


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


def groups(shape: Shape) -> list[Group]:
    """The groups of one rank, in the order in which the engine lists them."""
    full = _FULL_LAYERS + (1 if shape.drafts > 0 else 0)
    heads = max(1, _KV_HEADS // shape.tp)
    element = 1 if shape.dtype == "fp8" else _BF16
    copies = 2 if shape.drafts > 0 else 1
    gdn = (_GDN_HEADS // shape.tp) * _GDN_STATE * _GDN_STATE * _F32 * _GDN_LAYERS
    conv = (_CONV_WIDTH - 1 + shape.drafts) * (_CONV_CHANNELS // shape.tp) * _BF16 * _GDN_LAYERS
    tail = (_TAIL_ROWS + shape.drafts) * _HEAD_DIM * _BF16 * full
    return [
        Group("kv_attn", "full", full, BLOCK_TOKENS * heads * _HEAD_DIM * element * 2 * full, 0),
        Group("kv_qsa_bkey", "full", full, BLOCK_TOKENS * _BKEY_DIM * _BF16 * 2 * full, 0),
        Group("kv_gdn_state", "linear", _GDN_LAYERS, gdn, shape.sequences * copies),
        Group("kv_gdn_conv", "conv", _GDN_LAYERS, conv, shape.sequences),
        Group("kv_qsa_tail", "linear", full, tail, shape.sequences),
    ]


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

    @property
    def token_bytes(self) -> float:
        """Bytes that one token takes."""
        return self.block_bytes / BLOCK_TOKENS

    @property
    def checkpoint_bytes(self) -> int:
        """What all checkpoint slots take."""
        return self.checkpoint_slots * self.stride

    def blocks(self, pool: int) -> int:
        """Blocks that a pool of this many bytes holds beyond its fixed costs."""
        return max(0, pool - self.fixed) // self.block_bytes

    def tokens(self, pool: int) -> int:
        """Tokens that a pool of this many bytes holds."""
        return self.blocks(pool) * BLOCK_TOKENS


def costs(shape: Shape) -> KvCosts:
    """Fixed costs, worst case and the size of one checkpoint of a shape."""
    listed = groups(shape)
    block = sum(group.page for group in listed if group.paged)
    states = sum(align(group.page * group.slots, ALIGN_UNIT) for group in listed if not group.paged)
    snapshot = sum(group.page for group in listed if not group.paged)
    stride = align(snapshot, GRANULE if snapshot >= GRANULE else ALIGN_UNIT)
    slots = shape.checkpoint_slots
    padding = stride if slots > 0 else 0
    fixed = states + slots * stride + padding + ALIGN_UNIT * sum(1 for group in listed if group.paged)
    worst = shape.sequences * -(-shape.context // BLOCK_TOKENS) * block
    return KvCosts(listed, block, states, snapshot, stride, slots, fixed, fixed + worst)
