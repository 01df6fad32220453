# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other services on the cards of one: what the switch is told of them, and what the plan says of those that run."""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import whole_number
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _commands, _files, _plan_file, _service

Service = t.Mapping[str, t.Any]


def card_others(
    service: Service,
    services: t.Sequence[Service],
    host: str,
    target: str,
    request: t.Mapping[str, t.Any],
) -> list[dict[str, t.Any]]:
    """The services of ``services`` that are declared on cards of ``service``, as ``others`` of service_switch.

    ``target`` is the directory of the files on the host, ``request`` what the command asks: the part of a service is
    reserved where ``reserved_for_others_mib`` has something on each of the cards that both have. Raises RadianceError
    ``service_unfit``, and those of ``_plan_file.reviewed_plan``.
    """
    kept = {
        int(item["card"])
        for item in _reserved(service, host, request)
        if whole_number(item.get("mib", 0), f"reserved_for_others_mib of card {item.get('card')}")
    }
    found = []
    for other in services:
        theirs = other.get("cards")
        cards = sorted(card for card in service.get("cards") or [] if isinstance(theirs, list) and card in theirs)
        if not cards or other.get("name") == service["name"]:
            continue
        _service.require_fit(other)
        managed = _service.managed_by(other)
        told = {
            "service": other["name"],
            "manager": managed["manager"],
            "unit": managed["unit"],
            "start": [posixpath.join(target, _files.file_names(other, host)["serve"])],
            "pid_file": other.get("pid_file"),
            "path": other.get("log"),
            "source": managed["source"],
            "name": managed["container"],
            "cards": cards,
            "endpoint": _service.endpoint_of(other),
            "api_key_file": other.get("api_key_file"),
            "reserved": kept.issuperset(cards),
        }
        found.append({name: value for name, value in told.items() if value is not None})
    return found


def _reserved(service: Service, host: str, request: t.Mapping[str, t.Any]) -> t.Sequence[t.Mapping[str, t.Any]]:
    """What is kept free for others on the cards: as the reviewed plan says, or else the command, or the inventory."""
    name = "reserved_for_others_mib"
    if "plan" in request:
        return _plan_file.reviewed_plan(str(request["plan"]), host, str(service["name"]))["request"].get(name) or []
    return request.get(name) or service.get(name) or []


def _in_the_way(other: t.Mapping[str, t.Any], plan: t.Mapping[str, t.Any]) -> bool:
    """Beside one that runs as well, only a larger pair than runs has no room for certain."""
    if other["stance"] != "in_the_way":
        return False
    sums = []
    for side in (plan["to"], plan["from"]):
        pair = [side.get(name) for name in ("weights_mib", "kv_mib")]
        if None in pair or not other["both_run"]:
            return True
        sums.append(sum(pair))
    return bool(sums[0] > sums[1])


def refuse_taken(
    service: Service, others: t.Sequence[t.Mapping[str, t.Any]], plan: t.Mapping[str, t.Any], handover: bool
) -> None:
    """Raises RadianceError ``cards_taken`` where a restart is refused for who else runs on the cards.

    ``others`` is what service_switch told of those that run.
    """
    taken = [other for other in others if _in_the_way(other, plan)]
    if not taken or handover:
        return
    names = " and ".join(str(other["service"]) for other in taken)
    raise RadianceError(
        f"{' '.join(other['says'] for other in taken)} Nothing was changed. Stop {names}; or keep free "
        f"what it takes (reserved_for_others_mib, for each of these cards); or have its cards handed over: "
        f"-e service={service['name']} -e handover=true drains and stops {names}, and starts it again if this does "
        "not hold.",
        code="cards_taken",
    )


def handover_notes(
    service: Service,
    others: t.Sequence[t.Mapping[str, t.Any]],
    plan: t.Mapping[str, t.Any],
    handover: bool,
    undo: str,
) -> list[str]:
    """What a plan says of who else runs on the cards: what stays, and what is stopped, with the command back.

    ``undo`` is the command of the plan that undoes it.
    """
    back = hand_back(service, others, plan, handover, undo)
    notes = []
    for other in others:
        says = str(other["says"])
        if other["service"] in back:
            says += (
                f" It is drained and stopped for {service['name']}, and stays stopped where that holds. To hand the "
                f"cards back: {back[other['service']]}"
            )
        notes.append(says)
    return notes


def hand_back(
    service: Service,
    others: t.Sequence[t.Mapping[str, t.Any]],
    plan: t.Mapping[str, t.Any],
    handover: bool,
    undo: str,
) -> dict[str, str]:
    """Of each service that is stopped for this one, the command that hands the cards back to it, by its name."""
    if not handover:
        return {}
    again = _commands.beside(undo)
    return {
        name: f"{_commands.for_other(again, service['name'], name)} -e handover=true"
        for name in (str(other["service"]) for other in others if _in_the_way(other, plan))
    }
