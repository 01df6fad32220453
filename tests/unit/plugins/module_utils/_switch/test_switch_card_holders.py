# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds the memory of the cards, by folders like those that the kernel shows."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import card_holders, release
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.card_holders import Holder, holders, words
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Phase

GIB = 1024 * 1024 * 1024


def compute(kfd: pathlib.Path, pid: int, *held: int) -> None:
    (kfd / str(pid)).mkdir(parents=True)
    for number, value in enumerate(held):
        (kfd / str(pid) / f"vram_{30000 + number}").write_text(f"{value}\n")


def opened(proc: pathlib.Path, pid: int, name: str, device: str, *infos: str) -> None:
    for part in ("fd", "fdinfo"):
        (proc / str(pid) / part).mkdir(parents=True)
    (proc / str(pid) / "comm").write_text(f"{name}\n")
    for number, info in enumerate(infos):
        (proc / str(pid) / "fd" / str(number)).symlink_to(device)
        (proc / str(pid) / "fdinfo" / str(number)).write_text(info)


def test_by_both_sources_the_most_first(tmp_path: pathlib.Path) -> None:
    kfd, proc = tmp_path / "kfd", tmp_path / "proc"
    compute(kfd, 4711, 12 * GIB, 11 * GIB)
    compute(kfd, 4712, 0)
    opened(proc, 4711, "radiance", "/dev/kfd", "pos:\t0\n")
    info = "drm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-memory-vram:\t544428 KiB\ndrm-memory-gtt: \t22528 KiB\n"
    opened(proc, 815, "Xorg", "/dev/dri/card0", info, info)
    opened(proc, 900, "bash", "/dev/pts/0", info)
    found = holders(str(kfd), str(proc))
    assert found == [Holder(4711, "radiance", 23552), Holder(815, "Xorg", 531)]
    assert words(found) == "Process 4711 (radiance) holds 23,552 MiB, process 815 (Xorg) holds 531 MiB."


def test_a_machine_that_does_not_tell_says_so(tmp_path: pathlib.Path) -> None:
    assert holders(str(tmp_path / "no"), str(tmp_path / "no")) is None
    assert words(None) == (
        "Nothing on this machine tells which process that is: it has neither /sys/class/kfd nor the memory of a card "
        "in /proc/PID/fdinfo."
    )
    (tmp_path / "kfd").mkdir()
    assert holders(str(tmp_path / "kfd"), str(tmp_path / "no")) == []
    assert words([]).startswith("No process is seen that holds any of it; a driver may not have let go of it yet.")


def test_memory_that_stays_held_names_its_holder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute(tmp_path / "kfd", 4711, 12 * GIB)
    monkeypatch.setattr(card_holders, "holders", lambda: holders(str(tmp_path / "kfd"), str(tmp_path / "no")))
    card = tmp_path / "drm" / "card0" / "device"
    card.mkdir(parents=True)
    (card / "mem_info_vram_used").write_text(str(12400 * 1024 * 1024))
    held = {"opens_a_card": True, "used_mib": 29900, "pools_mib": 29120}
    with pytest.raises(RadianceError) as error:
        release.wait(Phase("release", None), held, 0.1, str(tmp_path / "drm"))
    assert error.value.code == "memory_held"
    assert error.value.text == (
        "The cards still have 12,400 MiB in use 0.1 s after the old process ended, and 780 MiB or less were due "
        "(release_timeout). Process 4711 (?) holds 12,288 MiB."
    )
