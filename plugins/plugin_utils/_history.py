# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the record of a service says: which plan made the pair, how its predictions fared, where a way back leads."""

from __future__ import annotations

import math
import textwrap
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _plan, _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _commands, _words

Entry = t.Mapping[str, t.Any]

# The phases of a switch in which nothing was stopped yet.
_HARMLESS = ("lock", "precheck", "drain")
# The lines that end an attempt which stopped the service.
_ENDS = ("switched", "rolled_back")


def record_entry(
    fields: t.Mapping[str, t.Any],
    kind: str,
    host: str,
    service: str,
    attempt: str | None = None,
    record: t.Sequence[Entry] = (),
) -> dict[str, t.Any]:
    """A line of the record with its stamp and id. Raises RadianceError ``record_invalid``.

    A planned line without ``attempt`` gets the one of its plan; prices, options and arms stay out of it: nothing is
    ever read from there, the former are long, and arms are lines of the record or stand in the inventory. Where
    ``record`` has the same line already, and its attempt was neither refused nor came to an end since, that line is
    returned: trying again is not another plan.
    """
    if kind == "planned" and not attempt:
        attempt = _plan.attempt_id(fields["plan"], _new_image(fields))
    if kind == "planned":
        fields = {
            **fields,
            "plan": _without(fields["plan"], "prices", "options"),
            "request": _without(fields["request"], "arms"),
        }
    for entry in reversed(record):
        if entry["attempt"] == attempt and entry["kind"] in ("refused", *_ENDS):
            break
        if (entry["kind"], entry["host"], entry["service"], entry["attempt"]) == (kind, host, service, attempt) and all(
            entry.get(name) == value for name, value in fields.items()
        ):
            return dict(entry)
    return _records.entry(kind, host, service, attempt, **fields)


def _new_image(planned: t.Mapping[str, t.Any]) -> str | None:
    """The image that a plan is for, where it is another than the one that runs."""
    image = planned.get("image")
    return image if image != planned.get("image_before") else None


def _without(value: t.Mapping[str, t.Any], *names: str) -> dict[str, t.Any]:
    return {key: item for key, item in value.items() if key not in names}


def record_entries(
    verdicts: t.Sequence[t.Mapping[str, t.Any]],
    predictions: t.Sequence[t.Mapping[str, t.Any]],
    probes: t.Mapping[str, t.Any],
    host: str,
    service: str,
    attempt: str | None,
) -> list[dict[str, t.Any]]:
    """The lines of an attempt's end: what the probes measured, if any ran, and each verdict that is not open."""
    lines = []
    if any(probes.get(name) for name in ("calibration", "boundary", "rates")):
        measured = {name: probes.get(name) for name in ("calibration", "boundary", "rates")}
        lines.append(_records.entry("probed", host, service, attempt, **measured))
    quantities = {item["id"]: item["quantity"] for item in predictions}
    for item in verdicts:
        if item["verdict"] != "open":
            own = {name: item[name] for name in ("verdict", "measured", "says")}
            lines.append(
                _records.entry(
                    "verdict",
                    host,
                    service,
                    attempt,
                    prediction=item["id"],
                    quantity=quantities[item["id"]],
                    **own,
                )
            )
    return lines


def refused_entries(run: t.Mapping[str, t.Any], host: str) -> list[dict[str, t.Any]]:
    """The line of a run whose switch was refused before it stopped anything; none where it got further, or was lost.

    ``run`` has ``service``, ``making``, ``switched`` (the result of service_switch) and ``failure``.
    """
    phases = run["switched"].get("phases") or []
    if not run["making"] or run["failure"]["word"] != "refused" or not phases or phases[-1]["name"] not in _HARMLESS:
        return []
    own = {"phase": phases[-1]["name"], "says": phases[-1]["says"]}
    return [_records.entry("refused", host, str(run["service"]["name"]), run["making"]["attempt"], **own)]


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
    return next((entry for entry in reversed(attempt) if entry["kind"] in _ENDS), None)


def refused(attempt: t.Sequence[Entry]) -> Entry | None:
    """Why an attempt came to nothing: its last refused line, where nothing has ended it since."""
    last = next((entry for entry in reversed(attempt) if entry["kind"] in ("refused", *_ENDS)), None)
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
                "says": entry["says"] if entry else "",
            }
        )
    return out


