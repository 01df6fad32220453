# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of ours among the units of systemd: where they go, how a path is written in them, how they take effect.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import os
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import unit as units

# A file that holds these words is ours to write.
MARKER = "kvfleet.radiance: managed"
MARK = f"# {MARKER}; "


def folder(scope: str) -> str:
    """Where the administrator's or the user's own units lie, as systemd itself tells.

    Raises RadianceError ``units_unwritable`` and what systemctl raises.
    """
    done = units.systemctl(scope, "show", "--property=UnitPath", "--value")
    name = f"/systemd/{scope}"
    # Before it there are only folders of other names: NAME.control, transient, generator.early.
    found = next((path for path in done.out.split() if path.startswith("/") and path.endswith(name)), None)
    if done.status or found is None:
        raise RadianceError(
            f"systemd does not tell where its units lie: {(done.err or done.out).strip()[:200]}",
            code="units_unwritable",
        )
    return found


def specifiers(path: str) -> str:
    """A path where systemd takes the rest of the line. Raises RadianceError ``units_unwritable``."""
    if any(ord(letter) < 32 for letter in path) or path != path.strip():
        raise RadianceError(f"The path {path!r} cannot be written in a unit of systemd.", code="units_unwritable")
    return path.replace("%", "%%")


def word(path: str) -> str:
    """A path as one word of a command line in a unit: nothing in it means anything to systemd."""
    escaped = specifiers(path).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"'


def mount_word(path: str) -> str:
    """A path as one word of a list in a unit; where no command is run, a dollar is a dollar."""
    escaped = specifiers(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def check_writable(path: str) -> None:
    """Raise ``units_unwritable`` where this user could not put the file there."""
    above = os.path.dirname(path)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above) or not os.access(above, os.W_OK | os.X_OK):
        raise RadianceError(f"{path} cannot be written: {above} takes no file of ours.", code="units_unwritable")


def differs(path: str, text: str) -> bool:
    """Whether the file has to be written."""
    with contextlib.suppress(OSError):
        return _durable.read(path) != text.encode("utf-8")
    return True


def write(path: str, text: str) -> None:
    """Put the file there, whole. Raises RadianceError ``units_unwritable``."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        _durable.replace(path, text.encode("utf-8"), 0o644)
    except OSError as error:
        raise RadianceError(f"{path} cannot be written: {error.strerror}.", code="units_unwritable") from error


def remove(path: str) -> bool:
    """Remove the file, and its folder where nothing else is in it; says whether it was there."""
    if not _durable.remove(path):
        return False
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))
    return True


def ask(scope: str, *words: str) -> None:
    """Have systemd do something. Raises RadianceError ``units_unwritable`` with its words."""
    done = units.systemctl(scope, *words)
    if done.status:
        said = (done.err or done.out).strip().splitlines()[-1:] or [f"status {done.status}"]
        raise RadianceError(f"systemctl {' '.join(words)} failed: {said[0]}", code="units_unwritable")


def properties(unit: str, scope: str, *names: str) -> t.Mapping[str, str]:
    """What systemctl tells of the unit, by these names. Raises what systemctl raises."""
    done = units.systemctl(scope, "show", f"--property={','.join(names)}", "--", unit)
    return dict(line.partition("=")[::2] for line in done.out.splitlines())
