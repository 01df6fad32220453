# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another image or release: what is kept for its first boot, and what nobody can know of it."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import attempt_id, make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import (
    ARMS,
    ledger,
    printed,
    refusal,
    settled,
)
from hypothesis import given
from hypothesis import strategies as st

# As a ledger carries them where the boot has no such row.
UNPRINTED_CHECKPOINTS = {"slots": None, "each": None, "size": None}
OTHER = {"image_digest": "sha256:bb"}


def full(free: str = "215.30 MiB", **changes):
    """The boot of the filled pair, which leaves 6 MiB above the floor."""
    return ledger(weights_mib=25844, kv_mib=5119, settled=[settled(0, free), settled(1, free)], **changes)


def test_an_image_is_a_change_whether_or_not_the_runtime_tells_what_runs():
    for boot in (ledger(), ledger(source={"image": "x", "image_digest": "sha256:aa"})):
        plan = make_plan(boot, {**OTHER, "pair": "keep"})
        assert plan["changes"] == ["image_digest"] and plan["restart"] is True
    same = ledger(source={"image": "x", "image_digest": "sha256:bb"})
    assert make_plan(same, {**OTHER, "pair": "keep"})["restart"] is False


def test_a_kept_pair_gives_up_what_the_first_boot_lacks_of_its_margin():
    plan = make_plan(full(), {**OTHER, "pair": "keep"})
    # 215.30 - 209.19 = 6.11 MiB are free above the floor; 64 are kept, and the rounding of the two lines.
    assert (plan["to"]["weights_mib"], plan["to"]["kv_mib"]) == (25844 - 58, 5119)
    said = next(text for text in plan["warnings"] if text.startswith("The slab gives up"))
    assert said == (
        "The slab gives up 58 MiB: shape_margin_mib 64 is left free for the first boot of another stack, and what runs "
        "leaves less. shape_margin_mib 0 keeps the pair as it is."
    )
    assert all(gate["holds"] for gate in plan["gates"])
    wider = make_plan(full(), {**OTHER, "pair": "keep", "shape_margin_mib": 300})
    assert wider["to"]["weights_mib"] == 25844 - 294
    none = make_plan(full(), {**OTHER, "pair": "keep", "shape_margin_mib": 0})
    assert none["to"]["weights_mib"] == 25844


def test_a_kept_pair_with_room_stays():
    plan = make_plan(ledger(), {**OTHER, "pair": "keep"})
    assert (plan["to"]["weights_mib"], plan["to"]["kv_mib"]) == (24000, 5120)
    assert not any(text.startswith("The slab gives up") for text in plan["warnings"])
    assert make_plan(full(), {"pair": "keep"})["to"]["weights_mib"] == 25844


def test_a_stated_pair_is_never_changed_silently():
    stated = {"weights_mib": 25844, "kv_mib": 5119}
    with pytest.raises(RadianceError) as refused:
        make_plan(full(), {**OTHER, "pair": stated})
    assert refused.value.code == "headroom_kept"
    accept = [{"gate": "headroom_kept", "reason": "it is known to settle alike"}]
    plan = make_plan(full(), {**OTHER, "pair": stated, "accept": accept})
    assert {name: plan["to"][name] for name in stated} == stated


def test_of_an_image_whose_release_nobody_knows_the_pairs_flags_are_not_judged():
    plan = make_plan(full(), {**OTHER, "pair": "keep"})
    assert "engine_takes_pair" not in [gate["name"] for gate in plan["gates"]]
    said = " ".join(plan["warnings"])
    assert "engine_takes_pair could not be judged: nothing tells the version of the engine that will run." in said
    assert "Nobody knows which release of the engine the new image holds before it runs" in said
    known = make_plan(full(), {**OTHER, "pair": "keep", "engine_version": "1.2.4"})
    assert "engine_takes_pair" in [gate["name"] for gate in known["gates"]]
    assert "Nobody knows which release" not in " ".join(known["warnings"])


def test_what_the_plan_says_of_the_margin_has_its_number():
    said = " ".join(make_plan(ledger(), {**OTHER, "shape_margin_mib": 96})["warnings"])
    assert (
        "A fill leaves its first boot shape_margin_mib 96 free, and a second fill follows from its own ledger." in said
    )


def test_an_image_is_part_of_an_attempt():
    plan = make_plan(ledger(), {**OTHER, "pair": "keep"})
    assert len({attempt_id(plan), attempt_id(plan, "a@sha256:1"), attempt_id(plan, "a@sha256:2")}) == 3


@given(
    free=st.integers(min_value=20_930, max_value=400_000),
    margin=st.integers(min_value=0, max_value=2_000),
)
def test_a_kept_pair_only_ever_shrinks_and_keeps_its_margin(free: int, margin: int):
    text = printed(free / 100)["text"]
    plan = make_plan(full(text), {**OTHER, "pair": "keep", "shape_margin_mib": margin, "on_gate": "report"})
    slab, ceiling = plan["to"]["weights_mib"], plan["ceiling"]
    assert slab <= 25844 and plan["to"]["kv_mib"] == 5119
    if slab < 25844:
        assert slab + 5119 <= ceiling["mib"] - ceiling["plus_minus_mib"] - margin


