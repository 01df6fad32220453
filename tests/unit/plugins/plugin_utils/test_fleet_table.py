# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forty plans are read in one table."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _fleet_table

UNTIL = {"at": "2026-11-30 06:00:00 +0100", "epoch": 1000.0}


def run(example: t.Any, **changes: t.Any) -> dict[str, t.Any]:
    ceiling = {**example.plan["ceiling"], "takeable_mib": 1843.92}
    plan = {**example.plan, "ceiling": ceiling, **changes}
    return {"service": example.service, "plan": plan, "needs": {"seconds": 100.0, "says": "100 s"}}


def test_a_service_is_a_line_and_what_is_refused_stands_below_with_its_code(example: t.Any) -> None:
    stays = run(example, restart=False, to=example.old, changes=[])
    shape = run(
        example, to={**example.new, "weights_mib": 24242, "max_num_seqs": 4}, changes=["weights_mib", "max_num_seqs"]
    )
    planned: dict[str, t.Any] = {"a": [run(example)], "b": [], "c": [stays, shape], "d": [], "e": []}
    refused = {
        "service": "flashnext",
        "word": "refused",
        "says": f"too large, {'very ' * 40}",
        "code": "pair_within_ceiling",
    }
    outcomes = {
        "b": {"services": [refused]},
        "d": {"services": [{"service": "", "word": "not_reached", "says": "the host does not answer"}]},
        "e": {},
    }
    lines = _fleet_table.fleet_table(planned, outcomes)
    assert lines[1:6] == [
        "  host  service    now             planned                        ceiling    spare     gain",
        "  a     flashnext  24,000 + 5,120  25,844 + 5,119                 30,969.05  1,843.92  +1,844",
        "  c     flashnext  24,000 + 5,120  stays                          30,969.05  1,843.92  0",
        "  c     flashnext  24,000 + 5,120  24,242 + 5,119 [max_num_seqs]  30,969.05  1,843.92  +242",
        lines[5],
    ]
    assert lines[5].startswith("  b     flashnext  refused pair_within_ceiling: too large, very")
    assert lines[6:] == [
        "  d     –          not_reached: the host does not answer",
        "  e     –          not_reached: the run lost this host",
        "3 planned, 3 not",
    ]
    assert max(len(line) for line in lines) <= 118
    crashed = {**run(example, to=example.old, changes=[]), "down": "flashnext.service does not run"}
    assert "  24,000 + 5,120 [start]  " in _fleet_table.fleet_table({"a": [crashed]}, {})[2]
    counts = {host: len(runs) for host, runs in planned.items()}
    assert _fleet_table.unplanned(counts, outcomes) == ["b", "d", "e"]


def test_a_deadline_is_a_column(example: t.Any) -> None:
    planned = {"a": [run(example)], "b": [{**run(example), "needs": None}]}
    lines = _fleet_table.fleet_table(planned, {}, UNTIL, now=901.0)
    assert [line.split("  ")[-1] for line in lines[1:4]] == ["by 06:00", "too late", "in time"]
    assert _fleet_table.unplanned({"a": 1, "b": 1}, {}) == []


def test_a_name_as_wide_as_the_screen_leaves_room_for_the_reason() -> None:
    refused = {"service": "", "word": "refused", "says": "it declares no endpoint_services in the inventory"}
    lines = _fleet_table.fleet_table({"h" * 200: []}, {"h" * 200: {"services": [refused]}})
    assert lines[1].endswith("refused: it declares no endpoint_services in the inventory")
