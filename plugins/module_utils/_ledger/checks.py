# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sums that a boot's own figures must satisfy. A sum of which a row was not printed is not made.

Source of the sums: the engine's card split; which of them hold depends on which pools were stated. Tolerance: half a
unit of the last digit of every figure in the sum, plus 1 MiB for each derived pool (a derived weight pool is rounded
up to whole MiB, a derived KV pool down). A figure that the boot prints in two places has no tolerance at all.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import shapes
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.kv_plan import KvPlan
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import read_size
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.reports import PoolRow
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.tables import OPTIONAL_ROWS, BudgetTable
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import (
    SIZE_PATTERN,
    Size,
    SizeDict,
    size_from_dict,
)

# Binary floating point: far below any printed digit.
_EPSILON_MIB = 1e-6
_WHOLE_MIB = re.compile(r"^(?:0|[1-9][0-9]{0,8})$")
# How far a settled line says that it is off the headroom, in its two forms that say it.
_SHORT = re.compile(rf"\. Raise --gpu-headroom-mib by at least ({SIZE_PATTERN}) so ")
_UNUSED = re.compile(rf", so ({SIZE_PATTERN}) is unused\.")
# What is off, and by how much it may be, MiB.
_Off = tuple[float, float]


def check_budget(table: BudgetTable) -> list[shapes.Check]:
    """The sums of the budget table, by the way in which its pools were sized."""
    weights, kv = table.stated_by("vram_weights"), table.stated_by("vram_kv")
    if weights is None or kv is None:
        return []
    derived = [row for row, how in (("vram_weights", weights), ("vram_kv", kv)) if how == "derived"]
    stated = [row for row in ("vram_weights", "vram_kv") if row not in derived]
    sums: list[tuple[str, list[str], list[str]]] = [
        (
            "card_total",
            ["already_held", "activation_arena", "step_staging", "headroom", *stated, "claimable"],
            ["card_total"],
        )
    ]
    if weights == "derived":
        sums.append(("claimable", ["static_weights", "elastic"], ["claimable"]))
        sums.append(("vram_weights", ["static_weights", "experts"], ["vram_weights"]))
    else:
        sums.append(("claimable", ["elastic"], ["claimable"]))
        sums.append(("experts", ["experts"], []))
    sums.append(("vram_kv", ["kv_cache"], ["vram_kv"]))
    if derived:
        shares = [share for pool, share in (("vram_weights", "experts"), ("vram_kv", "kv_cache")) if pool in derived]
        sums.append(("elastic", [*shares, "unusable", "prefill_staging"], ["elastic"]))
    held = ["already_held", "activation_arena", "step_staging", "prefill_staging", "vram_weights", "vram_kv"]
    sums.append(("unclaimed", [*held, "unclaimed"], ["card_total"]))
    checks = []
    for name, left, right in sums:
        left_sizes, right_sizes = _sizes(table, left), _sizes(table, right)
        if left_sizes is not None and right_sizes is not None:
            checks.append(_check(name, [_off(left_sizes, right_sizes, float(len(derived)))]))
    return checks


def _sizes(table: BudgetTable, names: t.Iterable[str]) -> list[Size] | None:
    sizes = []
    for name in names:
        if name in table.rows:
            sizes.append(table.rows[name])
        elif name not in OPTIONAL_ROWS or name in table.unread:
            return None
    return sizes


def _off(left: t.Iterable[Size], right: t.Iterable[Size], slack_mib: float = 0.0) -> _Off:
    left, right = list(left), list(right)
    difference = sum(size.mib for size in left) - sum(size.mib for size in right)
    return difference, sum(size.plus_minus_mib for size in left + right) + slack_mib


def _check(name: str, offs: t.Sequence[_Off]) -> shapes.Check:
    """One check over all of these, by the one that is off most."""
    difference, tolerance = max(offs, key=lambda off: abs(off[0]) - off[1])
    return {
        "name": name,
        "holds": abs(difference) <= tolerance + _EPSILON_MIB,
        "difference_mib": round(difference, 6),
        "tolerance_mib": round(tolerance, 6),
    }


def _of_all(name: str, offs: t.Sequence[_Off]) -> list[shapes.Check]:
    return [_check(name, offs)] if offs else []