def history(record: t.Sequence[Entry], pair: t.Mapping[str, t.Any], making: Entry | None = None) -> dict[str, t.Any]:
    """What the record tells about the pair in force.

    ``making`` is the planned line of a plan that is about to run: files that are rendered for it speak of it.

    Returns ``{made, predictions, failed, stated, outage_seconds, outage_at}``: ``made`` the planned line of the attempt
    that put ``pair`` there (None: it was taken over as found), ``predictions`` its predictions with their verdicts,
    ``failed`` the attempts after it that were rolled back ([{at, to, image, phase, says, predictions}], only what was
    not held), ``stated`` whether a command stated the pair, ``outage_seconds`` of the last switch on record that held
    (an attempt that failed tells how long failing took) and ``outage_at`` its time, both None without one.
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
                    "image": _new_image(attempt[0]),
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
        "predictions": judged(made) if made else [],
        "failed": failed,
        "stated": bool(made and isinstance(made[0]["request"].get("pair"), dict)),
        "outage_seconds": last["downtime_seconds"] if last else None,
        "outage_at": last["at"] if last else None,
    }


def _same_pair(one: t.Mapping[str, t.Any], other: t.Mapping[str, t.Any]) -> bool:
    return all(str(one.get(name)) == str(other.get(name)) for name in _words.ENV_OF)


def way_back(record: t.Sequence[Entry], to: t.Any, undo: str) -> dict[str, t.Any]:
    """Where ``to=previous`` or ``to=<record id>`` leads: ``{to, image, returns_to, says, ran}``.

    ``previous`` is what ran before the last attempt that switched. An id means the pair and shape that its line put in
    force: the ``to`` of a planned, switched, rollback or adopted line, and of a rolled_back line what ran again after
    it. So it is with its image, which is None where the line has none and the image in force stays. ``ran`` is whether
    that pair and shape ever served: an attempt may have been planned and not held. ``undo`` is the command that returns
    to the previous pair.
    Raises RadianceError ``nothing_to_return_to``.
    """
    switched = [attempt for attempt in attempts(record) if (ended_by(attempt) or {}).get("kind") == "switched"]
    if to == "previous":
        if not switched:
            raise RadianceError(
                "The record holds no switch, so there is no previous pair to return to. State one:\n"
                f"{_commands.beside(undo)} -e weights_mib=… -e kv_mib=…",
                code="nothing_to_return_to",
            )
        entry = switched[-1][0]
        return _return_to(entry["plan"]["from"], _image_before(entry), entry, True)
    held = {attempt[0]["attempt"] for attempt in switched}
    for entry in record:
        if entry["id"] == to and _put_in_force(entry):
            ran = entry["kind"] in ("switched", "rolled_back", "adopted") or entry["attempt"] in held
            return _return_to(_put_in_force(entry), entry.get("image"), entry, ran)
    # A planned line may have come to nothing; what ended an attempt tells what served.
    found = [
        entry for entry in record if entry["kind"] in ("switched", "rolled_back", "adopted") and _put_in_force(entry)
    ]
    several = len({entry.get("image") for entry in found}) > 1
    choices = [_choice(entry, several) for entry in found]
    raise RadianceError(
        "\n".join(
            [
                f"to={to} names no line of the record that holds a pair"
                + (". Say to=previous, or the id of one of these:" if choices else ", and no line holds any."),
                *choices,
                *([f"Which of them can be had: {_commands.beside(undo, 'rollback')} -e to=list"] if choices else []),
            ]
        ),
        code="nothing_to_return_to",
    )


def _image_before(planned: Entry) -> str | None:
    """What ran when a plan was made, by its digest where that is known: a tag may mean another image since."""
    image, digest = planned.get("image_before"), planned.get("image_digest_before")
    return f"{container.repository(image)}@{digest}" if image and digest and "@" not in image else image


def _choice(entry: Entry, with_image: bool = False) -> str:
    """A line that a person can choose, short enough for the column of the summary, but for an image."""
    to = _put_in_force(entry)
    sequences, context = _words.number(to.get("max_num_seqs")), _words.number(to.get("max_model_len"))
    shape = f"{sequences} x {context}, {to.get('kv_cache_dtype')}, depth {to.get('num_speculative_tokens')}"
    image = f", {entry.get('image') or _words.UNKNOWN}" if with_image else ""
    return f"{entry['id']} {entry['at']} {_words.pair(to)}, {shape}{image}"


def _put_in_force(entry: Entry) -> dict[str, t.Any]:
    """The pair and shape that a line put in force, empty where it put none there."""
    if entry["kind"] == "planned":
        return dict(entry["plan"]["to"])
    return dict(entry["to"] or {}) if entry["kind"] in ("switched", "rolled_back", "rollback", "adopted") else {}


def rolled_back_before(record: t.Sequence[Entry], to: t.Mapping[str, t.Any], image: str | None = None) -> list[str]:
    """A sentence where the last try of this very pair and shape, and of ``image`` if it is another, was rolled back."""
    planned = {entry["attempt"]: _new_image(entry) for entry in record if entry["kind"] == "planned"}
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


def _return_to(pair: t.Mapping[str, t.Any], image: str | None, entry: Entry, ran: bool) -> dict[str, t.Any]:
    # A pool that the engine derived is only known as printed, and it is stated in whole MiB: not more than it was.
    to = {name: math.floor(value) if isinstance(value, float) else value for name, value in pair.items()}
    to = {name: to.get(name) for name in _words.ENV_OF}
    says = f"returning to {_words.pair(to)} of record {entry['id']}"
    return {"to": to, "image": image, "returns_to": entry["id"], "says": says, "ran": ran}
