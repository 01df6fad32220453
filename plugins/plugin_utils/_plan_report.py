# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as a table that a person reads in one screen."""

from __future__ import annotations

import textwrap
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cost import cost_words
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import SHAPE_NAMES
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import (
    _commands,
    _env_text,
    _history,
    _image,
    _not_after,
    _price_report,
    _words,
)

_LABEL = 10


def plan_report(plan: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any]) -> list[str]:
    """The lines of the table.

    ``about`` has what a plan does not know: ``host``, ``service``, ``down`` (that it does not run and by which
    ledger it is planned, a sentence without its stop; empty where it runs), ``returns`` (whether there is a pair to
    return to), ``outage_seconds`` and ``outage_at`` (the last restart on record, or None), ``probes`` and ``rate`` (as
    ``probes_cost`` takes them), ``fits`` (of ``fits_words``, where the run has a deadline), ``undo`` (the command),
    ``notes`` (sentences), ``record`` (of the service), ``image`` (what ``image_choice`` found, where one is asked for),
    and ``brief``: whether a restart follows, so that the options are only named. Where nothing is to change, nothing is
    predicted either.
    """
    lines = [_head(plan, about)]
    if _shape_changes(plan):
        lines += _row("shape", [f"{_words.shape(plan['from'])} → {_words.shape(plan['to'])}"])
    else:
        lines += _row("shape", [f"{_words.shape(plan['to'])}, stays"])
    image = about.get("image") or {}
    lines += _row("image", _image.image_words(image))
    quoted = [f'"{line}"' for line in (plan.get("ceiling") or {}).get("lines", [])]
    lines += _row("ceiling", _env_text.ceiling_words(plan) + quoted)
    lines += _row("", _about_free(plan))
    lines += _row("contract", _env_text.contract_words(plan))
    gates = [gate for gate in plan["gates"] if plan["restart"] or not gate["holds"]]
    lines += _row("gates", _gates(gates), fold=False)
    if plan["restart"]:
        lines += _row("predicted", _predictions(plan["predictions"]), fold=False)
        law = plan.get("law") or {}
        if law.get("status", "none") != "none":
            lines += _row("law", [law["says"]])
        lines += _row("outage", [_outage(about)])
        lines += _row("probes", [_cost(plan, about)])
        lines += _row("not after", about.get("fits") or [])
        lines += _row("undo", [about["undo"]] if about.get("returns", True) else [], fold=False)
        if image and not image["same"]:
            lines += _row("then", [f"{_commands.beside(about['undo'])} -e fill=true"], fold=False)
            lines += _row("", ["the second fill, from what the first boot of the new image prints"])
    if plan["restart"] or not about.get("brief"):
        lines += _row("options", _options(plan, bool(about.get("brief"))))
        if plan.get("options") and about.get("brief"):
            asked = _commands.beside(about["undo"], "plan") + _image.arguments(image)
            lines += _row("", [f"what each would cost: {asked}"], fold=False)
    if not about.get("brief"):
        lines += _price_report.price_report(plan, about["undo"] + _image.arguments(image))
    tried = None if not image or image["same"] else image["image"]
    before = _history.rolled_back_before(about.get("record") or [], plan["to"], tried) if plan["restart"] else []
    lines += _row("note", [*_down(about), *before, *plan.get("warnings", []), *about.get("notes", [])])
    return lines


def _head(plan: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any]) -> str:
    where = f"{about['service']} on {about['host']}"
    if not plan["restart"]:
        return f"{where}: nothing to change, {_words.pair(plan['to'])} MiB a card stays (slab + pool)"
    if about.get("down"):
        if not plan["changes"]:
            return f"{where}: does not run, one start on {_words.pair(plan['to'])} MiB a card (slab + pool)"
        pairs = f"{_words.pair(plan['from'])} → {_words.pair(plan['to'])}"
        return f"{where}: does not run, {pairs} MiB a card (slab + pool), one start [{', '.join(plan['changes'])}]"
    less = ", the pool less than the contract" if plan["contract"].get("backing") == "one_request" else ""
    return (
        f"{where}: {_words.pair(plan['from'])} → {_words.pair(plan['to'])} MiB a card (slab + pool{less}), one restart "
        f"[{', '.join(plan['changes'])}]"
    )


