# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads of files that somebody else may have put there, which end: of regular files alone, and up to a size.

A pipe keeps its reader waiting, some devices never end, and opening others does something.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

# Of any file of ours, or that a service starts from, in bytes: far above what one has.
LARGEST_BYTES = 1 << 24


def open_regular(path: str, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
    """A handle of the regular file ``path``; one that is made gets ``mode``.

    Raises OSError, of anything else with what it is not.
    """
    if "\0" in path:
        raise OSError(errno.EINVAL, "its path has a NUL in it", path.replace("\0", "?"))
    with contextlib.suppress(FileNotFoundError):
        _refuse_other(os.stat(path), path)
    # It may be another one by now, which shall not keep us waiting either.
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    try:
        _refuse_other(os.fstat(handle), path)
    except OSError:
        os.close(handle)
        raise
    return handle


def _refuse_other(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", path)


def read_regular(path: str, largest: int = LARGEST_BYTES, flags: int = os.O_RDONLY) -> bytes:
    """The content of the regular file ``path``. Raises OSError, also of one that has more than ``largest`` bytes."""
    with os.fdopen(open_regular(path, flags), "rb") as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise OSError(errno.EFBIG, f"it has more than {largest:,} bytes", path)
    return content
