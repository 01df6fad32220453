# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container printed: the boot that runs in it, or why its last one ended."""

from __future__ import annotations

import os
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import boots, read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import read_line, split_lines
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import open_regular
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import json_records, records
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.command import read_until_listening
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.container import Container, last_words, utc
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.file import boot_text

# Log drivers that both write and read. Of any other docker reads a copy that it keeps itself, and podman nothing.
_READABLE = ("journald", "k8s-file", "json-file", "local")
_TO_TAKE = {"podman": "journald or k8s-file", "docker": "json-file, local or journald"}


def read_boot(container: Container) -> tuple[str, dict[str, t.Any]]:
    """What the boot that runs now printed, up to its listening line, and ``{boots_seen, boot}`` of it.

    Raises RadianceError ``log_unreadable``, ``command_missing`` and ``command_stuck``.
    """
    # The log of a container that was started again holds its earlier runs too.
    text = _own_log_since(container, container.finished_at) if container.finished_at else ""
    status: int | None = None
    if not text:
        text, status = _logs(container, container.finished_at)
    if status:
        raise RadianceError(_unreadable(container, text, status), code="log_unreadable")
    found = boots.select([read_line(raw) for raw in split_lines(text)], -1, bounded=True)
    return text, {"boots_seen": found.seen, "boot": found.number}


def last_refusal(container: Container) -> str:
    """Why the engine ended the last boot of a container that does not run any more; empty where it did not say."""
    try:
        text, status = _logs(container, container.started_at or None)
    except RadianceError:
        return ""
    ledger = read_ledger(text, source={}, bounded=True) if not status else None
    return str(ledger["reason"]["text"]) if ledger is not None and ledger["status"] == "refused" else ""


def losses(container: Container) -> str:
    """A sentence on why lines in the middle may be missing from the log of such a container; mostly empty."""
    take = f"start the container with --log-driver {_TO_TAKE[container.runtime]}"
    if container.log_driver not in _READABLE:
        return (
            f" Of what {container.runtime} sends away by the log driver {container.log_driver} it keeps a copy, but "
            f"not of lines that nobody took: have their receiver up when the container starts, or {take}."
        )
    if container.log_options.get("mode") == "non-blocking":
        return f" With the log option mode=non-blocking lines that come too fast are dropped: {take}, and without it."
    return ""


def _logs(container: Container, since: str | None) -> tuple[str, int | None]:
    quiet = ["--log-level=error"] if container.runtime == "podman" else []  # its warnings are not the engine's
    bound = ["--since", since] if since else []
    return read_until_listening([container.runtime, *quiet, "logs", *bound, container.id])


def _own_log_since(container: Container, time: str) -> str:
    """The same out of the file that the runtime would read; empty where the runtime has to be asked.

    A runtime reads all that earlier runs printed before it prints what came since, which takes seconds for each
    100 MB. A file that has not the container's id in its path may be another's as well.
    """
    if container.id not in container.log_path:
        return ""

    def later(told: str) -> bool:
        return (utc(told, digits=9) or "") > time

    try:
        with os.fdopen(open_regular(container.log_path), "rb") as file:
            if container.runtime == "docker":
                return boot_text(json_records.text_from_first(file, later))[0]
            records.seek_first(file, later)
            return boot_text(records.RecordText(file, None))[0]
    except (OSError, ValueError, records.NotRecords):  # a ValueError is of a time that is none
        return ""


def _unreadable(container: Container, text: str, status: int) -> str:
    if container.log_driver in _READABLE:
        way_out = "If its older entries were removed, read the boot's receipt; or restart the service."
    else:
        cache = ", or without --log-opt cache-disabled" if "cache-disabled" in container.log_options else ""
        way_out = (
            f"Start it with --log-driver {_TO_TAKE[container.runtime]}{cache}, or read the journal of its unit "
            "(source: journald)."
        )
    return (
        f"{container.runtime} cannot read the log of the container {container.name}, which has the log driver "
        f"{container.log_driver}: {last_words(text) or f'status {status}'}. {way_out}"
    )
