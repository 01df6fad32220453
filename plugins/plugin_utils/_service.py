# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an item of endpoint_services means: what starts it, where its boot is read, and the command of its engine."""

from __future__ import annotations

import math
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.unit import SCOPES
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.process_manager import ProcessManager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.systemd_manager import SystemdManager
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _container_options, _schemas

Service = t.Mapping[str, t.Any]


def require_fit(service: Service) -> None:
    """Hold an item to its schema. Raises RadianceError ``service_unfit``, which names each place that differs."""
    found = _schemas.problems(service, "service")
    if found:
        name = str(service.get("name"))
        raise RadianceError(
            f"This is no service, {name!r} of endpoint_services: {'; '.join(found)}.", code="service_unfit"
        )


def endpoint_of(service: Service) -> str:
    """The base URL of a service, as its host reaches it."""
    return str(service.get("endpoint") or f"http://127.0.0.1:{service['port']}")


def managed_by(service: Service) -> dict[str, t.Any]:
    """What starts a service and where its boot is read: ``{manager, scope, unit, source, name, container}``.

    ``name`` is what the source knows it by: the container, the unit for journald, the service for a file. ``unit`` and
    ``container`` are None where there is none.
    """
    manager = str(service.get("manager") or "process")
    runtime, name = service.get("runtime"), str(service["name"])
    unit = None if manager == "process" else str(service.get("unit") or f"{name}.service")
    container = str(service.get("container") or name) if runtime else None
    source = str(service.get("source") or runtime or ("journald" if unit else "file"))
    return {
        "manager": manager,
        "scope": SCOPES.get(manager, "system"),
        "unit": unit,
        "source": source,
        "name": (unit if source == "journald" else container) or name,
        "container": container,
    }


def engine_command(service: Service, stop_seconds: float | None = None) -> list[str]:
    """The words that start the engine, up to its image or its first flag.

    ``stop_seconds`` is how long a switch waits for it to end; None leaves that to the runtime.
    Raises RadianceError ``container_options_unfit``.
    """
    if not service.get("runtime"):
        return [str(word) for word in service["engine"]]
    _container_options.require_fit(service)
    runtime = str(service["runtime"])
    # A client that was killed leaves its container: podman puts the new one in its place, and for docker there is
    # leftover_command.
    replace = ["--replace"] if runtime == "podman" else []
    name = str(managed_by(service)["container"])
    # With --init an engine that is still loading ends on SIGTERM: a first process ignores what it has no handler for.
    words = [runtime, "run", "--rm", *replace, "--name", name, "--init", "--network", "host"]
    options = [str(word) for word in service.get("container_options") or []]
    # Whoever stops the container by the runtime gives the engine as long as a switch does, and not ten seconds.
    if stop_seconds is not None and "--stop-timeout" not in dict(_container_options.options_of(service)):
        words += ["--stop-timeout", str(math.ceil(stop_seconds))]
    return [*words, *options]


def leftover_command(service: Service) -> list[str]:
    """The words that remove a container whose client was killed; none where the start itself puts it away."""
    if service.get("runtime") != "docker":
        return []
    return ["docker", "rm", "--force", str(managed_by(service)["container"])]


def start_command(service: Service, start: str) -> str:
    """The shell command that starts a service as the switch does, ``start`` being the path of its serve script."""
    managed = managed_by(service)
    manager: Manager
    if managed["unit"] is None:
        manager = ProcessManager([start], str(service["pid_file"]), str(service["log"]))
    else:
        manager = SystemdManager(managed["unit"], managed["scope"], managed["source"], managed["name"], start)
    return "; ".join(manager.by_hand(None, []))


def gone_words(
    service: Service,
    start: str,
    read: t.Mapping[str, t.Any] | None = None,
    others: t.Sequence[t.Mapping[str, t.Any]] = (),
    handover: bool = False,
) -> str:
    """What to tell where no engine of the service was found, with the way out.

    ``others``: the services that are declared on its cards; ``handover``: whether it was asked for.
    """
    return _gone(service, start, read) + _about_handover(service, others, handover)


def _about_handover(service: Service, others: t.Sequence[t.Mapping[str, t.Any]], handover: bool) -> str:
    name, names = service["name"], " and ".join(str(other["service"]) for other in others)
    if handover:
        return (
            f"\n\nNo whole receipt of an earlier boot of {name} is on the host, so there is nothing that a handover "
            f"could be planned from. Stop {names or 'what has its cards'} and start {name} by the command above, once."
        )
    if not others:
        return ""
    return (
        f"\n\nWhere {names} is to give up its cards for it: -e service={name} -e handover=true stops {names} and "
        f"starts {name} in its place."
    )


def _gone(service: Service, start: str, read: t.Mapping[str, t.Any] | None) -> str:
    """As ``gone_words``, of the service alone.

    ``read`` is the result of a reading that failed, which has its own words; a container's runtime does not know the
    unit that starts it. Without it a complete boot was read, and no command line of an engine.
    """
    managed = managed_by(service)
    name, command = service["name"], start_command(service, start)
    if read is not None:
        said = str(read.get("msg") or "")
        return f"{said}\n\n{command}" if read.get("code") == "container_absent" else said
    if managed["source"] == "journald":
        return (
            f"The journal of {managed['unit']} has a complete boot, and its main process has no command line of an "
            f"engine, so the pair in force is not known. Where the unit runs a container, declare `runtime` and "
            f"`image` of {name}; where nothing runs, start it on the host, then run this again:\n\n{command}"
        )
    if managed["container"]:
        return (
            f"The container {managed['container']} has a complete boot and no flags of an engine on its command line, "
            f"so the pair in force is not known. Start {name} by its serve script, then run this again:\n\n{command}"
        )
    return (
        f"The log {service['log']} ends with a complete boot, and {service['pid_file']} names no process that wrote "
        f"it: {name} is not serving. Start it on the host, then run this again:\n\n{command}"
    )
