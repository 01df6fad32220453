# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""KV figures from the dimensions of an architecture, for a shape that no boot has printed yet.

Formulas: the engine's KV plan (bytes a block, bytes a state, checkpoint stride). Dimensions of ``qwen4exp``
(Qwen3.8-Flash-Next): blocks of 4 tokens; attention in 12 layers, and 1 more when it speculates; 2 KV heads of 256
split over the ranks; one block key of 256 bytes a layer and block, always bf16 and on every rank; 36 recurrent layers
with 48 heads of 128 x 128 f32 over the ranks, held twice when it speculates; a bf16 convolution of width 4 over
10,240 channels; a bf16 tail of (4 + depth) x 256 a layer.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import Shape
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import size_from_dict

MIB = 1024 * 1024
DEFAULT_CHECKPOINT_SLOTS = 8
_VMEM_GRANULE = 2 * MIB
_BYTES_PER_ELEMENT = {"fp8": 1, "bf16": 2}


class ArchitectureGroup(t.NamedTuple):
    """One KV group on one rank: a page a block (paged), or a state a sequence and copy (stateful)."""

    name: str
    block_tokens: int
    page_bytes: int
    state_bytes: int
    copies: int


def kv_groups(arch: str | None, tp: int, shape: Shape) -> list[ArchitectureGroup] | None:
    """The KV groups of one rank; None for an architecture, or a dtype, whose dimensions are not known here."""
    element = _BYTES_PER_ELEMENT.get(shape.kv_cache_dtype)
    if arch != "qwen4exp" or element is None or tp < 1:
        return None
    depth = shape.num_speculative_tokens
    attention_layers = 12 + (1 if depth > 0 else 0)
    recurrent_layers = 36
    kv_heads = max(1, math.ceil(2 / tp))
    return [
        ArchitectureGroup("kv_attn", 4, 4 * kv_heads * 256 * element * 2 * attention_layers, 0, 0),
        ArchitectureGroup("kv_qsa_bkey", 4, 256 * attention_layers, 0, 0),
        ArchitectureGroup(
            "kv_gdn_state", 0, 0, math.ceil(48 / tp) * 128 * 128 * 4 * recurrent_layers, 2 if depth > 0 else 1
        ),
        ArchitectureGroup("kv_gdn_conv", 0, 0, (3 + depth) * math.ceil(10240 / tp) * 2 * recurrent_layers, 1),
        ArchitectureGroup("kv_qsa_tail", 0, 0, (4 + depth) * 256 * 2 * attention_layers, 1),
    ]


def pages_agree(groups: t.Sequence[ArchitectureGroup], printed: t.Sequence[t.Mapping[str, t.Any]]) -> bool:
    """Whether a ledger's KV groups print these very pages. A page is a rate: it must be met, not come near."""
    known = {group.name: group.page_bytes / MIB for group in groups if group.page_bytes}
    pages = {group["name"]: size_from_dict(group["page"]) for group in printed if group.get("page") is not None}
    return set(known) == set(pages) and all(pages[name].prints(mib) for name, mib in known.items())


def checkpoint_stride_bytes(snapshot: float) -> float:
    """One snapshot of every stateful group, aligned to the driver's 2 MiB granule (engine: ``stride``)."""
    return float(math.ceil(snapshot / _VMEM_GRANULE) * _VMEM_GRANULE)
