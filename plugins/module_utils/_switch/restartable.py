# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the old pair could be started again: asked before anything stops.

A service that somebody started by hand runs without the files that a switch installs. To put them back is to remove
them, and `start` could then start nothing.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import read_regular
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import files
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager

_LONGEST_SCRIPT = 256 * 1024


def check(manager: Manager, changes: t.Sequence[files.Change], runs: str) -> None:
    """Raise RadianceError ``no_way_back`` where `start` could not bring the old pair back. ``runs``: its name."""
    lost = _lost(manager.program(), changes)
    gone = manager.no_program()
    if lost:
        why = f"{', '.join(lost)} {'is' if len(lost) == 1 else 'are'} not on the target yet, and start needs it"
    elif gone is not None:
        why = f"as things are, {gone}"
    else:
        return
    raise RadianceError(
        f"There is no way back from this switch: {why}. The process that runs was started in another way, and if the "
        "new pair did not hold, nothing could start the old one again. Nothing was stopped or changed. First install "
        f"the files of the pair that runs: a call whose files and expect.to are those of {runs} restarts nothing. "
        "Then switch.",
        code="no_way_back",
    )


def _lost(start: t.Sequence[str], changes: t.Sequence[files.Change]) -> list[str]:
    """The files that a way back removes although `start` is one of them, or its script names them."""
    absent = [change.dest for change in changes if change.before is None]
    words = {os.path.realpath(word) for word in start if word.startswith("/")}
    script = b"\n".join(_script(word) for word in sorted(words)) if absent else b""
    return [dest for dest in absent if dest in words or _names(script, os.path.basename(dest))]


def _script(path: str) -> bytes:
    """The text of a script; nothing of a program that is none."""
    try:
        text = read_regular(path, _LONGEST_SCRIPT)
    except OSError:
        return b""
    return text if text.startswith(b"#!") or b"\0" not in text else b""


def _names(script: bytes, name: str) -> bool:
    return re.search(rb"(?<![\w.-])" + re.escape(os.fsencode(name)) + rb"(?![\w.-])", script) is not None
