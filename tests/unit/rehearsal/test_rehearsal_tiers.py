# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host and disk tiers of the prefix cache."""

from __future__ import annotations

import pathlib
from array import array
from typing import Any

from engine.command_line import parse
from engine.machine import resolve
from engine.tiers import Tiers
from engine.world import World

PAIR = "--vram-weights-mib 24000 --vram-kv-mib 5120"
FOX = "The quick brown fox jumps over the lazy dog. "


def tiers(folder: pathlib.Path, host: int, disk: int, flags: str = "") -> Tiers:
    """Tiers of so many MiB at two ranks and fp8; an entry of 1,000 tokens takes 7.14 + 56 MiB."""
    line = (
        f"--model m --tp 2 --max-num-seqs 3 --kv-cache-dtype fp8 --num-speculative-tokens 2 --prefix-cache-host-mib "
        f"{host} --prefix-cache-dir {folder} --prefix-cache-disk-mib {disk} {flags}"
    )
    return Tiers(resolve(World(), parse(line.split())))


def tokens(first: int, count: int = 1000) -> array[int]:
    """Token ids that no other entry shares."""
    return array("I", range(first, first + count))


def test_a_head_is_found_in_whole_blocks_and_leaves_one_token(tmp_path: pathlib.Path) -> None:
    tier = tiers(tmp_path, 1024, 0)
    tier.keep(tokens(0))
    assert tier.match(tokens(0), 0) == 996
    assert tier.match(tokens(0, 1500), 0) == 1000
    assert tier.match(tokens(0, 1500), 1000) == 0, "no more than what VRAM has"
    assert tier.match(tokens(0, 63), 0) == 0, "too short a head"
    assert tier.match(tokens(5), 0) == 0


def test_a_tier_gives_up_what_was_used_longest_ago(tmp_path: pathlib.Path) -> None:
    tier = tiers(tmp_path, 130, 0)
    tier.keep(tokens(0))
    tier.keep(tokens(5000))
    assert tier.match(tokens(0), 0) == 996
    tier.keep(tokens(9000))
    assert [tier.match(tokens(first), 0) for first in (0, 5000, 9000)] == [996, 0, 996]
    assert tier.snapshot()[0]["entries"] == 2


def test_a_longer_entry_covers_its_head(tmp_path: pathlib.Path) -> None:
    tier = tiers(tmp_path, 1024, 1024)
    tier.keep(tokens(0))
    tier.keep(tokens(0, 2000))
    assert [row["entries"] for row in tier.snapshot()] == [1, 1]
    assert len(list(tmp_path.glob("*.kv"))) == 1


def test_the_disk_outlives_the_process_and_the_host_does_not(tmp_path: pathlib.Path) -> None:
    tiers(tmp_path, 1024, 1024).keep(tokens(0))
    again = tiers(tmp_path, 1024, 1024)
    assert [row["entries"] for row in again.snapshot()] == [0, 1]
    assert again.match(tokens(0), 0) == 996
    assert tiers(tmp_path, 1024, 1024, "--kv-cache-dtype bf16").match(tokens(0), 0) == 0, "another cache"
    assert tiers(tmp_path, 1024, 0).match(tokens(0), 0) == 0, "no disk tier was asked for"
    assert again.reset() == 1
    assert list(tmp_path.glob("*.kv")) == []


def test_a_torn_file_is_left_alone(tmp_path: pathlib.Path) -> None:
    tiers(tmp_path, 1024, 1024).keep(tokens(0))
    (whole,) = tmp_path.glob("*.kv")
    whole.write_bytes(whole.read_bytes()[:-20])
    (tmp_path / "other.kv").write_bytes(b"no json\n")
    assert tiers(tmp_path, 1024, 1024).match(tokens(0), 0) == 0


def test_a_conversation_comes_back_after_a_restart(start: Any, tmp_path: pathlib.Path) -> None:
    flags = f"{PAIR} --prefix-cache-host-mib 4096 --prefix-cache-dir {tmp_path}/kv --prefix-cache-disk-mib 8192"
    body = {"prompt": f"MARKER-4711-ALPHA {FOX * 300}", "max_tokens": 20}
    first = start(flags).ready()
    first.line(
        r"^I kv tiers: a finished conversation's KV is copied to host memory at once \(4\.00 GiB, 280 entries\) "
    )
    first.line(r"^kv tiers: a session's linear state moves with its blocks -- 18 snapshot\(s\) of 56\.00 MiB in host ")
    cold = first.ask("POST", "/v1/completions", body)[1]
    assert cold["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert first.ask("GET", "/sessions")[1]["tiers"][1]["entries"] == 1
    first.stop()
    second = start(flags).ready()
    warm = second.ask("POST", "/v1/completions", body)[1]
    count = warm["usage"]["prompt_tokens"]
    assert warm["usage"]["prompt_tokens_details"]["cached_tokens"] == (count - 1) // 4 * 4
    assert warm["choices"][0]["text"] == cold["choices"][0]["text"]


def test_tiers_that_cannot_be(start: Any, tmp_path: pathlib.Path) -> None:
    nowhere = f"--prefix-cache-dir {tmp_path}/no/where --prefix-cache-disk-mib 100"
    engine = start(f"{PAIR} --prefix-cache-host-mib 100 {nowhere}").ready()
    engine.line(rf"^E cannot create {tmp_path}/no/where$")
    engine.line(r"^W kv tiers: the disk tier at \S+ would not open; it is off\.$")
    engine.line(r" -- NONE, so an idle hybrid session comes back needing a full linear replay; ")
    engine = start(f"{PAIR} --prefix-cache-host-mib 100 --prefix-cache-disk-mib 100").ready()
    engine.line(r"^W kv tiers: --prefix-cache-disk-mib needs --prefix-cache-dir to say WHERE\. The disk tier is off\.$")
    engine = start(f"{PAIR} --prefix-cache-disk-mib 100").ready()
    engine.line(r"^W kv tiers: --prefix-cache-disk-mib is set but --prefix-cache-host-mib is not, ")
    engine.line(r"^I kv tiers: off \(no --prefix-cache-host-mib\)")
