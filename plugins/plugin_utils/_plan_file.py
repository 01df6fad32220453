# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan files: what plan.yml writes down for a review, and what of a reviewed one runs."""

from __future__ import annotations

import json
import pathlib
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import read_regular
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _commands, _schemas


def plan_file(planned: t.Mapping[str, t.Sequence[t.Mapping[str, t.Any]]]) -> dict[str, t.Any]:
    """The content of a plan file, from the planned runs of each host."""
    plans = [
        {"host": host, "service": run["service"]["name"], "request": run["options"], "plan": run["plan"]}
        for host, runs in planned.items()
        for run in runs
    ]
    return {"schema": "kvfleet.radiance/plan-file/1", "plans": plans}


def reviewed_plan(path: str, host: str, service: str) -> dict[str, t.Any]:
    """The item of the plan file ``path`` for this host and service.

    Raises RadianceError ``plan_file_unreadable``, naming the file and what is wrong, and ``not_in_plan_file``.
    """
    plans = _read(path, _anew(host, service))["plans"]
    for item in plans:
        if (item["host"], item["service"]) == (host, service):
            return dict(item)
    there = ", ".join(f"{item['service']} on {item['host']}" for item in plans) or "nothing"
    raise RadianceError(
        f"The plan file plans {there}, not {service} on {host}. Exactly what was reviewed runs, or nothing.",
        code="not_in_plan_file",
    )


def _anew(host: str, service: str) -> str:
    """How a plan file comes to be, on a line of its own."""
    plan = _commands.playbook("plan", host, service, "-e plan_file=FILE")
    return f"Write a new one, with what it shall ask for beside it:\n{plan}"


def _read(path: str, anew: str) -> dict[str, t.Any]:
    file = pathlib.Path(path).expanduser()
    try:
        content = json.loads(read_regular(str(file)).decode("utf-8"))
    except OSError as error:
        wrong = f"cannot be read: {error.strerror}"
    except (ValueError, RecursionError) as error:
        wrong = f"is not JSON: {error}"
    else:
        found = _schemas.problems(content, "plan-file")
        if not found:
            return t.cast("dict[str, t.Any]", content)
        wrong = f"is no plan file: {'; '.join(found[:3])}"
    raise RadianceError(
        f"plan={path}: {file.absolute()} {wrong}. {anew}",
        code="plan_file_unreadable",
    )


def hold_to_reviewed(plan: t.Mapping[str, t.Any], reviewed: t.Mapping[str, t.Any]) -> None:
    """Hold ``plan`` to the one that was reviewed.

    Raises RadianceError ``plan_is_stale``, another boot runs than the one that the reviewed plan was made from, and
    ``plan_differs``, the same boot, and yet another plan (an edited file, another release of this collection).
    """
    before, anew = reviewed["plan"], _anew(reviewed["host"], reviewed["service"])
    if before.get("fingerprint") != plan["fingerprint"]:
        raise RadianceError(
            f"The reviewed plan was made from the boot with fingerprint {before.get('fingerprint')}, "
            f"and the boot that runs now has {plan['fingerprint']}: the service was restarted since. Nothing was "
            f"changed. {anew}",
            code="plan_is_stale",
        )
    different = sorted(name for name in {*before, *plan} if before.get(name) != plan.get(name))
    if different:
        raise RadianceError(
            f"The reviewed plan and the one that its request gives now differ in {', '.join(different)}. "
            f"Nothing was changed. {anew}",
            code="plan_differs",
        )
