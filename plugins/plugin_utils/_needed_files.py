# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a host that the start of a container names: the switch looks for them before it stops anything."""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _hand_written, _runtime_words, _service

# Read by the runtime's client itself.
_READ = ("--env-file", "--label-file")


def needed_files(
    service: t.Mapping[str, t.Any], target_dir: str, script: t.Mapping[str, str] | None = None
) -> list[dict[str, t.Any]]:
    """``[{path, option, stated_in, read}]``, none for a service without a container.

    ``script`` is what an adopted service starts by: ``{env, serve, env_path, serve_path}`` of its host. Raises
    RadianceError ``script_not_understood`` and ``container_options_unfit``.
    """
    if not service.get("runtime"):
        return []
    if script is not None:
        found = _hand_written.read_files(_hand_written.Files(**script), script["serve_path"])
        # What its own paths count from is known to its owner alone.
        words, folder, stated_in = [field.text for field in found.script.command], None, script["serve_path"]
    else:
        words, folder = _service.engine_command(service), target_dir
        stated_in = f"the container_options of {service['name']}"
    out = []
    for _at, option, value in _runtime_words.run_options(words):
        path = _path(str(service["runtime"]), option, value)
        if path and (folder is not None or path.startswith("/")):
            where = posixpath.normpath(posixpath.join(folder or "/", path))
            out.append({"path": where, "option": option, "stated_in": stated_in, "read": option in _READ})
    return out


def _path(runtime: str, option: str, value: str) -> str:
    """The path of the host in the value of an option; empty where it has none, or where the runtime makes it."""
    if option in _READ:
        return value
    if option in ("--volume", "-v"):
        # docker makes a folder where there is nothing, and a word that begins otherwise is the name of a volume.
        source = value.partition(":")[0]
        return source if runtime == "podman" and source.startswith(("/", ".")) else ""
    if option == "--device":
        return value.partition(":")[0] if value.startswith("/") else ""
    if option == "--security-opt":
        name, _equals, profile = value.partition("=")
        return profile if name == "seccomp" and profile.startswith("/") else ""
    if option == "--mount":
        parts = dict(part.partition("=")[::2] for part in value.split(","))
        return parts.get("source", parts.get("src", "")) if parts.get("type") == "bind" else ""
    return ""
