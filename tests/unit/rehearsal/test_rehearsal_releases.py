# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the releases differ in."""

from __future__ import annotations

import re
from typing import Any

import pytest
from engine.command_line import UsageError, parse, usage
from engine.releases import Release
from rehearsal_boots import PAIR, SHAPE, boot


@pytest.mark.parametrize(
    ("release", "flag"),
    [
        ("1.0.5", "--ngram-placement ram"),
        ("1.0.5", "--p2p on"),
        ("1.0.13", "--embedding-placement ram"),
        ("1.2.4", "--expert-vs-cache-ratio 0.8"),
        ("1.3.0", "--vram-weights-mib 24000"),
        ("1.3.0", "--vram-kv-mib 5120"),
        ("1.3.0", "--expert-vs-cache-ratio 0.8"),
    ],
)
def test_a_release_does_not_know_the_flags_of_another(release: str, flag: str) -> None:
    with pytest.raises(UsageError, match=f"^unknown option '{flag.split()[0]}'$"):
        parse(["--model", "m", *flag.split()], Release(release))
    assert flag.split()[0] not in usage(Release(release))


@pytest.mark.parametrize(
    ("release", "flag"),
    [("1.0.5", PAIR), ("1.0.13", "--ngram-placement disk"), ("1.2.4", f"{PAIR} --p2p off --embedding-placement ram")],
)
def test_flags_that_a_release_has(release: str, flag: str) -> None:
    parse(["--model", "m", *flag.split()], Release(release))


def settled(lines: list[str]) -> list[str]:
    """The settled lines of a boot."""
    return [line for line in lines if "settled at" in line]


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (PAIR, "W[0] card 0 settled at 2.01 GiB free against the 96.00 MiB --gpu-headroom-mib asked to keep, so 1.92 "),
        (
            "--vram-weights-mib 25940 --vram-kv-mib 5119 --gpu-headroom-mib 120 --checkpoint-slots 0",
            "W[0] card 0 settled at 119.30 MiB free against the 120.00 MiB --gpu-headroom-mib asked to keep. The ",
        ),
        (
            "--vram-weights-mib 25844 --vram-kv-mib 5119",
            "I[0] card 0 settled at 215.30 MiB free, against the 96.00 MiB --gpu-headroom-mib asked to keep",
        ),
    ],
)
def test_the_old_settled_lines(capfd: Any, flags: str, line: str) -> None:
    how, lines = boot(capfd, f"{SHAPE} {flags}", release="1.0.5")
    assert how == "up"
    assert settled(lines)[0].startswith(line)
    assert "static region" not in "".join(lines)


def test_the_old_settled_line_of_a_split_that_could_not_use_more(capfd: Any) -> None:
    _how, lines = boot(capfd, SHAPE, release="1.0.5", expert_units=1024)
    assert settled(lines)[0].endswith("which is the `unusable` line of the VRAM budget above.")
    assert settled(lines)[0].startswith("I[0] ")
    assert any(line.startswith("    unusable ") for line in lines)


def test_snapshots_on_the_host_cost_no_vram(capfd: Any) -> None:
    how, lines = boot(capfd, release="1.2.4")
    assert how == "up"
    assert "I device: the 2 cards reach each other's memory directly (peer to peer)" in lines
    assert any(
        re.search(r"^    checkpoints .* 8 slots x 56\.00 MiB = 448\.00 MiB  \(pinned host memory\)$", line)
        for line in lines
    )
    assert not any("--expert-vs-cache-ratio" in line for line in lines)
    # 504 MiB more for tokens than in 1.0.13: eight snapshots and the alignment of the first.
    assert any("(670848 tokens)" in line for line in lines if "kv_attn" in line)


def test_without_a_ratio_the_host_pool_decides(capfd: Any) -> None:
    how, lines = boot(capfd, f"{SHAPE} --host-pool-mib 8192", release="1.3.0")
    assert how == "up"
    pools = [line.split()[1:3] for line in lines if line.startswith(("  vram_weights ", "  vram_kv "))]
    assert pools[:2] == [["25.55", "GiB"], ["4.51", "GiB"]]
    assert not any("stated" in line for line in lines)


def test_a_release_that_is_none(start: Any) -> None:
    engine = start(PAIR, release="1.17.0")
    assert engine.exit() == 1
    assert engine.lines[-1].endswith("release is '1.17.0', but there are 1.0.5, 1.0.13, 1.2.4, 1.3.0")


def test_a_removed_flag_stops_the_process(start: Any) -> None:
    engine = start(PAIR, release="1.3.0")
    assert engine.exit() == 2
    assert engine.lines[0] == "E unknown option '--vram-weights-mib'"
