# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The serve script and the gates of a service, by the templates of the role."""

from __future__ import annotations

import pathlib
import posixpath
import shlex
import typing as t

import jinja2
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _files, _gates, _service

FOLDER = pathlib.Path(__file__).parents[2] / "roles" / "endpoint" / "templates"


def _compiled(name: str) -> jinja2.Template:
    # Text of a shell, not of a page: there is nothing to escape but by quote.
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    environment.filters["quote"] = shlex.quote
    return environment.get_template(name)


# Here, so that they are compiled once and not by each task of each host.
_SERVE, _GATES = _compiled("serve.sh.j2"), _compiled("gates.bats.j2")


def serve_script(service: t.Mapping[str, t.Any], host: str, stop_seconds: float) -> str:
    """The script that starts the service with the values of its env.

    ``stop_seconds`` is the timeout of a switch's stop.
    Raises RadianceError ``container_options_unfit``, ``flag_unfit`` and ``env_names_unfit``.
    """
    files = _files.file_names(service, host)
    folder = posixpath.dirname(files["serve"])
    return _SERVE.render(
        name=service["name"],
        env=posixpath.basename(files["env"]),
        env_from_here=posixpath.relpath(files["env"], folder or "."),
        root_from_here=posixpath.relpath(".", folder or "."),
        unit=_service.managed_by(service)["unit"],
        runtime=service.get("runtime"),
        leftover=_service.leftover_command(service),
        api_key_file=service.get("api_key_file"),
        command=_service.engine_command(service, stop_seconds),
        flags={flag: _files.key_of(flag) if value else "" for flag, value in _files.declared_flags(service).items()},
        keys=_files.env_keys(service),
    )


def gates_file(service: t.Mapping[str, t.Any], host: str, env: str, history: t.Mapping[str, t.Any]) -> str:
    """The gates of an env with this text, in bats, by what ``history`` tells of its pair."""
    made = history["made"]
    files = _files.file_names(service, host)
    return _GATES.render(
        name=service["name"],
        env_from_here=posixpath.relpath(files["env"], posixpath.dirname(files["bats"]) or "."),
        made=made,
        gates=_gates.bats_gates(env, made["plan"] if made else None, service, history["switched"]),
    )
