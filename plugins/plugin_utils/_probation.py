# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a new pair is on probation, as a command writes it."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

_UNITS = {"s": 1, "m": 60, "h": 3600}
# The clock that a restart of the machine leaves is good for days, not for seasons.
LONGEST = 7 * 24 * 3600


def probation_seconds(value: t.Any) -> int | None:
    """Seconds from ``90s``, ``30m``, ``2h`` or ``0``; None where nothing is asked.

    Raises RadianceError ``probation_unreadable``.
    """
    if value in (None, ""):
        return None
    text = str(value)
    if text == "0":
        return 0
    found = re.fullmatch(r"([1-9][0-9]{0,6})([smh])", text, re.ASCII)
    if isinstance(value, bool) or not found:
        raise RadianceError(
            f"probation is {text!r}. Write a whole number with its unit, like 90s, 30m or 2h; 0 confirms the pair.",
            code="probation_unreadable",
        )
    seconds = int(found[1]) * _UNITS[found[2]]
    if seconds > LONGEST:
        raise RadianceError(
            f"probation is {text!r}, {seconds:,} s. The longest is {LONGEST // 3600} h.", code="probation_unreadable"
        )
    return seconds


def probation_words(request: t.Mapping[str, t.Any], services: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """What is wrong with a request for a probation, in a sentence; empty where nothing is."""
    try:
        seconds = probation_seconds(request.get("probation"))
    except RadianceError as error:
        return error.text
    unwatched = [str(service.get("name")) for service in services if service.get("manager", "process") == "process"]
    if seconds and unwatched:
        return (
            f"probation={request['probation']} needs a unit of systemd, which watches the engine. "
            f"{', '.join(unwatched)} is a plain process, which nobody watches: leave probation out."
        )
    return ""


def probation_notes(asked: t.Any, told: str, restart: bool) -> list[str]:
    """What a plan says of probations: what became of the one in force (``told``), and what the one asked for does."""
    notes = [told] if told else []
    if probation_seconds(asked) and restart:
        notes.append(f"A crash of the new pair within {asked} of the switch returns to the pair before by itself.")
    return notes
