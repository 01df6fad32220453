# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of the default world, as the operator's notes and the engine's formulas have them."""

from __future__ import annotations

from typing import Any

import pytest
from engine import budget_report, kv_report
from engine.command_line import parse
from engine.fault_names import hits
from engine.kv_arithmetic import Dimensions, Shape, costs
from engine.machine import Machine, resolve
from engine.sizes import MIB, humanb
from engine.world import World

SHAPE = (
    "--model m.rad --tp 2 --tp-wire wht6 --max-num-seqs 3 --max-model-len 200000 --kv-cache-dtype fp8 "
    "--num-speculative-tokens 2 --host-pool-mib 16384"
)


def machine(flags: str, faults: str | None = None, **world: Any) -> Machine:
    """A machine of the operator's shape."""
    return resolve(World(**world), parse(f"{SHAPE} {flags}".split()), hits(faults))


def pair(weights: int, kv: int, flags: str = "") -> Machine:
    """The same with both pools stated."""
    return machine(f"--vram-weights-mib {weights} --vram-kv-mib {kv} {flags}")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (1024 * MIB - 1, "1024.00 MiB"),
        (30720 * MIB, "30.00 GiB"),
        (32624 * MIB, "31.86 GiB"),
    ],
)
def test_sizes_are_printed_as_the_engine_prints_them(size: int, text: str) -> None:
    assert humanb(size) == text


def test_unclaimed_of_the_seeds_table() -> None:
    split = pair(25600, 5120).split
    assert humanb(split.unclaimed) == "477.30 MiB"
    assert humanb(split.weights_pool) == "25.00 GiB"
    assert humanb(split.kv_pool) == "5.00 GiB"


def test_settled_of_the_worked_ceiling() -> None:
    boot = pair(24000, 5120)
    assert boot.settled(0) / MIB == pytest.approx(2058.30, abs=0.005)
    assert boot.settled(1) / MIB == pytest.approx(2068.30, abs=0.005)
    assert humanb(boot.floor) == "209.19 MiB"
    assert kv_report.settled(boot, 0) == (
        "W",
        "card 0 settled at 2.01 GiB free against 209.19 MiB (the 96.00 MiB --gpu-headroom-mib and 113.19 MiB kept for "
        "the static region)",
    )


def test_settled_of_a_fill_is_no_warning() -> None:
    level, text = kv_report.settled(pair(25844, 5119), 0)
    assert level == "I"
    assert text.startswith("card 0 settled at 215.30 MiB free against 209.19 MiB")


def test_settled_under_the_floor_is_a_warning() -> None:
    level, text = kv_report.settled(pair(25851, 5119), 0)
    assert (level, text[:34]) == ("W", "card 0 settled at 208.30 MiB free ")


@pytest.mark.parametrize(
    ("weights", "slab", "pool", "slab1", "pool1"),
    [
        (24000, 17548, 7580, 17597, 7531),
        (22208, 16235, 8893, 16284, 8844),
        (25600, 18720, 6408, 18769, 6359),
        (25844, 18898, 6230, 18947, 6181),
    ],
)
def test_slots(weights: int, slab: int, pool: int, slab1: int, pool1: int) -> None:
    first, second = pair(weights, 5119).slots
    assert (first.slab, first.pool, first.shadow) == (slab, pool, 32)
    assert (second.slab, second.pool) == (slab1, pool1)


def test_a_host_pool_too_small_leaves_units_of_both_classes() -> None:
    slots = pair(24000, 5120, "--host-pool-mib 8192").slots[0]
    assert not slots.fits
    assert slots.pool == 6000
    assert slots.left == [(1716224, 790), (1146880, 790)]


def test_kv_costs_of_the_operators_shape() -> None:
    kv = costs(Shape(3, 200000, "fp8", 2, 2, 8))
    assert round(kv.state_bytes / MIB, 2) == 329.39
    assert kv.stride == 56 * MIB
    assert round(kv.snapshot / MIB, 2) == 55.80
    assert kv.token_bytes == 7488
    assert round(kv.ceiling / MIB, 2) == 5118.07
    assert round((kv.ceiling - kv.fixed) / MIB, 2) == 4284.67


@pytest.mark.parametrize(
    ("dtype", "drafts", "tp", "rate"),
    [
        ("fp8", 2, 2, 7488),
        ("bf16", 2, 2, 14144),
        ("fp8", 0, 2, 6912),
        ("bf16", 0, 2, 13056),
        ("fp8", 2, 1, 14144),
        ("bf16", 2, 1, 27456),
    ],
)
def test_rate_a_token(dtype: str, drafts: int, tp: int, rate: int) -> None:
    assert costs(Shape(3, 200000, dtype, drafts, tp, 8)).token_bytes == rate


@pytest.mark.parametrize(("drafts", "snapshot", "stride"), [(0, 55.08, 56), (2, 55.80, 56), (3, 56.15, 58)])
def test_snapshots(drafts: int, snapshot: float, stride: int) -> None:
    kv = costs(Shape(8, 200000, "fp8", drafts, 2, 8))
    assert (round(kv.snapshot / MIB, 2), kv.stride) == (snapshot, stride * MIB)


def test_capacity_is_said_from_the_ceiling_on() -> None:
    backed = "backs 3 sequences all at 200000 tokens at once"
    assert backed in budget_report.budget(pair(24000, 5119))
    assert backed not in budget_report.budget(pair(24000, 5118))
    assert "100% backing of the 3 x 200000 worst case: 3.0 full-length" in budget_report.budget(pair(24000, 5118))
    assert "63% backing of the 3 x 200000 worst case: 1.9 full-length" in budget_report.budget(pair(24000, 3543))


