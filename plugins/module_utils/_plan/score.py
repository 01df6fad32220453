# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""How predictions fared over time, by quantity: what a record's verdicts add up to. Nothing killed is left out.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Json, rounded

_VERDICTS = ("held", "killed", "void")


def score(entries: t.Iterable[t.Mapping[str, t.Any]]) -> list[Json]:
    """``[{quantity, held, killed, void, share, last_killed}]`` of a record's lines, in any order, by quantity.

    An attempt's prediction counts once, with its last verdict. ``share`` is held of held and killed, None where neither
    was: a void prediction says nothing of the planner. ``last_killed`` is when one was killed last, or None.
    """
    last: dict[tuple[t.Any, ...], t.Mapping[str, t.Any]] = {}
    for entry in sorted((entry for entry in entries if entry.get("kind") == "verdict"), key=lambda entry: entry["at"]):
        last[(entry["host"], entry["service"], entry["attempt"], entry["prediction"])] = entry
    by_quantity: dict[str, list[t.Mapping[str, t.Any]]] = {}
    for entry in last.values():
        by_quantity.setdefault(str(entry["quantity"]), []).append(entry)
    return [_scored(quantity, by_quantity[quantity]) for quantity in sorted(by_quantity)]


def _scored(quantity: str, judged: t.Sequence[t.Mapping[str, t.Any]]) -> Json:
    counts: Json = {name: sum(entry["verdict"] == name for entry in judged) for name in _VERDICTS}
    told = counts["held"] + counts["killed"]
    return {
        "quantity": quantity,
        **counts,
        "share": rounded(counts["held"] / told) if told else None,
        "last_killed": max((entry["at"] for entry in judged if entry["verdict"] == "killed"), default=None),
    }
