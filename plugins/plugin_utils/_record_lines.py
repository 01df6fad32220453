# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines for the record of a service: what was planned, refused, measured and judged."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _plan, _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import pair_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import BEFORE_STOP
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _history

Entry = t.Mapping[str, t.Any]


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
        attempt = _plan.attempt_id(fields["plan"], _history.new_image(fields))
    if kind == "planned":
        fields = {**fields, **_kept(fields["plan"], fields["request"])}
    for entry in reversed(record):
        if entry["attempt"] == attempt and entry["kind"] in ("refused", *_history.ENDS):
            break
        if (entry["kind"], entry["host"], entry["service"], entry["attempt"]) == (kind, host, service, attempt) and all(
            entry.get(name) == value for name, value in fields.items()
        ):
            return dict(entry)
    return _records.entry(kind, host, service, attempt, **fields)


def carried_out(reviewed: t.Mapping[str, t.Any], made: Entry | None) -> bool:
    """Whether ``made``, the planned line that made the pair in force, is of the ``reviewed`` item of a plan file."""
    return made is not None and _kept(made["plan"], made["request"]) == _kept(reviewed["plan"], reviewed["request"])


def late_verdicts(
    record: t.Sequence[Entry], ledger: t.Mapping[str, t.Any], host: str, service: str
) -> list[dict[str, t.Any]]:
    """The verdicts that a switch is owed whose run was gone before it could judge, by the boot that it was.

    None where the boot that runs is another one, or has any verdict.
    """
    told = _history.history(record, pair_of(ledger.get("flags") or {}))
    switched = told["switched"] or {}
    boot = (switched.get("ledger") or {}).get("fingerprint")
    judged = any(item["verdict"] != "open" for item in told["predictions"])
    if judged or not boot or boot != ledger["fingerprint"] or ledger["status"] != "complete":
        return []
    verdicts = _plan.verdicts(told["predictions"], dict(ledger))
    return record_entries(verdicts, told["predictions"], {}, host, service, switched["attempt"])


def _kept(plan: t.Mapping[str, t.Any], request: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What a planned line keeps of both."""
    return {"plan": _without(plan, "prices", "options"), "request": _without(request, "arms")}


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
            own = {name: item[name] for name in ("verdict", "measured", "plus_minus", "says")}
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
    if not run["making"] or run["failure"]["word"] != "refused" or not phases or phases[-1]["name"] not in BEFORE_STOP:
        return []
    own = {"phase": phases[-1]["name"], "says": phases[-1]["says"]}
    return [_records.entry("refused", host, str(run["service"]["name"]), run["making"]["attempt"], **own)]
