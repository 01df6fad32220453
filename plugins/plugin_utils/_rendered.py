# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a service as its plan would have them, held to their gates before anything restarts."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import (
    _documents,
    _env_text,
    _failure,
    _files,
    _gates,
    _history,
    _image,
    _managed_text,
    _record_lines,
    _templates,
)


def rendered_run(
    run: t.Mapping[str, t.Any], service: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any]
) -> dict[str, t.Any]:
    """A planned run with what roles/endpoint/README.md lists as set by files.

    ``history`` is then what the header will say, and ``failure`` why the plan cannot be written, or None. ``about``:
    ``host``, ``drift`` (what the command decides), ``env_path`` and ``serve_path`` (on the host), ``documents`` (kind
    to text, of the fleet directory), ``timeouts`` (in seconds, has stop), ``check`` and ``undo`` (the command).
    """
    try:
        return _rendered({**run, "service": service, "making": None, "failure": None}, service, about)
    except RadianceError as error:
        return {**run, "failure": _failure.refusal(error)}


def _rendered(run: dict[str, t.Any], service: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    host, plan, options = str(about["host"]), run["plan"], run["options"]
    runs_wins = run["drift"]["explained"] or about["drift"] == "adopt" or not run["fleet"]["exists"]
    in_force = run["drift"]["running"] if runs_wins else run["fleet"]["values"]
    values = _files.env_values(
        service, plan["to"], in_force, options.get("host_pool_mib"), options.get("image"), plan.get("from", {})
    )
    current = _managed_text.current_files(service, run, host, about["env_path"], about["serve_path"])
    run.update(values=values, before_values=in_force)
    if plan["restart"]:
        objection = _managed_text.unstated_objection(
            service, host, plan, options, current["fleet"]["env"]
        ) or _image.command_objection(service, values, options, run["ledger"])
        if objection:
            return _refused(run, objection)
        run["making"] = _line(run, service, host)
    history = run["history"] = _history.history(run["record"], plan["to"], run["making"])
    serve = _templates.serve_script(service, host, float(about["timeouts"]["stop"]))
    texts, there = (
        {
            "env": _env_text.env_text(values, service, host, history, current[side]["env"]),
            "serve": _managed_text.file_text(serve, "serve", service, host, current[side]["serve"]),
        }
        for side in ("fleet", "target")
    )
    texts["bats"] = bats_text(texts["env"], service, host, history, current["fleet"]["bats"])
    run.update(texts=texts, target_files=there)
    objections = [
        _documents.fleet_document(text, kind, run, about)["objection"] for kind, text in about["documents"].items()
    ]
    findings = _gates.file_gates(texts["env"], plan["to"], plan, service)
    if findings:
        name = _files.file_names(service, host)["env"]
        objections.append(f"The rendered {name} does not pass its gates: {' '.join(findings)}")
    return next((_refused(run, objection) for objection in objections if objection), run)


def bats_text(
    env: str, service: t.Mapping[str, t.Any], host: str, history: t.Mapping[str, t.Any], current: str | None = None
) -> str:
    """The gates of an env with this text; of a file that was adopted, ``current`` with its block written anew."""
    gates = _templates.gates_file(service, host, env, history)
    return _managed_text.file_text(gates, "bats", service, host, current)


def _refused(run: t.Mapping[str, t.Any], objection: str) -> dict[str, t.Any]:
    return {**run, "failure": _failure.failure({"msg": objection})}


def _line(run: t.Mapping[str, t.Any], service: t.Mapping[str, t.Any], host: str) -> dict[str, t.Any]:
    """The line of the record for a plan that restarts. It has the time in it."""
    image = run["values"].get("IMAGE")
    planned = {
        "plan": run["plan"],
        "request": run["options"],
        "image": image,
        "image_before": run["before_values"].get("IMAGE", image),
        "image_digest_before": run["ledger"]["source"]["image_digest"],
    }
    return _record_lines.record_entry(planned, "planned", host, str(service["name"]), record=run["record"])
