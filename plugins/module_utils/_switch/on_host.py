# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a service has on its host beside its process: what a switch has left, its files, its record. Changes nothing.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import hidden
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import read_regular
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State

# Of a file that a service starts from, in bytes.
_LONGEST = 1 << 20
_CLOSED = (
    "A unit of the system needs ansible_become: true in the inventory; a service of a user is reached as that user."
)


def look(
    state_dir: str, service: str, files: t.Sequence[str], others: t.Sequence[str]
) -> tuple[dict[str, t.Any], list[str]]:
    """``{interrupted, others_interrupted, on_probation, texts, entries}`` of service_info, and a sentence for each line
    of the record that was passed over.

    Raises RadianceError ``file_unreadable``.
    """
    state = State(state_dir, service)
    try:
        found: dict[str, t.Any] = {
            "interrupted": _is_there(state.journal),
            "others_interrupted": [name for name in others if _is_there(State(state_dir, name).journal)],
            "on_probation": _is_there(state.probation) or _is_there(state.probation_ended),
        }
        texts = {path: _text(path) for path in files}
        found["texts"] = {path: text for path, text in texts.items() if text is not None}
        found["entries"], reports = _records.read_with_reports(state.records)
    except OSError as error:
        way_out = _CLOSED if isinstance(error, PermissionError) else "Put that right on the host, then run this again."
        raise RadianceError(
            f"{error.filename} cannot be read: {error.strerror}. {way_out}", code="file_unreadable"
        ) from error
    return found, [f"{state.records}: {report}" for report in reports]


def _is_there(path: str) -> bool:
    """Whether it exists. Raises OSError where that cannot be seen."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    return True


def _text(path: str) -> str | None:
    """The content without its secrets, None of a file that does not exist. Raises OSError, of what is no file too."""
    try:
        return hidden(read_regular(path, _LONGEST).decode("utf-8", "replace"))
    except FileNotFoundError:
        return None
