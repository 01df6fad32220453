# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the host can hold a larger host pool: asked before anything stops.

The engine pins its host pool, and a pin that the host does not allow ends the new boot, or falls back without a word.
What the running engine is allowed tells what the next one will be: both are started in the same way.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import Process

POOL = "host-pool-mib"
_CAP_IPC_LOCK = 14  # capabilities(7): it may pin past the limit
_MIB = 1024 * 1024


class Host(t.NamedTuple):
    """What the kernel says: bytes that a process may pin (None: as many as it likes), MiB that the host can give."""

    lock_limit_bytes: int | None
    available_mib: int | None


def check(process: Process, flags: t.Mapping[str, t.Any], proc: str = "/proc") -> None:
    """Raise RadianceError ``memlock_low`` or ``host_memory_short`` where ``flags`` ask for more than the host allows.

    ``flags`` are the engine's flags that a request changes, ``process`` what runs. A host pool is one of each rank, so
    ``--tp`` of them are pinned. One that does not grow is not looked at: it is pinned already.
    """
    ranks = _count(process.flags.get("tp")) or 1
    asked, runs = _count(flags.get(POOL)) * ranks, _count(process.flags.get(POOL)) * ranks
    if asked <= runs:
        return
    host = read_host(process.pid, proc)
    what = f"--{POOL} {flags[POOL]} on {ranks} rank(s) pins {asked:,} MiB"
    limit = host.lock_limit_bytes
    if limit is not None and asked * _MIB > limit:
        raise RadianceError(
            f"{what}, and process {process.pid}, which the new one is started like, may lock {limit // 1024:,} KiB "
            "(Max locked memory in its /proc limits). Nothing was changed. Raise it where the service is started: "
            "LimitMEMLOCK=infinity in the unit, --ulimit memlock=-1 for a container; or ask for a smaller "
            "host_pool_mib.",
            code="memlock_low",
        )
    if host.available_mib is not None and asked - runs > host.available_mib:
        raise RadianceError(
            f"{what}, {asked - runs:,} MiB more than what runs, and the host has {host.available_mib:,} MiB "
            "(MemAvailable of /proc/meminfo). Nothing was changed. Ask for a smaller host_pool_mib, or free memory of "
            "the host.",
            code="host_memory_short",
        )


def read_host(pid: int, proc: str = "/proc") -> Host:
    """The limits of process ``pid``, and the memory of the host. What cannot be read bounds nothing."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", _text(proc, "meminfo"), re.MULTILINE)
    return Host(
        lock_limit(_text(proc, str(pid), "limits"), _text(proc, str(pid), "status")),
        int(found.group(1)) // 1024 if found else None,
    )


def lock_limit(limits: str, status: str) -> int | None:
    """Bytes that a process may pin, from its ``limits`` and ``status`` in /proc; None where nothing bounds it."""
    capabilities = re.search(r"^CapEff:\s+([0-9a-f]+)$", status, re.MULTILINE)
    if capabilities and int(capabilities.group(1), 16) >> _CAP_IPC_LOCK & 1:
        return None
    soft = re.search(r"^Max locked memory\s+(\d+)\s", limits, re.MULTILINE)
    return int(soft.group(1)) if soft else None


def _count(value: t.Any) -> int:
    """A flag's number; 0 where it has none, which the engine takes for its default."""
    return int(value) if re.fullmatch(r"[0-9]{1,12}", str(value)) else 0


def _text(*parts: str) -> str:
    try:
        with open(os.path.join(*parts), encoding="ascii", errors="replace") as handle:
            return handle.read()
    except OSError:
        return ""
