# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The worked example as a plan, and a record of it."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _record_fields, _records

SHAPE = {"max_num_seqs": 3, "max_model_len": 200000, "kv_cache_dtype": "fp8", "num_speculative_tokens": 2}
OLD = {"weights_mib": 24000, "kv_mib": 5120, **SHAPE}
NEW = {"weights_mib": 25844, "kv_mib": 5119, **SHAPE}
LINE = (
    "card 0 settled at 2.01 GiB free against 209.19 MiB "
    "(the 96.00 MiB --gpu-headroom-mib and 113.19 MiB kept for the static region)"
)
PLAN = {
    "schema": "kvfleet.radiance/plan/1",
    "from": OLD,
    "to": NEW,
    "changes": ["weights_mib", "kv_mib"],
    "restart": True,
    "ceiling": {
        "mib": 30969.05,
        "plus_minus_mib": 5.125,
        "card": 0,
        "settled_free_mib": 2058.24,
        "floor_mib": 209.19,
        "pair_sum_mib": 29120,
        "reserve_mib": 0,
        "reserve_reason": None,
        "lines": [LINE],
    },
    "contract": {
        "needed_mib": 5062.06,
        "pool_mib": 5119,
        "spare_mib": 56.94,
        "tokens_mib": 4284.67,
        "state_mib": 329.39,
        "checkpoint_mib": 448.0,
        "rate_bytes_per_token": 7488,
        "state_mib_per_sequence": 109.8,
        "figures_from": "ledger",
    },
    "gates": [
        {
            "name": "pair_within_ceiling",
            "holds": True,
            "says": "The pair is 30,963 MiB.",
            "from": LINE,
            "hard": True,
            "accepted": None,
        },
        {
            "name": "pool_meets_contract",
            "holds": True,
            "says": "The pool is 5,119 MiB.",
            "from": "kv",
            "hard": False,
            "accepted": None,
        },
    ],
    "options": [
        {
            "name": "one_more_sequence",
            "to": {**NEW, "max_num_seqs": 4},
            "says": "4 sequences.",
            "gates": [],
            "request": "-e max_num_seqs=4 -e fill=true",
        }
    ],
    "predictions": [
        {
            "id": "weights_mib",
            "quantity": "weights_mib",
            "card": None,
            "rank": None,
            "low": 25844,
            "high": 25844,
            "unit": "MiB",
            "because": "--vram-weights-mib 25844",
        },
        {
            "id": "settled_free_mib.card0",
            "quantity": "settled_free_mib",
            "card": 0,
            "rank": None,
            "low": 210.12,
            "high": 220.36,
            "unit": "MiB",
            "because": "2.01 GiB free now less 1,843 MiB",
        },
        {
            "id": "prefill_tps",
            "quantity": "prefill_tps",
            "card": None,
            "rank": None,
            "low": 3876.1,
            "high": 4115.9,
            "unit": "t/s",
            "because": "between two arms",
        },
    ],
    "law": {"status": "inside", "low": 25600, "high": 26071, "says": "Between the arms 25,600 and 26,071."},
    "warnings": ["A warning of the plan."],
    "fingerprint": "10644b1004ce",
}
SERVICE = {
    "name": "flashnext",
    "engine": ["/usr/local/bin/radiance"],
    "model": "/srv/models/next.rad",
    "port": 8000,
    "log": "/srv/radiance/flashnext.log",
    "pid_file": "/srv/radiance/flashnext.pid",
    "flags": {"tp": "2", "host-pool-mib": 16384},
}


class Example:
    """The worked example: 24,000 + 5,120 to 25,844 + 5,119. Every dict is a fresh copy."""

    old: dict[str, t.Any]
    new: dict[str, t.Any]
    plan: dict[str, t.Any]
    service: dict[str, t.Any]
    line = LINE

    def __init__(self) -> None:
        self.old, self.new, self.plan, self.service = copy.deepcopy((OLD, NEW, PLAN, SERVICE))

    def entry(self, kind: str, attempt: str = "0123456789ab", **fields: t.Any) -> dict[str, t.Any]:
        """A line of the record."""
        return _records.entry(kind, "dankserver", "flashnext", attempt, **fields)

    def planned(self, attempt: str = "0123456789ab", **changes: t.Any) -> dict[str, t.Any]:
        """The planned line of the example's plan."""
        request = changes.pop("request", {"pair": "fill"})
        return self.entry("planned", attempt, plan={**self.plan, **changes}, request=request)

    def switched(self, attempt: str = "0123456789ab", to: t.Any = None) -> dict[str, t.Any]:
        """The line of a switch that held."""
        return self.entry(
            "switched", attempt, to=to or self.new, downtime_seconds=41.2, receipt="/r/x.log", ledger=None
        )

    def rolled_back(self, attempt: str = "0123456789ab", tried: t.Any = None) -> dict[str, t.Any]:
        """The line of a switch that did not hold."""
        return self.entry(
            "rolled_back",
            attempt,
            to=self.old,
            tried=tried or self.new,
            phase="referee",
            says="card 0 settled at 149.19 MiB free",
            downtime_seconds=80.0,
            serving=True,
        )

    def arm(self, weights_mib: int, **fields: t.Any) -> dict[str, t.Any]:
        """An arm that a probe measured."""
        known: dict[str, t.Any] = {
            **dict.fromkeys(_record_fields.FIELDS["arm"]),
            "weights_mib": weights_mib,
            "weights_plus_minus_mib": 0,
            "source": "probe",
            "measured_at": "2026-10-13T09:30:00Z",
        }
        return self.entry("arm", **{**known, **fields})

    def verdict(
        self, prediction: str, verdict: str, measured: t.Any, attempt: str = "0123456789ab"
    ) -> dict[str, t.Any]:
        """The line of a verdict."""
        return self.entry(
            "verdict",
            attempt,
            prediction=prediction,
            quantity=prediction.split(".")[0],
            verdict=verdict,
            measured=measured,
            says=f"measured {measured}",
        )


@pytest.fixture
def example() -> Example:
    """The worked example."""
    return Example()
