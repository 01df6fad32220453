# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way in which a boot is refused: by a fault, or by what the flags and the world ask for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from engine import fault_names
from engine.world import World
from rehearsal_boots import PAIR, SHAPE, boot

BY_FAULT = {
    "no_device": r"^E no usable device$",
    "too_few_devices": r"^E --tp 2 needs 2 devices of one architecture; 1 are usable \[0:gfx1201\]$",
    "no_dimensions": r"^E \S+/rehearsal_boots\.py carries no model dimensions \(n_layers=0 ",
    "plugins_missing": r"^E the plugins under \S+ did not load \(above\)$",
    "no_kernel": r"^E\[1\] qwen4exp: 1 device band\(s\) resolved to no kernel -- a request that lands in one of them ",
    "weights_unservable": r"^E 3 weight\(s\) of \S+ are not in a form the engine serves as it stands -- ",
    "declare_refused": r"^E\[1\] qwen4exp: rad_arch_declare returned invalid argument$",
    "short_by": r"^E VRAM does not cover the fixed costs before a single pool is sized:$",
    "over_by": r"^E\[0\] VRAM budgets do not fit:$",
    "empty_pools": r"^E\[1\] VRAM pool budgets are empty -- state --vram-weights-mib / --vram-kv-mib, or let ",
    "pool_refused": r"^E\[1\] pool allocation refused:$",
    "did_not_fit": r"^E\[1\] placement: \d+ unit\(s\) fit neither ",
    "slab_refused": r"^E\[1\] mover: no VRAM for the 'experts' slab: 17548 slots of 1\.64 MiB$",
    "host_pool_refused": r"^E\[1\] mover: no pinned host memory for the 'experts' pool: 7580 slots of 1\.64 MiB$",
    "weights_left_short": r"^E\[1\] mover: the weight budget is 23\.44 GiB and the slab already took 23\.40 GiB of it",
    "statics_refused": r"^E\[1\] mover: no VRAM for the 42\.40 MiB of statically placed weights$",
    "chunk_refused": r"^E --max-num-batched-tokens is 8192 but this model's chunk geometry needs at least 8193: ",
    "interval_refused": r"^E the checkpoint interval resolves to 2048 \(from --checkpoint-interval 2048, rounded up ",
    "kv_short": r"^E\[0\] vram_kv does not fit its fixed costs:$",
    "kv_no_blocks": r"^E\[0\] KV group 'kv_attn': a 5\.00 GiB KV pool leaves 0 blocks ",
    "kv_group_refused": r"^E\[1\] KV group 'kv_qsa_tail': 64\.00 MiB did not fit the KV pool$",
    "checkpoint_refused": r"^E\[1\] linear checkpoint slot 7 \(58720256 B\) did not fit the KV pool$",
    "carve_refused": r"^E\[1\] KV pool: the carve reserved 5\.00 GiB of address space and the card would not back it$",
}


@pytest.mark.parametrize(("name", "line"), BY_FAULT.items())
def test_a_fault_refuses_the_boot(capfd: Any, name: str, line: str) -> None:
    how, lines = boot(capfd, faults=f"{name}:1")
    assert how == "refused"
    assert [bool(re.search(line, item)) for item in lines].count(True) == 1, "\n".join(lines)
    refusals = [item for item in lines if item.startswith("E")]
    assert len(refusals) == 1
    assert not any("settled" in item for item in lines)


def test_no_refusal_is_left_out() -> None:
    assert {*BY_FAULT, "bind_refused"} == set(fault_names.REFUSALS)


def test_an_unbound_port(start: Any, tmp_path: Any) -> None:
    (tmp_path / "flash.faults.json").write_text('["bind_refused"]')
    (tmp_path / "flash.state.json").write_text("{}")
    start(PAIR).ready().stop()
    engine = start(PAIR)
    assert engine.exit() == 1
    assert engine.lines[-1] == "E server: cannot bind 127.0.0.1:0"


