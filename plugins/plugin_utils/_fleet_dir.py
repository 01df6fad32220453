# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fleet directory has, read on the controller. What does not exist is no error; what cannot be read is one."""

from __future__ import annotations

import os
import pathlib
import subprocess
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import hidden
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import read_regular
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _managed_text
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._files import MARKER

Entry = dict[str, t.Any]


def managed_file(path: str, hide: bool = False) -> dict[str, t.Any]:
    """``{path, foreign, text}`` of a file: ``foreign`` where it is there and not ours.

    ``hide`` masks the secrets in ``text``. Raises RadianceError ``file_unreadable``.
    """
    content = _content(path)
    if content is None:
        return {"path": path, "foreign": False, "text": ""}
    text = content.decode("utf-8", "replace")
    return {"path": path, "foreign": MARKER not in text, "text": hidden(text) if hide else text}


def env_file(path: str, service: t.Mapping[str, t.Any] | None, host: str) -> dict[str, t.Any]:
    """That of an env, its secrets hidden, with ``exists`` and what ``_managed_text.env_file`` tells of it.

    Raises RadianceError ``file_unreadable`` or ``marker_damaged``.
    """
    content = _content(path)
    text = "" if content is None else hidden(content.decode("utf-8", "surrogateescape"))
    exists = content is not None
    read = _managed_text.env_file(text, service, host)
    return {"path": path, "foreign": exists and MARKER not in text, "text": text, "exists": exists, **read}


def _content(path: str) -> bytes | None:
    try:
        return read_regular(os.path.expanduser(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RadianceError(f"{path} cannot be read: {error.strerror}.", code="file_unreadable") from error


def record(path: str, host: str | None, given: t.Sequence[Entry], warn: t.Callable[[str], None]) -> list[Entry]:
    """The entries of a record, and then those of ``given`` that it does not hold.

    With ``host`` those of this host alone, and those among ``given``, which the host may have written under an older
    name. Raises RadianceError ``file_unreadable``.
    """
    try:
        entries, reports = _records.read_with_reports(os.path.expanduser(path))
    except OSError as error:
        raise RadianceError(f"The record {path} cannot be read: {error.strerror}.", code="file_unreadable") from error
    for report in reports:
        warn(f"{path}: {report}")
    known = {entry["id"] for entry in given}
    present = [entry for entry in entries if host is None or entry["host"] == host or entry["id"] in known]
    return [*present, *_records.missing(present, given)]


def uncommitted(folder: str) -> bool:
    """Whether tracked files differ from their commit.

    Not where the folder is no root of a checkout, or git does not want to read it.
    """
    root = pathlib.Path(folder).expanduser()
    if not (root / ".git").exists():
        return False
    # Without the locks by which git would note down what it has looked at: somebody may be committing.
    argv = ["git", "--no-optional-locks", "-C", str(root), "status", "--porcelain", "--untracked-files=no"]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return bool(done.stdout.strip())
