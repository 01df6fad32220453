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


@pytest.mark.parametrize(("weights", "prefill"), [(25_000, 3_500), (23_000, 3_000), (30_000, 4_000)])
def test_prefill_is_the_laws_or_the_nearest_arms(weights: int, prefill: float) -> None:
    found = expected_rates({"name": "x", "stack": "dankserver", "arms": ARMS}, [], ledger(weights))
    assert found == {"prefill_tps": pytest.approx(prefill), "decode_tps": 115, "most_decode_tps": 130}


def test_without_a_ledger_or_arms_it_is_a_median_or_nothing() -> None:
    service = {"name": "x", "stack": "dankserver", "arms": ARMS[:2]}
    assert expected_rates(service, [], {})["prefill_tps"] == 3_500
    nothing = {"prefill_tps": None, "decode_tps": None, "most_decode_tps": None}
    assert expected_rates({"name": "x"}, [], ledger(25_000)) == nothing
    assert expected_rates({"name": "x"}, [], None) == nothing
