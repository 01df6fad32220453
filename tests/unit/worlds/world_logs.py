# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boots of the rehearsal engine in random worlds, in this process: what each prints, and the figures behind it."""

from __future__ import annotations

import pathlib
import random
import re
import typing as t

from engine import expert_slots
from engine.boot import Boot, Crashed, Refused
from engine.budget_report import backing
from engine.command_line import parse
from engine.fault_names import hits
from engine.log import Log
from engine.machine import Machine, resolve
from engine.random_worlds import random_world
from engine.sizes import MIB
from engine.world import World

# A path of the ledger to a figure: text and bools and counts as they are, sizes in MiB, shares with their rounding.
Figures = dict[tuple[t.Any, ...], t.Any]
MODEL = str(pathlib.Path(__file__))
ODDITIES = ("ranks_reversed", "plugin_shadowed", "arena_level_missing", "arena_unbound", "pageable")
SHORTAGES = ("settle_short", "one_card_short:300", "no_pinned_tier", "no_pinned_snapshots")
EXTRAS = (
    "--debug-placement",
    "--deterministic",
    "--no-prefix-cache",
    "--prefix-cache-host-mib 4096",
    "--checkpoint-interval 512",
    "--gpu-headroom-mib 160",
    "-v",
)


class Mib(t.NamedTuple):
    """A size in MiB, whose print rounds it."""

    mib: float


class Share(t.NamedTuple):
    """A share, and half a unit of its last printed digit."""

    value: float
    plus_minus: float


class Printed(t.NamedTuple):
    """One boot: its log, how it ended (``up``, ``refused``, ``crashed``), its flags, and what it had resolved."""

    text: str
    how: str
    flags: dict[str, str]
    machine: Machine


class _Kept(Log):
    """The engine's log, kept instead of written."""

    def __init__(self) -> None:
        super().__init__(None)
        self.data: list[bytes] = []

    def _put(self, data: bytes) -> None:
        self.data.append(data)


def boot_of(seed: int) -> Printed:
    """The boot of a seed: every second is that of a random world as it is, the others are varied in all that can be."""
    chance = random.Random(f"boot {seed}")
    world = random_world(seed)
    if seed % 2:
        return boot_in(world, world.flags)
    flags = world.flags
    world.release = chance.choice(("1.0.5", "1.0.13", "1.2.4", "1.3.0"))
    for flag in ("--vram-weights-mib", "--vram-kv-mib"):
        if world.release == "1.3.0" or chance.random() < 0.4:
            flags = re.sub(rf" {flag} \d+", "", flags)
    flags += "".join(f" {extra}" for extra in EXTRAS if chance.random() < 0.2)
    world.integrated, world.host_ram_mib = chance.random() < 0.2, 4096.0
    world.virtual_memory = chance.random() < 0.8
    world.returns_memory = chance.random() < 0.8
    world.chat_template = chance.random() < 0.8
    odd = [name for name in ODDITIES if chance.random() < 0.2]
    odd += [chance.choice(SHORTAGES)] if chance.random() < 0.4 else []
    return boot_in(world, flags, "+".join(odd))


def boot_in(world: World, flags: str, faults: str = "") -> Printed:
    """One boot in a world with these flags; the lines of serving are printed as by an engine that got its port."""
    world.load_speedup = 1e12
    parsed = parse(["--model", MODEL, *flags.split()], world.rules)
    log = _Kept()
    log.ranks = parsed.number("--tp")
    log.level = 3 if "-v" in parsed.switches else 2
    machine = resolve(world, parsed, hits(faults or None))
    how = "up"
    try:
        Boot(machine, log).run()
        log.info("serving on http://127.0.0.1:8000  (/v1/completions; /v1/chat/completions with tools and reasoning)")
        log.info("server: listening on http://127.0.0.1:8000 (16 threads, up to 72)")
    except Refused:
        how = "refused"
    except Crashed as crash:
        how = "crashed"
        log.fatal(str(crash))
    stated = dict(re.findall(r"--([a-z-]+) ([^-]\S*)", flags))
    return Printed(b"".join(log.data).decode(), how, stated, machine)


