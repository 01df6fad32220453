# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a larger host pool needs of the host, read from /proc as the kernel writes it."""

from __future__ import annotations

import os
import pathlib

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import Process
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import host_memory
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import OLD, Service
from hypothesis import given
from hypothesis import strategies as st

LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max processes             94947                94947                processes
Max locked memory         {soft:<20} {hard:<20} bytes
Max address space         unlimited            unlimited            bytes
"""
STATUS = "Name:\tradiance\nCapInh:\t0000000000000000\nCapEff:\t{effective}\nCapBnd:\t000001ffffffffff\n"
NO_CAPABILITY, ALL, ALL_BUT_IPC_LOCK = "0000000000000000", "000001ffffffffff", "000001ffffffbfff"
MEMINFO = "MemTotal:       131072000 kB\nMemFree:         1048576 kB\nMemAvailable:   40960000 kB\n"


def engine(flags: dict[str, str]) -> Process:
    return Process(41, ["/usr/bin/radiance"], "2026-10-13T08:00:00Z", 1, flags)


def machine(folder: pathlib.Path, soft: str, effective: str = NO_CAPABILITY) -> str:
    (folder / "41").mkdir()
    (folder / "41" / "limits").write_text(LIMITS.format(soft=soft, hard=soft))
    (folder / "41" / "status").write_text(STATUS.format(effective=effective))
    (folder / "meminfo").write_text(MEMINFO)
    return str(folder)


def test_a_pool_above_the_memlock_limit_is_refused_with_both_numbers(tmp_path: pathlib.Path) -> None:
    proc = machine(tmp_path, "8388608")
    with pytest.raises(RadianceError) as refused:
        host_memory.check(engine({"host-pool-mib": "16384", "tp": "2"}), {"host-pool-mib": "20480"}, proc)
    assert refused.value.code == "memlock_low"
    assert refused.value.text.startswith(
        "--host-pool-mib 20480 on 2 rank(s) pins 40,960 MiB, and process 41, which the new one is started like, may "
        "lock 8,192 KiB (Max locked memory in its /proc limits). Nothing was changed. "
    )


def test_a_pool_above_the_memory_of_the_host_is_refused_with_both_numbers(tmp_path: pathlib.Path) -> None:
    proc = machine(tmp_path, "unlimited")
    running = engine({"host-pool-mib": "16384", "tp": "2"})
    # 40,960,000 kB are 40,000 MiB: what both ranks may grow by together.
    host_memory.check(running, {"host-pool-mib": "36384"}, proc)
    with pytest.raises(RadianceError) as refused:
        host_memory.check(running, {"host-pool-mib": 36385}, proc)
    assert refused.value.code == "host_memory_short"
    assert "40,002 MiB more than what runs, and the host has 40,000 MiB (MemAvailable" in refused.value.text


@pytest.mark.parametrize("asked", [{}, {"host-pool-mib": "16384"}, {"host-pool-mib": "64"}, {"host-pool-mib": "auto"}])
def test_a_pool_that_does_not_grow_needs_nothing(tmp_path: pathlib.Path, asked: dict[str, str]) -> None:
    host_memory.check(engine({"host-pool-mib": "16384", "tp": "2"}), asked, machine(tmp_path, "0"))


@pytest.mark.parametrize(
    ("soft", "effective", "limit"),
    [
        ("8388608", NO_CAPABILITY, 8388608),
        ("8388608", ALL_BUT_IPC_LOCK, 8388608),
        ("8388608", ALL, None),
        ("unlimited", NO_CAPABILITY, None),
        ("0", NO_CAPABILITY, 0),
    ],
)
def test_who_may_pin_how_much(soft: str, effective: str, limit: int | None) -> None:
    assert host_memory.lock_limit(LIMITS.format(soft=soft, hard=soft), STATUS.format(effective=effective)) == limit


@given(st.text(), st.text())
def test_no_text_of_the_kernel_is_a_traceback(limits: str, status: str) -> None:
    assert host_memory.lock_limit(limits, status) is None or "Max locked memory" in limits


def test_this_process_is_read_as_the_kernel_shows_it() -> None:
    found = host_memory.read_host(os.getpid())
    assert found.available_mib is not None
    assert 0 < found.available_mib < 1 << 30


def test_what_the_host_cannot_hold_is_refused_before_anything_stops(service: Service) -> None:
    old_pid = service.pid()
    result = service.run(expect={"to": OLD, "flags": {"host-pool-mib": "900000000"}})
    assert result["failed"]
    assert result["code"] in ("memlock_low", "host_memory_short")
    assert "--host-pool-mib 900000000 on 2 rank(s) pins 1,800,000,000 MiB" in result["msg"]
    assert (service.pid(), result["outcome"], result["changed"]) == (old_pid, "unchanged", False)
