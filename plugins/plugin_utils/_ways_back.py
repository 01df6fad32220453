# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a way back leads, and for ``to=list`` each pair that served, with its image, and whether it can be had."""

from __future__ import annotations

import math
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import SHAPE_NAMES
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _commands, _history, _words

Entry = t.Mapping[str, t.Any]
Looked = t.Mapping[str, t.Any]

# How the runtimes say that they do not have an image: docker by 1, podman by 125.
_ABSENT = (1, 125)
# The lines of the record that tell what served.
_SERVED = (*_history.ENDS, "adopted")


def way_back(record: t.Sequence[Entry], to: t.Any, undo: str) -> dict[str, t.Any]:
    """Where ``to=previous`` or ``to=<record id>`` leads: ``{to, image, returns_to, says, ran}``.

    ``previous`` is what ran before the last attempt that switched. An id means the pair and shape that its line put in
    force: the ``to`` of a planned, switched, rollback or adopted line, and of a rolled_back line what ran again after
    it. So it is with its image, which is None where the line has none and the image in force stays. ``ran`` is whether
    that pair and shape ever served: an attempt may have been planned and not held. ``undo`` is the command that returns
    to the previous pair.
    Raises RadianceError ``nothing_to_return_to``.
    """
    switched = [
        attempt for attempt in _history.attempts(record) if (_history.ended_by(attempt) or {}).get("kind") == "switched"
    ]
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
            ran = entry["kind"] in _SERVED or entry["attempt"] in held
            return _return_to(_put_in_force(entry), entry.get("image"), entry, ran)
    # A planned line may have come to nothing; what ended an attempt tells what served.
    found = [entry for entry in record if entry["kind"] in _SERVED and _put_in_force(entry)]
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
    image = f", {entry.get('image') or _words.UNKNOWN}" if with_image else ""
    return f"{entry['id']} {entry['at']} {_words.pair(to)}, {_shape(to)}{image}"


def _put_in_force(entry: Entry) -> dict[str, t.Any]:
    """The pair and shape that a line put in force, empty where it put none there."""
    if entry["kind"] == "planned":
        return dict(entry["plan"]["to"])
    return dict(entry["to"] or {}) if entry["kind"] in (*_SERVED, "rollback") else {}


def _return_to(pair: t.Mapping[str, t.Any], image: str | None, entry: Entry, ran: bool) -> dict[str, t.Any]:
    # A pool that the engine derived is only known as printed, and it is stated in whole MiB: not more than it was.
    to = {name: math.floor(value) if isinstance(value, float) else value for name, value in pair.items()}
    to = {name: to.get(name) for name in _words.ENV_OF}
    says = f"returning to {_words.pair(to)} of record {entry['id']}"
    return {"to": to, "image": image, "returns_to": entry["id"], "says": says, "ran": ran}


def images(record: t.Sequence[Entry]) -> list[str]:
    """The images of all ways back, each once."""
    return list(dict.fromkeys(str(way["image"]) for way in ways_back(record) if way["image"]))


def ways_back(record: t.Sequence[Entry]) -> list[dict[str, t.Any]]:
    """``{id, at, to, image, in_force}`` of what served, newest first, led by ``previous`` where that leads anywhere.

    ``in_force`` is whether the record has it as what runs now.
    """
    served = [entry for entry in record if entry["kind"] in _SERVED and entry["to"]]
    ways = [
        {"id": entry["id"], "at": entry["at"], "to": entry["to"], "image": entry.get("image"), "in_force": False}
        for entry in reversed(served)
    ]
    if ways:
        ways[0]["in_force"] = True
    try:
        back = way_back(record, "previous", "")
    except RadianceError:
        return ways
    at = next((entry["at"] for entry in record if entry["id"] == back["returns_to"]), _words.UNKNOWN)
    return [{"id": "previous", "at": at, "to": back["to"], "image": back["image"], "in_force": False}, *ways]


def ways_back_report(
    record: t.Sequence[Entry], service: t.Mapping[str, t.Any], host: str, about: t.Mapping[str, t.Any]
) -> list[str]:
    """The lines of the list.

    ``about``: ``unread``, why the record on the host could not be read, where it could not; ``looked``, what became of
    looking for each image (results of a loop over ``__endpoint_image``), ``undo``, the command that returns to the
    previous pair.
    """
    head = f"{service['name']} on {host}: what there is to return to, the newest first"
    unread = about.get("unread")
    notes = []
    if unread:
        notes = [f"  The record in the fleet directory alone; the host's cannot be read: {_words.one_line(unread)}"]
    ways, undo = ways_back(record), str(about["undo"])
    if not ways:
        state = f"{_commands.beside(undo)} -e weights_mib=… -e kv_mib=…"
        return [head, *notes, "  nothing: no switch is on record. State a pair:", f"  {state}"]
    looked = {str(one["__endpoint_image"]): one for one in about.get("looked") or []}
    rows = [["to=", "when", "pair (slab + pool)", "shape", "image", "available"]]
    for way in ways:
        image = way["image"]
        shown = re.sub(r"(@sha256:[0-9a-f]{12})[0-9a-f]+", r"\1…", image) if image else _words.UNKNOWN
        can = _available(way, looked.get(str(image)), service, bool(unread))
        rows.append([way["id"], way["at"], _words.pair(way["to"]), _shape(way["to"]), shown, can])
    return [head, *notes, *_words.table(rows), f"  {_commands.beside(undo, 'rollback')} -e to=ID"]


def _shape(to: t.Mapping[str, t.Any]) -> str:
    """The shape in as few words as a line of several has room for."""
    sequences, context, dtype, depth = (_words.number(to.get(name)) for name in SHAPE_NAMES)
    return f"{sequences} x {context}, {dtype}, depth {depth}"


def _available(way: t.Mapping[str, t.Any], looked: Looked | None, service: t.Mapping[str, t.Any], unread: bool) -> str:
    """Whether it can be had, and why not where it cannot."""
    if way["in_force"]:
        return "runs now, by the record"
    if not service.get("runtime"):
        return "yes" if not unread else "not known while the host does not answer"
    if not way["image"]:
        return "yes, with the image in force: the record has none of it"
    if looked is None or looked.get("unreachable"):
        return "not known while the host does not answer"
    if looked.get("rc") == 0:
        return "yes, the host has its image"
    if looked.get("rc") in _ABSENT:
        return f"no: the host does not have its image; {service['runtime']} pull {way['image']}"
    return f"not known: {_words.one_line(looked.get('msg') or 'the runtime did not say')}"
