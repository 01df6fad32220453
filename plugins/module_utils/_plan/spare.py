# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a card's free memory is not spare, and whether the ceiling agrees with the budget that the same boot printed.

The ceiling comes from what was free at the end of the boot, the budget from what was there at its beginning. Between
the two lie the static region and whatever was allocated after the budget was resolved: their difference has a name and
is shown, so that a number that nothing explains is seen.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.ceiling import Ceiling
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.running import Running
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Json, Ledger, mib, number, rounded
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import size_from_dict

CROSS_CHECK = "static region and late allocations"
# The engine warns of what neither pool holds from this on (both pools stated).
_WARNS_FROM_MIB = 1024
# Published boots allocate up to 30 MiB after the budget; this much more is something else on the card.
_LATE_MIB = 256


def ceiling_about(ledger: Ledger, running: Running, ceiling: Ceiling, pair: tuple[float, float] | None) -> Json:
    """What a plan's ``ceiling`` says beside its arithmetic; ``pair`` is the planned one, MiB a card."""
    card = ceiling.surest
    takeable = _takeable(ceiling, running.sum_mib)
    left = None if pair is None else _takeable(ceiling, sum(pair))
    says = (
        f"Free is not spare: card {card.card} settled with {mib(card.free.mib)} free, {number(card.floor.mib)} of "
        f"that is the floor that the engine keeps, so the pair can take {mib(takeable)} more, clear of the rounding"
    )
    if ceiling.reserve_mib:
        says += f" and the reserve of {mib(ceiling.reserve_mib)}"
    if card.others_mib:
        says += f" and {mib(card.others_mib)} reserved for others"
    says += "." if left is None or left == takeable else f"; after this plan {_amount(left)}."
    return {
        "takeable_mib": takeable,
        "left_mib": left,
        "says": says,
        "cross_check": _cross_check(ledger, running, ceiling),
        "expected_warning": _expected_warning(ledger, pair, left),
    }


def unexplained(about: Json) -> list[str]:
    """A warning where the cross-check is off by more than boots are known to allocate late."""
    check = about["cross_check"]
    late = 0.0 if check is None else check["late_mib"]
    if check is None or abs(late) <= _LATE_MIB + check["plus_minus_mib"]:
        return []
    what = "were taken after the budget was resolved" if late > 0 else "are there beyond the budget"
    return [
        f"{mib(abs(late))} of the card {what}, and nothing in this boot explains them: another process may hold memory "
        "on it. The plan follows the settled line."
    ]


def _takeable(ceiling: Ceiling, sum_mib: float) -> float:
    return max(0.0, rounded(ceiling.surest.sure_mib - ceiling.reserve_mib - sum_mib))


def _amount(takeable: float) -> str:
    return f"{mib(takeable)}" if takeable >= 1 else "nothing"


def _cross_check(ledger: Ledger, running: Running, ceiling: Ceiling) -> Json | None:
    """Claimable and stated pools against the ceiling; None where the boot did not print what is claimable."""
    budget = ledger.get("budget") or {}
    printed = (budget.get("rows") or {}).get("claimable")
    if printed is None:
        return None
    # The budget is the fold of all cards, and knows no reserve.
    claimable, card = size_from_dict(printed), ceiling.tightest
    stated = [pool for name, pool in (("weights", running.weights), ("kv", running.kv)) if budget.get(name) == "stated"]
    pools = sum(pool.mib for pool in stated)
    difference = rounded(claimable.mib + pools - card.mib)
    # The pair's own rounding is in the ceiling's, where the pair is not exact.
    wide = rounded(claimable.plus_minus_mib + card.plus_minus_mib)
    regions = [row.get("static_region") for row in ledger.get("settled") or [] if row.get("card") == card.card]
    region = size_from_dict(regions[0]).mib if regions and regions[0] else 0.0
    late = rounded(difference - region)
    parts = f"{number(region)} static region, " if region else ""
    return {
        "name": CROSS_CHECK,
        "claimable_mib": rounded(claimable.mib),
        "pools_mib": rounded(pools),
        "difference_mib": difference,
        "plus_minus_mib": wide,
        "static_region_mib": rounded(region),
        "late_mib": late,
        "says": (
            f"claimable {number(claimable.mib)} + stated pools {number(pools)} = {mib(claimable.mib + pools)} against "
            f"a ceiling of {number(card.mib)}: {mib(difference)} ± {number(wide)} {CROSS_CHECK} ({parts}{number(late)} "
            "allocated after the budget)"
        ),
    }


def _expected_warning(ledger: Ledger, pair: tuple[float, float] | None, left: float | None) -> str | None:
    """The engine's own warning that will stay, and what of it is takeable; None where it will not be printed."""
    total = ((ledger.get("budget") or {}).get("rows") or {}).get("card_total")
    if total is None or pair is None or left is None:
        return None
    slack = size_from_dict(total).mib - sum(pair)
    if slack < _WARNS_FROM_MIB:
        return None
    return (
        f"Expected: the engine will warn that about {mib(slack)} of the card are neither budgeted nor accounted. The "
        "driver's context, the arena, the staging and the headroom are in that; takeable of it: "
        f"{_amount(left)}."
    )
