# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an item of endpoint_services means: what starts it, where its boot is read, and the command of its engine."""

from __future__ import annotations

import math
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import is_secret
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.unit import SCOPES
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.process_manager import ProcessManager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.systemd_manager import SystemdManager
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _schemas

Service = t.Mapping[str, t.Any]

# What the serve script says itself, so that the switch finds the container again and sees it end.
_OWN_OPTIONS = {
    "--name": "the container is named by `container`",
    "--replace": "the serve script does it",
    "--rm": "the serve script does it",
    "--init": "the serve script does it",
    "--network": "the container has the network of the host, where the endpoint is probed",
    "--net": "the container has the network of the host, where the endpoint is probed",
    "--pod": "a pod has a network of its own, and the container that of the host, where the endpoint is probed",
    "--pod-id-file": "a pod has a network of its own, and the container that of the host, where the endpoint is probed",
    "--sig-proxy": "by it the runtime passes the stop of the unit on to the engine",
    "--attach": "all that the engine prints has to reach the journal of the unit",
    "-a": "all that the engine prints has to reach the journal of the unit",
    "--detach": "the unit runs the container in the foreground, so that it ends with it",
    "-d": "the unit runs the container in the foreground, so that it ends with it",
}
# Short options without a value, which others follow in the same word: -it, -dt, -ite NAME=VALUE.
_SHORT = "-[itPq]*"
# What becomes of a container's output with these log drivers: nobody can read the boot afterwards.
_UNREADABLE_DRIVERS = ("none", "passthrough", "passthrough-tty")


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
    container_objection(service)
    runtime = str(service["runtime"])
    # A client that was killed leaves its container: podman puts the new one in its place, and for docker there is
    # leftover_command.
    replace = ["--replace"] if runtime == "podman" else []
    name = str(managed_by(service)["container"])
    # With --init an engine that is still loading ends on SIGTERM: a first process ignores what it has no handler for.
    words = [runtime, "run", "--rm", *replace, "--name", name, "--init", "--network", "host"]
    options = [str(word) for word in service.get("container_options") or []]
    # Whoever stops the container by the runtime gives the engine as long as a switch does, and not ten seconds.
    if stop_seconds is not None and not any(word.partition("=")[0] == "--stop-timeout" for word in options):
        words += ["--stop-timeout", str(math.ceil(stop_seconds))]
    return [*words, *options]


def container_objection(service: Service) -> None:
    """Hold the options of a container to what the serve script and the switch need of it.

    Raises RadianceError ``container_options_unfit``, which names the option and never its value where that may be
    a secret.
    """
    words = [str(word) for word in service.get("container_options") or []]
    if words and not words[0].startswith("-"):
        raise _unfit(service, f"begins with {words[0]!r}, which is no option: it would be taken for the image")
    for position, word in enumerate(words):
        option, equals, value = word.partition("=")
        if not equals:
            value = words[position + 1] if position + 1 < len(words) else ""
        short = re.match(f"{_SHORT}([ad])", word)
        own = f"-{short[1]}" if short else option
        if own in _OWN_OPTIONS:
            raise _unfit(service, f"has {own}: {_OWN_OPTIONS[own]}. Take it out")
        if option == "--log-driver" and value in _UNREADABLE_DRIVERS:
            drivers = "json-file, local" if service["runtime"] == "docker" else "k8s-file, json-file"
            raise _unfit(
                service,
                f"has --log-driver {value}: nobody could read the boot of such a container afterwards. Take {drivers} "
                "or journald, or leave it to the runtime",
            )
        variable = _variable(word, value)
        if variable and is_secret(variable):
            raise _unfit(
                service,
                f"sets {variable}, which carries a secret: its value would stand in the serve script and in the fleet "
                "directory. Name a file with --env-file, or use --secret",
            )


def _variable(word: str, following: str) -> str:
    """The name of the variable that an option sets to a value; empty where it sets none."""
    match = re.fullmatch(rf"(?:--env=|{_SHORT}e=?)(?P<assignment>.+)", word)
    assignment = match["assignment"] if match else following if re.fullmatch(f"--env|{_SHORT}e", word) else ""
    name, equals, _value = assignment.partition("=")
    return name if equals else ""


def _unfit(service: Service, what: str) -> RadianceError:
    return RadianceError(f"container_options of {service.get('name')} {what}.", code="container_options_unfit")


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
