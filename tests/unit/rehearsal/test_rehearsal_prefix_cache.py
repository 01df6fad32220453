# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prompt heads that are still in the pool."""

from __future__ import annotations

from array import array

from engine.prefix_cache import PrefixCache, common_head


def tokens(*ranges: range) -> array[int]:
    """Token ids of some ranges, one after the other."""
    return array("I", [item for numbers in ranges for item in numbers])


def test_the_common_head() -> None:
    left = tokens(range(1000))
    assert common_head(left, tokens(range(777), range(5)), 10**6) == 777
    assert common_head(left, tokens(range(777), range(5)), 100) == 100
    assert common_head(left, tokens(range(1, 1000)), 10**6) == 0
    assert common_head(left, left, 10**6) == 1000


def test_a_repeated_prompt_is_cached_but_for_its_last_block() -> None:
    cache = PrefixCache(enabled=True)
    prompt = tokens(range(403))
    entry = cache.open(prompt, None, 0)
    assert cache.match(prompt) == (None, 0), "nothing of it is computed yet"
    cache.close(entry, prompt, keep=True)
    assert cache.match(prompt) == (entry, 400)
    assert cache.match(tokens(range(400))) == (entry, 396)
    assert cache.match(tokens(range(63), range(500))) == (None, 0), "too short a head"


def test_what_is_used_longest_ago_goes_first_and_what_is_in_use_stays() -> None:
    cache = PrefixCache(enabled=True)
    prompts = [tokens(range(start, start + 100)) for start in (0, 1000, 2000)]
    entries = [cache.open(prompt, None, 0) for prompt in prompts]
    for entry, prompt in zip(entries, prompts):
        cache.close(entry, prompt, keep=True)
    assert cache.idle_tokens == 300
    longer = tokens(range(100), range(7000, 7100))
    source, shared = cache.match(longer)
    follower = cache.open(longer, source, shared)
    assert (source, shared, follower.charged) == (entries[0], 100, 100)
    assert cache.evict() and cache.evict()
    assert not cache.evict(), "the one that is left is in use"
    assert cache.match(prompts[1]) == (None, 0)
    cache.close(follower, longer, keep=True)
    assert cache.idle_tokens == 200, "the longer entry took over the one that it covers"


def test_switched_off() -> None:
    cache = PrefixCache(enabled=False)
    prompt = tokens(range(400))
    cache.close(cache.open(prompt, None, 0), prompt, keep=True)
    assert cache.match(prompt) == (None, 0)
