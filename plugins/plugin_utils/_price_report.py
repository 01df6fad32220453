# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The price table of a plan, in as much of one screen as a plan leaves: what each shape would cost on this card."""

from __future__ import annotations

import textwrap
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import span
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _commands, _words

_HEAD = ("shape", "slab", "prefill t/s", "decode", "backs", "against fill", "slots", "lends", "arguments")


def price_report(plan: t.Mapping[str, t.Any], undo: str) -> list[str]:
    """The lines of the table: the rows that the plan marks as shown. ``undo`` tells where the command line begins."""
    prices = plan.get("prices") or []
    if not prices:
        return []
    shown = [row for row in prices if row["shown"]]
    table = [list(_HEAD), *(_cells(row) for row in shown)]
    widths = [max(len(row[column]) for row in table if len(row) > column + 1) for column in range(len(_HEAD) - 1)]
    lines = ["  prices: what each shape would cost on this card (slab in MiB a card)"]
    for row in table:
        lines += _line(row, widths)
    rest = len(prices) - len(shown)
    about = (
        "decode: t/s as the nearest arm of this cache dtype measured it, no prediction. backs one: less than the "
        "contract. slots: lost to a fill of the present shape. lends: slots that an idle pool lends to the experts."
    )
    more = f" The plan file has {rest} more." if rest else ""
    lines += [f"    {part}" for part in textwrap.wrap(about + more, _words.WIDTH - 4)]
    lines.append(f"    get one: {_commands.beside(undo)} and its arguments")
    if _keeps(plan):
        lines.append("    with the reserves and live sessions that were asked for here, where no inventory has them")
    return lines


def _keeps(plan: t.Mapping[str, t.Any]) -> bool:
    """Whether the table was made with something that its arguments do not repeat."""
    ceiling = plan.get("ceiling") or {}
    reserves = ceiling.get("reserve_mib") or any(other["mib"] for other in ceiling.get("others") or [])
    return bool(reserves or (plan.get("contract") or {}).get("live_sessions"))


def _cells(row: t.Mapping[str, t.Any]) -> list[str]:
    to = row["to"]
    shape = f"{to['kv_cache_dtype']} {to['max_num_seqs']} x {to['max_model_len']:,}"
    if not row["fits"]:
        return [shape, f"does not fit: {row['reason']}"]
    prefill, decode = row["prefill"], row["decode"]
    return [
        shape,
        _words.number(to["weights_mib"]),
        "not measured" if prefill is None else span(f"{prefill['low']:,.0f}", f"{prefill['high']:,.0f}", "–"),
        _words.UNKNOWN if decode is None else f"{decode['tps']:,g}",
        "one" if row["backing"] == "one_request" else f"{row['sequences_backed']:g}",
        _against(row["against_fill_mib"], row["against_fill_prefill"]),
        _words.number(row["slots_lost"]),
        _words.number(row["lendable_slots"]),
        row["request"] or "runs",
    ]


def _against(slab_mib: float | None, prefill: float | None) -> str:
    if slab_mib is None:
        return _words.UNKNOWN
    share = "" if prefill is None or not slab_mib else f" {prefill:+.0%}"
    return f"{slab_mib:+,.0f}{share}"


def _line(row: t.Sequence[str], widths: t.Sequence[int]) -> list[str]:
    """One row; arguments that have no room stand whole on a line of their own, to be copied."""
    if len(row) == 2:
        return [f"    {row[0]:<{widths[0]}} {row[1]}"]
    cells = " ".join(
        f"{text:<{width}}" if column == 0 else f"{text:>{width}}"
        for column, (text, width) in enumerate(zip(row, widths, strict=False))
    )
    line = f"    {cells}  {row[-1]}"
    return [line] if len(line) <= _words.WIDTH else [f"    {cells}".rstrip(), f"      {row[-1]}"]