def truth(machine: Machine, with_flags: bool) -> Figures:
    """Every figure that a complete ledger of this boot may carry."""
    split, world = machine.split, machine.world
    figures: Figures = {
        ("tp",): machine.tp,
        ("devices", "used"): sorted(machine.devices),
        ("devices", "ignored"): [card for card in range(len(world.gpus)) if card not in machine.devices],
        ("model", "name"): pathlib.Path(MODEL).name,
        ("model", "arch"): world.arch,
        ("model", "quant"): world.quant,
        ("model", "layers"): world.layers,
        ("model", "trained_context"): world.trained_context,
        ("budget", "weights"): "stated" if split.card.stated_weights else "derived",
        ("budget", "kv"): "stated" if split.card.stated_kv else "derived",
        ("pair", "weights_mib"): Mib(split.weights_pool / MIB),
        ("pair", "kv_mib"): Mib(split.kv_pool / MIB),
        ("pair", "exact"): with_flags and split.both_stated,
        ("sampler", "rows"): machine.rows,
        ("chunk", "prefill_tokens"): machine.chunk,
        ("chunk", "bound_by"): _bound_by(machine),
    }
    lossy = machine.tp > 1 and machine.flags.text("--tp-wire") == "wht6"
    figures["wire", "mode"] = "wht6" if lossy else "exact"
    figures["wire", "exact_rows"] = machine.exact_rows if lossy else None
    for name, size in _rows(machine).items():
        figures["budget", "rows", name] = None if size is None else Mib(size / MIB)
    for key, value in _capacity(machine).items():
        figures["capacity", key] = value
    return {**figures, **_of_ranks(machine), **_of_kv(machine)}


def _bound_by(machine: Machine) -> str:
    budget = machine.flags.number("--max-num-batched-tokens")
    return "checkpoint_interval" if machine.interval < budget else "budget"


def _rows(machine: Machine) -> dict[str, int | None]:
    split = machine.split
    card = split.card
    return {
        "card_total": card.total,
        "already_held": card.held,
        "activation_arena": card.arena,
        "step_staging": card.staging,
        "headroom": card.headroom,
        "claimable": split.claimable,
        "static_weights": card.statics,
        "elastic": split.elastic,
        "experts": split.experts,
        "kv_cache": split.kv,
        "unusable": split.unusable or None,
        "prefill_staging": split.staging_buffers or None,
        "vram_weights": split.weights_pool,
        "vram_kv": split.kv_pool,
        "unclaimed": split.unclaimed,
    }


def _capacity(machine: Machine) -> dict[str, t.Any]:
    percent, sessions = backing(machine)
    full = machine.split.kv >= machine.kv.ceiling
    return {
        "sequences": machine.shape.sequences,
        "tokens": machine.shape.context,
        "full": full,
        "backing_percent": None if full else Share(percent, 0.5),
        "full_length_sessions": None if full else Share(sessions, 0.05),
    }


def _of_ranks(machine: Machine) -> Figures:
    figures: Figures = {}
    world, host = machine.world, machine.flags.number("--host-pool-mib") * MIB
    old = world.rules.old_settled_lines
    for rank, slots in enumerate(machine.slots):
        slab: tuple[t.Any, ...] = ("slab", rank)
        figures[(*slab, "slots")] = slots.slab
        figures[(*slab, "shadow_slots")] = slots.shadow
        figures[(*slab, "pool_slots")] = slots.pool
        figures[(*slab, "static")] = Mib(machine.split.card.statics / MIB)
        figures["host_pool", rank, "budget"] = Mib(host / MIB)
        figures["host_pool", rank, "used"] = Mib(slots.pool_bytes / MIB)
        figures["host_pool", rank, "free"] = Mib(max(0, host - slots.pool_bytes) / MIB)
        card = machine.devices[rank]
        figures["settled", card, "free"] = Mib(machine.settled(rank) / MIB)
        figures["settled", card, "floor"] = Mib(machine.floor / MIB)
        figures["settled", card, "headroom"] = Mib(machine.headroom / MIB)
        figures["settled", card, "static_region"] = None if old else Mib((machine.floor - machine.headroom) / MIB)
    levels = [] if "arena_unbound" in machine.hits else machine.arena_levels()
    if not world.dense and world.virtual_memory:
        lent = {"kv_cache": machine.lendable()}
        if levels:
            lent["activation_arena"] = machine.split.card.arena - levels[-1][1]
        for name, size in lent.items():
            for number in range(machine.tp):
                figures["lent", name, number, "slots"] = expert_slots.lendable(size, world, machine.tp)
                figures["lent", name, number, "size"] = Mib(size / MIB)
    return figures


