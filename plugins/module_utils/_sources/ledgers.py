# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the name of a source to the ledger of the boot asked for."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import absent_ledger, read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container, services
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.file import read_log
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import running

# Sources that bound the boot by what the runtime knows: it has one, and that is the one that runs.
OF_SERVICES = (*container.RUNTIMES, "journald")


def ledger_from(
    source: str,
    *,
    name: str | None = None,
    path: str | None = None,
    text: str | None = None,
    boot: int = -1,
    pid_file: str | None = None,
    scope: str = "system",
) -> dict[str, t.Any]:
    """The ledger out of a source; what cannot be read gives an absent one.

    ``name``: the container for ``podman`` and ``docker``, the unit for ``journald``, with the ``scope`` of its manager.
    ``path``: the log or the receipt for ``file`` and ``receipt``; ``pid_file`` (for a file): the process whose command
    line tells the flags, and whose start joins the fingerprint. ``text``: for ``text``.

    Raises RadianceError where a thing could not be asked at all: ``pid_file_unreadable``, ``process_unreadable``,
    ``runtime_unusable``, ``systemd_unreachable``, ``command_missing`` and ``command_stuck``.
    """
    known: dict[str, t.Any] = {"kind": source, "name": name}
    if source == "text":
        return read_ledger(text or "", source=known, boot=boot)
    if source in OF_SERVICES:
        if name is None:
            raise ValueError(f"source {source} needs a name")
        return _of_service(source, name, known, boot, scope)
    if path is None:
        raise ValueError(f"source {source} needs a path")
    # The process that runs now has printed the last boot; of an older one nothing but its text is known.
    process = running(pid_file, path) if pid_file and source == "file" and boot == -1 else None
    if process is not None:
        known["started_at"] = process.started_at
    try:
        if source == "receipt":
            receipt, _place = read_log(path, bounded=True)
            return read_ledger(receipt, source=known, bounded=True)
        return boot_of_log(path, known, process.flags if process is not None else None, boot=boot)[0]
    except RadianceError as error:
        return absent_ledger(known, error.code, error.text)


def _of_service(source: str, name: str, known: dict[str, t.Any], boot: int, scope: str) -> dict[str, t.Any]:
    if boot not in (-1, 0):
        said = f"Boot {boot} was asked for, and {source} tells of 1, the one that runs. Ask for -1, or read a receipt."
        return absent_ledger(known, "boot_not_in_log", said)
    try:
        if source == "journald":
            printed = services.of_unit(name, scope, known)
        else:
            printed = services.of_container(source, name, known)
    except services.NotReadable as error:
        return absent_ledger(known, error.code, error.text)
    return read_ledger(printed.text, source=known, flags=printed.flags, bounded=True)


def boot_of_log(
    path: str,
    source: t.Mapping[str, t.Any],
    flags: t.Mapping[str, str] | None,
    *,
    boot: int = -1,
    offset: int = 0,
    bounded: bool | None = None,
) -> tuple[dict[str, t.Any], str]:
    """The ledger of a boot in a log file, and its text. ``source`` and ``flags`` as for ``read_ledger``.

    ``boot``, ``offset`` and ``bounded``: see ``read_log``. The fingerprint is the same however much of the log is
    passed over, as long as the boot is in the rest. Raises RadianceError ``log_unreadable``.
    """
    text, place = read_log(path, offset, boot=boot, bounded=bounded)
    # read_log has cut out the one boot, so the text is bounded; what it counted in the whole log stands.
    ledger = read_ledger(text, source={**source, **place, "asked": boot}, flags=flags, bounded=True)
    return ledger, text
