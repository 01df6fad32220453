# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the name of a source to the ledger of the boot asked for."""

from __future__ import annotations

import contextlib
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container, receipt, records, services
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import unit as units
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.crash_loop import tell_loop
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.file import read_log
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import Process, host_boot, running
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading, absent, read_text

# Sources that bound the boot by what the runtime knows: it has one, and that is the one that runs.
OF_SERVICES = (*container.RUNTIMES, "journald")
# What a ledger is incomplete by where lines of its boot are missing.
_OF_MISSING_LINES = ("log_cut", "rows_missing", "rows_unreadable", "sums_off")


def read_boot(
    source: str,
    *,
    name: str | None = None,
    path: str | None = None,
    text: str | None = None,
    boot: int = -1,
    pid_file: str | None = None,
    scope: str = "system",
    receipts: str | None = None,
    last_receipt: str = "never",
    unit: str | None = None,
) -> Reading:
    """The boot out of a source; what cannot be read gives an absent ledger.

    ``name``: the container for ``podman`` and ``docker``, the unit for ``journald``, with the ``scope`` of its manager.
    ``path``: the log or the receipt for ``file`` and ``receipt``; ``pid_file`` (for a file): the process whose command
    line tells the flags, and whose start joins the fingerprint. ``text``: for ``text``. ``receipts``: a folder of
    them; where the log has lost the boot that runs, and one is of this very boot, it is read from there. What does not
    run has the ledger of its last boot, from the newest of them, with ``last_receipt`` ``always``, or ``crashed`` where
    ``unit`` (for ``journald`` it is ``name``) has failed and nobody stopped it; ``known`` then has ``last_boot``, a
    sentence without its stop that says so.

    Raises RadianceError where a thing could not be asked at all: ``pid_file_unreadable``, ``process_unreadable``,
    ``runtime_unusable``, ``systemd_unreachable``, ``command_missing`` and ``command_stuck``.
    """
    known: dict[str, t.Any] = {"kind": source, "name": name}
    if source == "text":
        printed = records.program_text(text or "")
        return Reading(read_ledger(printed, source=known, boot=boot), printed, known, [])
    if source in OF_SERVICES:
        if name is None:
            raise ValueError(f"source {source} needs a name")
        reading = _of_service(source, name, known, boot, scope)
    else:
        if path is None:
            raise ValueError(f"source {source} needs a path")
        reading = _of_file(source, path, known, boot, pid_file)
    if receipts and not reading.known.get("runs"):
        why = _down(last_receipt, name if source == "journald" else unit, scope)
        if why:
            return _last(receipts, reading, why)
    return _stand_in(receipts, reading) if receipts else reading


def _down(last_receipt: str, name: str | None, scope: str) -> str:
    """Why the last boot is read where nothing runs, as a clause; empty where it is not."""
    if last_receipt == "crashed" and name is not None:
        with contextlib.suppress(RadianceError):  # what systemd does not tell of has not crashed
            found = units.show(name, scope)
            return services.crash(found) if found.crashed else ""
    return "Nothing runs" if last_receipt == "always" else ""


def _last(receipts: str, reading: Reading, why: str) -> Reading:
    """The newest receipt; what was read, where there is none."""
    path, kept, notes = receipt.newest(receipts)
    if kept is None:
        return reading._replace(notes=[*reading.notes, *notes])
    said = f"{why}, and the ledger is that of its last boot, by its receipt {path}"
    return kept._replace(known={**kept.known, "runs": None, "last_boot": said}, notes=notes)


def _stand_in(receipts: str, reading: Reading) -> Reading:
    """The receipt of the boot that runs, where the log tells less of it, or of another one; else what the log tells."""
    reason = reading.ledger["reason"]
    if reason is None and not _in_a_bare_file(reading):
        return reading
    path, kept, notes = receipt.find(receipts, reading)
    if kept is None or kept.ledger["fingerprint"] == reading.ledger["fingerprint"]:
        return reading._replace(notes=[*reading.notes, *(notes if reason else ())])
    why = reason["code"] if reason else "what it tells last is not what the process has printed"
    told = f"The log does not tell the boot that runs ({why}), so its ledger is that of its receipt {path}."
    return kept._replace(notes=[told])


def _in_a_bare_file(reading: Reading) -> bool:
    """Whether a client may have written the last boot of the log, and a receipt can tell: the process is the engine."""
    return "ticks" in reading.known.get("runs", {}) and "model" in reading.ledger["flags"]


def _of_file(source: str, path: str, known: dict[str, t.Any], boot: int, pid_file: str | None) -> Reading:
    # The process that runs now has printed the last boot; of an older one nothing but its text is known.
    process = running(pid_file, path) if pid_file and source == "file" and boot == -1 else None
    if process is not None:
        known.update(of_process(process))
    try:
        if source == "receipt":
            return read_text(read_log(path, bounded=True)[0], known)
        reading = boot_of_log(path, known, process.flags if process is not None else None, boot=boot)
        tell_loop(reading)
        return reading
    except RadianceError as error:
        return absent(known, error.code, error.text)


def of_process(process: Process) -> dict[str, t.Any]:
    """What is known of a boot by the process that printed it, for a ledger's ``source``."""
    runs = {"pid": process.pid, "ticks": process.started_ticks, "host_boot": host_boot()}
    return {"started_at": process.started_at, "runs": runs}


def _of_service(source: str, name: str, known: dict[str, t.Any], boot: int, scope: str) -> Reading:
    if boot not in (-1, 0):
        said = f"Boot {boot} was asked for, and {source} tells of 1, the one that runs. Ask for -1, or read a receipt."
        return absent(known, "boot_not_in_log", said)
    try:
        if source == "journald":
            printed = services.of_unit(name, scope, known)
        else:
            printed = services.of_container(source, name, known)
    except services.NotReadable as error:
        reading = absent(known, error.code, error.text)
    else:
        reading = read_text(printed.text, known, printed.flags)
        if reading.ledger["reason"] is not None and reading.ledger["reason"]["code"] in _OF_MISSING_LINES:
            reading.ledger["reason"]["text"] += printed.losses
    tell_loop(reading)
    return reading


def boot_of_log(
    path: str,
    source: t.Mapping[str, t.Any],
    flags: t.Mapping[str, str] | None,
    *,
    boot: int = -1,
    offset: int = 0,
    bounded: bool | None = None,
) -> Reading:
    """A boot in a log file. ``source`` and ``flags`` as for ``read_ledger``.

    ``boot``, ``offset`` and ``bounded``: see ``read_log``. The fingerprint is the same however much of the log is
    passed over, as long as the boot is in the rest. Raises RadianceError ``log_unreadable``.
    """
    text, place = read_log(path, offset, boot=boot, bounded=bounded)
    # read_log has cut out the one boot, so the text is bounded; what it counted in the whole log stands.
    return read_text(text, {**source, **place, "asked": boot}, flags)
