# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults by name: what each does, what its number means, and how several are written together.

A fault is ``name`` or ``name:number``; several that hit one boot together are joined by ``+``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# name: (default number, what it does). In the refusals, the number is the rank that refuses.
REFUSALS: dict[str, tuple[float, str]] = {
    "no_device": (0, "no usable device"),
    "too_few_devices": (0, "one device fewer than ranks"),
    "no_dimensions": (0, "the container carries no dimensions"),
    "plugins_missing": (0, "the plug-ins do not load"),
    "no_kernel": (0, "a device band has no kernel"),
    "weights_unservable": (0, "weights in a form that is not served"),
    "declare_refused": (0, "the plug-in refuses to declare"),
    "short_by": (0, "SHORT BY: something else sits on the card"),
    "over_by": (0, "OVER BY: the card is smaller than the two pools"),
    "empty_pools": (0, "both pools resolve to 0 MiB"),
    "pool_refused": (0, "a reservation in a pool is refused"),
    "did_not_fit": (0, "the experts fit neither pool"),
    "slab_refused": (0, "no VRAM for the slab"),
    "host_pool_refused": (0, "no pinned host memory"),
    "weights_left_short": (0, "the slab took what the statics need"),
    "statics_refused": (0, "no VRAM for the static weights"),
    "chunk_refused": (0, "the step is smaller than the chunk geometry needs"),
    "interval_refused": (0, "the checkpoint interval is no multiple of the block"),
    "kv_short": (0, "vram_kv does not fit its fixed costs"),
    "kv_no_blocks": (0, "the pool leaves no block"),
    "kv_group_refused": (0, "a KV group does not fit"),
    "checkpoint_refused": (0, "a checkpoint slot does not fit"),
    "carve_refused": (0, "the card does not back the carve"),
    "bind_refused": (0, "the port cannot be bound"),
}
BOOT: dict[str, tuple[float, str]] = {
    "settle_short": (60, "every card settles this many MiB under the floor, and serves"),
    "one_card_short": (60, "the last card settles this many MiB under the floor, the others do not"),
    "never_ready": (0, "loads to 62 % and stays there"),
    "slow_boot": (10, "loads this many times slower"),
    "crash_after_table": (0, "dies (exit 70) right after the budget table"),
    "other_pair": (512, "boots with this many MiB less of weights than asked"),
    "hold_memory": (5, "holds its memory for this many seconds after its end"),
}
ODDITIES: dict[str, tuple[float, str]] = {
    "ranks_reversed": (0, "the lines of the last rank come first"),
    "plugin_shadowed": (0, "a plug-in comes twice on the search path"),
    "arena_level_missing": (0, "there is no level for small steps"),
    "arena_unbound": (0, "no arena level binds, so the arena lends nothing"),
    "pageable": (0, "pageable host memory for the units that no tier could hold"),
    "no_pinned_tier": (0, "no pinned memory for the host tier, which is off"),
    "no_pinned_snapshots": (0, "no pinned memory for the snapshots of the host tier"),
}
SERVING: dict[str, tuple[float, str]] = {
    "lose_marker": (0, "answers leave the last of their markers out"),
    "foreign_marker": (0, "answers carry another request's marker"),
    "truncate_prompt": (0, "prompts are cut to this many tokens (0: half the context), and none is refused"),
    "null_timings": (0, "timings are null"),
    "null_rates": (0, "every field of timings is null"),
    "no_timings": (0, "there are no timings"),
    "wrong_timings": (10, "timings are this many times too short"),
    "serve_one": (0, "one request runs at a time"),
    "spill": (14000, "from the first long prompt on, this many MiB lie in GTT and decode is slow"),
    "garbage": (0, "after the first long prompt, answers are garbage"),
    "unavailable": (3, "503 for this many seconds after it listens"),
    "queue_full": (3, "429 for this many requests"),
    "slow_drip": (100, "answers drip out in pieces, this many milliseconds apart"),
    "fail_midway": (8, "every answer fails after this many tokens"),
    "crash_under_load": (0, "dies (exit 70) as soon as this many requests run (0: all that may)"),
}
KNOWN = {**REFUSALS, **BOOT, **ODDITIES, **SERVING}
_ALIASES = {"refuse_boot": "short_by"}
# Written as one name, it is as many boots in a row.
CRASH_LOOP = "crash_loop"
_LOOPS = 3


@dataclass(frozen=True)
class Hits:
    """The faults that hit one boot, each with its number."""

    numbers: dict[str, float] = field(default_factory=dict)

    def __contains__(self, name: object) -> bool:
        return name in self.numbers

    def number(self, name: str) -> float:
        """The number of a fault that hits."""
        return self.numbers[name]

    def whole(self, name: str) -> int:
        """The same, in whole units."""
        return int(self.numbers[name])


def names() -> list[str]:
    """Every name that may be written."""
    return [*_ALIASES, *KNOWN, CRASH_LOOP]


def hits(item: str | None) -> Hits:
    """The faults of one item of the list; ValueError for a name or a number that is none."""
    found: dict[str, float] = {}
    for part in item.split("+") if item else []:
        name, colon, number = part.partition(":")
        name = _ALIASES.get(name, name)
        if name not in KNOWN:
            raise ValueError(name)
        found[name] = float(number) if colon else KNOWN[name][0]
    return Hits(found)


def boots(item: str) -> list[str]:
    """What one item means, boot by boot: a crash loop is several; ValueError as in ``hits``."""
    name, colon, number = item.partition(":")
    if name == CRASH_LOOP:
        return ["crash_after_table"] * (int(number) if colon else _LOOPS)
    hits(item)
    return [item]