def test_a_thin_pool_holds_less_than_one_request() -> None:
    boot = pair(24000, 2048)
    assert boot.kv_tokens == 170084
    warning = kv_report.one_request(boot)
    assert warning is not None and "holds 170084 tokens but the context limit is 200000" in warning
    assert "about 214 MiB more" in warning
    assert kv_report.one_request(pair(24000, 5120)) is None


def test_refusals_of_a_pool() -> None:
    short = kv_report.refusal(pair(24000, 800))
    assert short is not None
    assert "  linear/conv state  329.39 MiB  (3 sequences)\n" in short
    assert "  checkpoints        448.00 MiB  (8 x 56.00 MiB)\n" in short
    assert "  SHORT BY            33.40 MiB\n" in short
    none = kv_report.refusal(pair(24000, 1053, "--max-num-seqs 5"))
    assert none is not None
    assert none.startswith("KV group 'kv_attn': a 1.03 GiB KV pool leaves 0 blocks (29.25 KiB a page) after the fixed ")
    assert kv_report.refusal(pair(24000, 5120)) is None


def test_both_pools_derived_follow_the_ratio_and_the_ceilings() -> None:
    split = machine("").split
    assert split.kv_pool == 5118 * MIB
    assert humanb(split.elastic) == "30.33 GiB"
    assert split.staging_buffers > 0
    parts = split.experts + split.kv + split.unusable + split.staging_buffers
    assert parts == split.elastic
    small = machine("--expert-vs-cache-ratio 0.95").split
    assert small.kv_pool // MIB == 1552


def test_one_pool_stated() -> None:
    kv = machine("--vram-weights-mib 25844").split
    assert (kv.kv_pool, humanb(kv.unusable)) == (5118 * MIB, "139.23 MiB")
    weights = machine("--vram-kv-mib 3543").split
    assert weights.kv_pool == 3543 * MIB
    assert weights.unclaimed / MIB == pytest.approx(95.6, abs=1)


def test_checkpoints_are_withdrawn_for_the_headroom() -> None:
    # 25,940 + 5,119 leaves 138.30 - 19.00 = 119.30 free; a headroom of 128 takes one slot of 56 back.
    boot = pair(25940, 5119, "--gpu-headroom-mib 128")
    assert boot.withdrawn == 1
    assert humanb(boot.settled(0)) == "175.30 MiB"
    text = kv_report.withdrawal(boot)
    assert text is not None and text.startswith("checkpoint slots: 7 of 8 backed (56.00 MiB each), 1 withdrawn -- ")
    assert kv_report.withdrawal(pair(25844, 5119)) is None


def test_the_plan_of_a_state_has_its_checkpoints_even_where_there_are_none() -> None:
    plan = kv_report.plan(pair(24000, 5120, "--checkpoint-slots 0"))
    assert "checkpoints at +0\n    checkpoints    linear      0 slots x 56.00 MiB = 0 B  (address space; " in plan
    stateless = {"linear_layers": 0, "tail_rows": 0}
    bare = kv_report.plan(machine("--vram-weights-mib 24000 --vram-kv-mib 5120", cache=Dimensions(**stateless)))
    assert "checkpoints at +0" in bare and "slots x" not in bare


def test_short_by_names_what_is_stated() -> None:
    split = pair(26000, 5120).split
    assert humanb(-split.claimable) == "18.70 MiB"
    text = budget_report.short_by(split)
    assert "  --vram-weights-mib  25.39 GiB   (stated)\n" in text
    assert "  SHORT BY            18.70 MiB\n" in text
    derived = budget_report.short_by(machine("--gpu-headroom-mib 32000").split)
    assert "(stated)" not in derived and "SHORT BY" in derived


def test_flags_move_their_rows() -> None:
    today = pair(24000, 5120)
    four = pair(24000, 5120, "--max-num-seqs 4")
    assert (today.rows, four.rows) == (9, 12)
    assert four.split.card.staging > today.split.card.staging
    assert four.split.card.arena > today.split.card.arena
    narrow = pair(24000, 5120, "--max-num-batched-tokens 512")
    assert (today.chunk, narrow.chunk) == (2048, 512)
    assert (today.split.card.arena - narrow.split.card.arena) == 384 * MIB
    assert pair(24000, 5120, "--max-num-batched-tokens 2048").split.card.arena == 897 * MIB


@pytest.mark.parametrize(("kib", "rows"), [(128, 25), (64, 12), (256, 51)])
def test_rows_that_the_lossy_wire_carries_exactly(kib: int, rows: int) -> None:
    assert pair(24000, 5120, f"--tp-wire-min-kb {kib}").exact_rows == rows


@pytest.mark.parametrize(
    ("slab", "rate"),
    [(20000, 3397), (22208, 3397), (24000, 3290), (25600, 3584), (25844, 3995.9), (26071, 4379), (28000, 4379)],
)
def test_prefill_law(slab: int, rate: float) -> None:
    assert World().prefill_tps(slab) == pytest.approx(rate, abs=0.1)


def test_a_short_settling_goes_below_the_floor() -> None:
    pools = "--vram-weights-mib 24000 --vram-kv-mib 5120"
    assert humanb(machine(pools, "settle_short").settled(0)) == "149.19 MiB"


def test_a_refused_boot_has_a_report_of_real_rows() -> None:
    split = machine("--vram-weights-mib 24000 --vram-kv-mib 5120", "refuse_boot").split
    assert humanb(-split.claimable) == "512.00 MiB"
    card = split.card
    stated = card.stated_weights + card.stated_kv
    assert card.held + card.arena + card.staging + card.headroom + stated - card.total == 512 * MIB
