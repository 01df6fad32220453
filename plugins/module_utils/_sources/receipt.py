# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Receipts: what a boot printed up to its listening line, and beside it which boot that was.

``<fingerprint>.log`` is the text, ``<fingerprint>.json`` its identity. The identity is written last, and has a digest
of both: a receipt without one, or with one that does not fit, does not count. A receipt stands in for a log that has
lost the boot which runs, and for no other boot. A folder keeps the last ``KEPT``, and what its saver needs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import read_regular
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.file import LONGEST_BOOT
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading, read_text

SCHEMA = "kvfleet.radiance/receipt/1"
KEPT = 20  # receipts of a service: some 20 KiB each

_SOURCE = (
    "name",
    "log_driver",
    "container_id",
    "image",
    "image_digest",
    "started_at",
    "boots_seen",
    "boot",
    "invocation",
    "inode",
    "offset",
)
_FILE = re.compile(r"^([0-9a-f]{12})\.(?:log|json)$")
_KEYS = ("schema", "fingerprint", "source", "runs", "flags", "digest")
_LONGEST_IDENTITY = 1024 * 1024
_NAMED = 3


class Found(t.NamedTuple):
    """``reading`` and its ``path`` are None where no receipt is of the boot asked for. ``notes``: what was not used."""

    path: str | None
    reading: Reading | None
    notes: list[str]


class _Unusable(Exception):
    """Why a receipt does not count, as a clause."""


def save(folder: str, reading: Reading, needed: t.Iterable[str] = ()) -> str:
    """Keep the boot's text and its identity; returns the path of the text. Raises OSError.

    Where nothing tells which boot it is, or the text alone does not give the same ledger again, only the text is kept.
    Receipts that are older than the last ``KEPT`` are removed, but for this one and for those of the fingerprints that
    are ``needed``.
    """
    path = path_of(folder, reading.ledger)
    text = reading.text.encode("utf-8")
    _durable.replace(path, text, 0o600)
    if is_whole(reading):
        kept: dict[str, t.Any] = {
            "schema": SCHEMA,
            "fingerprint": reading.ledger["fingerprint"],
            "source": {key: reading.known.get(key) for key in _SOURCE},
            "runs": reading.known["runs"],
            "flags": reading.ledger["flags"],
        }
        kept["digest"] = _digest(kept, text)
        _durable.replace(_identity_of(path), json.dumps(kept, sort_keys=True).encode("ascii") + b"\n", 0o600)
    with contextlib.suppress(OSError):  # there is one too many, and the next save tries again
        _prune(folder, {reading.ledger["fingerprint"], *needed})
    return path


def _prune(folder: str, needed: t.Collection[str]) -> None:
    """Remove the oldest receipts; nothing that is not named like one."""
    files: dict[str, list[os.DirEntry[str]]] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            found = _FILE.match(entry.name)
            if found:
                files.setdefault(found.group(1), []).append(entry)

    def saved(fingerprint: str) -> float:
        return max(entry.stat(follow_symlinks=False).st_mtime for entry in files[fingerprint])

    for fingerprint in sorted(files, key=saved, reverse=True)[KEPT:]:
        if fingerprint not in needed:
            for entry in sorted(files[fingerprint], key=lambda one: one.name):  # the identity before its text
                os.unlink(entry.path)


def path_of(folder: str, ledger: t.Mapping[str, t.Any]) -> str:
    """Where the receipt of a ledger is, or would be."""
    return os.path.join(folder, f"{ledger['fingerprint']}.log")


def is_whole(reading: Reading) -> bool:
    """Whether this is a boot that came to listen, that runs, and that can be read again from its text alone."""
    if not reading.ledger["ready"] or not reading.known.get("runs"):
        return False
    again = read_text(reading.text, reading.known, reading.ledger["flags"]).ledger
    return bool(again["fingerprint"] == reading.ledger["fingerprint"] and "device_inventory" not in again["missing"])


def find(folder: str, reading: Reading) -> Found:
    """The receipt of the boot that runs, which is what ``reading.known`` says, however little of it could be read."""
    runs, flags = reading.known.get("runs"), reading.ledger["flags"]
    notes: list[str] = []
    if not runs:
        return Found(None, None, notes)
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except FileNotFoundError:
        return Found(None, None, notes)
    except OSError as error:
        return Found(None, None, [f"The receipts in {folder} cannot be read ({error.strerror})."])
    for name in names:
        path = os.path.join(folder, name[:-5] + ".log")
        if name.endswith(".json"):
            try:
                kept = _identity(os.path.join(folder, name))
                if kept["runs"] == runs:
                    return Found(path, _read(path, kept, flags), notes)
            except _Unusable as error:
                notes.append(f"The receipt {path} is not used: {error}.")
    bare = [name for name in names if name.endswith(".log") and f"{name[:-4]}.json" not in names]
    if bare and (reading.ledger["status"] == "absent" or "device_inventory" in reading.ledger["missing"]):
        shown = ", ".join(bare[:_NAMED]) + (", …" if len(bare) > _NAMED else "")
        notes.append(f"Nothing tells which boot a receipt without its .json is of: {shown} in {folder}.")
    return Found(None, None, notes)


def newest(folder: str) -> Found:
    """The receipt that was saved last and is whole: of the last boot of a service that does not run."""
    notes: list[str] = []
    saved: list[tuple[float, str]] = []
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for one in entries:
            if _FILE.match(one.name) and one.name.endswith(".json"):
                saved.append((one.stat(follow_symlinks=False).st_mtime, one.path))
    for _mtime, identity in sorted(saved, reverse=True):
        path = identity[: -len(".json")] + ".log"
        try:
            return Found(path, _read(path, _identity(identity), {}), notes)
        except _Unusable as error:
            notes.append(f"The receipt {path} is not used: {error}.")
    return Found(None, None, notes)


def _read(path: str, kept: t.Mapping[str, t.Any], flags: t.Mapping[str, str]) -> Reading:
    text = _content(path, LONGEST_BOOT * 4)
    if kept["digest"] != _digest({key: kept[key] for key in _KEYS if key != "digest"}, text):
        raise _Unusable("its text or its identity was changed after it was saved, or is not whole")
    if flags and flags != kept["flags"]:
        raise _Unusable("what runs has another command line than its boot had")
    known = {**kept["source"], "kind": "receipt", "runs": kept["runs"]}
    return read_text(text.decode("utf-8", "replace"), known, kept["flags"])


def _identity_of(path: str) -> str:
    return path[: -len(".log")] + ".json"


def _identity(path: str) -> dict[str, t.Any]:
    """The identity in a file. Raises _Unusable."""
    try:
        kept = json.loads(_content(path, _LONGEST_IDENTITY))
    except (ValueError, RecursionError) as error:
        raise _Unusable(f"its identity {path} is not whole") from error
    if (
        not isinstance(kept, dict)
        or sorted(kept) != sorted(_KEYS)
        or kept["schema"] != SCHEMA
        or not all(isinstance(kept[key], dict) for key in ("source", "runs", "flags"))
        or sorted(kept["source"]) != sorted(_SOURCE)
        or not os.path.basename(path) == f"{kept['fingerprint']}.json"
    ):
        raise _Unusable(f"its identity {path} is of another shape, or of another receipt")
    return kept


def _content(path: str, limit: int) -> bytes:
    try:
        return read_regular(path, limit, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise _Unusable(f"{path} cannot be read ({error.strerror})") from error


def _digest(kept: t.Mapping[str, t.Any], text: bytes) -> str:
    identity = json.dumps(kept, sort_keys=True).encode("ascii")
    return hashlib.sha256(identity + b"\n" + text).hexdigest()
