# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boots of random worlds are read back exactly. WORLDS=10000 reads that many; without it, a sample."""

from __future__ import annotations

import os

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from engine import fault_names
from engine.random_worlds import random_world
from world_logs import boot_in, boot_of, told, truth, wrong

_SAMPLE = 300
_A_TEST = 50
WORLDS = int(os.environ.get("WORLDS", _SAMPLE))


@pytest.mark.parametrize("first", range(0, WORLDS, _A_TEST))
def test_every_figure_of_a_boot_is_the_engines_own(first: int) -> None:
    for seed in range(first, min(first + _A_TEST, WORLDS)):
        boot = boot_of(seed)
        for flags in (boot.flags, None):
            found = read_ledger(boot.text, source={}, flags=flags)
            if boot.how == "refused":  # about one in a thousand: what was varied left the card no room
                assert (found["status"], found["reason"]["code"]) == ("refused", "vram_short"), seed
                continue
            assert (found["status"], found["reason"], found["missing"]) == ("complete", None, []), seed
            assert found["essential"] and all(check["holds"] for check in found["checks"]), seed
            assert wrong(truth(boot.machine, flags is not None), told(found)) == {}, seed


def test_the_sample_holds_every_kind_of_boot() -> None:
    boots = [boot_of(seed) for seed in range(0, 300, 2)]
    kinds = {(bool(card.stated_weights), bool(card.stated_kv)) for card in (boot.machine.split.card for boot in boots)}
    assert kinds == {(True, True), (True, False), (False, True), (False, False)}
    assert {boot.machine.tp for boot in boots} == {1, 2, 4}
    assert {boot.machine.world.release for boot in boots} == {"1.0.5", "1.0.13", "1.2.4", "1.3.0"}
    for words in (
        "left to the host",
        "a dense model, so",
        "expert plane is resident",
        "backs ",
        "% backing of the ",
        "    unusable ",
        "    prefill staging ",
        "kept for the static region",
        "The difference is allocations",
        "The split accounted for it",
        "is unused",
        "free, against",
        "withdrawn",
        "placement plan ",
        "address space; backed",
        "the checkpoint interval, not the budget",
        "LOSSY",
        "can be lent out of the activation arena",
        "D[0] planner.cpp:412",
    ):
        assert any(words in boot.text for boot in boots), words


# What the engine refuses under each of its faults, by our codes.
REFUSALS = {
    "no_device": "no_device",
    "too_few_devices": "no_device",
    "no_dimensions": "model_unusable",
    "plugins_missing": "model_unusable",
    "no_kernel": "model_unusable",
    "weights_unservable": "model_unusable",
    "declare_refused": "model_unusable",
    "short_by": "vram_short",
    "over_by": "pools_over_card",
    "empty_pools": "pools_empty",
    "pool_refused": "pool_allocation_refused",
    "did_not_fit": "weights_do_not_fit",
    "slab_refused": "slab_no_vram",
    "host_pool_refused": "host_pool_no_memory",
    "weights_left_short": "slab_no_vram",
    "statics_refused": "slab_no_vram",
    "chunk_refused": "chunk_geometry",
    "interval_refused": "chunk_geometry",
    "kv_short": "kv_fixed_costs",
    "kv_no_blocks": "kv_no_blocks",
    "kv_group_refused": "kv_pool_refused",
    "checkpoint_refused": "kv_pool_refused",
    "carve_refused": "kv_pool_refused",
}


def test_every_refusal_is_known_here() -> None:
    # The port is refused by the server, which these boots do not start.
    assert set(REFUSALS) | {"bind_refused"} == set(fault_names.REFUSALS)


@pytest.mark.parametrize(("fault", "code"), REFUSALS.items())
def test_every_refusal_in_any_world(fault: str, code: str) -> None:
    for seed in range(12):
        world = random_world(seed)
        boot = boot_in(world, world.flags, f"{fault}:{seed % 2}")
        assert boot.how == "refused"
        found = read_ledger(boot.text, source={}, flags=boot.flags)
        assert (found["status"], found["reason"]["code"]) == ("refused", code), (seed, found["reason"])
        assert (found["ready"], found["essential"]) == (False, False)


def test_a_boot_that_dies_after_its_table_says_its_last_words() -> None:
    boot = boot_in(random_world(3), random_world(3).flags, "crash_after_table")
    found = read_ledger(boot.text * 4, source={})
    assert (found["status"], found["reason"]["code"]) == ("refused", "engine_fatal")
    assert found["reason"]["text"] == (
        "The engine stopped itself: the driver lost the device. "
        "The last message before it was 'VRAM budget, per card:'. The log holds 4 boots, and this is number 4."
    )
