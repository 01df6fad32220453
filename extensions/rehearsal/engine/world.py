# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The world that the stand-in runs in: its cards, its model, its speeds. Every figure can be overridden by a file.

The defaults are chosen so that the operator's own figures hold at once; each is named in the README.
"""

from __future__ import annotations

import json
import pathlib
from dataclasses import asdict, dataclass, field, fields
from typing import Any


class WorldError(Exception):
    """A world file that cannot be used; the text names the file and the field."""


def _gpus() -> list[str]:
    return ["gfx1201", "gfx1201", "gfx1036"]


def _law() -> list[list[float]]:
    return [[22208, 3397], [24000, 3290], [25600, 3584], [26071, 4379]]


def _after() -> list[float]:
    return [19.0, 9.0]


@dataclass
class World:
    """Sizes are MiB unless the name says otherwise; rates are per second at ``serve_speedup`` 1."""

    version: str = "1.0.13"
    load_speedup: float = 1.0
    serve_speedup: float = 1.0
    load_seconds: float = 60.0
    stop_seconds: float = 1.0
    drain_seconds: float = 30.0
    # Devices by index. Those of another architecture than the first are ignored, as the engine does.
    gpus: list[str] = field(default_factory=_gpus)
    card_total_mib: float = 32624.0
    already_held_mib: float = 342.0
    arena_mib: float = 897.0
    staging_mib: float = 187.70
    # What each card allocates after the budget was resolved; the last one stands for all further cards.
    after_budget_mib: list[float] = field(default_factory=_after)
    static_region_mib: float = 113.19
    static_weights_mib: float = 42.4
    # The shape at which arena and staging have the sizes above.
    arena_rows: int = 9
    arena_tokens: int = 2048
    arena_mib_per_row: float = 0.4736
    arena_mib_per_token: float = 0.25
    staging_sequences: int = 3
    staging_context: int = 200000
    # The model.
    arch: str = "qwen4exp"
    quant: str = "fp8-iq4r"
    layers: int = 48
    trained_context: int = 262144
    vocabulary: int = 248320
    embedding: int = 2560
    container_gib: float = 72.4
    expert_units: int = 49 * 512
    shadow_slots: int = 32
    stage_slots: int = 8
    # A slot of five columns, in 4 KiB pages; a rank of two holds three or two of the five.
    slot_pages: tuple[int, int] = (419, 280)
    # Units of the small class that rank 1 takes before it goes on like rank 0.
    rank1_small_first: int = 245
    auto_drafts: int = 3
    # Speeds.
    prefill_law: list[list[float]] = field(default_factory=_law)
    decode_step_ms: float = 12.0
    decode_draft_ms: float = 4.0
    decode_more_sequences: float = 0.25
    bf16_decode_factor: float = 0.76
    draft_acceptance: float = 0.7
    # Answers, in tokens: where a reply ends by itself, and how long the model thinks on chat.
    reply_tokens: int = 256
    thinking_tokens: int = 96

    def prefill_tps(self, slab_mib: float) -> float:
        """Prompt tokens a second by the slab: linear between the arms, flat outside, at ``serve_speedup`` 1."""
        law = sorted((float(at), float(rate)) for at, rate in self.prefill_law)
        if slab_mib <= law[0][0]:
            return law[0][1]
        for (low, slow), (high, fast) in zip(law, law[1:]):
            if slab_mib <= high:
                return slow + (fast - slow) * (slab_mib - low) / (high - low)
        return law[-1][1]

    def after_budget(self, card: int) -> float:
        """MiB that a card allocates after the budget was resolved."""
        return self.after_budget_mib[min(card, len(self.after_budget_mib) - 1)]

    def used_devices(self) -> list[int]:
        """Device indexes of the first device's architecture."""
        return [index for index, gpu in enumerate(self.gpus) if gpu == self.gpus[0]]


def beside(model: str, kind: str) -> pathlib.Path:
    """The file of a kind that lies beside a model: ``NAME.world.json`` beside ``NAME.rad``."""
    path = pathlib.Path(model)
    return path.with_name(f"{path.stem}.{kind}.json")


def read_world(model: str) -> World:
    """The world beside a model; without the file, the default world."""
    path = beside(model, "world")
    try:
        given: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return World()
    except (OSError, ValueError) as error:
        raise WorldError(f"{path}: {error}") from error
    if not isinstance(given, dict):
        raise WorldError(f"{path}: a world is an object of fields, not {type(given).__name__}")
    known: dict[str, Any] = asdict(World())
    for name, value in given.items():
        if name not in known:
            raise WorldError(
                f"{path}: there is no field {name!r}; known are {', '.join(item.name for item in fields(World))}"
            )
        if not _same_kind(known[name], value):
            raise WorldError(f"{path}: {name} is {value!r}, but the default is {known[name]!r}")
    return World(**given)


def _same_kind(default: Any, value: Any) -> bool:
    if isinstance(default, (list, tuple)):
        return isinstance(value, list) and len(value) > 0
    if isinstance(default, (int, float)):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
    return isinstance(value, type(default))
