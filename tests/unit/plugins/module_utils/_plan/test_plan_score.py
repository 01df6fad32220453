# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The score of predictions over time."""

from __future__ import annotations

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import score


def verdict(said, at, attempt="a", prediction="slab_slots.rank0", **more):
    return {
        "kind": "verdict",
        "host": "dankserver",
        "service": "flashnext",
        "attempt": attempt,
        "prediction": prediction,
        "quantity": prediction.split(".")[0],
        "verdict": said,
        "says": f"It was {said}.",
        "at": f"2026-10-{at:02}T00:00:00Z",
        **more,
    }


def test_a_prediction_counts_once_with_its_last_verdict_and_the_killed_stay():
    entries = [
        verdict("held", 3, "b"),
        verdict("killed", 4, "b"),
        verdict("held", 1),
        verdict("held", 2, "c", host="other"),
        verdict("void", 5, "d"),
        verdict("void", 6, "d", "prefill_tps"),
        {"kind": "planned", "at": "2026-10-01T00:00:00Z"},
    ]
    for order in (entries, entries[::-1]):
        assert score(order) == [
            {"quantity": "prefill_tps", "held": 0, "killed": 0, "void": 1, "share": None, "last_killed": None},
            {
                "quantity": "slab_slots",
                "held": 2,
                "killed": 1,
                "void": 1,
                "share": 0.667,
                "last_killed": "2026-10-04T00:00:00Z",
            },
        ]


def test_no_verdicts_have_no_score():
    assert score([]) == []
