# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that a start names beside those that a switch brings along: without one of them nothing would start again.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import open_regular
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager


class Need(t.NamedTuple):
    """A path, the ``option`` that names it, where that is ``stated_in``, and whether it is ``read`` as a file."""

    path: str
    option: str
    stated_in: str
    read: bool


def check(manager: Manager, needs: t.Sequence[Need]) -> None:
    """Raise RadianceError ``start_unusable`` for the first that is not there, or that this user may not read."""
    own = [Need(path, "EnvironmentFile", manager.described["unit"], True) for path in manager.environment_files()]
    for need in [*needs, *own]:
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
