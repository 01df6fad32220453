# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of the budget report, of the pools and of their refusals."""

from __future__ import annotations

from .card_split import Split
from .machine import Machine
from .sizes import MIB, humanb

_RULE = "------------------------------"
_UNDER_A_NOTE = " " * 34


def _row(name: str, size: int, *notes: str) -> str:
    """A row of a report; its notes stand under each other."""
    head = f"  {name:<18} {humanb(size):>10}"
    return head + "   " + f"\n{_UNDER_A_NOTE}".join(notes) if notes else head


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.0f}% of it"


def backing(machine: Machine) -> tuple[float, float]:
    """(percent of the worst case, full-length sessions) that the pool backs."""
    kv, pool = machine.kv, machine.split.kv or machine.split.kv_pool
    worst = kv.ceiling - kv.fixed
    percent = 100 * max(0, pool - kv.fixed) / worst if worst else 0.0
    return percent, percent / 100 * machine.shape.sequences


def _cache_notes(machine: Machine) -> tuple[str, ...]:
    shape, split = machine.shape, machine.split
    share = _share(split.kv, split.elastic)
    if machine.kv.ceiling <= 0:
        return (share,)
    if split.kv >= machine.kv.ceiling:
        return (
            f"{share} -- backs {shape.sequences} sequences all at {shape.context} tokens at once, which is the worst "
            "case and",
            "more would be unusable",
        )
    percent, sessions = backing(machine)
    return (
        f"{share} -- {percent:.0f}% backing of the {shape.sequences} x {shape.context} worst case: {sessions:.1f} "
        "full-length",
        "sessions. With prefix caching a finished sequence's blocks stay held",
        "for reuse, so the demand is LIVE SESSIONS and not running requests",
    )


def _experts_notes(machine: Machine) -> tuple[str, ...]:
    split = machine.split
    share = _share(split.experts, split.elastic)
    if machine.world.dense:
        return (
            f"{share} -- a dense model, so there is no expert plane for this share to fill and the",
            "cache took everything it could address",
        )
    resident = split.experts >= split.card.expert_ceiling
    return (share + (" -- the whole expert plane is resident, so more would do nothing" if resident else ""),)


def budget(machine: Machine) -> str:
    """The report ``VRAM budget, per card``."""
    split = machine.split
    card = split.card
    derived_weights = not card.stated_weights
    statics = "off the top: every rank's own shard, and not a share of anything"
    if not derived_weights:
        statics = "(not charged here -- --vram-weights-mib was stated)"
    reserve = ("--gpu-headroom-mib", "left unclaimed on purpose")
    if machine.world.integrated:
        stated = "; --vram-kv-mib states a pool outright" if machine.world.rules.pair else ""
        reserve = ("left to the host", f"integrated graphics: this memory is the host's{stated}")
    divides = "what the experts and the cache divide"
    if card.ratio is not None:
        divides = f"what --expert-vs-cache-ratio {card.ratio:.2f} divides"
    rows = [
        "VRAM budget, per card:",
        _row("card total", card.total),
        _row("already held", card.held, "measured: driver context, code objects, anything else resident"),
        _row("activation arena", card.arena, "computed from the buffer plan"),
        _row("step staging", card.staging, "the step batch's block tables and media staging"),
        _row(reserve[0], card.headroom, reserve[1]),
        f"  {_RULE}",
        _row("claimable", split.claimable),
        _row("static weights", card.statics, statics),
        f"  {_RULE}",
        _row("elastic", split.elastic, divides),
        _row("  experts", split.experts, *_experts_notes(machine)),
        _row("  kv cache", split.kv, *_cache_notes(machine)),
    ]
    if split.unusable > 0:
        rows.append(_row("  unusable", split.unusable, "neither side could take it: both are at their ceiling"))
    if split.staging_buffers > 0:
        rows.append(
            _row(
                "  prefill staging",
                split.staging_buffers,
                "out of the experts: two buffers of one layer's non-resident experts,",
                "at the arena's top and lent back to the slab while steps are small",
            )
        )
    rows += [
        "  ==============================",
        _row(
            "vram_weights",
            split.weights_pool,
            "static + experts" if derived_weights else "stated by --vram-weights-mib",
        ),
        _row("vram_kv", split.kv_pool, "stated by --vram-kv-mib" if card.stated_kv else "the cache's share"),
        _row(
            "unclaimed", split.unclaimed, "the headroom, the unusable above, and what MiB rounding", "could not place"
        ),
    ]
    return "\n".join(rows)


def derived_kv(machine: Machine) -> str:
    """The sentence that precedes the report where the KV pool was derived."""
    percent, sessions = backing(machine)
    shape = machine.shape
    return (
        f"kv: the pool backs {percent:.0f}% of the worst case ({shape.sequences} sequences all at {shape.context} "
        f"tokens), {sessions:.1f} full-length sessions. That is concurrency at length before the scheduler preempts, "
        "not a bound on any one request. WITH PREFIX CACHING a finished sequence's blocks stay held so the next "
        "turn can reuse them, so the demand is live SESSIONS and not running requests -- when they do not all fit, "
        "the cache evicts prefixes the next turn wanted and that turn re-prefills its whole context."
        + (" --expert-vs-cache-ratio moves it." if machine.world.rules.ratio else "")
    )


