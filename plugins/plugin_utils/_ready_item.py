# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The item of the inventory that fits a service which runs, and what an item that is there lacks or contradicts."""

from __future__ import annotations

import posixpath
import typing as t

import yaml
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import is_secret
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _drift, _files, _words
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._hand_written import Found
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._runtime_words import container_name

Service = t.Mapping[str, t.Any]
# The fields of an item in the order in which a person reads it.
_ORDER = (
    "name", "manager", "unit", "runtime", "container", "image", "engine", "model", "host", "port", "api_key_file",
    "cards", "flags", "env_names", "paths",
)  # fmt: skip
# What a field is where the item leaves it out.
_DEFAULTS = {"host": "127.0.0.1", "unit": "{name}.service", "container": "{name}"}


def ready_item(service: Service, command: t.Mapping[str, t.Any], found: Found) -> dict[str, t.Any]:
    """The item that fits what was found. A field that would have its default is left out."""
    words = [field.text for field in found.script.command]
    flags = {flag: value for flag, (value, _field) in found.flags.items()}
    item: dict[str, t.Any] = {"name": service["name"]}
    if command["manager"] != "process":
        item.update(manager=command["manager"], unit=command["unit"])
    if posixpath.basename(words[0]) in container.RUNTIMES:
        image = len(words) - len(found.engine) - 1
        item.update(runtime=posixpath.basename(words[0]), image=words[image], container=container_name(words[:image]))
    else:
        item["engine"] = words[: len(words) - len(found.engine)]
    port = flags.pop("port", "")
    item.update(model=flags.pop("model", ""), port=int(port) if port.isdecimal() else port)
    item.update(host=flags.pop("host", _drift.ENGINE_HOST), api_key_file=found.script.key_file)
    of_the_plan = [_files.flag_of(key) for key in _words.ENV_OF.values()]
    item["flags"] = {flag: value for flag, value in flags.items() if flag not in of_the_plan and not is_secret(flag)}
    known = _files.env_keys({"name": service["name"], "flags": item["flags"]})
    item["env_names"] = {key: name for key, name in found.fed.items() if key != name and key in known}
    defaults = {name: value.format(name=service["name"]) for name, value in _DEFAULTS.items()}
    return {name: value for name, value in item.items() if value not in ("", None, {}, defaults.get(name))}


def joined(service: Service, item: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The item that the inventory has, with what runs in the place of what it has otherwise."""
    gone = [name for name in (*_DEFAULTS, "env_names", "flags") if name not in item]
    kept = {name: value for name, value in service.items() if name not in gone}
    return {**kept, **{name: value for name, value in item.items() if name != "image" or name not in service}}


def owned(service: Service, found: Found) -> list[str]:
    """The keys of the env that a service of ours has, as far as they are values of its command line."""
    ours = _files.our_keys(service)
    return [name for key, name in found.fed.items() if ours.get(name) == key]


def held_against(service: Service, item: t.Mapping[str, t.Any], found: Found) -> list[str]:
    """What the inventory lacks of ``item``, and what it has otherwise, a few words each."""
    out = []
    for name in dict.fromkeys([*item, *(name for name in (*_DEFAULTS, "env_names", "flags") if name in service)]):
        default = _DEFAULTS.get(name, "").format(name=service["name"])
        runs, declared = item.get(name, default), service.get(name, default)
        if name not in service and name in item:
            out.append(f"`{name}` is missing")
        elif not _same(name, declared, runs, found):
            out.append(f"`{name}` is {_shown(declared)}, and what runs has {_shown(runs)}")
    return out


def _same(name: str, declared: t.Any, runs: t.Any, found: Found) -> bool:
    if isinstance(runs, t.Mapping) and isinstance(declared, t.Mapping):
        # What the env has is in force, and a resize may have moved the host pool.
        moved = {"host-pool-mib"} if name == "flags" and "HOST_POOL_MIB" in found.fed else set()
        one, other = (
            {str(key): str(value) for key, value in side.items() if key not in moved} for side in (declared, runs)
        )
        return one == other and set(declared) == set(runs)
    if isinstance(runs, list) and isinstance(declared, list):
        return [str(word) for word in declared] == runs
    if name == "image" and "IMAGE" in found.fed:
        return True  # the env says which is in force
    return str(declared) == str(runs)


def _shown(value: t.Any) -> str:
    if isinstance(value, t.Mapping):
        return ", ".join(f"{key}: {item}" for key, item in value.items()) or "empty"
    return " ".join(str(word) for word in value) if isinstance(value, list) else str(value) or "empty"


def item_lines(item: t.Mapping[str, t.Any]) -> list[str]:
    """The item as YAML, to be pasted."""
    ordered = {name: item[name] for name in _ORDER if name in item}
    ordered.update({name: value for name, value in item.items() if name not in ordered})
    return str(yaml.safe_dump([ordered], sort_keys=False, default_flow_style=None, width=110)).rstrip("\n").split("\n")
