# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Named worlds, random worlds, and world files that build on them."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
from dataclasses import asdict
from typing import Any

import pytest
from engine import fault_names
from engine.command_line import parse
from engine.machine import resolve
from engine.random_worlds import random_world
from engine.sizes import MIB
from engine.world import World, WorldError
from engine.world_files import build, named, names, read_world
from rehearsal_boots import boot_world

WORLDS = pathlib.Path(__file__).resolve().parents[3] / "extensions" / "rehearsal" / "radiance_worlds.py"


def test_the_named_worlds() -> None:
    assert names() == ["dankserver", "dense", "hybrid", "one-card", "unequal"]
    assert {**asdict(named("dankserver")), "about": "", "flags": ""} == asdict(World())


def has(lines: list[str], pattern: str) -> bool:
    """Whether a line of a boot has this in it."""
    return any(re.search(pattern, line) for line in lines)


def test_dankserver_boots(capfd: Any) -> None:
    world = named("dankserver")
    how, lines = boot_world(capfd, world, world.flags)
    assert how == "up"
    assert has(lines, r"^I\[0\] mover: 17548 slab slots \(32 shadow\), 7580 pinned pool slots")


def test_one_card(capfd: Any) -> None:
    world = named("one-card")
    how, lines = boot_world(capfd, world, world.flags)
    assert how == "up"
    assert has(lines, r"^W device: using 1 of 2 \[0:gfx1201\], ignoring \[1:gfx1036\]: ")
    assert not has(lines, r"^[EWI]\[")
    # 14,144 bytes a token at tp 1: 26,624 x 2 + 3,328 a block of four.
    assert has(lines, r"kv_attn +full +13 layers  block    4 tok  page 52\.00 KiB ")


def test_unequal_cards_are_budgeted_by_the_smallest(capfd: Any) -> None:
    world = named("unequal")
    how, lines = boot_world(capfd, world, world.flags)
    assert how == "up"
    assert has(lines, r"^  card total +29\.86 GiB$")
    assert has(lines, r"^  already held +1\.93 GiB   measured: ")
    # 30,576 - 1,980.5 - arena, staging and pools; card 0 has 3,686.5 more, and 10 less for what comes later.
    free = [re.search(r"card (\d) settled at (\S+ \S+) free", line) for line in lines]
    assert [found.groups() for found in free if found] == [("0", "5.20 GiB"), ("1", "1.61 GiB")]


def test_a_dense_model(capfd: Any) -> None:
    world = named("dense")
    how, lines = boot_world(capfd, world, world.flags)
    assert how == "up"
    assert has(lines, r"^    experts +0 B   0% of it -- a dense model, so there is no expert plane for this share to")
    assert has(lines, r"^ {34}cache took everything it could address$")
    # 8 heads on 2 ranks, 128 wide, keys and values, 64 layers, fp8: 65,536 bytes a token.
    assert resolve(world, parse(["--model", "m", *world.flags.split()])).kv.token_bytes == 65536
    assert not has(lines, "linear") and not has(lines, "can be lent")
    assert has(lines, r"^I activation arena: not lent -- the 'dense64' plugin does not declare at a smaller step size ")
    how, lines = boot_world(capfd, world, f"{world.flags} --checkpoint-slots 4")
    assert has(lines, r"^W --checkpoint-slots 4 ignored: this model declares no linear-attention state")


def test_a_dense_model_with_derived_pools_gives_the_cache_what_it_can_address() -> None:
    world = named("dense")
    flags = world.flags[: world.flags.index("--vram-weights")]
    split = resolve(world, parse(["--model", "m", *flags.split()])).split
    # 4 x 65,536 tokens of 64 KiB, and 4 KiB for the group; in whole MiB, rounded down.
    assert split.kv_pool == 16384 * MIB
    assert split.unusable > 0 and split.experts == 0


def test_another_hybrid(capfd: Any) -> None:
    world = named("hybrid")
    how, lines = boot_world(capfd, world, world.flags)
    assert how == "up"
    assert has(lines, r"^I chunk geometry: quantum 64 \(attn block 16, state chunk 64\), ")
    assert has(lines, r"^I speculation: off -- this container carries no draft head$")
    # 16 heads a rank x 128 x 128 x 4 bytes x 30 layers, one copy for each of six sequences.
    assert has(lines, r"^    kv_gdn_state +linear +30 layers  state 30\.00 MiB        6 slots = 180\.00 MiB$")