def short_by(split: Split) -> str:
    """The refusal of a card that does not cover its fixed costs."""
    card = split.card
    rows = [
        "VRAM does not cover the fixed costs before a single pool is sized:",
        _row("card total", card.total),
        _row("already held", card.held, "(driver context, code objects, anything else on the card)"),
        _row("--gpu-headroom-mib", card.headroom),
        _row("activation arena", card.arena, "(buffer plan + kernel scratch)"),
        _row("step staging", card.staging, "(block tables + media staging)"),
    ]
    if card.stated_weights:
        rows.append(_row("--vram-weights-mib", card.stated_weights, "(stated)"))
    if card.stated_kv:
        rows.append(_row("--vram-kv-mib", card.stated_kv, "(stated)"))
    rows += [
        f"  {_RULE}",
        _row("SHORT BY", -split.claimable),
        "Lower --gpu-headroom-mib, lower --max-num-batched-tokens (the arena scales with it), or free the card.",
    ]
    return "\n".join(rows)


def over_by(split: Split) -> str:
    """The refusal of two stated pools that together pass the card."""
    card = split.card
    total = card.stated_weights + card.stated_kv

    def row(name: str, size: int) -> str:
        return f"  {name:<14} {humanb(size):>10}"

    return "\n".join(
        [
            "VRAM budgets do not fit:",
            row("vram_weights", card.stated_weights),
            row("vram_kv", card.stated_kv),
            "  ------------------------",
            row("total", total),
            row("card total", card.total),
            row("OVER BY", total - card.total),
            "Lower --vram-weights-mib / --vram-kv-mib, or raise --gpu-headroom-mib and let --expert-vs-cache-ratio "
            "split what is left. The split is yours to make; the engine will not make it for you (spec §6).",
        ]
    )


def empty_pools(split: Split, both: bool = False) -> str:
    """The refusal of a card on which a pool came out empty, or ``both``."""
    weights, kv = (0, 0) if both else (split.weights_pool // MIB, split.kv_pool // MIB)
    return (
        "VRAM pool budgets are empty -- state --vram-weights-mib / --vram-kv-mib, or let the card be split by "
        f"--gpu-headroom-mib and --expert-vs-cache-ratio:\n  vram_weights resolved to {weights} MiB\n"
        f"  vram_kv resolved to {kv} MiB\n"
    )


def statics_too_large(split: Split) -> str | None:
    """The warning of a card that the static weights fill by themselves."""
    card = split.card
    if card.stated_weights or split.elastic >= 0:
        return None
    return (
        f"the static (non-expert) weights alone want {humanb(card.statics)} of the {humanb(split.claimable)} this card "
        "has to give. Every expert will stream from host memory and the KV cache has nothing left -- lower "
        "--gpu-headroom-mib"
    )


def slack(split: Split) -> str | None:
    """The warning of two stated pools that leave 1 GiB or more of the card."""
    if not split.both_stated:
        return None
    total, card = split.weights_pool + split.kv_pool, split.card.total
    if card - total < 1024 * MIB:
        return None
    return (
        f"VRAM budgets total {humanb(total)} of the card's {humanb(card)}, so {humanb(card - total)} is neither "
        "budgeted nor accounted. The driver's context, the activation arena and --gpu-headroom-mib come out of it; "
        "anything past those is throughput on the floor. Leave --vram-weights-mib / --vram-kv-mib unset to have the "
        "card split automatically."
    )


def pools(machine: Machine, rank: int) -> str:
    """One rank's pools with what is reserved in them."""
    split, slots = machine.split, machine.slots[rank]
    host = machine.flags.number("--host-pool-mib") * MIB
    statics = split.card.statics

    def pool(name: str, budgeted: int, used: int) -> str:
        free = max(0, budgeted - used)
        return f"  {name:<14} {humanb(budgeted):>10} budget, {humanb(used):>10} used, {humanb(free):>10} free"

    def reserved(name: str, size: int, offset: int) -> str:
        return f"    {name:<24} {humanb(size):>10} @ +{offset}"

    rows: list[str] = [
        "pools:",
        pool("vram_weights", split.weights_pool, statics + slots.slab_bytes),
        reserved("static weights", statics, 0),
        reserved("expert slab", slots.slab_bytes, statics),
        pool("vram_kv", split.kv_pool, split.kv_pool),
        reserved("kv carve", split.kv_pool, 0),
        pool("host_pool", host, slots.pool_bytes),
        reserved("pinned experts", slots.pool_bytes, 0),
    ]
    return "\n".join(rows)


def pool_refused(machine: Machine, rank: int) -> str:
    """The refusal of a reservation that its pool cannot take."""
    free = machine.split.weights_pool - machine.slots[rank].slab_bytes
    wanted = free + 64 * MIB
    rows = pools(machine, rank).split("\n")[1:]
    rows.append(
        f"    REFUSED static weights: vram_weights wanted {humanb(wanted)}, {humanb(free)} available -- short by "
        f"{humanb(wanted - free)}"
    )
    return "pool allocation refused:\n" + "\n".join(rows)
