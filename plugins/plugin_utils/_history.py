# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the record of a service says: its attempts, which plan made the pair, how its predictions fared."""

from __future__ import annotations

import textwrap
import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _words

Entry = t.Mapping[str, t.Any]

# The lines that end an attempt which stopped the service.
ENDS = ("switched", "rolled_back")


def new_image(planned: t.Mapping[str, t.Any]) -> str | None:
    """The image that a plan is for, where it is another than the one that runs."""
    image = planned.get("image")
    return image if image != planned.get("image_before") else None


def attempts(record: t.Sequence[Entry]) -> list[list[Entry]]:
    """The record cut into attempts: each starts at a ``planned`` line; what comes before the first is left out."""
    out: list[list[Entry]] = []
    for entry in record:
        if entry["kind"] == "planned":
            out.append([entry])
        elif out:
            owner = next((group for group in reversed(out) if group[0]["attempt"] == entry["attempt"]), None)
            if owner is not None:
                owner.append(entry)
    return out


def ended_by(attempt: t.Sequence[Entry]) -> Entry | None:
    """How an attempt ended: its last switched or rolled_back line."""
    return next((entry for entry in reversed(attempt) if entry["kind"] in ENDS), None)


def refused(attempt: t.Sequence[Entry]) -> Entry | None:
    """Why an attempt came to nothing: its last refused line, where nothing has ended it since."""
    last = next((entry for entry in reversed(attempt) if entry["kind"] in ("refused", *ENDS)), None)
    return last if last is not None and last["kind"] == "refused" else None


def judged(attempt: t.Sequence[Entry]) -> list[dict[str, t.Any]]:
    """The predictions of an attempt, each with its last verdict (open where there is none)."""
    verdicts = {entry["prediction"]: entry for entry in attempt if entry["kind"] == "verdict"}
    out = []
    for prediction in attempt[0]["plan"]["predictions"]:
        entry = verdicts.get(prediction["id"])
        out.append(
            {
                **prediction,
                "verdict": entry["verdict"] if entry else "open",
                "measured": entry["measured"] if entry else None,
                "plus_minus": entry.get("plus_minus", 0) if entry else 0,
                "says": entry["says"] if entry else "",
            }
        )
    return out


def history(record: t.Sequence[Entry], pair: t.Mapping[str, t.Any], making: Entry | None = None) -> dict[str, t.Any]:
    """What the record tells about the pair in force.

    ``making`` is the planned line of a plan that is about to run: files that are rendered for it speak of it.

    Returns ``{made, switched, predictions, failed, stated, outage_seconds, outage_at}``: ``made`` the planned line of
    the attempt that put ``pair`` there (None: it was taken over as found), ``switched`` the line of it that says so
    (None: it is about to run), ``predictions`` its predictions with their verdicts, ``failed`` the attempts after it
    that were rolled back ([{at, to, image, phase, says, predictions}], only what was not held), ``stated`` whether a
    command stated the pair, ``outage_seconds`` of the last switch on record that held (an attempt that failed tells how
    long failing took) and ``outage_at`` its time, both None without one.
    """
    made: list[Entry] | None = None
    failed: list[dict[str, t.Any]] = []
    for attempt in attempts(record):
        ended = ended_by(attempt)
        if ended is None:
            continue
        if ended["kind"] == "switched":
            made, failed = attempt, []
        else:
            failed.append(
                {
                    "at": ended["at"],
                    "to": ended["tried"],
                    "image": new_image(attempt[0]),
                    "phase": ended["phase"],
                    "says": ended["says"],
                    "predictions": [item for item in judged(attempt) if item["verdict"] not in ("held", "open")],
                }
            )
    if made is not None and not _same_pair(made[0]["plan"]["to"], pair):
        # Somebody else changed the pair since: the record explains another one.
        made = None
    if making is not None:
        made, failed = [making], []
    timed = [entry for entry in record if entry["kind"] == "switched" and entry["downtime_seconds"] is not None]
    last = timed[-1] if timed else None
    return {
        "made": dict(made[0]) if made else None,
        "switched": ended_by(made) if made else None,
        "predictions": judged(made) if made else [],
        "failed": failed,
        "stated": bool(made and isinstance(made[0]["request"].get("pair"), dict)),
        "outage_seconds": last["downtime_seconds"] if last else None,
        "outage_at": last["at"] if last else None,
    }


def _same_pair(one: t.Mapping[str, t.Any], other: t.Mapping[str, t.Any]) -> bool:
    return all(str(one.get(name)) == str(other.get(name)) for name in _words.ENV_OF)


def rolled_back_before(record: t.Sequence[Entry], to: t.Mapping[str, t.Any], image: str | None = None) -> list[str]:
    """A sentence where the last try of this very pair and shape, and of ``image`` if it is another, was rolled back."""
    planned = {entry["attempt"]: new_image(entry) for entry in record if entry["kind"] == "planned"}
    tries = [
        entry
        for entry in record
        if (
            (entry["kind"] == "switched" and _same_pair(entry["to"], to))
            or (entry["kind"] == "rolled_back" and _same_pair(entry["tried"], to))
        )
        and planned.get(entry["attempt"]) == image
    ]
    if not tries or tries[-1]["kind"] != "rolled_back":
        return []
    last = tries[-1]
    says = textwrap.shorten(" ".join(last["says"].split()), 160, placeholder=" …")
    return [f"{_words.pair(to)} was rolled back on {last['at']} in phase {last['phase']}: {says}"]
