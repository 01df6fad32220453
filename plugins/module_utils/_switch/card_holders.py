# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes hold memory of the cards, as far as the kernel tells this user: for whoever has to end them.

Two sources, each with gaps: ``/sys/class/kfd/kfd/proc/PID/vram_GPU`` (bytes of a process that computes, of every
user), and ``/proc/PID/fdinfo`` of the files that a process has open below ``/dev/dri`` (``drm-memory-vram`` in KiB;
only root sees those of other users).
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import glob
import os
import re
import typing as t

KFD = "/sys/class/kfd/kfd/proc"
PROC = "/proc"
_MIB = 1024 * 1024
_SHOWN = 5
_CLIENT = re.compile(r"^drm-client-id:\s*(\d+)$", re.MULTILINE)
_VRAM = re.compile(r"^drm-(?:memory|resident)-vram:\s*(\d+)\s*(KiB|MiB|)$", re.MULTILINE)
_BYTES = {"": 1, "KiB": 1024, "MiB": _MIB}


class Holder(t.NamedTuple):
    """``mib``: of all cards together."""

    pid: int
    name: str
    mib: int


def holders(kfd: str = KFD, proc: str = PROC) -> list[Holder] | None:
    """Who holds memory of a card, the most first; None where neither source is there to be read."""
    found: dict[int, int] = {}
    seen = os.path.isdir(kfd)
    for folder in glob.glob(os.path.join(kfd, "[0-9]*")):
        found[int(os.path.basename(folder))] = sum(
            int(text) for text in map(_text, glob.glob(os.path.join(folder, "vram_*"))) if text.strip().isdecimal()
        )
    for folder in glob.glob(os.path.join(proc, "[0-9]*")):
        held = _by_fdinfo(folder)
        if held is not None:
            seen = True
            pid = int(os.path.basename(folder))
            found[pid] = max(found.get(pid, 0), held)
    if not seen:
        return None
    told = [
        Holder(pid, _text(os.path.join(proc, str(pid), "comm")).strip() or "?", n // _MIB) for pid, n in found.items()
    ]
    return sorted((one for one in told if one.mib), key=lambda one: (-one.mib, one.pid))


def words(found: t.Sequence[Holder] | None) -> str:
    """A sentence that names them, or says that nothing does."""
    if found is None:
        return (
            "Nothing on this machine tells which process that is: it has neither /sys/class/kfd nor the memory of a "
            "card in /proc/PID/fdinfo."
        )
    if not found:
        root = "" if os.geteuid() == 0 else " Root may see more."
        return f"No process is seen that holds any of it; a driver may not have let go of it yet.{root}"
    shown = ", ".join(f"process {one.pid} ({one.name}) holds {one.mib:,} MiB" for one in found[:_SHOWN])
    more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{shown[0].upper()}{shown[1:]}{more}."


def _by_fdinfo(folder: str) -> int | None:
    """Bytes by the files that a process has open; None where none of them tells of a card's memory."""
    clients: dict[str, int] = {}
    for path in glob.glob(os.path.join(folder, "fd", "*")):
        try:
            if not os.readlink(path).startswith("/dev/dri/"):
                continue
        except OSError:
            continue
        text = _text(os.path.join(folder, "fdinfo", os.path.basename(path)))
        held = [int(number) * _BYTES[unit] for number, unit in _VRAM.findall(text)]
        client = _CLIENT.search(text)
        if held:
            # The same client of the driver may be open more than once.
            clients[client.group(1) if client else path] = max(held)
    return sum(clients.values()) if clients else None


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read()
    except OSError:
        return ""
