# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engine says about itself over HTTP: /version, /load, /stats, /server_info, /metrics."""

from __future__ import annotations

import os
import time
from typing import Any

from . import expert_slots, metrics
from .api_requests import MOST_STOP_BYTES, MOST_STOPS
from .command_line import AUTO
from .machine import Machine
from .scheduler import Scheduler
from .sizes import MIB, from_mib


class Introspection:
    """Reads a machine and its scheduler; every method gives one answer's body."""

    def __init__(self, machine: Machine, scheduler: Scheduler, endpoints: list[str]) -> None:
        self._machine = machine
        self._scheduler = scheduler
        self._endpoints = endpoints
        self._began = time.monotonic()
        name = os.path.basename(machine.flags.text("--model"))
        self.model = name[:-4] if name.endswith(".rad") else name

    def health(self, stopping: bool) -> dict[str, Any]:
        """/health and /ping."""
        status = "stopping" if stopping else "ok"
        return {
            "status": status,
            "model": self.model,
            "in_flight": self._in_flight,
            "queue_cap": self._machine.flags.queue_cap,
        }

    def version(self) -> dict[str, Any]:
        """/version."""
        return {"version": self._machine.world.release, "engine": "radiance", "abi_version": 13}

    def load(self) -> dict[str, Any]:
        """/load."""
        running, waiting = self._scheduler.load
        cap = self._machine.flags.queue_cap
        return {
            "server_load": round((running + waiting) / cap, 4),
            "queue_cap": cap,
            "running": running,
            "waiting": waiting,
        }

    def models(self) -> dict[str, Any]:
        """/v1/models."""
        row = {"id": self.model, "object": "model", "created": 0, "owned_by": "radiance", "max_model_len": self.context}
        return {"object": "list", "data": [row]}

    @property
    def context(self) -> int:
        """The longest prompt and reply together."""
        return self._machine.shape.context

    @property
    def _in_flight(self) -> int:
        return sum(self._scheduler.load)

    @property
    def _uptime(self) -> float:
        return round(time.monotonic() - self._began, 3)

    def stats(self) -> dict[str, Any]:
        """/stats."""
        machine, world = self._machine, self._machine.world
        slots = machine.slots[0]
        busy = self._in_flight > 0
        idle = 0 if busy else machine.lendable()
        cards = [
            {
                "index": card,
                "name": world.gpus[card],
                "vram_used": from_mib(world.card_total(card)) - machine.settled(rank),
                "vram_total": from_mib(world.card_total(card)),
            }
            for rank, card in enumerate(machine.devices)
        ]
        return {
            "model": self.model,
            "version": world.release,
            "uptime_s": self._uptime,
            "in_flight": self._in_flight,
            "queue_cap": machine.flags.queue_cap,
            **self._scheduler.snapshot(self.context),
            "cards": cards,
            **({} if world.dense else self._experts(slots, idle)),
        }

    def _experts(self, slots: expert_slots.RankSlots, idle: int) -> dict[str, Any]:
        machine, world = self._machine, self._machine.world
        return {
            "experts": {
                "n_units": expert_slots.total_slots(world),
                "bytes": expert_slots.expert_ceiling(world, machine.tp),
                "movable": True,
                "tiers": [
                    {"name": "vram", "units": slots.slab, "bytes": slots.slab_bytes},
                    {"name": "host", "units": slots.pool, "bytes": slots.pool_bytes},
                ],
                "flex_bytes": idle,
                "flex_capacity": expert_slots.lendable(machine.lendable(), world, machine.tp),
            },
        }

    def server_info(self) -> dict[str, Any]:
        """/server_info; the engine's part is of the time of its start."""
        machine, world, flags = self._machine, self._machine.world, self._machine.flags
        default = flags.text("--default-max-tokens")
        lossy = machine.tp > 1 and flags.text("--tp-wire") == "wht6"
        groups: list[dict[str, Any]] = []
        for group in machine.kv.groups:
            row: dict[str, Any] = {"name": group.name, "kind": group.kind, "n_layers": group.layers}
            if group.paged:
                blocks = machine.kv.blocks(machine.split.kv_pool)
                size = machine.kv.block_tokens
                row.update(bytes=blocks * group.page, block_size=size, blocks=blocks, tokens=machine.kv_tokens)
            else:
                row.update(bytes=group.page * group.slots, states=group.slots)
            groups.append(row)
        return {
            "server": {
                "model": self.model,
                "version": world.release,
                "max_model_len": self.context,
                "max_num_seqs": machine.shape.sequences,
                "queue_cap": flags.queue_cap,
                "default_max_tokens": int(default) if default != AUTO else None,
                "max_tokens_cap": flags.number("--max-tokens-cap") or None,
                "max_n": flags.max_n,
                "max_stop_strings": MOST_STOPS,
                "max_stop_bytes": MOST_STOP_BYTES,
                "uptime_s": self._uptime,
                "in_flight": self._in_flight,
            },
            "request_defaults": {},
            "capabilities": {
                "chat": world.chat_template,
                "completions": True,
                "embeddings": False,
                "tools": world.chat_template,
                "reasoning": world.chat_template,
                "streaming": True,
                "logprobs": world.rules.llama_fields,
            },
            "endpoints": self._endpoints,
            "engine": {
                "arch": world.arch,
                "quant": world.quant,
                "n_layers": world.layers,
                "n_embd": world.embedding,
                "n_vocab": world.vocabulary,
                "n_ctx_train": world.trained_context,
                "container": flags.text("--model"),
                "tensor_parallel": machine.tp,
                "tp_wire": "n/a" if machine.tp == 1 else "wht6" if lossy else "exact",
                "tp_wire_min_kb": flags.number("--tp-wire-min-kb"),
                "max_num_batched_tokens": flags.number("--max-num-batched-tokens"),
                "placement": flags.text("--placement"),
                "prefix_cache": "--no-prefix-cache" not in flags.switches,
                "checkpoint_slots": machine.kv.checkpoint_slots - machine.withdrawn,
                "deterministic": "--deterministic" in flags.switches,
                "devices": [
                    {
                        "rank": rank,
                        "device": card,
                        "name": world.gpu_name,
                        "arch": world.gpus[card],
                        "vram_bytes": from_mib(world.card_total(card)),
                        "vram_free": machine.settled(rank),
                    }
                    for rank, card in enumerate(machine.devices)
                ],
                "ops": 2231,
                "weights": 1187,
                "kv_groups": groups,
                "speculation": {
                    "enabled": machine.shape.drafts > 0,
                    "drafter": "mtp" if machine.shape.drafts else None,
                    "kind": "serial",
                    "depth": machine.shape.drafts,
                },
            },
        }

    def metrics(self) -> str:
        """/metrics."""
        return metrics.text(self.model, self._scheduler.snapshot(self.context), self._scheduler.counters)

    def sessions(self) -> dict[str, Any]:
        """/sessions: who holds the pool, and what lies in the tiers."""
        stats, kv = self._scheduler.snapshot(self.context), self._machine.kv
        tiers = self._scheduler.tiers.snapshot()
        return {
            "pool": {
                "tokens_used": stats["kv_tokens_used"] + stats["kv_tokens_cached"],
                "tokens_total": stats["kv_tokens_total"],
                "unshared_tokens": stats["kv_tokens_used"],
                "bytes_used": stats["kv_bytes_used"],
                "bytes_total": stats["kv_bytes_total"],
            },
            "snapshots_moved": {
                "host_slots": tiers[0]["entries"] if kv.snapshot else 0,
                "disk_slots": tiers[1]["entries"] if kv.snapshot else 0,
                "bytes_each": kv.stride if kv.snapshot else 0,
            },
            "tiers": tiers,
            "occupancy": [
                {"id": row["id"], "state": row["state"], "tokens": row["kv_tokens"]} for row in stats["requests"]
            ],
        }

    def tokenizer_info(self) -> dict[str, Any]:
        """/get_tokenizer_info."""
        return {
            "tokenizer_class": "rehearsal",
            "vocab_size": self._machine.world.vocabulary,
            "model_max_length": self.context,
            "bos_token_id": 248044,
            "eos_token_id": 248046,
            "chat_template": "rehearsal" if self._machine.world.chat_template else None,
        }

    def graph(self) -> dict[str, Any]:
        """/graph: the layers, and no more of them than their count."""
        return {"model": self.model, "arch": self._machine.world.arch, "layers": self._machine.world.layers}

    def shutdown_line(self) -> str:
        """What the mover says at exit."""
        steps = int(self._scheduler.totals["steps"])
        staged = steps * self._machine.slots[0].pool // 100
        moved = staged * expert_slots.mean_slot(self._machine.world, self._machine.tp) / (1024 * MIB)
        return (
            f"mover: {steps * self._machine.world.layers} dispatches, {steps} promotions, {steps} demotions, {staged} "
            f"staged ({moved:.2f} GiB h2d, {0.0:.2f} GiB d2h)"
        )
