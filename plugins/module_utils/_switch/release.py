# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting until the cards have the old process's memory back: the driver gives it back after the process is gone.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import glob
import os
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import card_holders
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Phase

SYSFS = "/sys/class/drm"
_MIB = 1024 * 1024
_POLL = 0.25
# This many readings in a row that differ by less than this are rest.
_STABLE_READINGS = 3
_STABLE_MIB = 16


def used_mib(sysfs: str = SYSFS) -> int | None:
    """VRAM in use over all cards that show it (amdgpu does), in MiB; None where none does."""
    total, found = 0, False
    for path in glob.glob(os.path.join(sysfs, "card[0-9]*", "device", "mem_info_vram_used")):
        try:
            with open(path, encoding="ascii") as handle:
                total += int(handle.read())
            found = True
        except (OSError, ValueError):
            continue
    return total // _MIB if found else None


def opens_a_card(pid: int, proc: str = card_holders.PROC) -> bool:
    """Whether the process, or one that it began (a container's first process is its init), has a card's device open."""
    return _has_open(pid, proc) or any(opens_a_card(child, proc) for child in children(pid, proc))


def _has_open(pid: int, proc: str) -> bool:
    folder = os.path.join(proc, str(pid), "fd")
    try:
        for name in os.listdir(folder):
            if os.readlink(os.path.join(folder, name)).startswith(("/dev/kfd", "/dev/dri/")):
                return True
    except OSError:
        return False
    return False


def children(pid: int, proc: str = card_holders.PROC) -> list[int]:
    """The processes that this one began and that are still its own; empty where they cannot be seen."""
    found = []
    for path in glob.glob(os.path.join(proc, str(pid), "task", "*", "children")):
        try:
            with open(path, encoding="ascii") as handle:
                found += [int(word) for word in handle.read().split()]
        except OSError:
            continue
    return found


def held_by(pid: int, ledger: t.Mapping[str, t.Any] | None) -> dict[str, t.Any]:
    """What the process holds before it is stopped: ``{opens_a_card, used_mib, pools_mib}``.

    ``pools_mib`` is what its ledger says of its two pools on all of its cards (null where it does not): at least that
    has to come back.
    """
    pair = (ledger or {}).get("pair") or {}
    cards = len(((ledger or {}).get("devices") or {}).get("used") or [])
    known = cards and None not in (pair.get("weights_mib"), pair.get("kv_mib"))
    return {
        "opens_a_card": opens_a_card(pid),
        "used_mib": used_mib(),
        "pools_mib": int(cards * (pair["weights_mib"] + pair["kv_mib"])) if known else None,
    }


def together(holds: t.Sequence[dict[str, t.Any]]) -> dict[str, t.Any] | None:
    """What several processes hold, each of ``held_by``, as that of one; None where there is none."""
    if not holds:
        return None
    pools = [held["pools_mib"] for held in holds if held["opens_a_card"]]
    return {
        "opens_a_card": any(held["opens_a_card"] for held in holds),
        "used_mib": holds[0]["used_mib"],
        "pools_mib": None if None in pools else sum(pools),
    }


def wait(phase: Phase, held: t.Mapping[str, t.Any] | None, timeout: float, sysfs: str = SYSFS) -> None:
    """Wait until the pools' memory is back and the reading rests. Raises RadianceError ``memory_held``."""
    if held is None:
        phase.says = "nothing ran, so no card memory is waited for"
        return
    if not held["opens_a_card"]:
        phase.says = "the old process had no card open, so no card memory is waited for"
        return
    if held["used_mib"] is None:
        phase.says = "nothing on this machine shows the memory of a card, so its release was not watched"
        return
    limit = None if held["pools_mib"] is None else held["used_mib"] - held["pools_mib"]
    readings: list[int] = []
    began = time.monotonic()
    while True:
        readings.append(used_mib(sysfs) or 0)
        recent = readings[-_STABLE_READINGS:]
        rests = len(recent) == _STABLE_READINGS and max(recent) - min(recent) < _STABLE_MIB
        waited = time.monotonic() - began
        if rests and (limit is None or recent[-1] <= limit + _STABLE_MIB):
            phase.says = f"{held['used_mib']:,} MiB in use before, {recent[-1]:,} MiB at rest after {waited:.1f} s"
            return
        if waited >= timeout:
            due = "" if limit is None else f", and {max(limit, 0):,} MiB or less were due"
            raise RadianceError(
                f"The cards still have {recent[-1]:,} MiB in use {timeout:g} s after the old process ended"
                f"{due} (release_timeout). {card_holders.words(card_holders.holders())}",
                code="memory_held",
            )
        time.sleep(_POLL)