def _down(about: t.Mapping[str, t.Any]) -> list[str]:
    """That the service does not run, how that came, and that it is started."""
    starts = "this run starts it" if about.get("brief") else "a resize starts it"
    return [f"{about['down']}; {starts}."] if about.get("down") else []


def _about_free(plan: t.Mapping[str, t.Any]) -> list[str]:
    """Why free memory is not spare, the cross-check with the budget, and the engine's warning that will stay."""
    ceiling = plan.get("ceiling") or {}
    check = ceiling.get("cross_check")
    return [text for text in (ceiling.get("says"), check and check["says"], ceiling.get("expected_warning")) if text]


def _shape_changes(plan: t.Mapping[str, t.Any]) -> bool:
    return any(plan["from"].get(name) != plan["to"].get(name) for name in SHAPE_NAMES)


def _row(label: str, texts: t.Sequence[str], fold: bool = True) -> list[str]:
    out: list[str] = []
    for text in texts:
        text = _words.one_line(text) if fold else text
        parts = (
            textwrap.wrap(text, _words.WIDTH - _LABEL - 4, break_long_words=False, break_on_hyphens=False)
            if fold
            else [text]
        )
        for part in parts or [""]:
            first = f"  {label:<{_LABEL}}" if label and not out else " " * (_LABEL + 2)
            out.append(f"{first}{part}".rstrip())
    return out


def _gates(gates: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    """A line for each gate that holds; what fails or was accepted is told whole, under its last column."""
    rows = []
    for gate in gates:
        state = "holds" if gate["holds"] else "accepted" if gate.get("accepted") else "FAILS"
        says = gate["says"] if not gate.get("accepted") else f"{gate['says']} Accepted: {gate['accepted']}"
        rows.append([state, gate["name"], _words.one_line(says)])
    column = sum(max((len(row[n]) for row in rows), default=0) + 2 for n in range(2))
    room = _words.WIDTH - _LABEL - 2 - column
    lines = []
    for row, line in zip(rows, _words.table(rows, indent=""), strict=True):
        says = line[column:]
        whole = textwrap.wrap(says, room, break_long_words=False, break_on_hyphens=False) or [""]
        first, *rest = whole if row[0] != "holds" else [textwrap.shorten(says, room, placeholder=" …")]
        lines += [f"{line[:column]}{first}".rstrip(), *[" " * column + part for part in rest]]
    return lines


def _options(plan: t.Mapping[str, t.Any], brief: bool) -> list[str]:
    """What the free memory could buy, but for what the price table shows below."""
    options = plan.get("options") or []
    if brief and options:
        names = ", ".join(str(item["name"]) for item in options)
        return [names]
    priced = {row["request"] for row in plan.get("prices") or [] if row["shown"]}
    return [f"{item['name']}: {item['says']} [{item['request']}]" for item in options if item["request"] not in priced]


def _predictions(predictions: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    rows = [[item["id"], _words.interval(item["low"], item["high"], item.get("unit"))] for item in predictions]
    room = _words.WIDTH - _LABEL - 2 - sum(max((len(row[n]) for row in rows), default=0) + 2 for n in range(2))
    for row, item in zip(rows, predictions, strict=True):
        row.append(textwrap.shorten(_words.one_line(item.get("because") or ""), max(room, 20), placeholder=" …"))
    return _words.table(rows, indent="")


def _outage(about: t.Mapping[str, t.Any]) -> str:
    seconds = about.get("outage_seconds")
    if seconds is None:
        return "one load of the model; no restart of this service is on record to tell how long"
    return f"about {seconds:,.0f} s, as the restart of {about.get('outage_at')} took"


def _cost(plan: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any]) -> str:
    probes = str(about.get("probes") or "quick")
    if probes == "none":
        return "none will run (probes=none)"
    return f"{probes}: {cost_words(_not_after.probes_cost(plan, about))}"
