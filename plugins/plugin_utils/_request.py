# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what a command asks and the inventory declares to the options of ``pair_plan``."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import SOFT_GATES
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import SHAPE_NAMES
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import (
    _container_options,
    _image,
    _not_after,
    _plan_file,
    _probation,
)
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._arms import known_arms
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._words import ENV_OF

# What a command may ask, by its bare -e name.
REQUEST = (
    "service",
    "max_num_seqs",
    "max_model_len",
    "kv_cache_dtype",
    "num_speculative_tokens",
    "weights_mib",
    "kv_mib",
    "host_pool_mib",
    "backing",
    "backing_reason",
    "reserve_mib",
    "reserve_reason",
    "reserved_for_others_mib",
    "live_sessions",
    "tp",
    "image",
    "engine_version",
    "accept",
    "fill",
    "plan",
    "drift",
    "probes",
    "probation",
    "handover",
    "not_after",
    "after_stop",
    "to",
)
_PASSED = (
    "min_gain_mib",
    "shape_margin_mib",
    "backing",
    "backing_reason",
    "reserve_mib",
    "reserve_reason",
    "reserved_for_others_mib",
    "live_sessions",
    "kv_model",
    "accept",
)


def truth(value: t.Any, name: str) -> bool:
    """A yes or no from a command line, where everything is text. Raises RadianceError ``not_a_yes_or_no``."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("true", "yes", "on", "1"):
        return True
    if word in ("false", "no", "off", "0", ""):
        return False
    raise RadianceError(f"{name} is {value!r}. Write {name}=true or {name}=false.", code="not_a_yes_or_no")


PROBES = ("none", "quick", "full")
_CLOSED = {
    "probes": PROBES,
    "drift": ("apply", "adopt"),
    "backing": ("full", "one_request"),
    "after_stop": ("leave", "undo"),
}


def request_objection(request: t.Mapping[str, t.Any], services: t.Sequence[t.Mapping[str, t.Any]], host: str) -> str:
    """Why a command can be refused before the host is read, in a sentence; empty where it cannot.

    Words that it does not know, a service that the host does not have, a plan file that is none, and what the
    inventory tells a container runtime that would hide the engine.
    """
    if not isinstance(services, (list, tuple)) or not all(isinstance(service, t.Mapping) for service in services):
        return (
            f"endpoint_services of {host} is no list of services. See `A service` in the README of the role endpoint."
        )
    try:
        for name, words in _CLOSED.items():
            if request.get(name) is not None and request[name] not in words:
                listed = f"{', '.join(words[:-1])} or {words[-1]}"
                return f"{name} is {str(request[name])!r}. Write {name}={listed}."
        _pair({}, {name: value for name, value in request.items() if value not in (None, "")}, False, {})
        _not_after.deadline(request.get("not_after"))
        said = _structure_words(request) or _image_words(request)
        if said:
            return said
        if not services:
            return f"{host} declares no endpoint_services in the inventory."
        names = [str(service["name"]) for service in services if service.get("name")]
        odd = next((name for name in names if not name.isprintable() or name.split() != [name]), None)
        if odd is not None:
            # Its schema would refuse it too, and name it in a table.
            return f"{host} declares {odd!r} in endpoint_services. Name a service in one word."
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            return (
                f"{host} declares {twice!r} more than once in endpoint_services. Give each service a name of its own."
            )
        meant = chosen(services, request.get("service"))
        if not meant:
            known = ", ".join(str(service.get("name")) for service in services)
            return f"service={request['service']} is not declared on this host. Its endpoint_services are: {known}."
        handover = truth(request.get("handover", False), "handover")
        if handover and len(meant) > 1:
            return "handover=true: say which service gets the cards, with service=NAME."
        if handover and request.get("after_stop") == "undo":
            return (
                "handover=true with after_stop=undo: a run does not hand cards back. Say after_stop=leave; the plan "
                "names the command that hands them back."
            )
        said = _probation.probation_words(request, meant)
        if said:
            return said
        for service in meant:
            if isinstance(service.get("container_options"), list):
                _container_options.require_fit(service)
        if request.get("plan") is not None:
            for service in meant:
                _plan_file.reviewed_plan(str(request["plan"]), host, str(service.get("name")))
    except RadianceError as error:
        return error.text
    return ""


# What the command line takes as JSON alone: the kind, and how it is written.
_STRUCTURED: dict[str, tuple[type, t.Any]] = {
    "accept": (list, [{"gate": "GATE", "reason": "WHY"}]),
    "reserved_for_others_mib": (list, [{"card": 0, "mib": 2048, "reason": "WHO"}]),
    "live_sessions": (dict, {"sessions": 2}),
}


def _structure_words(request: t.Mapping[str, t.Any]) -> str:
    """What of a request is plain text and has to be JSON, with the argument to write, in a sentence."""
    for name, (kind, shown) in _STRUCTURED.items():
        value = request.get(name)
        if value in (None, "") or isinstance(value, kind):
            continue
        if name == "accept" and value in SOFT_GATES:
            shown = [{"gate": value, "reason": "WHY"}]
        return f"{name} is {str(value)!r}. Write it as JSON: -e '{json.dumps({name: shown})}'."
    return ""


def _image_words(request: t.Mapping[str, t.Any]) -> str:
    """What is wrong with a request for an image, in a sentence."""
    image, version = request.get("image"), request.get("engine_version")
    if image in (None, ""):
        if version in (None, ""):
            return ""
        return f"engine_version={version} says what another image holds: say image=… with it."
    if not _image.REFERENCE.fullmatch(str(image)):
        return f"image is {str(image)!r}. Write the name of an image, with its tag or digest: NAME@sha256:…"
    for name in ("to", "plan"):
        if request.get(name) is not None:
            said = f"image={image} and {name}={request[name]} were asked at once."
            return f"{said} {name} says which image: leave image out."
    return ""


def pair_request(
    service: t.Mapping[str, t.Any],
    request: t.Mapping[str, t.Any],
    *,
    record: t.Sequence[t.Mapping[str, t.Any]] = (),
    stated: bool = False,
    applied: t.Mapping[str, t.Any] | None = None,
    back: t.Mapping[str, t.Any] | None = None,
    image: t.Mapping[str, t.Any] | None = None,
    running: t.Mapping[str, t.Any] | None = None,
    made: t.Mapping[str, t.Any] | None = None,
) -> dict[str, t.Any]:
    """The options of ``pair_plan`` (all but the ledger) for one service, and ``image``, the reference that it is for.

    ``request`` is what the command asks (bare names), ``service`` what the inventory declares. A value of the command
    goes before a declared one; what neither has stays as it runs. ``record``: its arms join the declared ones.
    ``stated``: the pair in force was stated by a command, so that a declared fill leaves it alone. ``applied``: the env
    of the fleet directory, whose pair and shape stand in for a request where the command gives none (``drift=apply``).
    ``back``: what ``way_back`` returned; it is the whole request then, with every soft gate accepted, because it ran
    before. ``image``: what ``image_choice`` found of the image that is asked for, ``running`` the pair in force: one
    that was stated is stated again for another image, so that it stays a statement. ``made``: the planned line of the
    record that made the pair in force. Where the same command made it, ``fill=true`` looks for min_gain_mib like any
    fill: a run that is taken up again restarts nothing for what its own first boot had rounded.
    """
    measured = {"arms": known_arms(service, record), "stack": service.get("stack")}
    measured = {name: value for name, value in measured.items() if value}
    if image and not image["same"]:
        measured.update(image=image["image"], image_digest=image["digest"])
        measured.update({"engine_version": image["version"]} if image["version"] else {})
    if back:
        to = back["to"]
        halves = {name: to[name] for name in ("weights_mib", "kv_mib") if to.get(name) is not None}
        # What the boot of another image or shape says of the card does not refuse what that card has held.
        ran = {"ran_before": back["says"]} if back["ran"] else {}
        return {
            "shape": {name: to[name] for name in SHAPE_NAMES if to.get(name) is not None},
            "pair": halves or "fill",
            "accept": [{"gate": gate, "reason": back["says"]} for gate in SOFT_GATES],
            **ran,
            **measured,
        }
    asked = {name: value for name, value in request.items() if value not in (None, "")}
    applied = {name: applied[key] for name, key in ENV_OF.items() if key in (applied or {})} if applied else {}
    options: dict[str, t.Any] = {}
    shape = {}
    for name in SHAPE_NAMES:
        for source in (asked, applied, service):
            if source.get(name) not in (None, ""):
                shape[name] = source[name]
                break
    if shape:
        options["shape"] = shape
    options["pair"] = _pair(service, asked, stated, applied)
    pair = {name: (running or {}).get(name) for name in ("weights_mib", "kv_mib")}
    if stated and "image" in measured and options["pair"] == "keep" and all(pair.values()):
        options["pair"] = pair
    if truth(asked.get("fill", False), "fill"):
        options["min_gain_mib"] = 0
    for name in _PASSED:
        for source in (asked, service):
            if source.get(name) not in (None, "", [], {}) and name not in options:
                options[name] = source[name]
    options.update({name: asked[name] for name in ("host_pool_mib", "tp") if name in asked})
    options.update(measured)
    if made and made["request"] == {name: value for name, value in options.items() if name != "arms"}:
        options["min_gain_mib"] = service.get("min_gain_mib")
        if options["min_gain_mib"] is None:
            del options["min_gain_mib"]
    return options


def _pair(
    service: t.Mapping[str, t.Any], asked: t.Mapping[str, t.Any], stated: bool, applied: t.Mapping[str, t.Any]
) -> t.Any:
    halves = {name: asked[name] for name in ("weights_mib", "kv_mib") if name in asked}
    fill = truth(asked.get("fill", False), "fill")
    if halves and fill:
        raise RadianceError(
            "fill=true and a stated pair were asked at once. Ask for one of them.", code="request_contradicts_itself"
        )
    if halves:
        return halves
    if fill:
        return "fill"
    if applied.get("weights_mib") and applied.get("kv_mib"):
        return {"weights_mib": applied["weights_mib"], "kv_mib": applied["kv_mib"]}
    if stated:
        return "keep"
    return service.get("pair") or "keep"


def chosen(services: t.Sequence[t.Mapping[str, t.Any]], name: t.Any = None) -> list[t.Mapping[str, t.Any]]:
    """The services that a command means: those of the name that it gives, which may be none, or all."""
    return [service for service in services if name in (None, "") or service.get("name") == name]