def _of_kv(machine: Machine) -> Figures:
    kv, figures = machine.kv, t.cast("Figures", {})
    blocks = kv.blocks(machine.split.kv_pool)
    for group in kv.groups:
        count = blocks if group.paged else group.slots
        whole: dict[str, t.Any] = {
            "kind": group.kind,
            "layers": group.layers,
            "block_tokens": kv.block_tokens if group.paged else None,
            "page": Mib(group.page / MIB) if group.paged else None,
            "blocks": blocks if group.paged else None,
            "tokens": blocks * kv.block_tokens if group.paged else None,
            "state": None if group.paged else Mib(group.page / MIB),
            "slots": None if group.paged else group.slots,
            "size": Mib(count * group.page / MIB),
        }
        for key, value in whole.items():
            figures["kv", group.name, key] = value
    slots, gone = kv.checkpoint_slots, machine.withdrawn
    kept = kv.snapshot > 0  # a state to keep; the row is printed even for no slots at all
    figures["checkpoints", "slots"] = slots if kept else None
    figures["checkpoints", "each"] = Mib(kv.stride / MIB) if kept else None
    figures["checkpoints", "size"] = Mib(slots * kv.stride / MIB) if kept else None
    figures["checkpoints", "backed"] = slots - gone if gone else None
    return figures


def told(ledger: dict[str, t.Any]) -> Figures:
    """The same figures as a ledger tells them; a size is the ledger's own ``{mib, plus_minus_mib, text}``."""
    figures: Figures = {("tp",): ledger["tp"]}
    for part in ("devices", "model", "pair", "sampler", "chunk", "wire", "capacity"):
        for key, value in ledger[part].items():
            figures[part, key] = value
    for key in ("weights", "kv"):
        figures["budget", key] = ledger["budget"][key]
    for name, row in ledger["budget"]["rows"].items():
        figures["budget", "rows", name] = row
    for part, index in (("slab", "rank"), ("host_pool", "rank"), ("settled", "card")):
        for row in ledger[part]:
            for key, value in row.items():
                if key not in (index, "line"):
                    figures[part, row[index], key] = value
    seen: dict[str, int] = {}
    for row in ledger["lent"]:
        number = seen[row["from"]] = seen.get(row["from"], -1) + 1
        figures["lent", row["from"], number, "slots"] = row["slots"]
        figures["lent", row["from"], number, "size"] = row["size"]
    for group in ledger["kv"]["groups"]:
        for key, value in group.items():
            if key != "name":
                figures["kv", group["name"], key] = value
    for key, value in ledger["kv"]["checkpoints"].items():
        figures["checkpoints", key] = value
    return figures


def agrees(true: t.Any, said: t.Any) -> bool:
    """Whether a told figure is the true one, within its own printed rounding."""
    if isinstance(true, Mib):
        if isinstance(said, dict):
            return bool(abs(said["mib"] - true.mib) <= said["plus_minus_mib"] + 1e-6)
        # The pair: whole MiB where the flags tell it, else as printed in GiB.
        return isinstance(said, (int, float)) and abs(said - true.mib) <= (0 if isinstance(said, int) else 5.12 + 1e-6)
    if isinstance(true, Share):
        return isinstance(said, float) and abs(said - true.value) <= true.plus_minus + 1e-9
    return bool(true == said)


NOTHING = "nothing"


def wrong(true: Figures, said: Figures) -> dict[tuple[t.Any, ...], tuple[t.Any, t.Any]]:
    """What a ledger tells otherwise than it was, or does not tell: {path: (true, told)}."""
    return {
        path: (true.get(path, NOTHING), said.get(path, NOTHING))
        for path in sorted({*true, *said}, key=repr)
        if not agrees(true.get(path, NOTHING), said.get(path, NOTHING))
    }