@pytest.mark.parametrize(
    ("flags", "world", "first"),
    [
        (f"{SHAPE} {PAIR}", {"gpus": []}, r"^E no usable device$"),
        (f"{SHAPE} {PAIR} --tp 6", {"gpus": ["gfx1201"] * 6}, r"an expert is 5 blocks of 128, which 6 ranks cannot"),
        (f"{SHAPE} {PAIR} --max-num-batched-tokens 2", {}, r"is 2 but this model's chunk geometry needs at least 4: "),
        (
            f"{SHAPE} {PAIR} --checkpoint-interval 2000",
            {"cache": {"block_tokens": 64, "state_chunk": 96}},
            r"resolves to 2016 \(from --checkpoint-interval 2000, rounded up to the chunk quantum\) and that is not a",
        ),
        (f"{SHAPE} --placement layer_offload", {}, r"^E placement: layer_offload needs --vram-weights-mib; "),
        (
            f"{SHAPE} {PAIR} --weights-disk-tier /x --host-pool-mib 100",
            {},
            r"the file tier needs 134\.55 MiB of pinned staging \(.*\) and --host-pool-mib is 100\.00 MiB\. Raise it",
        ),
        (f"{SHAPE} --gpu-headroom-mib 31300 --vram-kv-mib 1", {}, r"SHORT BY"),
        (f"{SHAPE} --vram-weights-mib 31101", {}, r"^E\[0\] VRAM pool budgets are empty -- "),
        (f"{SHAPE} --tp 1 --tp-wire exact {PAIR}", {}, r"DID NOT FIT"),
    ],
)
def test_what_is_asked_for_is_refused(capfd: Any, flags: str, world: dict[str, Any], first: str) -> None:
    how, lines = boot(capfd, flags, **world)
    assert how == "refused"
    assert any(re.search(first, item) for item in lines), "\n".join(lines)


def test_a_file_tier_takes_what_fits_nowhere(capfd: Any) -> None:
    how, lines = boot(capfd, f"{SHAPE} {PAIR} --weights-disk-tier /x --host-pool-mib 8192")
    assert how == "up"
    assert any(item.endswith(" static vram, file tier open") for item in lines)


def test_statics_larger_than_the_card_warn(capfd: Any) -> None:
    _how, lines = boot(capfd, SHAPE, static_weights_mib=40000)
    assert any(
        item.startswith("W the static (non-expert) weights alone want 39.06 GiB of the 30.37 ") for item in lines
    )


def test_the_crash_after_the_table_prints_the_table_and_no_more(capfd: Any) -> None:
    how, lines = boot(capfd, faults="crash_after_table")
    assert how == "crashed"
    assert lines[-1].strip() == "could not place"


def test_another_pair_than_asked(capfd: Any) -> None:
    how, lines = boot(capfd, faults="other_pair:1024")
    assert how == "up"
    assert any(re.search(r"^  vram_weights +22\.44 GiB   stated by --vram-weights-mib$", item) for item in lines)


def test_faults_together(capfd: Any) -> None:
    how, lines = boot(capfd, faults="settle_short:10+other_pair")
    assert how == "up"
    assert any(re.search(r"^W\[0\] card 0 settled at 199\.19 MiB free against 209\.19 MiB", item) for item in lines)


def test_one_card_of_two_settles_short(capfd: Any) -> None:
    how, lines = boot(capfd, faults="one_card_short")
    assert how == "up"
    assert [item[:40] for item in lines if "settled at" in item] == [
        "W[0] card 0 settled at 2.01 GiB free aga",
        "W[1] card 1 settled at 149.19 MiB free a",
    ]


def test_visible_devices() -> None:
    world = World(card_totals_mib=[30000.0, 32624.0])
    assert world.seen_through(None) is world
    assert world.seen_through("1").gpus == ["gfx1201"]
    assert world.seen_through("1").card_total(0) == 32624.0
    assert world.seen_through("2,0").gpus == ["gfx1036", "gfx1201"]
    assert world.seen_through("0,GPU-7f,1").gpus == ["gfx1201"]
    assert world.seen_through("-1").gpus == []


ODD = {
    "ranks_reversed": r"^I\[1\] mover: 17597 slab slots",
    "plugin_shadowed": r"^I plugin \S+ is shadowed by \S+, which comes first on the search path$",
    "arena_level_missing": r"^W activation arena: no level for 512-token steps on rank 1 -- ",
    "arena_unbound": r"^W activation arena: a level would not bind; nothing is lent$",
    "pageable": r"^I\[1\] mover: 512\.00 MiB of pageable host memory for the units no tier could hold$",
    "no_pinned_tier": r"^W kv tiers: no pinned host memory for 1\.00 GiB, the host tier is off$",
    "no_pinned_snapshots": r"^W kv tiers: no pinned host memory for 224\.00 MiB of linear-state snapshots; ",
}


@pytest.mark.parametrize(("name", "line"), ODD.items())
def test_an_oddity_does_not_stop_the_boot(capfd: Any, name: str, line: str) -> None:
    how, lines = boot(capfd, f"{SHAPE} {PAIR} --prefix-cache-host-mib 1024", faults=name)
    assert how == "up"
    assert any(re.search(line, item) for item in lines), "\n".join(lines)
    movers = [item[:4] for item in lines if "slab slots" in item]
    assert movers == (["I[1]", "I[0]"] if name == "ranks_reversed" else ["I[0]", "I[1]"])
    lent = [item for item in lines if "lent out of the activation arena" in item]
    assert len(lent) == (0 if name.startswith("arena") else 2)


def test_no_oddity_is_left_out() -> None:
    assert set(ODD) == set(fault_names.ODDITIES)
