# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is there and what is asked to the plan of a service, or to why there is none."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _plan
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import counted
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import (
    _container_notes,
    _drift,
    _expected_rates,
    _failure,
    _handover,
    _image,
    _known,
    _not_after,
    _plan_file,
    _plan_report,
    _probation,
    _record_lines,
    _rendered,
    _request,
    _ways_back,
)

Run = t.Mapping[str, t.Any]
_DIRTY = "The fleet directory has changes that are not committed; what is not pushed is lost where its checkout is."
_HELD_BACK = (
    "The inventory declares pair: fill, but a command stated the pair in force, so it stays; "
    "-e fill=true fills the card."
)

_LATE = "The run that made the pair in force has not judged its boot; {} of it are put on record when a resize ends."


def planned_run(
    service: t.Mapping[str, t.Any],
    read: t.Mapping[str, t.Any],
    request: t.Mapping[str, t.Any],
    about: t.Mapping[str, t.Any],
    inspected: t.Mapping[str, t.Any] | None = None,
) -> dict[str, t.Any]:
    """A run of ``known_run`` with its plan and the files of ``rendered_run``; or with ``failure``.

    What it has beside that is listed in roles/endpoint/README.md as set by plan.

    ``request`` is what the command asks. Where that is an image, ``asked`` names it and there is no plan yet: it takes
    ``inspected``, the result of the runtime's ``image inspect`` on the host. ``about`` is that of the two, and:
    ``handover``, ``read_only``, ``not_after`` (the deadline), ``timeouts``, ``probes`` and ``rate`` (as ``probes_cost``
    takes them), ``told`` (of a pair on probation) and ``uncommitted`` (whether the fleet directory has changes).
    """
    run = _known.known_run(service, read, about)
    if run["failure"]:
        return run
    try:
        run = _planned(run, request, about, inspected)
    except RadianceError as error:
        return {**run, "failure": _failure.refusal(error)}
    return run if run["asked"] else _rendered.rendered_run(run, service, about)


def _planned(
    run: Run, request: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any], inspected: t.Mapping[str, t.Any] | None
) -> dict[str, t.Any]:
    service, name = run["service"], str(run["service"]["name"])
    _refuse_drift(run, request)
    back = _ways_back.way_back(run["record"], request["to"], about["undo"]) if "to" in request else None
    reviewed = _plan_file.reviewed_plan(str(request["plan"]), about["host"], name) if "plan" in request else None
    asked = reviewed["request"] if reviewed else {"image": back["image"]} if back else request
    image = None
    if asked.get("image"):
        if inspected is None:
            return {**run, "asked": asked["image"]}
        image = _image.image_choice(
            service, asked["image"], inspected, run["ledger"], asked.get("engine_version"), run["record"]
        )
    options = reviewed["request"] if reviewed else _options(run, request, back, image)
    done = reviewed is not None and _record_lines.carried_out(reviewed, run["history"]["made"])
    if done:
        options = {**options, "pair": "keep"}
    plan = _plan.make_plan(run["ledger"], {name: value for name, value in options.items() if name != "image"})
    # What does not run is started, whatever changes.
    plan = {**plan, "restart": plan["restart"] or bool(run["down"])}
    if reviewed and (plan["changes"] or not done):
        _plan_file.hold_to_reviewed(plan, reviewed)
    if plan["restart"] and not about["read_only"]:
        _handover.refuse_taken(service, run["others"], plan, about["handover"])
    return {**run, "asked": None, "back": back, "image": image, "options": options, "plan": plan} | _told(
        run, request, about, options, plan, image
    )


def _refuse_drift(run: Run, request: t.Mapping[str, t.Any]) -> None:
    """Drift that nobody has decided, or that would take a flag from the process."""
    drift, decided = run["drift"], request.get("drift")
    _image.refuse_image(run["service"], request, drift["findings"])
    if drift["findings"] and not drift["explained"] and decided is None:
        raise RadianceError(
            f"{' '.join(item['says'] for item in drift['findings'])} Decide with -e drift=apply (the fleet directory "
            "wins) or -e drift=adopt (what runs wins).",
            code="drift",
        )
    if drift["lost"] and decided != "apply":
        raise RadianceError(f"{' '.join(drift['lost'])} Or let it go with -e drift=apply.", code="drift")


def _options(
    run: Run, request: t.Mapping[str, t.Any], back: t.Mapping[str, t.Any] | None, image: t.Mapping[str, t.Any] | None
) -> dict[str, t.Any]:
    return _request.pair_request(
        run["service"],
        request,
        record=run["record"],
        stated=run["history"]["stated"],
        applied=run["fleet"]["values"] if request.get("drift") == "apply" else None,
        back=back,
        image=image,
        running=_drift.running_pair(run["ledger"]),
        made=run["history"]["made"],
    )


def _told(
    run: Run,
    request: t.Mapping[str, t.Any],
    about: t.Mapping[str, t.Any],
    options: t.Mapping[str, t.Any],
    plan: t.Mapping[str, t.Any],
    image: t.Mapping[str, t.Any] | None,
) -> dict[str, t.Any]:
    """How long it may take, what undoes it, and the lines that a person reads: ``{needs, returns, undo, hands_back,
    report}``.
    """
    service = run["service"]
    # Before a service that was handed the cards another one ran, which is for the operator to bring back; and what
    # crashed and is started as it was has no other pair.
    returns = not run["down"] or (not about["handover"] and bool(plan["changes"]))
    stated = run["history"]["stated"]
    rates = _expected_rates.expected_rates(service, run["record"], run["ledger"])
    cost = {
        **{name: about[name] for name in ("timeouts", "probes")},
        "rate": {**about["rate"], "decode_tps": rates["decode_tps"]},
        **{name: run["history"][name] for name in ("outage_seconds", "outage_at")},
    }
    needs = _not_after.time_needed(plan, cost)
    notes = [
        *_handover.handover_notes(service, run["others"], plan, about["handover"], about["undo"]),
        *([_LATE.format(counted(len(run["late"]), "verdict"))] if run["late"] else []),
        *run["drift"]["notes"],
        *([_HELD_BACK] if service.get("pair") == "fill" and options["pair"] == "keep" and stated else []),
        *([_DIRTY] if about["uncommitted"] else []),
        *_probation.probation_notes(request.get("probation"), about["told"], plan["restart"]),
        *(_container_notes.container_notes(service) if plan["restart"] else []),
    ]
    more = {
        "host": about["host"],
        "service": service["name"],
        "undo": about["undo"],
        "fits": _not_after.fits_words(needs, about["not_after"]),
        "image": image,
        "notes": notes,
        "down": run["down"],
        "returns": returns,
        "record": run["record"],
        "brief": not about["read_only"],
    }
    report = _plan_report.plan_report(plan, {**cost, **more})
    return {
        "needs": needs,
        "returns": returns,
        "undo": about["undo"] if returns else "",
        "hands_back": _handover.hand_back(service, run["others"], plan, about["handover"], about["undo"]),
        "report": report,
    }
