# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that a switch installs: compared, staged beside their place, swapped by rename, put back byte for byte.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import stat
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import MASK, hidden, put_back
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import read_regular

# What a terminal obeys, or reorders a line by; a carriage return at the end of a line is of a file with such ends.
_CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")


class Wanted(t.NamedTuple):
    """One file as asked: where it goes, its bytes, and its mode (None keeps what is there, else 0644)."""

    dest: str
    content: bytes
    mode: int | None


class Change(t.NamedTuple):
    """One file that differs from what is there. ``before`` is None where there is no file."""

    dest: str
    before: bytes | None
    after: bytes
    mode_before: int | None
    mode: int
    owner: tuple[int, int] | None


def wanted(entry: t.Mapping[str, t.Any]) -> Wanted:
    """Read one item of the option ``files``. Raises RadianceError ``file_unusable``."""
    dest = str(entry["dest"])
    if not os.path.isabs(dest):
        raise RadianceError(f"files: dest {dest!r} is not an absolute path on the target.", code="file_unusable")
    content = entry.get("content")
    data = str(content).encode("utf-8") if content is not None else _read_source(str(entry["src"]), dest)
    return Wanted(os.path.realpath(dest), data, _mode(entry.get("mode"), dest))


def _read_source(path: str, dest: str) -> bytes:
    try:
        return read_regular(path)
    except OSError as error:
        raise RadianceError(
            f"files: src {path} for {dest} cannot be read on the target: {error.strerror}.", code="file_unusable"
        ) from error


