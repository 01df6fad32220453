# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ledgers for the planner's tests, written as dicts in the ledger's shape (no parser involved).

The defaults are one boot: two cards, tp 2, 24,000 + 5,120 MiB, 3 sequences of 200,000 tokens, fp8, depth 2.
"""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan

Json = dict[str, t.Any]

SETTLED_201_GIB = (
    "card 0 settled at 2.01 GiB free against 209.19 MiB (the 96.00 MiB --gpu-headroom-mib and 113.19 MiB kept for the "
    "static region)"
)

# The four published arms (fp8, single prompts of 43,500 tokens).
ARMS = [
    {"weights_mib": slab, "prefill_tps": tps, "prompt_tokens": 43500, "kv_cache_dtype": "fp8"}
    for slab, tps in ((22208, 3397), (24000, 3290), (25600, 3584), (26071, 4379))
]


def size(text: str) -> Json:
    """A size as the ledger holds it, from its print."""
    number, unit = text.split(" ")
    factor = {"B": 1 / 1024**2, "KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}[unit]
    return {"mib": float(number) * factor, "plus_minus_mib": 0.0 if unit == "B" else 0.005 * factor, "text": text}


def printed(mib: float) -> Json:
    """A size as the engine would print so many MiB: two decimals, GiB from 1,024 MiB on."""
    return size(f"{mib / 1024:.2f} GiB" if mib >= 1024 else f"{mib:.2f} MiB")


def settled(card: int, free: str, floor: str = "209.19 MiB", static_region: bool = True) -> Json:
    """One settled row with its line."""
    line = f"card {card} settled at {free} free, against the {floor} --gpu-headroom-mib asked to keep"
    if static_region:
        line = (
            f"card {card} settled at {free} free against {floor} (the 96.00 MiB --gpu-headroom-mib and 113.19 MiB kept "
            "for the static region)"
        )
    return {
        "card": card,
        "free": size(free),
        "floor": size(floor),
        "headroom": size("96.00 MiB"),
        "static_region": size("113.19 MiB") if static_region else None,
        "line": line,
    }


def ledger(**changes: t.Any) -> Json:
    """The default boot; a keyword replaces a top-level key, and None in ``flags`` removes a flag."""
    weights, kv = changes.pop("weights_mib", 24000), changes.pop("kv_mib", 5120)
    flags = {
        "tp": "2",
        "vram-weights-mib": str(weights),
        "vram-kv-mib": str(kv),
        "max-num-seqs": "3",
        "max-model-len": "200000",
        "kv-cache-dtype": "fp8",
        "num-speculative-tokens": "2",
        "host-pool-mib": "16384",
    }
    flags.update(changes.pop("flags", {}))
    base: Json = {
        "schema": "kvfleet.radiance/ledger/1",
        "status": "complete",
        "reason": None,
        "source": {"kind": "text", "name": None, "image": None, "image_digest": None, "boots_seen": 1, "boot": 0},
        "engine": {"version": "1.0.13", "version_from": "endpoint"},
        "ready": True,
        "essential": True,
        "missing": [],
        "flags": {name: text for name, text in flags.items() if text is not None},
        "tp": 2,
        "devices": {"used": [0, 1], "ignored": []},
        "model": {"name": "flashnext.rad", "arch": "qwen4exp", "quant": "w4", "layers": 48, "trained_context": 262144},
        "budget": {
            "weights": "stated",
            "kv": "stated",
            "rows": {"vram_weights": printed(weights), "vram_kv": printed(kv), "unclaimed": size("2.03 GiB")},
        },
        "pair": {"weights_mib": weights, "kv_mib": kv, "exact": True},
        "capacity": {
            "sequences": 3,
            "tokens": 200000,
            "full": True,
            "backing_percent": None,
            "full_length_sessions": None,
        },
        "settled": [settled(0, "2.01 GiB"), settled(1, "2.02 GiB")],
        "slab": [
            {"rank": rank, "slots": 17548, "shadow_slots": 32, "pool_slots": 7580, "static": size("42.40 MiB")}
            for rank in (0, 1)
        ],
        "host_pool": [
            {"rank": rank, "budget": size("16.00 GiB"), "used": size("10.11 GiB"), "free": size("5.89 GiB")}
            for rank in (0, 1)
        ],
        "lent": [{"from": "kv_cache", "slots": 3138, "size": size("4.18 GiB")}],
        "kv": {
            "groups": kv_groups(kv_mib=kv),
            "checkpoints": {"slots": 8, "each": size("56.00 MiB"), "size": size("448.00 MiB")},
        },
        "sampler": {"rows": 9},
        "wire": {"mode": "wht6", "exact_rows": 25},
        "chunk": {"prefill_tokens": 2048, "bound_by": "budget"},
        "warnings": [],
        "checks": [],
        "fingerprint": "0123456789ab",
    }
    base.update(copy.deepcopy(changes))
    return base


def kv_groups(sequences: int = 3, kv_mib: float = 5120) -> list[Json]:
    """The KV groups of one rank: fp8, tp 2, depth 2, and 8 checkpoints in a pool of ``kv_mib``."""
    # Blocks of 29,952 bytes in what the states and nine strides of 56 MiB leave.
    blocks = max(1, int((kv_mib - 109.797 * sequences - 9 * 56) * 1024**2 / 29952))

    def paged(name: str, layers: int, page: str) -> Json:
        group = {"name": name, "kind": "full", "layers": layers, "block_tokens": 4, "page": size(page)}
        return {**group, "blocks": blocks, "tokens": 4 * blocks, "state": None, "slots": None, "size": size("1.00 GiB")}

    def stateful(name: str, kind: str, layers: int, state: str, slots: int) -> Json:
        group = {"name": name, "kind": kind, "layers": layers, "block_tokens": None, "page": None, "blocks": None}
        return {**group, "tokens": None, "state": size(state), "slots": slots, "size": size("1.00 GiB")}

    return [
        paged("kv_attn", 13, "26.00 KiB"),
        paged("kv_qsa_bkey", 13, "3.25 KiB"),
        stateful("kv_gdn_state", "linear", 36, "54.00 MiB", 2 * sequences),
        stateful("kv_gdn_conv", "conv", 36, "1.76 MiB", sequences),
        stateful("kv_qsa_tail", "linear", 13, "39.00 KiB", sequences),
    ]


def after(plan: Json, before: Json, free: t.Sequence[str]) -> Json:
    """The boot that a plan leads to, with the settled free sizes given, card by card."""
    to = plan["to"]
    sequences = to["max_num_seqs"]
    made = ledger(
        weights_mib=to["weights_mib"],
        kv_mib=to["kv_mib"],
        flags={
            "max-num-seqs": str(sequences),
            "max-model-len": str(to["max_model_len"]),
            "kv-cache-dtype": to["kv_cache_dtype"],
            "num-speculative-tokens": str(to["num_speculative_tokens"]),
        },
        settled=[settled(card, text) for card, text in enumerate(free)],
        sampler={"rows": sequences * (to["num_speculative_tokens"] + 1)},
        fingerprint="ba9876543210",
    )
    made["kv"]["groups"] = kv_groups(sequences, to["kv_mib"])
    made["capacity"].update(sequences=sequences, tokens=to["max_model_len"])
    return {**made, "host_pool": before["host_pool"]}


def many(sequences: int, context: int, **more: t.Any) -> dict[str, t.Any]:
    """A boot of more and shorter sequences."""
    flags = {"max-num-seqs": str(sequences), "max-model-len": str(context)}
    boot = ledger(flags=flags, sampler={"rows": 3 * sequences}, **more)
    boot["kv"]["groups"] = kv_groups(sequences, more.get("kv_mib", 5120))
    return boot


def refusal(boot: dict[str, t.Any], request: dict[str, t.Any]) -> RadianceError:
    """Why a plan is refused."""
    with pytest.raises(RadianceError) as refused:
        make_plan(boot, request)
    return refused.value
