# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sums that a boot's own figures must satisfy. A sum of which a row was not printed is not made.

Source of the sums: the engine's card split; which of them hold depends on which pools were stated. Tolerance: half a
unit of the last digit of every figure in the sum, plus 1 MiB for each derived pool (a derived weight pool is rounded
up to whole MiB, a derived KV pool down).
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import shapes
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.tables import OPTIONAL_ROWS, BudgetTable
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import Size, size_from_dict

# Binary floating point: far below any printed digit.
_EPSILON_MIB = 1e-6
_WHOLE_MIB = re.compile(r"^(?:0|[1-9][0-9]{0,8})$")


def check_budget(table: BudgetTable) -> list[shapes.Check]:
    """The sums of the budget table, by the way in which its pools were sized."""
    weights, kv = table.stated_by("vram_weights"), table.stated_by("vram_kv")
    if weights is None or kv is None:
        return []
    derived_pools = (weights, kv).count("derived")
    stated = [row for row, how in (("vram_weights", weights), ("vram_kv", kv)) if how == "stated"]
    sums: list[tuple[str, list[str], list[str]]] = [
        (
            "card_total",
            ["already_held", "activation_arena", "step_staging", "headroom", *stated, "claimable"],
            ["card_total"],
        ),
        ("claimable", ["static_weights", "elastic"] if weights == "derived" else ["elastic"], ["claimable"]),
    ]
    if derived_pools == 2:
        sums += [
            ("vram_weights", ["static_weights", "experts"], ["vram_weights"]),
            ("elastic", ["experts", "kv_cache", "unusable", "prefill_staging"], ["elastic"]),
        ]
    held = ["already_held", "activation_arena", "step_staging", "prefill_staging", "vram_weights", "vram_kv"]
    sums.append(("unclaimed", [*held, "unclaimed"], ["card_total"]))
    checks = []
    for name, left, right in sums:
        left_sizes, right_sizes = _sizes(table, left), _sizes(table, right)
        if left_sizes is not None and right_sizes is not None:
            checks.append(_check(name, left_sizes, right_sizes, float(derived_pools)))
    return checks


def _sizes(table: BudgetTable, names: t.Iterable[str]) -> list[Size] | None:
    sizes = []
    for name in names:
        if name in table.rows:
            sizes.append(table.rows[name])
        elif name not in OPTIONAL_ROWS or name in table.unread:
            return None
    return sizes


def _check(name: str, left: list[Size], right: list[Size], slack_mib: float) -> shapes.Check:
    difference = sum(size.mib for size in left) - sum(size.mib for size in right)
    tolerance = sum(size.plus_minus_mib for size in left + right) + slack_mib
    return {
        "name": name,
        "holds": abs(difference) <= tolerance + _EPSILON_MIB,
        "difference_mib": round(difference, 6),
        "tolerance_mib": round(tolerance, 6),
    }


def check_settled(settled: t.Iterable[shapes.Settled]) -> list[shapes.Check]:
    """The floor that a settled line names is the sum of the parts that it names."""
    checks = []
    for row in settled:
        headroom, static = row["headroom"], row["static_region"]
        if headroom is not None and static is not None:
            parts = [size_from_dict(headroom), size_from_dict(static)]
            checks.append(_check(f"settled_floor.card{row['card']}", parts, [size_from_dict(row["floor"])], 0.0))
    return checks


def stated_mib(flags: t.Mapping[str, str], name: str) -> int | None:
    """What a flag states in MiB; 0 and an absent flag both mean that the engine derives. None: not plain digits.

    The engine itself reads ``3.5G`` as 3, so a text in any other form is evidence of nothing.
    """
    text = flags.get(name, "0")
    return int(text) if _WHOLE_MIB.match(text) else None


def check_flags(table: BudgetTable, flags: t.Mapping[str, str]) -> list[shapes.Check]:
    """The process's own command line against the printed pools: one of another boot contradicts them."""
    differences: list[tuple[float, float, bool]] = []
    for flag, row in (("vram-weights-mib", "vram_weights"), ("vram-kv-mib", "vram_kv")):
        size, how, stated = table.rows.get(row), table.stated_by(row), stated_mib(flags, flag)
        if not flags or size is None or how is None or stated is None:
            continue
        if how == "derived" and stated == 0:
            continue
        difference = size.mib - stated
        holds = how == "stated" and stated > 0 and abs(difference) <= size.plus_minus_mib + _EPSILON_MIB
        differences.append((difference, size.plus_minus_mib, holds))
    if not differences:
        return []
    difference, tolerance, _holds = max(differences, key=lambda one: (not one[2], abs(one[0])))
    return [
        {
            "name": "flags_match_table",
            "holds": all(holds for _difference, _tolerance, holds in differences),
            "difference_mib": round(difference, 6),
            "tolerance_mib": round(tolerance, 6),
        }
    ]
