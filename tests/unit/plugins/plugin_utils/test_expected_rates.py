# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rates that arms let expect of the boot that runs."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._expected_rates import expected_rates

ARMS = [
    {"weights_mib": 24_000, "prefill_tps": 3_000, "decode_tps": 100, "kv_cache_dtype": "fp8", "stack": "dankserver"},
    {"weights_mib": 26_000, "prefill_tps": 4_000, "decode_tps": 130, "kv_cache_dtype": "fp8", "stack": "dankserver"},
    {"weights_mib": 26_000, "prefill_tps": 9_000, "decode_tps": 900, "kv_cache_dtype": "bf16", "stack": "dankserver"},
    {"weights_mib": 26_000, "prefill_tps": 9_000, "decode_tps": 900, "kv_cache_dtype": "fp8", "stack": "another"},
]


def ledger(weights: int) -> dict[str, t.Any]:
    return {
        "status": "complete",
        "flags": {
            "vram-weights-mib": str(weights),
            "vram-kv-mib": "5120",
            "max-num-seqs": "3",
            "max-model-len": "200000",
            "kv-cache-dtype": "fp8",
            "num-speculative-tokens": "2",
        },
        "pair": {"weights_mib": weights, "kv_mib": 5120, "exact": True},
    }


NOTHING = {"prefill_tps": None, "decode_tps": None, "most_prefill_tps": None, "most_decode_tps": None}


@pytest.mark.parametrize(("weights", "prefill"), [(25_000, 3_500), (23_000, 3_000), (30_000, 4_000)])
def test_prefill_is_the_laws_or_the_nearest_arms(weights: int, prefill: float) -> None:
    found = expected_rates({"name": "x", "stack": "dankserver", "arms": ARMS}, [], ledger(weights), 43_500)
    assert found == {
        "prefill_tps": pytest.approx(prefill),
        "decode_tps": 115,
        "most_prefill_tps": 4_000,
        "most_decode_tps": 130,
    }


def test_without_a_boot_it_is_a_median_and_bounds_nothing() -> None:
    service = {"name": "x", "stack": "dankserver", "arms": ARMS[:2]}
    assert expected_rates(service, [], {}, 43_500) == {**NOTHING, "prefill_tps": 3_500, "decode_tps": 115}


def test_without_arms_nothing_is_expected() -> None:
    assert expected_rates({"name": "x"}, [], ledger(25_000), 43_500) == NOTHING
    assert expected_rates({"name": "x"}, [], None) == NOTHING


def measured(**other: t.Any) -> dict[str, t.Any]:
    """An arm on record."""
    return {
        "kind": "arm",
        "id": str(other),
        "weights_mib": 25_844,
        "prefill_tps": 3_996,
        "decode_tps": 121,
        "prompt_tokens": 43_489,
        "kv_cache_dtype": "fp8",
        "num_speculative_tokens": 2,
        "stack": "dankserver",
        "engine_version": "1.0.13",
        "image_digest": "sha256:aa",
        "measured_at": "2026-10-13",
        **other,
    }


def bounds(record: t.Any, arms: t.Any = (), tokens: t.Any = 43_500, **told: t.Any) -> tuple[t.Any, t.Any]:
    runs = {
        **ledger(25_844),
        "engine": {"version": "1.0.13"},
        "source": {"image_digest": "sha256:aa"},
        **told,
    }
    found = expected_rates({"name": "x", "stack": "dankserver", "arms": list(arms)}, record, runs, tokens)
    return found["most_prefill_tps"], found["most_decode_tps"]


def test_the_bounds_are_the_fastest_comparable_arms() -> None:
    record = [measured(), measured(prefill_tps=4_400, prompt_tokens=43_512, decode_tps=119)]
    assert bounds(record) == (4_400, 121)
    assert bounds(record, tokens="43500") == (4_400, 121)
    # Other prompts, another stack, image, release or dtype.
    assert bounds(record, tokens=8_000) == (None, 121)
    assert bounds(record, [{"weights_mib": 1, "prefill_tps": 9_999, "stack": "rehearsal"}]) == (4_400, 121)
    assert bounds(record, source={"image_digest": "sha256:bb"}) == (None, None)
    assert bounds(record, engine={"version": "1.0.14"}) == (None, None)
    assert bounds(record, flags={"kv-cache-dtype": "bf16"}) == (None, None)
    # Declared arms without a size count for any.
    assert bounds(record, [{"weights_mib": 1, "prefill_tps": 9_999, "stack": "dankserver"}]) == (9_999, 121)


def test_a_boot_that_tells_its_dtype_alone_is_bounded_by_arms_of_that() -> None:
    assert bounds([measured()], pair={}, flags={"kv-cache-dtype": "fp8"}) == (3_996, 121)


def test_decode_is_held_against_arms_of_the_depth_that_runs() -> None:
    shallow = measured(num_speculative_tokens=0, decode_tps=48)
    untold = {"weights_mib": 24_000, "prefill_tps": 3_000, "decode_tps": 90, "stack": "dankserver"}
    assert bounds([shallow]) == (3_996, None)
    assert bounds([shallow, measured()]) == (3_996, 121)
    assert bounds([shallow], [untold]) == (3_996, 90)
    service = {"name": "x", "stack": "dankserver"}
    assert expected_rates(service, [shallow, measured()], ledger(25_844))["decode_tps"] == 121
