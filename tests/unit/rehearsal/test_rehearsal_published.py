# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in's arithmetic against figures that others published of the engine, and against worked examples."""

from __future__ import annotations

from typing import Any

import pytest
from engine import budget_report, kv_report
from engine.command_line import parse
from engine.kv_arithmetic import Shape, costs
from engine.machine import Machine, resolve
from engine.sizes import GIB, KIB, MIB, humanb
from engine.world import World
from rehearsal_boots import boot_world

SHAPE = "--model m.rad --tp 2 --tp-wire wht6 --max-model-len 200000 --kv-cache-dtype fp8 --host-pool-mib 16384"


def machine(flags: str, **world: Any) -> Machine:
    """A machine of two cards with 200,000 tokens of context at fp8."""
    return resolve(World(**world), parse(f"{SHAPE} {flags}".split()))


def test_a_block_of_the_guide() -> None:
    assert costs(Shape(1, 200000, "fp8", 2, 2, 8)).block_bytes == 29.25 * KIB


def test_a_long_sequence_of_the_guide() -> None:
    token = costs(Shape(1, 204800, "fp8", 2, 2, 8)).token_bytes
    assert round(204_800 * token / GIB, 2) == 1.43
    assert round(200_000 * token / GIB, 2) == 1.39


def test_the_state_of_32_sequences_of_the_guide() -> None:
    assert round(costs(Shape(32, 200000, "fp8", 3, 2, 8)).state_bytes / GIB, 1) == 3.4


def test_the_worked_example_of_eight_sequences() -> None:
    kv = costs(Shape(8, 200000, "fp8", 2, 2, 8))
    assert round(8 * 50_000 * kv.block_bytes / MIB, 2) == 11425.78
    state = next(group for group in kv.groups if group.name == "kv_gdn_state")
    assert state.page * state.slots == 864 * MIB


def test_the_capacity_that_1_0_4_reported() -> None:
    # 489,544 tokens in "4.7 GiB"; one stride for the alignment of the snapshots may be more than the engine loses.
    tokens = costs(Shape(8, 200000, "fp8", 3, 2, 8)).tokens(int(4.7 * GIB))
    assert tokens == pytest.approx(489_544, rel=0.03)


def test_six_of_eight_checkpoints_as_1_0_13_reported() -> None:
    boot = machine(
        "--max-num-seqs 8 --num-speculative-tokens 3 --gpu-headroom-mib 3072 --expert-vs-cache-ratio 0.82",
        after_budget_mib=[100.0, 80.0],
    )
    text = kv_report.withdrawal(boot)
    assert text is not None and text.startswith("checkpoint slots: 6 of 8 backed (58.00 MiB each), 2 withdrawn -- ")


def test_the_snapshot_that_1_2_3_reported() -> None:
    # 112.73 MiB on both ranks, of which 0.42 are not explained.
    snapshot = costs(Shape(8, 200000, "fp8", 3, 2, 8)).snapshot
    assert 112.73 - 2 * snapshot / MIB == pytest.approx(0.42, abs=0.01)


def test_the_production_recipe_passes_the_exact_rows() -> None:
    boot = machine("--max-num-seqs 8 --num-speculative-tokens 3")
    assert (boot.rows, boot.exact_rows) == (32, 25)
    assert machine("--max-num-seqs 8", embedding=5120).exact_rows == 12


def test_claimable_after_two_stated_pools() -> None:
    boot = machine(
        "--max-num-seqs 3 --num-speculative-tokens 2 --vram-weights-mib 24000 --vram-kv-mib 4000",
        card_total_mib=30576.0,
        already_held_mib=620.84,
    )
    assert humanb(boot.split.claimable) == "774.46 MiB"
    table = budget_report.budget(boot)
    assert "  claimable          774.46 MiB\n" in table
    assert "  elastic            774.46 MiB   what" in table
    assert "    experts                 0 B   0% of it\n" in table
    assert "    kv cache           3.91 GiB   516% of it -- " in table


def test_a_public_configuration_that_backs_less_than_its_worst_case(capfd: Any) -> None:
    flags = (
        f"{SHAPE} --max-num-seqs 3 --num-speculative-tokens 2 --host-pool-mib 40960 --vram-weights-mib 26071 "
        "--vram-kv-mib 3543 --ngram-placement ram"
    )
    how, lines = boot_world(capfd, World(), " ".join(flags.split()[2:]))
    assert how == "up"
    assert any("63% backing of the 3 x 200000 worst case: 1.9 full-length" in line for line in lines)


def test_pure_defaults_do_not_load_on_two_cards(capfd: Any) -> None:
    how, lines = boot_world(capfd, World(), "--tp 2 --max-num-seqs 8")
    assert how == "refused"
    assert any(line == "  DID NOT FIT" for line in lines)


def test_integrated_graphics_leave_an_eighth_to_the_host(capfd: Any) -> None:
    world = World(integrated=True, host_ram_mib=65536.0, gpus=["gfx1151"])
    how, lines = boot_world(
        capfd, world, "--max-num-seqs 1 --kv-cache-dtype fp8 --num-speculative-tokens 0 --host-pool-mib 65536"
    )
    assert how == "up"
    row = "  left to the host     8.00 GiB   integrated graphics: this memory is the host's; --vram-kv-mib states a "
    assert any(line.startswith(row) for line in lines)


def test_cards_without_virtual_memory_lend_nothing(capfd: Any) -> None:
    world = World(virtual_memory=False, returns_memory=False)
    flags = f"{SHAPE} --max-num-seqs 3 --num-speculative-tokens 2 --vram-weights-mib 24000 --vram-kv-mib 5120"
    how, lines = boot_world(capfd, world, " ".join(flags.split()[2:]))
    assert how == "up"
    assert any(line.startswith("W this device has no virtual memory management, so the KV cache") for line in lines)
    assert any(line.startswith("I this driver does not return decommitted VRAM to the card") for line in lines)
    assert not any("can be lent" in line for line in lines)
