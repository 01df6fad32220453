# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The time after which nothing shall be under way any more, and whether a switch still ends before it."""

from __future__ import annotations

import bisect
import datetime
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cost import probe_cost
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

_DAY_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_SHOWN = "%Y-%m-%d %H:%M:%S %z"


def deadline(value: t.Any, now: float | None = None) -> dict[str, t.Any] | None:
    """``{at, epoch}`` of what ``-e not_after=`` asks: the instant in words and in seconds; None where nothing is asked.

    ``06:00`` is the next such time in this controller's zone, else an ISO 8601 instant with an offset. ``now`` is for
    tests. Raises RadianceError ``not_after_unreadable`` and ``not_after_past``.
    """
    if value in (None, ""):
        return None
    text, today = str(value), _local(now)
    found = _DAY_TIME.fullmatch(text)
    if found and not isinstance(value, (int, float)):
        at = _next(today, datetime.time(int(found[1]), int(found[2])))
    else:
        at = _instant(text)
    if at <= today:
        ago = (today - at).total_seconds()
        raise RadianceError(
            f"not_after={text} was {ago:,.0f} s ago: it is {today.strftime(_SHOWN)} here. Name a time to come.",
            code="not_after_past",
        )
    return {"at": at.strftime(_SHOWN), "epoch": at.timestamp()}


def _local(now: float | None) -> datetime.datetime:
    moment = datetime.datetime.now() if now is None else datetime.datetime.fromtimestamp(now)
    return moment.astimezone()


def _next(today: datetime.datetime, clock: datetime.time) -> datetime.datetime:
    """The next time that the clock shows this. Set back, it shows it twice; set forward, it passes it in a jump."""
    days = [datetime.datetime.combine(today.date() + datetime.timedelta(days=n), clock) for n in range(2)]
    return min(at for day in days for at in _shown(day) if at > today)


def _shown(wall: datetime.datetime) -> list[datetime.datetime]:
    first, second = (int(wall.replace(fold=fold).timestamp()) for fold in range(2))
    if first > second:  # only where no clock shows it
        between = range(second, first)
        first = second = between[bisect.bisect_left(between, wall, key=datetime.datetime.fromtimestamp)]
    return [datetime.datetime.fromtimestamp(at).astimezone() for at in (first, second)]


def _instant(text: str) -> datetime.datetime:
    try:
        if _INSTANT.fullmatch(text):
            return datetime.datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        pass
    raise RadianceError(
        f"not_after is {text!r}. Write a time of the day like 06:00, or an instant with its offset like "
        "2026-11-30T06:00:00+01:00; in JSON as text.",
        code="not_after_unreadable",
    )


def probes_cost(plan: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What the probes of a plan cost, as ``probe_cost`` says it.

    ``about`` has ``probes`` (none, quick or full) and ``rate``, options of ``probe_cost`` that are not its defaults.
    """
    to = plan["to"]
    rate = next((item for item in plan["predictions"] if item["quantity"] == "prefill_tps"), None)
    depth = to.get("num_speculative_tokens")
    return probe_cost(
        str(about.get("probes") or "quick"),
        to["max_num_seqs"],
        to["max_model_len"],
        prefill_tps=(rate["low"] + rate["high"]) / 2 if rate else None,
        **({} if depth is None else {"speculative_tokens": depth}),
        **{name: value for name, value in (about.get("rate") or {}).items() if value},
    )


def time_needed(plan: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any]) -> dict[str, t.Any] | None:
    """``{seconds, says}``: how long a switch may take with its probes and its way back; None where nothing restarts.

    Twice the last outage on record (``outage_seconds`` of ``about``) and the probes. What was never measured counts as
    long as it may take: ``timeouts`` of ``about``, in seconds, has ready and probe.
    """
    if not plan["restart"]:
        return None
    ready, probe = (float(about["timeouts"][name]) for name in ("ready", "probe"))
    outage, probing = about.get("outage_seconds"), probes_cost(plan, about)["seconds"]
    of_outage = f"the outage on {about.get('outage_at')}"
    if outage is None:
        outage, of_outage = ready, "its ready timeout: no outage is on record"
    of_probes = "of probes"
    if probing is None:
        probing, of_probes = probe, "of probes, their timeout: no prefill rate is known"
    seconds = 2 * outage + probing
    says = f"{seconds:,.0f} s = 2 x {outage:,.0f} s, switch and way back ({of_outage}) + {probing:,.0f} s {of_probes}"
    return {"seconds": seconds, "says": says}


def too_late(
    needed: t.Mapping[str, t.Any] | None, until: t.Mapping[str, t.Any] | None, now: float | None = None
) -> str:
    """Why a switch is not begun any more, in a sentence; empty where it ends in time, or nothing bounds it.

    ``needed`` is of ``time_needed``, ``until`` of ``deadline``.
    """
    if not needed or not until:
        return ""
    left, at = _left(until, now)
    if needed["seconds"] <= left:
        return ""
    return f"not begun at {at}: {_left_words(left)} {until['at']}, and it may take {needed['says']}"


def fits_words(
    needed: t.Mapping[str, t.Any] | None, until: t.Mapping[str, t.Any] | None, now: float | None = None
) -> list[str]:
    """What a plan says of its time, as it would be if it began now; nothing where nothing bounds it."""
    if not needed or not until:
        return []
    left, at = _left(until, now)
    word = "fits" if needed["seconds"] <= left else "would NOT be begun"
    return [f"{word} at {at}: {_left_words(left)} {until['at']}, and it may take {needed['says']}"]


def _left_words(left: float) -> str:
    return f"{left:,.0f} s are left until" if left >= 0 else f"{-left:,.0f} s have passed since"


def _left(until: t.Mapping[str, t.Any], now: float | None) -> tuple[float, str]:
    moment = _local(now)
    return float(until["epoch"]) - moment.timestamp(), moment.strftime("%H:%M:%S")
