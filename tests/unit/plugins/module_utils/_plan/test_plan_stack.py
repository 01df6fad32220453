# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another image or release: what is kept for its first boot, and what nobody can know of it."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import attempt_id, make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import (
    ledger,
    printed,
    settled,
)
from hypothesis import given
from hypothesis import strategies as st

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
