# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""After a stop: what of the run is returned to what ran before, where that is declared, and what came of it."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _failure, _summary

Outcome = t.Mapping[str, t.Any]


def to_undo(host: str, outcomes: t.Mapping[str, Outcome | None], after_stop: str) -> dict[str, t.Any]:
    """``{services, because}``: the services of ``host`` to return, the last one first; empty where none is.

    ``outcomes`` maps each host of the run, in its order, to what it has come to so far; ``after_stop`` is undo or
    leave. Nothing is undone but what this run has switched, and only because a host has no good outcome. What did not
    run before is not stopped again: such a service has no command that undoes it.
    """
    mine = outcomes.get(host) or {}
    if after_stop != "undo" or "undone" in mine:
        return {}
    services = [item["service"] for item in mine.get("services", []) if item["word"] == "switched" and "undo" in item]
    because = next((f"{name} {said}" for name, found in outcomes.items() if (said := _ended_badly(found))), "")
    return {"services": services[::-1], "because": because} if services and because else {}


def _ended_badly(outcome: Outcome | None) -> str:
    """How a host ended that has no good outcome of its own; empty where it has, was not begun, or was undone."""
    if not outcome:
        return "was not planned"
    word = outcome["word"]
    if word == "begun":
        return "was lost in the middle of its switch"
    return "" if word in ("planned", *_summary.GOOD) or "undone" in outcome else f"ended {word}"


def undone(outcome: Outcome, came: t.Sequence[t.Mapping[str, str]], because: str) -> dict[str, t.Any]:
    """The outcome of a host after its undoing: each service that was returned has the word ``rolled_back``.

    ``came`` are the outcomes of the returns, a failed one included. ``undone`` is whether none is missing.
    """
    after = {item["service"]: item for item in came}
    services = [_returned(item, after.get(item["service"]), because) for item in outcome["services"]]
    word = _summary.worst([item["word"] for item in services])
    says = "; ".join(item["says"] for item in services if item["word"] == word)
    return {"word": word, "says": says, "services": services, "undone": not any("undo" in item for item in services)}


def _returned(before: t.Mapping[str, str], after: t.Mapping[str, str] | None, because: str) -> dict[str, str]:
    """One service: what it had come to, and what came of its return. Where that failed, what undoes it stays named."""
    if after is None:
        return dict(before)
    # A return that was interrupted is inconclusive as well, and may not have got so far.
    if after["word"] in (*_summary.GOOD, "inconclusive") and after.get("code") != _failure.INTERRUPTED:
        says = f"{after['says']}, undone because {because}"
        return {"service": before["service"], "word": "rolled_back", "says": says}
    says = f"{before['says']} was to be undone because {because}, and was not: {after['says']}"
    return {**before, "word": after["word"], "says": says}
