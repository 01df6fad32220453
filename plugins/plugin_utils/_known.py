# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is there of a service before anything changes: its boot, its record, its files here and on the host."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import (
    _commands,
    _drift,
    _failure,
    _files,
    _history,
    _image,
    _managed_text,
    _record_lines,
)


def known_run(
    service: t.Mapping[str, t.Any], read: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any]
) -> dict[str, t.Any]:
    """The state of a run, as the role keeps it: what roles/endpoint/README.md lists as set by read.

    ``failure`` is None, or why the service is left alone.
    ``read`` has what was read: the answer of service_info (``there``), its boot (``boot``), ``returned`` (record lines
    that a run that only reads would have written), ``record`` (joined with the one of the fleet directory),
    ``files`` (env, serve and bats, as ``_fleet_dir`` tells them), and ``others`` (who runs on its cards). ``about``:
    ``host``, ``env_path`` and ``serve_path`` (there), and ``adopts``: whether files without our marker are read to be
    taken over. Raises RadianceError for what cannot be understood.
    """
    host, texts, files = str(about["host"]), read["there"]["texts"], read["files"]
    on_host = {entry["id"] for entry in [*read["there"]["entries"], *read["returned"]]}
    ledger = _image.known_engine(read["boot"]["ledger"], read["record"])
    late = _record_lines.late_verdicts(read["record"], ledger, host, str(service["name"]))
    record = [*read["record"], *late]
    run: dict[str, t.Any] = {
        "service": dict(service),
        "ledger": ledger,
        "record": record,
        "late": late,
        "lost": [entry for entry in record if entry["host"] == host and entry["id"] not in on_host],
        "fleet": dict(files["env"]),
        "target": _managed_text.env_file(texts.get(about["env_path"], ""), service, host),
        "target_texts": dict(texts),
        "fleet_texts": {kind: file["text"] for kind, file in files.items()},
        "down": read["boot"]["last_boot"],
        "others": list(read["others"]),
        "failure": None,
    }
    try:
        if not about["adopts"]:
            _refuse_foreign(service, read, host)
        _refuse_unread(service, run, host)
    except RadianceError as error:
        return {**run, "failure": _failure.refusal(error)}
    # Of an adopted service the rest of the command line is its owner's.
    script = {
        "env": texts.get(about["env_path"], ""),
        "serve": texts.get(about["serve_path"], ""),
        "env_path": about["env_path"],
        "serve_path": about["serve_path"],
    }
    drift = _drift.drift(
        run["fleet"]["values"] if run["fleet"]["exists"] else None,
        run["target"]["values"] if about["env_path"] in texts else None,
        ledger["flags"],
        run["record"],
        service,
        ledger["source"],
        script if run["target"]["adopted"] else None,
    )
    return {**run, "drift": drift, "history": _history.history(run["record"], _drift.running_pair(ledger))}


def _refuse_foreign(service: t.Mapping[str, t.Any], read: t.Mapping[str, t.Any], host: str) -> None:
    """That files are there which are not ours, with the way to take them over."""
    there = [f"{host}:{path}" for path, text in read["there"]["texts"].items() if _files.MARKER not in text]
    foreign = [file["path"] for file in read["files"].values() if file["foreign"]] + there
    if not foreign:
        return
    raise RadianceError(
        f"Without the marker of this collection, and therefore never overwritten: {', '.join(foreign)}. Move them "
        "away, map the service's `paths` to other names, or take them over as they are, without a restart:\n"
        f"{_commands.playbook('adopt', host, str(service['name']))}",
        code="files_foreign",
    )


def _refuse_unread(service: t.Mapping[str, t.Any], run: t.Mapping[str, t.Any], host: str) -> None:
    """That an env does not read the same everywhere, with each line and who reads what."""
    errors = [*run["fleet"]["errors"], *run["target"]["errors"]]
    if not errors:
        return
    lines = ", ".join(str(error["line"]) for error in errors)
    env = _files.file_names(service, host)["env"]
    raise RadianceError(f"{' '.join(error['text'] for error in errors)} (line {lines} of {env})", code="env_unfit")
