# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the options of a container lack, or have, that its engine is known to stumble over: notes, no refusals.

That the engine wants its cards, an unconfined seccomp profile and the groups of the cards by number is what its own
page on containers says; its image has neither a shell nor names of groups.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _container_options

Service = t.Mapping[str, t.Any]

# All that a process of the host may do; and devices by a name of their own.
_ALL = ("--privileged",)
_CDI = re.compile(r"^[a-z0-9.-]+/[a-z0-9.-]+=")
_VOLUMES = ("--volume", "-v")


def container_notes(service: Service) -> list[str]:
    """Sentences; none for a service without a container."""
    if not service.get("runtime"):
        return []
    given = _container_options.options_of(service)
    return [*_lacking(service, given), *_relabels(service, given), *_names_of_groups(service, given)]


def _lacking(service: Service, given: t.Sequence[tuple[str, str]]) -> list[str]:
    if any(option in _ALL for option, _value in given):
        return []
    devices = [value for option, value in given if option in ("--device", "--gpus")]
    named = any(_CDI.match(value) for value in devices) or any(option == "--gpus" for option, _value in given)
    lacks = []
    for path in ("/dev/kfd", "/dev/dri"):
        if not named and not any(value.split(":")[0].startswith(path) for value in devices):
            lacks.append(f"--device {path}")
    if not any(option == "--security-opt" and value.startswith("seccomp") for option, value in given):
        lacks.append("--security-opt seccomp=unconfined")
    if not any(option == "--group-add" for option, _value in given):
        lacks.append("--group-add for the groups of /dev/kfd and /dev/dri, by number")
    pinned = "host-pool-mib" in (service.get("flags") or {})
    if pinned and not any(option == "--ulimit" and value.startswith("memlock") for option, value in given):
        lacks.append(
            "--ulimit memlock=-1 (rootless: LimitMEMLOCK=infinity of the unit) for the host pool, which is pinned"
        )
    if not lacks:
        return []
    return [
        f"container_options of {service['name']} have no {'; no '.join(lacks)}. An engine on real cards wants them."
    ]


def _relabels(service: Service, given: t.Sequence[tuple[str, str]]) -> list[str]:
    for option, value in given:
        mode = value.split(":")[2:] if option in _VOLUMES else []
        relabels = any(word in ("z", "Z") for part in mode for word in part.split(","))
        if relabels or (option == "--mount" and re.search(r"(?:^|,)(?:relabel=|[zZ](?:,|$))", value)):
            return [
                f"container_options of {service['name']} relabel {value.split(':')[0]} at each start, which takes "
                "minutes for a large tree. Label it once, outside of the container, and leave z and Z out."
            ]
    return []


def _names_of_groups(service: Service, given: t.Sequence[tuple[str, str]]) -> list[str]:
    for option, value in given:
        if option == "--group-add" and not value.isdecimal() and value != "keep-groups":
            return [
                f"container_options of {service['name']} have --group-add {value}: an image without /etc/group knows "
                "no names. Give the number that the host has for it (getent group NAME)."
            ]
    return []