def check_pools(table: BudgetTable, pools: t.Sequence[PoolRow], plan: KvPlan) -> list[shapes.Check]:
    """Each rank's pools and the KV plan's against the table, and what of a host pool is used and free."""
    again = [(row.name, row.budget) for row in pools] + ([("vram_kv", plan.pool)] if plan.pool else [])
    same = [
        (size_from_dict(size).mib - table.rows[name].mib, 0.0)
        for name, size in again
        if name in table.rows and size["text"] != table.rows[name].text
    ]
    seen = any(name in table.rows for name, _size in again)
    host = [
        _off([size_from_dict(row.used), size_from_dict(row.free)], [size_from_dict(row.budget)])
        for row in pools
        if row.name == "host_pool"
    ]
    return [*_of_all("pools_match_table", same or ([(0.0, 0.0)] if seen else [])), *_of_all("host_pool", host)]


def check_kv(table: BudgetTable, plan: KvPlan) -> list[shapes.Check]:
    """Every product that the KV plan prints, and all of them against the pool that holds them."""
    checkpoints = plan.kv["checkpoints"]
    products: list[tuple[int, SizeDict, SizeDict]] = []
    for group in plan.kv["groups"]:
        for count, each in ((group["blocks"], group["page"]), (group["slots"], group["state"])):
            if count is not None and each is not None:
                products.append((count, each, group["size"]))
    in_pool = [size for _count, _each, size in products]
    slots, each, size = checkpoints["slots"], checkpoints["each"], checkpoints["size"]
    if slots is not None and each is not None and size is not None:
        products.append((slots, each, size))
        if plan.checkpoints_in_pool:
            in_pool.append(size)
    offs = [
        (
            count * one["mib"] - whole["mib"],
            count * one["plus_minus_mib"] + whole["plus_minus_mib"],
        )
        for count, one, whole in products
    ]
    checks = _of_all("kv_sizes", offs)
    pool = table.rows.get("vram_kv")
    if pool is not None and plan.kv["groups"]:
        difference, tolerance = _off([size_from_dict(size) for size in in_pool], [pool])
        checks.append(_check("kv_pool", [(max(0.0, difference), tolerance)]))
    return checks


def check_settled(table: BudgetTable, settled: t.Iterable[shapes.Settled]) -> list[shapes.Check]:
    """The parts and the differences that a settled line names, and the headroom that it shares with the table."""
    checks = []
    for row in settled:
        free, floor = size_from_dict(row["free"]), size_from_dict(row["floor"])
        offs: list[_Off] = []
        short, unused = _named(_SHORT, row["line"]), _named(_UNUSED, row["line"])
        if short is not None:
            offs.append(_off([free, short], [floor], 1.0))  # a flag takes whole MiB
        if unused is not None:
            offs.append(_off([floor, unused], [free]))
        if row["headroom"] is not None:
            headroom, printed = size_from_dict(row["headroom"]), table.rows.get("headroom")
            if row["static_region"] is not None:
                offs.append(_off([headroom, size_from_dict(row["static_region"])], [floor]))
            if printed is not None and not table.integrated:
                offs.append((headroom.mib - printed.mib, 0.0))
        checks += _of_all(f"settled_floor.card{row['card']}", offs)
    return checks


def _named(pattern: t.Pattern[str], line: str) -> Size | None:
    found = pattern.search(line)
    return read_size(found.group(1)) if found else None


def stated_mib(flags: t.Mapping[str, str], name: str) -> int | None:
    """What a flag states in MiB; 0 and an absent flag both mean that the engine derives. None: not plain digits.

    The engine itself reads ``3.5G`` as 3, so a text in any other form is evidence of nothing.
    """
    text = flags.get(name, "0")
    return int(text) if _WHOLE_MIB.match(text) else None


def check_flags(table: BudgetTable, flags: t.Mapping[str, str]) -> list[shapes.Check]:
    """The process's own command line against the printed pools: one of another boot contradicts them."""
    offs: list[_Off] = []
    for flag, row in (("vram-weights-mib", "vram_weights"), ("vram-kv-mib", "vram_kv")):
        size, how, stated = table.rows.get(row), table.stated_by(row), stated_mib(flags, flag)
        if not flags or size is None or how is None or stated is None or (how == "derived" and stated == 0):
            continue
        if how == "stated" and stated > 0:
            offs.append((size.mib - stated, size.plus_minus_mib))
        else:  # stated in the one place and derived in the other: off, however near the figures are
            offs.append((size.mib - stated or 1.0, 0.0))
    return _of_all("flags_match_table", offs)
