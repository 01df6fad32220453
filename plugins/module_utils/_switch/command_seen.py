# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line that a service runs with, by its unit or its pid file, and the program that starts it.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import shlex
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import masked_argv
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import process, unit


def running_command(
    service: str, manager: str | None, unit_name: str | None, pid_file: str | None, log: str | None
) -> dict[str, t.Any]:
    """``{manager, unit, scope, program, argv}`` of what runs: ``program`` are the words of the unit's ExecStart.

    Without ``manager`` it is a process where there is a ``pid_file``, else the unit of the system, else of the user.
    ``argv`` is as the kernel has it, with its secrets masked. Raises RadianceError ``unit_inactive``, ``unit_absent``,
    ``process_absent`` and those of the readers.
    """
    if manager == "process" or (manager is None and pid_file):
        return _of_process(service, pid_file, log)
    name = unit_name or f"{service}.service"
    if manager is not None:
        return _of_unit(manager, unit.show(name, unit.SCOPES[manager]))
    found = {wanted: _seen(name, scope) for wanted, scope in unit.SCOPES.items()}
    for wanted, state in found.items():
        if state is not None and state.load_state == "loaded" and state.runs:
            return _of_unit(wanted, state)
    raise RadianceError(
        f"Neither the systemd of the system nor that of this user runs {name}. Name the unit in `unit` of {service}, "
        "or start it; a plain process has `log` and `pid_file`.",
        code="unit_absent",
    )


def _seen(name: str, scope: str) -> unit.Unit | None:
    """How the unit stands; None where this manager does not answer, as a user's does not to another user."""
    try:
        return unit.show(name, scope)
    except RadianceError:
        return None


def _of_process(service: str, pid_file: str | None, log: str | None) -> dict[str, t.Any]:
    found = process.running(pid_file, log) if pid_file else None
    if found is None:
        raise RadianceError(
            f"{pid_file or 'No pid_file'} names no process of {service} that runs. Start it by its serve script, and "
            f"name its `pid_file` and its `log` in the inventory.",
            code="process_absent",
        )
    return {"manager": "process", "unit": None, "scope": None, "program": [], "argv": masked_argv(found.argv)}


def _of_unit(manager: str, state: unit.Unit) -> dict[str, t.Any]:
    scope = unit.SCOPES[manager]
    if state.load_state != "loaded":
        raise RadianceError(
            f"The systemd of the {scope} has no unit {state.name} ({state.load_state}). Name the one that runs the "
            "serve script in `unit`.",
            code="unit_absent",
        )
    found = process.of(state.main_pid) if state.main_pid and state.runs else None
    if found is None:
        status = shlex.join(unit.argv(scope, "status", state.name))
        raise RadianceError(
            f"{state.name} runs nothing: it is {state.active_state} ({state.sub_state}). Start it, and have its script "
            f"`exec` the engine or its container in the foreground; `{status}` tells more.",
            code="unit_inactive",
        )
    if state.outdated:
        raise RadianceError(
            f"The file of {state.name} has changed since systemd read it, so a start would run something else. Have "
            f"it read: {shlex.join(unit.argv(scope, 'daemon-reload'))}.",
            code="unit_outdated",
        )
    return {
        "manager": manager,
        "unit": state.name,
        "scope": scope,
        "program": unit.program(state.name, scope),
        "argv": masked_argv(found.argv),
    }
