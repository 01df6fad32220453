# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the name of a source to the ledger of the boot asked for."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import absent_ledger, read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.file import read_log
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import running


def ledger_from(
    source: str,
    *,
    path: str | None = None,
    text: str | None = None,
    name: str | None = None,
    boot: int = -1,
    pid_file: str | None = None,
) -> dict[str, t.Any]:
    """The ledger out of a ``file``, a ``receipt`` or a ``text``; what cannot be read gives an absent one.

    ``pid_file`` (for a file): the process whose command line tells the flags, and whose start joins the fingerprint.

    Raises RadianceError ``pid_file_unreadable`` and ``process_unreadable``.
    """
    known: dict[str, t.Any] = {"kind": source, "name": name}
    if source == "text":
        return read_ledger(text or "", source=known, boot=boot)
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