@pytest.mark.parametrize("seed", range(25))
def test_a_random_world_boots(capfd: Any, seed: int) -> None:
    world = random_world(seed)
    assert asdict(random_world(seed)) == asdict(world)
    assert asdict(build(json.loads(json.dumps(asdict(world))))) == json.loads(json.dumps(asdict(world)))
    machine = resolve(world, parse(["--model", "m", *world.flags.split()]))
    how, lines = boot_world(capfd, world, world.flags)
    assert how == "up", "\n".join(lines)
    assert has(lines, r"^  unclaimed ")
    settled = [line for line in lines if "settled at" in line]
    assert len(settled) == machine.tp
    split, kv = machine.split, machine.kv
    assert machine.kv_tokens >= machine.shape.context
    assert kv.fixed + machine.kv_tokens * kv.token_bytes <= split.kv_pool
    card = split.card
    used = card.held + card.arena + card.staging + split.weights_pool + split.kv_pool + split.unclaimed
    assert used == card.total


def test_random_worlds_differ() -> None:
    worlds = [random_world(seed) for seed in range(40)]
    assert len({world.flags for world in worlds}) == 40
    assert {len(world.used_devices()) for world in worlds} == {1, 2, 4}
    assert {world.dense for world in worlds} == {True, False}
    assert {world.cache.linear_layers == 0 for world in worlds} == {True, False}


def test_the_command_prints_a_world_that_is_read_back(tmp_path: pathlib.Path) -> None:
    done = subprocess.run([sys.executable, str(WORLDS), "--seed", "7"], capture_output=True, text=True, check=True)
    (tmp_path / "m.world.json").write_text(done.stdout)
    assert asdict(read_world(str(tmp_path / "m.rad")))["flags"] == random_world(7).flags
    flags = subprocess.run(
        [sys.executable, str(WORLDS), "dense", "--flags"], capture_output=True, text=True, check=True
    )
    assert flags.stdout.strip() == named("dense").flags
    wrong = subprocess.run([sys.executable, str(WORLDS), "mars"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "there is no world 'mars'; there are dankserver, " in wrong.stderr


def test_a_world_file_builds_on_a_named_world() -> None:
    world = build({"world": "hybrid", "load_speedup": 20, "cache": {"kv_heads": 8}})
    assert (world.arch, world.load_speedup, world.cache.kv_heads, world.cache.linear_heads) == ("hybrid40", 20, 8, 32)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"cards": 3}, "there is no field 'cards'"),
        ({"cache": {"heads": 3}}, "there is no field 'heads'"),
        ({"cache": {"kv_heads": 2.5}}, "kv_heads is 2.5"),
        ({"cache": 5}, "cache is an object of dimensions"),
        ({"integrated": 1}, "integrated is 1, but the default is False"),
        ({"load_speedup": True}, "load_speedup is True"),
        ({"prefill_law": []}, r"prefill_law is \[\]"),
        ({"world": "mars"}, "there is no world 'mars'"),
        ({"gpus": [5]}, "gpus has an item that is none"),
        ({"prefill_law": [[1, 2, 3]]}, "prefill_law has an item that is none"),
        ({"slot_pages": [419]}, r"slot_pages is \[419\], and that leaves nothing"),
        ({"slot_pages": [419, 2.5]}, "slot_pages has an item that is none"),
        ({"load_speedup": 0}, "load_speedup is 0, and that leaves nothing"),
        ({"cache": {"block_tokens": 0}}, "block_tokens is 0, and that leaves nothing"),
    ],
)
def test_a_wrong_field_is_named(given: dict[str, Any], text: str) -> None:
    with pytest.raises(WorldError, match=text):
        build(given)


@pytest.mark.parametrize("seed", range(6))
def test_no_fault_of_a_boot_is_more_than_a_refusal_in_any_world(capfd: Any, seed: int) -> None:
    world = random_world(seed)
    for name in {**fault_names.REFUSALS, **fault_names.BOOT, **fault_names.ODDITIES}:
        if name == "never_ready":
            continue
        how, lines = boot_world(capfd, world, world.flags, name)
        wanted = "refused" if name in fault_names.REFUSALS and name != "bind_refused" else "up"
        assert how == ("crashed" if name == "crash_after_table" else wanted), (name, lines[-1])
