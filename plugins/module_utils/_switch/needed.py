# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that a start names beside those that a switch brings along: without one of them nothing would start again.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import open_regular
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import unit as units
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager


class Need(t.NamedTuple):
    """A path, the ``option`` that names it, where that is ``stated_in``, and whether it is ``read`` as a file."""

    path: str
    option: str
    stated_in: str
    read: bool


def check(manager: Manager, needs: t.Sequence[Need]) -> None:
    """Raise RadianceError ``start_unusable`` for the first that is not there, or that this user may not read."""
    for need in [*needs, *_of_unit(manager)]:
        try:
            if need.read:
                os.close(open_regular(need.path))
            else:
                os.stat(need.path)
        except OSError as error:
            why = "it is not on the target" if isinstance(error, FileNotFoundError) else str(error.strerror)
            raise RadianceError(
                f"{need.option} {need.path} of {need.stated_in}: {why}. Without it neither this pair nor the old one "
                f"could be started. Nothing was stopped or changed. Put it there, or take {need.option} out.",
                code="start_unusable",
            ) from error


def _of_unit(manager: Manager) -> list[Need]:
    """The EnvironmentFile= of the unit, but those that it begins with a `-`, and patterns."""
    if manager.described["kind"] != "systemd":
        return []
    unit, scope = manager.described["unit"], manager.described["scope"]
    shown = units.systemctl(scope, "show", "--property=EnvironmentFiles", "--value", "--", unit).out
    paths = re.findall(r"^(.+) \(ignore_errors=no\)$", shown, re.MULTILINE)
    return [Need(path, "EnvironmentFile", unit, True) for path in paths if not re.search(r"[*?\[]", path)]
