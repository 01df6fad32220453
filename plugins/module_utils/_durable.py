# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes that a crash cannot tear: the whole new file is there, or the whole old one.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import os

from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import read_regular


def sync_folder(folder: str) -> None:
    """Put a rename or a removal in this folder on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """Write all of it: one call may write less."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def write_synced(path: str, data: bytes, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Write a file that nothing reads yet, with its mode (and its owner, where we may set it), and sync it."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(handle, data)
        if owner is not None:
            # Only root may give a file away; for anybody else the file is theirs already, or it cannot be kept.
            with contextlib.suppress(PermissionError):
                os.fchown(handle, *owner)
        os.fchmod(handle, mode)
        os.fsync(handle)
    finally:
        os.close(handle)


def replace(path: str, data: bytes, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Give ``path`` this content in one step that survives a power cut.

    A writer that dies leaves ``.NAME.new`` beside it, which the next one removes: the callers hold a lock.
    """
    folder, name = os.path.split(os.path.abspath(path))
    fresh = os.path.join(folder, f".{name}.new")
    remove(fresh)  # a pipe there would keep us waiting
    try:
        write_synced(fresh, data, mode, owner)
        os.replace(fresh, path)
    except BaseException:
        remove(fresh)
        raise
    sync_folder(folder)


def remove(path: str) -> bool:
    """Remove a file if it is there; says whether it was."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def read(path: str) -> bytes | None:
    """The content of a file, or None where there is none. Raises OSError, also of what is no regular file."""
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None
