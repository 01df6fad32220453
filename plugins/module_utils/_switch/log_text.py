# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a boot in a log file, from the byte where it began.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import open_regular
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import boot_of_log, of_process
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import Process
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading, read_text
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import BootText


class LogText(BootText):
    """``path`` leads to the very file that was opened, whatever a rotation gives its name to. ``emptied`` tells that a
    rotation cut the file to nothing: what was read before is then only here.
    """

    def __init__(self, path: str, offset: int, bounded: bool = True) -> None:
        self._handle = os.fdopen(open_regular(path), "rb")
        self._handle.seek(offset)
        self._offset = offset
        self._data = b""
        self.path = f"/proc/self/fd/{self._handle.fileno()}"
        self.bounded = bounded
        self.emptied = False

    def poll(self) -> bool:
        """Whether at least one whole line has come since the last poll."""
        if os.fstat(self._handle.fileno()).st_size < self._handle.tell():
            self._handle.seek(0)
            self.emptied = True
        new = self._handle.read()
        self._data += new
        return b"\n" in new

    def lines(self) -> str:
        """The whole lines."""
        return self._data[: self._data.rfind(b"\n") + 1].decode("utf-8", "replace")

    def all(self) -> str:
        """Everything, a line that was cut off included."""
        return self._data.decode("utf-8", "replace")

    def reading(self, found: Process | None, flags: t.Mapping[str, str]) -> Reading:
        """Read anew from the file, so that the place of the boot is the one that boot_ledger_info tells."""
        known: dict[str, t.Any] = {"kind": "file", **(of_process(found) if found is not None else {})}
        if self.emptied:
            return read_text(self.all(), known, flags, bounded=self.bounded)
        return boot_of_log(self.path, known, flags or None, offset=self._offset, bounded=self.bounded)

    def close(self) -> None:
        """Close the log."""
        self._handle.close()


def holds_offset(path: str, boot: t.Mapping[str, t.Any]) -> bool:
    """Whether the byte where the boot began is still where it was: a log that was made anew, or cut, begins anew."""
    with os.fdopen(open_regular(path), "rb") as file:
        status = os.fstat(file.fileno())
        offset = int(boot["offset"])
        if status.st_ino != boot["inode"] or status.st_size < offset:
            return False
        # The offset was noted at the end of a line; in other text that grew past it, it hardly ever is.
        return not offset or os.pread(file.fileno(), 1, offset - 1) == b"\n"
