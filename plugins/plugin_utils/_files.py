# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a service: their names, and the values of its env."""

from __future__ import annotations

import posixpath
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import is_secret
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import unit_files
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _words

# Markdown files hold it in the comments around a block.
MARKER = unit_files.MARKER

_NAMES = {
    "env": "scripts/{name}.env",
    "serve": "scripts/serve-{name}.sh",
    "bats": "tests/{name}.bats",
    "record": "records/{name}.jsonl",
    "runbook": "docs/runbooks/{name}.md",
    "agents": "AGENTS.md",
    "llms": "llms.txt",
    "log": "docs/log.md",
}


def file_names(service: t.Mapping[str, t.Any], host: str) -> dict[str, str]:
    """Path of each file of a service, relative to the fleet directory (and, for env and serve, to the target's).

    ``per_host`` puts the host's name after the service's; ``paths`` maps single files to a fleet's own names.
    Raises RadianceError ``path_unfit`` for a path that leaves the directory, or that a shell reads otherwise.
    """
    name = f"{service['name']}.{host}" if service.get("per_host") else str(service["name"])
    names = {kind: pattern.format(name=name) for kind, pattern in _NAMES.items()}
    for kind, path in (service.get("paths") or {}).items():
        if kind not in names:
            raise RadianceError(f"paths names a file {kind!r}. The files are {', '.join(names)}.", code="path_unfit")
        names[kind] = str(path)
    for kind, path in names.items():
        odd = re.search(r"[\x00-\x1f\x7f\"$`\\]", path)
        if odd is not None:
            raise RadianceError(
                f"The path of {kind} is {path!r}. A {odd[0]!r} in it means something to a shell: rename the file.",
                code="path_unfit",
            )
        if posixpath.isabs(path) or posixpath.normpath(path).startswith("..") or not path:
            raise RadianceError(
                f"The path of {kind} is {path!r}. It must lie inside the fleet directory.", code="path_unfit"
            )
    return names


def env_keys(service: t.Mapping[str, t.Any]) -> dict[str, str]:
    """What the env calls each value that a service may have: our key to the file's own, by ``env_names``.

    Raises RadianceError ``env_names_unfit`` where a name is given to nothing, or to two values.
    """
    flags = [key_of(str(flag)) for flag in service.get("flags") or {}]
    ours = dict.fromkeys([*_words.ENV_OF.values(), "IMAGE", "MODEL", "PORT", "HOST", "HOST_POOL_MIB", *flags])
    names = {str(key): str(name) for key, name in (service.get("env_names") or {}).items()}
    unknown = [key for key in names if key not in ours]
    if unknown:
        raise RadianceError(
            f"env_names of {service.get('name')} names {', '.join(unknown)}, which is no value of its env. "
            f"The values are {', '.join(ours)}.",
            code="env_names_unfit",
        )
    keys = {key: names.get(key, key) for key in ours}
    for key, name in keys.items():
        other = next((one for one, its in keys.items() if its == name and one != key), None)
        if other is not None:
            raise RadianceError(
                f"env_names of {service.get('name')} has {name} for {key}, and {other} is {name} too. "
                "Give each value a key of its own in the env.",
                code="env_names_unfit",
            )
    return keys


def our_keys(service: t.Mapping[str, t.Any]) -> dict[str, str]:
    """The file's own keys to ours, the inverse of ``env_keys``."""
    return {name: key for key, name in env_keys(service).items()}


def file_key(service: t.Mapping[str, t.Any], key: str) -> str:
    """What the env of a service calls a key of ours."""
    return env_keys(service).get(key, key)


def key_of(flag: str) -> str:
    """The env key of an engine flag: ``host-pool-mib`` is HOST_POOL_MIB."""
    return flag.replace("-", "_").upper()


def flag_of(key: str) -> str:
    """The engine flag of an env key: VRAM_KV_MIB is ``vram-kv-mib``."""
    return key.replace("_", "-").lower()


def declared_flags(service: t.Mapping[str, t.Any]) -> dict[str, str]:
    """Further engine flags that a service states, the address that it binds first.

    Raises RadianceError ``flag_unfit`` for one that carries a secret, and for one that the env has from elsewhere.
    """
    for flag in service.get("flags") or {}:
        if is_secret(str(flag)):
            raise RadianceError(
                f"flags of {service.get('name')} names {flag}, which carries a secret: its value would stand in the "
                "env and in the fleet directory. Take it out, and name the file that holds it in api_key_file.",
                code="flag_unfit",
            )
        if key_of(str(flag)) in ("IMAGE", "MODEL", "PORT", "HOST", *_words.ENV_OF.values()):
            raise RadianceError(
                f"flags of {service.get('name')} names {flag}, which comes from the plan or from a field of its own. "
                "Take it out.",
                code="flag_unfit",
            )
    flags = {"host": str(service.get("host") or "127.0.0.1")}
    flags.update({str(flag): str(value) for flag, value in (service.get("flags") or {}).items()})
    return flags


def env_values(
    service: t.Mapping[str, t.Any],
    to: t.Mapping[str, t.Any],
    in_force: t.Mapping[str, str] | None = None,
    host_pool_mib: t.Any = None,
    image: t.Any = None,
    ran: t.Mapping[str, t.Any] | None = None,
) -> dict[str, str]:
    """The values of the env: the pair and shape of ``to``, then identity (image, model, port) and further flags.

    What is not pair or shape stays as the env in force has it: changing it is not a resize. ``host_pool_mib`` is the
    one flag that a resize may move, and ``image`` is another image that was asked for. A part of the shape that the
    env in force leaves to the engine, by an empty value, stays so where it is in ``ran`` what it is in ``to``.
    """
    values = {key: str(to[name]) for name, key in _words.ENV_OF.items() if to.get(name) is not None}
    for name, key in _words.ENV_OF.items():
        if key in values and (in_force or {}).get(key) == "" and ran is not None and ran.get(name) == to[name]:
            values[key] = ""
    identity = {"IMAGE": service.get("image"), "MODEL": service["model"], "PORT": service["port"]}
    identity.update({key_of(flag): value for flag, value in declared_flags(service).items()})
    for key, value in identity.items():
        if value is not None:
            values[key] = (in_force or {}).get(key, str(value))
    if host_pool_mib not in (None, ""):
        values["HOST_POOL_MIB"] = str(host_pool_mib)
    if image not in (None, "") and "IMAGE" in values:
        values["IMAGE"] = str(image)
    return values


def identity_notes(service: t.Mapping[str, t.Any], in_force: t.Mapping[str, str]) -> list[str]:
    """Sentences on what the inventory declares otherwise than the env in force has it."""
    wanted = env_values(service, {})
    return [
        f"{file_key(service, key)} is {in_force[key]} in the env and {value} in the inventory. "
        + (
            f"The env is in force; -e image={value} asks for the other one."
            if key == "IMAGE"
            else "Changing it is no resize: it stays."
        )
        for key, value in wanted.items()
        if key in in_force and in_force[key] != value and key != "HOST_POOL_MIB"
    ]
