# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random worlds from a seed: each comes with a command line that boots in it. The same seed is the same world."""

from __future__ import annotations

import random
from typing import Any

from . import kv_report
from .command_line import parse
from .machine import Machine, resolve
from .sizes import MIB
from .world import World
from .world_files import build

_CARDS = (16368.0, 24560.0, 30576.0, 32624.0, 49140.0)
_CONTEXTS = (16384, 32768, 65536, 98304, 131072, 200000)


def random_world(seed: int) -> World:
    """A valid world: its ``flags`` boot, with a pair that leaves some of the card unused."""
    chance = random.Random(seed)
    while True:
        fields, shape = _fields(chance), _shape(chance)
        found = _with_pair(chance, fields, shape)
        if found is not None:
            found["about"] = f"A random world, seed {seed}"
            return build(found)


def _fields(chance: random.Random) -> dict[str, Any]:
    dense, recurrent, speculates = chance.random() < 0.25, chance.random() < 0.6, chance.random() < 0.6
    cards = chance.choice((1, 2, 2, 2, 4))
    layers = chance.randrange(24, 65, 4)
    full = layers // 4 if recurrent else layers
    totals = [chance.choice(_CARDS)] * cards
    if cards > 1 and chance.random() < 0.3:
        totals[chance.randrange(cards)] -= chance.randrange(0, 3000)
    integrated = chance.random() < 0.5
    small = chance.randrange(40, 400)
    return {
        "arch": f"random{layers}",
        "gpus": ["gfx1201"] * cards + (["gfx1036"] if integrated else []),
        "card_totals_mib": totals + ([2048.0] if integrated else []),
        "cards_held_mib": [round(chance.uniform(250, 900), 1) for _card in range(cards)] + [511.0] * integrated,
        "after_budget_mib": [round(chance.uniform(0, 30), 1) for _card in range(cards)],
        "arena_mib": round(chance.uniform(300, 1200), 1),
        "static_weights_mib": round(chance.uniform(3000, 9000) if dense else chance.uniform(40, 2500), 1),
        "static_region_mib": round(chance.uniform(60, 160), 2),
        "layers": layers,
        "trained_context": 262144,
        "embedding": chance.choice((2048, 2560, 4096, 5120)),
        "draft_head": speculates,
        "expert_units": 0 if dense else 2 * chance.randrange(1000, 8000),
        "experts_a_layer": chance.choice((64, 128, 256)),
        "slot_pages": [small + chance.randrange(0, 200), small],
        "rank1_small_first": chance.randrange(0, 300),
        "arena_levels": not dense,
        "cache": {
            "block_tokens": chance.choice((4, 16, 32)),
            "state_chunk": chance.choice((32, 64)),
            "full_layers": full,
            "draft_layers": int(speculates),
            "kv_heads": chance.choice((2, 4, 8)),
            "head_dim": chance.choice((64, 128, 256)),
            "block_key_dim": chance.choice((0, 0, 16)),
            "linear_layers": layers - full,
            "linear_heads": chance.choice((16, 32, 48)),
            "conv_channels": chance.choice((4096, 8192, 10240)),
            "tail_rows": chance.choice((0, 4)) if recurrent else 0,
        },
    }


def _shape(chance: random.Random) -> str:
    drafts, slots = chance.choice((0, 1, 2, 3)), chance.choice((0, 4, 8))
    return (
        f"--max-num-seqs {chance.randrange(1, 9)} --max-model-len {chance.choice(_CONTEXTS)} "
        f"--max-num-batched-tokens {chance.choice((1024, 2048, 4096))} --checkpoint-slots {slots} "
        f"--kv-cache-dtype {chance.choice(('fp8', 'bf16'))} --num-speculative-tokens {drafts}"
    )


def _with_pair(chance: random.Random, fields: dict[str, Any], shape: str) -> dict[str, Any] | None:
    """The world with flags that boot in it, or None where the shape has no room."""
    world = build(fields)
    ranks = len(world.used_devices())
    flags = f"--tp {ranks} {'--tp-wire wht6 ' if ranks > 1 else ''}{shape} --host-pool-mib {world.expert_units * 4}"
    bare = _machine(world, flags)
    room = bare.split.claimable // MIB
    most = bare.kv.ceiling // MIB + 1
    statics = int(world.static_weights_mib) + 1
    least = bare.kv.fixed // MIB + 1 + bare.kv.block_bytes // MIB + int(bare.shape.context * bare.kv.token_bytes / MIB)
    spare = chance.randrange(200, 2500)
    kv = min(most + chance.randrange(0, 64), int(most * chance.uniform(0.5, 1.2)))
    weights = room - spare - kv
    if kv < least or weights < statics + (0 if world.dense else 512):
        return None
    if world.dense:
        weights = statics + chance.randrange(0, 100)
    flags += f" --vram-weights-mib {weights} --vram-kv-mib {kv}"
    return {**fields, "flags": flags} if _boots(_machine(world, flags)) else None


def _machine(world: World, flags: str) -> Machine:
    return resolve(world, parse(["--model", "any.rad", *flags.split()], world.rules))


def _boots(machine: Machine) -> bool:
    return (
        machine.split.claimable >= 0
        and kv_report.refusal(machine) is None
        and all(slots.fits for slots in machine.slots)
        and all(machine.settled(rank) > machine.floor for rank in range(machine.tp))
    )
