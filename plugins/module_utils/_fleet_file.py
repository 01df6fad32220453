# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of the fleet directory: hosts of one fleet write side by side, and what it hides stays as it is there.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import files


def keep(path: str, content: str, mode: t.Any, check_mode: bool) -> list[files.Change]:
    """Write the file where it differs, and say how; ``mode`` is of one that is new, and a link stays a link.

    Raises RadianceError ``secret_missing``, ``file_unusable`` and ``disk_full``.
    """
    dest = os.path.realpath(path)
    try:
        kept = None if os.path.exists(dest) else mode
        changes = files.compare([files.wanted({"dest": dest, "content": content, "mode": kept})])
        files.check_writable(changes)
        if not check_mode:
            for change in changes:
                _write(change)
    except OSError as error:
        raise RadianceError(f"{dest} cannot be written: {error.strerror}.", code="file_unusable") from error
    return changes


def _write(change: files.Change) -> None:
    """By a name of our own, which no other host's run takes for its own."""
    folder, name = os.path.split(change.dest)
    fresh = os.path.join(folder, f".{name}.{os.getpid()}.new")
    try:
        _durable.write_synced(fresh, change.after, change.mode, change.owner)
        os.replace(fresh, change.dest)
    except BaseException:
        _durable.remove(fresh)
        raise
    _durable.sync_folder(folder)
