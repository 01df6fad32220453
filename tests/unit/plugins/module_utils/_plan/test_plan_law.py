# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The slab law speaks between arms of one kind, and says why where it does not."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.law import prompt_sizes, series, slab_law
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import read_request
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import ARMS
from hypothesis import given
from hypothesis import strategies as st


def law(arms, slab, dtype="fp8", **more):
    return slab_law(read_request({"arms": arms}).arms, slab, dtype, **more)


def arm(slab, tps, **more):
    return {"weights_mib": slab, "prefill_tps": tps, **more}


@pytest.mark.parametrize(
    ("slab", "tps"), [(22208, 3397), (23104, 3343.5), (24000, 3290), (25600, 3584), (25844, 3995.85), (26071, 4379)]
)
def test_between_the_published_arms(slab, tps):
    found = law(ARMS, slab)
    assert found.status == "inside"
    assert found.tps == pytest.approx(tps, abs=0.01)
    assert (found.low, found.high) == (pytest.approx(tps * 0.97, abs=0.01), pytest.approx(tps * 1.03, abs=0.01))


@pytest.mark.parametrize("slab", [22207, 26072, 1, 40000])
def test_nothing_is_said_past_the_outermost_arms(slab):
    found = law(ARMS, slab)
    assert (found.status, found.low, found.high) == ("outside", None, None)
    assert "22,208 MiB to 26,071 MiB" in found.says


def test_one_slab_is_too_few_however_often_it_was_measured():
    found = law([arm(24000, 3290), arm(24000, 3300)], 24000)
    assert (found.status, found.low) == ("too_few", None)


def test_no_arm_of_the_dtype_is_none():
    found = law(ARMS, 24000, dtype="bf16")
    assert found.status == "none" and "4 arms" in found.says
    assert law([], 24000).status == "none"


def test_several_arms_at_one_slab_are_their_median():
    arms = [arm(24000, 3000), arm(24000, 3300), arm(24000, 9000), arm(25600, 3584)]
    assert law(arms, 24000).tps == 3300


def test_prompt_sizes_are_not_mixed():
    short = [arm(24000, 5000, prompt_tokens=2000), arm(26071, 6000, prompt_tokens=2000)]
    # Both series bracket 25,000; the published one has more slabs.
    found = law([*ARMS, *short], 25000)
    assert found.tps == pytest.approx(3290 + 294 * 1000 / 1600)
    assert found.prompt_tokens == 43500
    # Only together would these two bracket it.
    mixed = [arm(24000, 3000, prompt_tokens=2000), arm(26000, 4000, prompt_tokens=43500)]
    assert law(mixed, 25000).status == "too_few"


def test_stacks_are_not_mixed():
    mixed = [arm(24000, 3000, stack="rehearsal"), arm(26000, 4000, stack="cards")]
    assert law(mixed, 25000).status == "too_few"
    arms = [*mixed, arm(26000, 3500, stack="rehearsal"), arm(24000, 2000, stack="cards")]
    assert law(arms, 25000, stack="rehearsal").tps == 3250
    assert law(arms, 25000, stack="cards").tps == 3000
    assert law(arms, 25000, stack="other").status == "none"


def test_a_stack_of_another_release_is_left_out():
    arms = [arm(24000, 3000, stack="radiance 1.0.12"), arm(26000, 4000, stack="radiance 1.0.12")]
    assert law(arms, 25000, version="1.0.12").status == "inside"
    assert law(arms, 25000, version="1.0.13").status == "none"


def test_the_later_of_two_equal_series_speaks():
    first = [arm(24000, 3000, stack="a"), arm(26000, 4000, stack="a")]
    second = [arm(24000, 2000, stack="b"), arm(26000, 3000, stack="b")]
    assert law([*first, *second], 25000).tps == 2500
    assert law([*second, *first], 25000).tps == 3500


def test_prompts_of_one_asked_size_are_one_series():
    # What a probe sends differs from what was asked by a few tokens, in each run by others.
    probed = [arm(25844, 4000, prompt_tokens=43498), arm(25844, 4010, prompt_tokens=43512)]
    found = law([*[{**one, "kv_cache_dtype": "fp8"} for one in probed], *ARMS], 25844)
    assert (found.tps, found.prompt_tokens) == (4005, 43500)
    assert "at prompts of about 43,500 tokens" in found.says
    # 8,000 tokens are another series: this slab stays what the long prompts say.
    short = {"prompt_tokens": 8000, "kv_cache_dtype": "fp8"}
    assert law([arm(25844, 9000, **short), *ARMS], 25844).tps == pytest.approx(3995.85, abs=0.01)


def test_prompt_sizes_are_told_apart_by_gaps_of_more_than_one_percent():
    assert prompt_sizes([43512, None, 43498, 8000, 43500, 8000]) == {
        8000: 8000,
        43498: 43498,
        43500: 43498,
        43512: 43498,
    }
    assert prompt_sizes([10000, 10100]) == {10000: 10000, 10100: 10000}
    assert prompt_sizes([10000, 10101]) == {10000: 10000, 10101: 10101}
    # No size is torn from its neighbour by where a grid of sizes would have its lines.
    assert prompt_sizes([51500, 43500, 43100]) == {43100: 43100, 43500: 43100, 51500: 51500}


SIZES = st.lists(st.integers(1, 10**6), max_size=40)


@given(SIZES, SIZES)
def test_more_prompt_sizes_never_part_what_was_one_series(sizes, more):
    few, all_of_them = prompt_sizes(sizes), prompt_sizes([*more, *sizes])
    assert set(few) == set(sizes)
    for size in sizes:
        assert few[size] <= size
        for other in sizes:
            if few[size] == few[other]:
                assert all_of_them[size] == all_of_them[other]


def test_engine_and_image_as_the_boot_told_them_are_not_mixed():
    old = [arm(24000, 3000, engine_version="1.0.12"), arm(26000, 4000, engine_version="1.0.12")]
    assert law(old, 25000, version="1.0.13").status == "none"
    assert law(old, 25000, version="1.0.12").tps == 3500
    # Nobody knows the engine that will run: the two of them are still not one.
    assert law([old[0], arm(26000, 4000, engine_version="1.0.13")], 25000).status == "too_few"
    # What the engine told goes before what somebody named the stack.
    named = [arm(24000, 3000, engine_version="1.0.13", stack="radiance 1.0.12"), arm(26000, 4000)]
    assert law(named[:1], 24000, version="1.0.13").status == "too_few"
    image = [arm(24000, 3000, image_digest="sha256:a"), arm(26000, 4000, image_digest="sha256:a")]
    assert law(image, 25000, digest="sha256:b").status == "none"
    assert law(image, 25000, digest="sha256:a").tps == 3500
    # An arm that does not tell is taken for one of what runs, so that declared and probed ones are one series.
    assert law([image[0], arm(26000, 4000)], 25000, digest="sha256:a", version="1.0.13").tps == 3500


def test_an_arm_of_decode_alone_says_nothing_of_prefill():
    decode = {"weights_mib": 25000, "decode_tps": 94.1, "kv_cache_dtype": "fp8"}
    assert law([*ARMS, decode], 25000) == law(ARMS, 25000)
    assert law([decode], 25000).says == "No measured arm of fp8 is known, so prefill speed is not predicted."
    assert series([], "fp8", None, None, None) == []
