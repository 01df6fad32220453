# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What boot_ledger_info takes and returns, for each module that reads a boot on its host.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import read_key
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import hidden_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.cross_check import hold_to_endpoint
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.version import ask_server_info, ask_version

Params = t.Mapping[str, t.Any]
Warn = t.Callable[[str], None]
# The text of a boot, what runs it by its command line, and the key of its endpoint; raises RadianceError.
Show = t.Callable[[Reading, t.Optional[str]], t.Optional[str]]

ARGUMENTS: dict[str, t.Any] = {
    "source": {
        "type": "str",
        "choices": ["podman", "docker", "journald", "file", "receipt", "text"],
        "default": "podman",
    },
    "path": {"type": "path"},
    "text": {"type": "str"},
    "name": {"type": "str"},
    "scope": {"type": "str", "choices": ["system", "user"], "default": "system"},
    "boot": {"type": "int", "default": -1},
    "pid_file": {"type": "path"},
    "receipts": {"type": "path"},
    "last_receipt": {"type": "str", "choices": ["never", "crashed", "always"], "default": "never"},
    "unit": {"type": "str"},
    "endpoint": {"type": "str"},
    "api_key": {"type": "str", "no_log": True},
    "api_key_file": {"type": "path", "no_log": False},
    "require": {"type": "str", "choices": ["complete", "any"], "default": "complete"},
}
RULES: dict[str, t.Any] = {
    "mutually_exclusive": [("api_key", "api_key_file")],
    "required_if": [
        ("source", "podman", ["name"]),
        ("source", "docker", ["name"]),
        ("source", "journald", ["name"]),
        ("source", "file", ["path"]),
        ("source", "receipt", ["path"]),
        ("source", "text", ["text"]),
    ],
}
_READ = ("path", "text", "name", "boot", "pid_file", "scope", "receipts", "last_receipt", "unit")


def boot_info(
    params: Params, warn: Warn, no_log: t.Callable[[str], None], show: Show | None = None
) -> dict[str, t.Any]:
    """What boot_ledger_info returns for options of ARGUMENTS; with ``code`` and ``msg`` where it fails.

    ``warn`` gets what is no failure, ``no_log`` the key of the endpoint. ``show`` makes ``log`` of what was read.
    """
    found: dict[str, t.Any] = {"last_boot": None}
    try:
        reading = read_boot(params["source"], **{name: params[name] for name in _READ})
        # An endpoint that cannot be asked, or a log that cannot be shown, leaves what the log tells.
        found["ledger"] = hidden_ledger(reading.ledger)
        found["last_boot"] = reading.known.get("last_boot")
        key = read_key(params["api_key"], params["api_key_file"])
        if key is not None:
            no_log(key)
        gone = (
            bool(params["pid_file"]) and params["source"] == "file" and reading.ledger["source"]["started_at"] is None
        )
        _warn_of(params, reading, gone, warn)
        # What answers where nothing of the service runs is another one.
        runs = params["boot"] == -1 and not (found["last_boot"] or gone)
        if params["endpoint"] and reading.ledger["ready"] and runs:
            _ask(found, params["endpoint"], key, warn)
        if show is not None:
            found["log"] = show(reading, key)
    except RadianceError as error:
        return {**found, **error.result, "msg": error.text, "code": error.code}
    reason = found["ledger"]["reason"]
    if params["require"] == "complete" and found["ledger"]["status"] != "complete":
        return {**found, "msg": reason["text"], "code": reason["code"]}
    return found


def _warn_of(params: Params, reading: Reading, gone: bool, warn: Warn) -> None:
    """What was noted in reading, and why the command line of the boot is not known; ``gone`` is its process."""
    ledger = reading.ledger
    for note in reading.notes:
        warn(note)
    if gone:
        warn(
            f"No live process of {params['pid_file']} was found to have written boot {params['boot']} of "
            f"{params['path']}. Its flags are not known, and the pair keeps the rounding of its rows."
        )
    if params["source"] == "journald" and ledger["status"] != "absent" and not ledger["flags"]:
        warn(
            f"The main process of {ledger['source']['name']} does not have the engine's command line. Its flags "
            "are not known, and the pair keeps the rounding of its rows. Of a container the runtime knows them "
            "(source: podman or docker)."
        )


def _ask(found: dict[str, t.Any], endpoint: str, key: str | None, warn: Warn) -> None:
    """Ask the endpoint what a log does not tell, and whether what serves is this boot, into ``found['ledger']``."""
    version, why = ask_version(endpoint, key)
    found["ledger"]["engine"] = {"version": version, "version_from": "endpoint" if version else None}
    info, told_at = None, 0.0
    if version is not None:
        info, told_at, why = ask_server_info(endpoint, key)
    if info is not None:
        found["ledger"] = hold_to_endpoint(found["ledger"], info, told_at)
    else:
        warn(why)
