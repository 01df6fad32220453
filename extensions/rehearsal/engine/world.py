# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The world that the stand-in runs in: its cards, its model, its speeds. Every figure can be overridden by a file.

The defaults are chosen so that the operator's own figures hold at once; each is named in the README.
"""

from __future__ import annotations

import pathlib
from dataclasses import dataclass, field, replace

from .kv_arithmetic import Dimensions
from .releases import DEFAULT, Release


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

    # For a person: what this world is, and a command line that boots in it. The engine reads neither.
    about: str = ""
    flags: str = ""
    release: str = DEFAULT
    load_speedup: float = 1.0
    serve_speedup: float = 1.0
    load_seconds: float = 60.0
    stop_seconds: float = 1.0
    drain_seconds: float = 30.0
    # Devices by index. Those of another architecture than the first are ignored, as the engine does.
    gpus: list[str] = field(default_factory=_gpus)
    gpu_name: str = "AMD Radeon AI PRO R9700"
    card_total_mib: float = 32624.0
    already_held_mib: float = 342.0
    # The same for each device by its index, where they differ.
    card_totals_mib: list[float] = field(default_factory=list)
    cards_held_mib: list[float] = field(default_factory=list)
    arena_mib: float = 897.0
    staging_mib: float = 187.70
    # What each card allocates after the budget was resolved; the last one stands for all further cards.
    after_budget_mib: list[float] = field(default_factory=_after)
    static_region_mib: float = 113.19
    static_weights_mib: float = 42.4
    # Graphics without memory of their own keep an eighth of the host's.
    integrated: bool = False
    host_ram_mib: float = 131072.0
    virtual_memory: bool = True
    returns_memory: bool = True
    # Keep files in the shape of sysfs beside the model: NAME.cards/card0/device/mem_info_vram_used and so on.
    sysfs: bool = False
    # The shape at which arena and staging have the sizes above.
    arena_rows: int = 9
    arena_tokens: int = 2048
    arena_mib_per_row: float = 0.4736
    arena_mib_per_token: float = 0.25
    arena_levels: bool = True
    staging_sequences: int = 3
    staging_context: int = 200000
    # The model. No expert units are a dense model.
    arch: str = "qwen4exp"
    quant: str = "fp8-iq4r"
    layers: int = 48
    trained_context: int = 262144
    vocabulary: int = 248320
    embedding: int = 2560
    chat_template: bool = True
    draft_head: bool = True
    container_gib: float = 72.4
    cache: Dimensions = field(default_factory=Dimensions)
    expert_units: int = 49 * 512
    experts_a_layer: int = 512
    shadow_slots: int = 32
    stage_slots: int = 8
    # A slot of five columns, in 4 KiB pages; a rank of two holds three or two of the five.
    expert_columns: int = 5
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
    # A line in the log for each request, also in a release that has none.
    request_log: bool = False

    def prefill_tps(self, slab_mib: float) -> float:
        """Prompt tokens a second by the slab: linear between the arms, flat outside, at ``serve_speedup`` 1."""
        law = sorted((float(at), float(rate)) for at, rate in self.prefill_law)
        if slab_mib <= law[0][0]:
            return law[0][1]
        for (low, slow), (high, fast) in zip(law, law[1:]):
            if slab_mib <= high:
                return slow + (fast - slow) * (slab_mib - low) / (high - low)
        return law[-1][1]

    @property
    def rules(self) -> Release:
        """What its release does."""
        return Release(self.release)

    @property
    def dense(self) -> bool:
        """Whether the model has no experts."""
        return self.expert_units == 0

    def after_budget(self, card: int) -> float:
        """MiB that a card allocates after the budget was resolved."""
        return self.after_budget_mib[min(card, len(self.after_budget_mib) - 1)]

    def card_total(self, card: int) -> float:
        """MiB of a card."""
        return self.card_totals_mib[card] if card < len(self.card_totals_mib) else self.card_total_mib

    def card_held(self, card: int) -> float:
        """MiB of a card that something else holds before the boot."""
        return self.cards_held_mib[card] if card < len(self.cards_held_mib) else self.already_held_mib

    def used_devices(self) -> list[int]:
        """Device indexes of the first device's architecture."""
        return [index for index, gpu in enumerate(self.gpus) if gpu == self.gpus[0]]

    def seen_through(self, visible: str | None) -> World:
        """The world as a process sees it whose environment names the visible devices: ``0,2``.

        What is no index of a device ends the list, as the runtime does it.
        """
        if visible is None:
            return self
        chosen: list[int] = []
        for item in visible.split(","):
            if not item.strip().isdigit() or int(item) >= len(self.gpus):
                break
            chosen.append(int(item))
        return replace(
            self,
            gpus=[self.gpus[index] for index in chosen],
            card_totals_mib=[self.card_total(index) for index in chosen],
            cards_held_mib=[self.card_held(index) for index in chosen],
            after_budget_mib=[self.after_budget(index) for index in chosen] or self.after_budget_mib,
        )


def beside(model: str, kind: str) -> pathlib.Path:
    """The file of a kind that lies beside a model: ``NAME.world.json`` beside ``NAME.rad``."""
    path = pathlib.Path(model)
    return path.with_name(f"{path.stem}.{kind}.json")
