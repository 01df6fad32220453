# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plans of many hosts in one table, a line each."""

from __future__ import annotations

import textwrap
import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _not_after, _words

# Of a sentence this much is shown, however wide the names before it are.
_LEAST = 60
_HEAD = ["host", "service", "now", "planned", "ceiling", "spare", "gain"]

Run = t.Mapping[str, t.Any]
Outcome = t.Mapping[str, t.Any]


def fleet_table(
    planned: t.Mapping[str, t.Sequence[Run]],
    outcomes: t.Mapping[str, Outcome | None],
    until: t.Mapping[str, t.Any] | None = None,
    now: float | None = None,
) -> list[str]:
    """The lines of the table: a service a line, in MiB a card, and what could not be planned with its code.

    ``planned`` maps each host to its runs that have a plan, ``outcomes`` to ``{services: [{service, word, says}]}`` of
    those that have none. ``until`` is the deadline, of which a last column tells.
    """
    rows = [[host, *_planned(run, until, now)] for host, runs in planned.items() for run in runs]
    refused = [[host, *words] for host, runs in planned.items() for words in _refused(outcomes.get(host), bool(runs))]
    counts = f"{len(rows)} planned, {len(refused)} not"
    if rows:
        rows.insert(0, [*_HEAD, *([f"by {until['at'][11:16]}"] if until else [])])
    column = 2 + sum(max((len(row[n]) for row in [*rows, *refused]), default=0) + 2 for n in range(2))
    room = max(_words.WIDTH - column, _LEAST)
    refused = [[*row[:2], textwrap.shorten(row[2], room, placeholder=" …")] for row in refused]
    lines = _words.table([*rows, *refused])
    return ["plans: pairs (slab + pool), ceiling, spare and what the slab gains, in MiB a card", *lines, counts]


def _planned(run: Run, until: t.Mapping[str, t.Any] | None, now: float | None) -> list[str]:
    plan, name = run["plan"], str(run["service"]["name"])
    ceiling, before, to = plan.get("ceiling") or {}, plan["from"], plan["to"]
    slabs = (to.get("weights_mib"), before.get("weights_mib"))
    gain = f"{slabs[0] - slabs[1]:+,.0f}" if plan["restart"] and None not in slabs else "0"
    planned = _words.pair(to) if plan["restart"] else "stays"
    shape = [label for label in plan["changes"] if label not in ("weights_mib", "kv_mib")] if plan["restart"] else []
    started = ["start"] if run.get("down") else []
    planned += f" [{', '.join([*started, *shape])}]" if started or shape else ""
    numbers = [_words.number(ceiling.get(key)) for key in ("mib", "takeable_mib")]
    late = ["too late" if _not_after.too_late(run.get("needs"), until, now) else "in time"] if until else []
    return [name, _words.pair(before), planned, *numbers, gain, *late]


def _refused(outcome: Outcome | None, planned: bool) -> list[list[str]]:
    if not outcome:
        return [] if planned else [[_words.UNKNOWN, "not_reached: the run lost this host"]]
    return [
        [item["service"] or _words.UNKNOWN, f"{_word_and_code(item)}: {_words.one_line(item['says'])}"]
        for item in outcome["services"]
    ]


def _word_and_code(item: t.Mapping[str, t.Any]) -> str:
    word, code = str(item["word"]), str(item.get("code", ""))
    return word if code in ("", word) else f"{word} {code}"


def unplanned(planned: t.Mapping[str, int], outcomes: t.Mapping[str, Outcome | None]) -> list[str]:
    """The hosts of which a service could not be planned, by how many of each were."""
    return [host for host, number in planned.items() if _refused(outcomes.get(host), number > 0)]