def _mode(value: t.Any, dest: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        mode = value
    elif isinstance(value, str) and re.match(r"^0?[0-7]{3,4}$", value):
        mode = int(value, 8)
    else:
        raise RadianceError(
            f'files: mode {value!r} of {dest} is not an octal mode. Write it in quotes, like "0644".',
            code="file_unusable",
        )
    return mode & 0o7777


def compare(files: t.Sequence[Wanted]) -> list[Change]:
    """What would have to change so that every file has its bytes and its mode.

    A secret that was hidden where the file was read is put back. Raises ``file_unusable`` and ``secret_missing``.
    """
    changes = []
    for item in files:
        try:
            before = _durable.read(item.dest)
            status = os.stat(item.dest) if before is not None else None
        except OSError as error:
            raise RadianceError(
                f"{item.dest} cannot be read: {error.strerror}. Nothing was changed. Put that right, then run "
                "this again.",
                code="file_unusable",
            ) from error
        mode_before = stat.S_IMODE(status.st_mode) if status else None
        mode = item.mode if item.mode is not None else (0o644 if mode_before is None else mode_before)
        content = _with_secrets(item.content, before)
        if before != content or mode_before != mode:
            owner = (status.st_uid, status.st_gid) if status else None
            changes.append(Change(item.dest, before, content, mode_before, mode, owner))
    return changes


def _with_secrets(content: bytes, before: bytes | None) -> bytes:
    if MASK.encode() not in content:
        return content
    texts = (data.decode("utf-8", "surrogateescape") for data in (content, before or b""))
    return put_back(*texts).encode("utf-8", "surrogateescape")


def check_writable(changes: t.Sequence[Change]) -> None:
    """Raise ``file_unusable`` where a folder cannot take the file, before anything is stopped for it.

    A folder that is not there yet is made when the file is written: the one above it has to take it then.
    """
    for change in changes:
        folder = os.path.dirname(change.dest)
        while not os.path.lexists(folder):
            folder = os.path.dirname(folder)
        if not os.path.isdir(folder):
            raise RadianceError(f"{change.dest}: {folder} is not a folder.", code="file_unusable")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise RadianceError(f"{change.dest}: this user may not write in {folder}.", code="file_unusable")
        _check_room(folder, len(change.after) + len(change.before or b"") + 65536, change.dest)


def check_room(path: str, what: str) -> None:
    """Raise ``disk_full`` where the folder that holds ``path`` has no room for what a switch writes beside its files.

    A journal of some ten kB a phase, a receipt, a boot's log: with less room than this a switch would end half-way.
    """
    folder = os.path.dirname(os.path.abspath(path))
    while not os.path.isdir(folder) and folder != "/":
        folder = os.path.dirname(folder)
    _check_room(folder, 1024 * 1024, what)


def _check_room(folder: str, needed: int, what: str) -> None:
    space = os.statvfs(folder)
    free = space.f_bavail * space.f_frsize
    if free < needed:
        raise RadianceError(
            f"{what}: {needed:,} bytes are needed in {folder} and {free:,} are free. Nothing was changed. Make room.",
            code="disk_full",
        )


def journal_entries(
    changes: t.Sequence[Change], backup: str, number: str, beside: bool = False
) -> list[dict[str, t.Any]]:
    """What the journal says of each file: where it goes, what was there, where the backup and the new bytes lie.

    ``beside``: a second copy of what was there lies beside the file, for a script that puts it back by one rename.
    """
    entries = []
    for index, change in enumerate(changes):
        folder, name = os.path.split(change.dest)
        owner = change.owner or (None, None)
        entries.append(
            {
                "dest": change.dest,
                "existed": change.before is not None,
                "mode": change.mode_before,
                "uid": owner[0],
                "gid": owner[1],
                "backup": os.path.join(backup, f"{number}.{index}") if change.before is not None else None,
                "staged": os.path.join(folder, f".{name}.{number}.new"),
                "old": os.path.join(folder, f".{name}.{number}.old") if beside and change.before is not None else None,
            }
        )
    return entries


def _make_folder(folder: str) -> None:
    """Make a folder and those above it where they are missing, mode 0755 whatever the umask is."""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    _make_folder(above)
    os.mkdir(folder)
    os.chmod(folder, 0o755)
    _durable.sync_folder(above)


def stage(changes: t.Sequence[Change], entries: t.Sequence[t.Mapping[str, t.Any]]) -> None:
    """Write the backups and the new files, synced, under names that nothing reads."""
    for change, entry in zip(changes, entries):
        if change.before is not None:
            _durable.write_synced(entry["backup"], change.before, 0o600)
            _durable.sync_folder(os.path.dirname(entry["backup"]))
            if entry["old"]:
                _durable.write_synced(entry["old"], change.before, t.cast("int", change.mode_before), change.owner)
        _make_folder(os.path.dirname(change.dest))
        _durable.write_synced(entry["staged"], change.after, change.mode, change.owner)


def swap(entries: t.Sequence[t.Mapping[str, t.Any]]) -> None:
    """Rename every staged file into its place; can be done again after it was cut."""
    for entry in entries:
        if os.path.exists(entry["staged"]) or not os.path.exists(entry["dest"]):
            os.replace(entry["staged"], entry["dest"])
        _durable.sync_folder(os.path.dirname(entry["dest"]))


def restore(entries: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    """Put every file back as the journal says it was; can be done again after it was cut. Says what it put back."""
    done = []
    for entry in entries:
        _durable.remove(entry["staged"])
        if not entry["existed"]:
            if _durable.remove(entry["dest"]):
                _durable.sync_folder(os.path.dirname(entry["dest"]))
                done.append(entry["dest"])
            continue
        content = _durable.read(entry["backup"])
        if content is None:
            # The backup is written before anything is swapped: where it is missing, nothing was.
            continue
        owner = (int(entry["uid"]), int(entry["gid"]))
        if not _has(entry["dest"], content) or stat.S_IMODE(os.stat(entry["dest"]).st_mode) != entry["mode"]:
            _durable.replace(entry["dest"], content, int(entry["mode"]), owner)
            done.append(entry["dest"])
    return done


def are_back(entries: t.Sequence[t.Mapping[str, t.Any]]) -> bool:
    """Whether there are files, and every one of them is as it was before."""
    return bool(entries) and all(
        _has(entry["dest"], _durable.read(entry["backup"]) if entry["existed"] else None) for entry in entries
    )


def _has(path: str, content: bytes | None) -> bool:
    """Whether a file has this content, None for no file. What cannot be read, such as a pipe, has another."""
    try:
        return _durable.read(path) == content
    except OSError:
        return False


def by_hand(entries: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    """The shell commands that put back what ``restore`` could not."""
    commands = []
    for entry in entries:
        dest = shlex.quote(entry["dest"])
        if not entry["existed"]:
            if os.path.exists(entry["dest"]):
                commands.append(f"rm -f {dest}")
        elif os.path.isfile(entry["backup"]) and not _has(entry["dest"], _durable.read(entry["backup"])):
            commands.append(f"install -m {int(entry['mode']):04o} {shlex.quote(entry['backup'])} {dest}")
    return commands


def discard(entries: t.Sequence[t.Mapping[str, t.Any]]) -> None:
    """Remove what was staged and backed up for a switch that never swapped anything."""
    for entry in entries:
        for path in (entry["staged"], entry["backup"], entry.get("old")):
            if path:
                with contextlib.suppress(OSError):
                    _durable.remove(path)


def install(changes: t.Sequence[Change]) -> None:
    """Replace each file where nothing has to be restarted for it."""
    for change in changes:
        _make_folder(os.path.dirname(change.dest))
        _durable.replace(change.dest, change.after, change.mode, change.owner)


def diffs(changes: t.Sequence[Change]) -> list[dict[str, str]]:
    """One ``{before, after, before_header, after_header}`` a file, for ``--diff``, as a screen may have it."""
    out = []
    for change in changes:
        before = "" if change.before is None else _text(change.before)
        header_before = header_after = change.dest
        if change.before is None:
            header_before = f"{change.dest} (absent)"
        elif change.mode_before != change.mode:
            header_before, header_after = (f"{change.dest} (mode {m:04o})" for m in (change.mode_before, change.mode))
        out.append(
            {
                "before": before,
                "after": _text(change.after),
                "before_header": header_before,
                "after_header": header_after,
            }
        )
    return out


def _text(data: bytes) -> str:
    """As a screen may have it: secrets masked, control characters as ``\\x1b``."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], hidden(data.decode("utf-8", "replace")))
