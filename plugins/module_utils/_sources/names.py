# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names by which a machine and a user may be known in a log of theirs."""

from __future__ import annotations

import contextlib
import os
import pathlib
import platform
import pwd
import typing as t

_USERS = ("USER", "LOGNAME", "SUDO_USER")


def names_here() -> list[str]:
    """This host's name, whole and its first label, and the names of the user who runs this and of who became it."""
    host = platform.node()
    users = [os.environ.get(name, "") for name in _USERS]
    with contextlib.suppress(KeyError):  # a user of a container need not have a name
        users.append(pwd.getpwuid(os.geteuid()).pw_name)
    return [name for name in (host, host.partition(".")[0], *users) if name]


def paths_in(flags: t.Mapping[str, str]) -> list[str]:
    """The values of a command line that are paths: they may have blanks, by which a text does not show their end.

    So may the folders that they are in.
    """
    paths = [value for value in flags.values() if value.strip("/") and "/" in value]
    folders = {str(folder) for path in paths for folder in pathlib.PurePosixPath(path).parents if " " in folder.name}
    return [*paths, *sorted(folders)]
