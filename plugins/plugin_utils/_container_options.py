# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that a service states for its container: how they are read, and which of them cannot be."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import is_secret
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _runtime_words

Service = t.Mapping[str, t.Any]

# What the serve script says itself, so that the switch finds the container again and sees it end.
_OWN = {
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
# What becomes of a container's output with these log drivers: nobody can read the boot afterwards.
_UNREADABLE_DRIVERS = ("none", "passthrough", "passthrough-tty")


def options_of(service: Service) -> list[tuple[str, str]]:
    """Each option with its value; a word that is no option, nor the value of one, has an empty option."""
    words = ["run", *(str(word) for word in service.get("container_options") or [])]
    found = _runtime_words.run_options(words)
    return [(option, value if option else "".join(words[at : at + 1])) for at, option, value in found]


def require_fit(service: Service) -> None:
    """Hold the options of a container to what the serve script and the switch need of it.

    Raises RadianceError ``container_options_unfit``, which names the option and never its value where that may be
    a secret.
    """
    behind = "at its beginning"
    for option, value in options_of(service):
        if not option:
            raise _unfit(service, f"has a word {behind} that is no option: it would be taken for the image")
        behind = f"behind {option}"
        if option in _OWN:
            raise _unfit(service, f"has {option}: {_OWN[option]}. Take it out")
        if option == "--log-driver" and value in _UNREADABLE_DRIVERS:
            drivers = "json-file, local" if service["runtime"] == "docker" else "k8s-file, json-file"
            raise _unfit(
                service,
                f"has --log-driver {value}: nobody could read the boot of such a container afterwards. Take {drivers} "
                "or journald, or leave it to the runtime",
            )
        variable, equals, _content = value.partition("=")
        if option in ("--env", "-e") and equals and is_secret(variable):
            raise _unfit(
                service,
                f"sets {variable}, which carries a secret: its value would stand in the serve script and in the fleet "
                "directory. Name a file with --env-file, or use --secret",
            )


def _unfit(service: Service, what: str) -> RadianceError:
    return RadianceError(f"container_options of {service.get('name')} {what}.", code="container_options_unfit")