def test_from_1_3_a_stated_pair_is_refused_and_fill_plans_the_shape():
    request = {"engine_version": "1.3.0"}
    error = refusal(ledger(), {**request, "pair": {"weights_mib": 25000, "kv_mib": 5120}})
    assert error.code == "engine_takes_pair" and "1.3.0" in error.text and "pair: fill" in error.text
    assert refusal(ledger(), {**request, "pair": "keep"}).code == "engine_takes_pair"
    plan = make_plan(ledger(), {**request, "shape": {"max_num_seqs": 4}})
    assert plan["to"]["weights_mib"] is None and plan["to"]["kv_mib"] is None
    assert plan["to"]["max_num_seqs"] == 4
    assert plan["contract"]["pool_mib"] is None and plan["contract"]["spare_mib"] is None
    assert plan["changes"] == ["weights_mib", "kv_mib", "max_num_seqs", "engine_version"]
    assert any("splits the card" in warning for warning in plan["warnings"])
    assert [p["id"] for p in plan["predictions"]] == ["sampler_rows"]


def test_an_engine_that_splits_by_itself_is_left_alone():
    boot = ledger(
        engine={"version": "1.3.1", "version_from": "endpoint"},
        pair={"weights_mib": 24002.56, "kv_mib": 5120.0, "exact": False},
        flags={"vram-weights-mib": None, "vram-kv-mib": None},
    )
    boot["budget"].update(weights="derived", kv="derived")
    for pair in ("fill", "keep"):
        plan = make_plan(boot, {"pair": pair})
        assert plan["restart"] is False and plan["to"]["weights_mib"] is None


def test_another_stack_voids_what_was_measured():
    plan = make_plan(ledger(), {"engine_version": "1.0.14", "arms": ARMS})
    assert plan["changes"][-1] == "engine_version"
    assert any("slab_slots" in warning for warning in plan["warnings"])
    quantities = {p["quantity"] for p in plan["predictions"]}
    assert quantities == {"weights_mib", "kv_mib", "sequences_backed", "sampler_rows"}
    assert {p["stack"] for p in plan["predictions"]} == {"1.0.14"}
    assert any("4 arms of another stack" in warning for warning in plan["warnings"])
    # Arms that name the new release speak.
    named = [{**arm, "stack": "radiance-1.0.14"} for arm in ARMS]
    plan = make_plan(ledger(), {"engine_version": "1.0.14", "arms": named})
    assert "prefill_tps" in {p["quantity"] for p in plan["predictions"]}
    assert not any("of another stack, or" in warning for warning in plan["warnings"])


def test_the_first_boot_of_another_stack_is_given_a_margin_and_a_second_fill():
    boot = ledger(flags={"prefix-cache-dir": "/data/kvcache"})
    assert make_plan(boot, {})["to"]["weights_mib"] == 25844
    plan = make_plan(boot, {"image_digest": "sha256:bb", "engine_version": "1.0.14"})
    assert plan["to"]["weights_mib"] == 25844 - 64
    said = " ".join(plan["warnings"])
    assert "a second fill follows from its own ledger" in said
    assert "The prefix cache in /data/kvcache was written by another stack" in said
    other = make_plan(boot, {"shape": {"kv_cache_dtype": "bf16"}})
    assert any("/data/kvcache was written in fp8" in warning for warning in other["warnings"])
    kept = next(gate for gate in plan["gates"] if gate["name"] == "headroom_kept")
    assert "another stack is given 64 MiB" in kept["says"]
    gone = " ".join(make_plan(boot, {"engine_version": "1.3.0"})["warnings"])
    assert "--vram-weights-mib is gone since engine 1.3" in gone and "--vram-kv-mib is gone since engine 1.3" in gone


def test_from_1_1_checkpoints_are_not_on_the_card_and_the_ratio_is_gone():
    boot = ledger(flags={"expert-vs-cache-ratio": "0.82"})
    plan = make_plan(boot, {"engine_version": "1.1.1"})
    assert plan["contract"]["checkpoint_mib"] == 0
    assert any("0 MiB" in warning and "1.1.1" in warning for warning in plan["warnings"])
    assert any("--expert-vs-cache-ratio" in warning for warning in plan["warnings"])
    silent = ledger(engine={"version": "1.2.3", "version_from": "endpoint"})
    silent["kv"]["checkpoints"] = UNPRINTED_CHECKPOINTS
    assert make_plan(silent, {})["contract"]["checkpoint_mib"] == 0


def test_checkpoints_that_the_boot_does_not_print_are_those_of_the_command_line():
    none = ledger(flags={"checkpoint-slots": "0"})
    none["kv"]["checkpoints"] = UNPRINTED_CHECKPOINTS
    plan = make_plan(none, {})
    assert plan["contract"]["checkpoint_mib"] == 0
    assert not [warning for warning in plan["warnings"] if "checkpoint" in warning]
    four = ledger(flags={"checkpoint-slots": "4"})
    four["kv"]["checkpoints"] = UNPRINTED_CHECKPOINTS
    plan = make_plan(four, {})
    assert plan["contract"]["checkpoint_mib"] == 224
    assert any("--checkpoint-slots 4 of 56.00 MiB" in warning for warning in plan["warnings"])
    unsaid = ledger()
    unsaid["kv"]["checkpoints"] = UNPRINTED_CHECKPOINTS
    plan = make_plan(unsaid, {})
    assert plan["contract"]["checkpoint_mib"] == 448
    assert any("the engine's default of 8 of 56.00 MiB" in warning for warning in plan["warnings"])
