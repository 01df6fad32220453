# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run does next."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _probation, _run

FILES = {"env": "KEY=1\n", "serve": "#!/bin/sh\n"}
THERE = {"/t/a.env": "KEY=1\n", "/t/a.sh": "#!/bin/sh\n"}


@pytest.mark.parametrize(
    ("restart", "request_", "there", "expected"),
    [
        (False, {}, THERE, False),
        (True, {}, THERE, True),
        (False, {"drift": "adopt"}, THERE, True),
        (False, {}, {}, True),
        (False, {}, {**THERE, "/t/a.env": "KEY=2\n"}, True),
        (False, {}, {**THERE, "/t/a.sh": "#!/bin/bash\n"}, True),
    ],
)
def test_there_is_something_to_do(restart: bool, request_: t.Any, there: t.Any, expected: bool) -> None:
    run = {"plan": {"restart": restart}, "target_texts": there, "target_files": FILES}
    assert _run.to_do(run, request_, "/t/a.env", "/t/a.sh") is expected


@pytest.mark.parametrize(
    ("predicted", "capacity", "sequences", "unswitched"),
    [
        ([2.9], {"full_length_sessions": 5}, 2, 2),
        ([0.4], None, 1, 1),
        ([], {"full_length_sessions": 2}, 2, 3),
        ([], {"full_length_sessions": None}, 3, 3),
        ([], None, 3, 3),
    ],
)
def test_a_pool_is_asked_for_what_it_was_predicted_to_back(
    example: t.Any, predicted: list[float], capacity: t.Any, sequences: int, unswitched: int
) -> None:
    predictions = [{"quantity": "sequences_backed", "low": low} for low in predicted]
    run = {"plan": {"to": example.new, "predictions": predictions}, "switched": {"ledger": {"capacity": capacity}}}
    assert _run.probed_shape(run) == {**example.new, "max_num_seqs": sequences}
    assert _run.probed_shape({**run, "switched": None})["max_num_seqs"] == unswitched


def test_a_plan_tells_of_probations() -> None:
    asked = "A crash of the new pair within 2h of the switch returns to the pair before by itself."
    assert _probation.probation_notes("2h", "", True) == [asked]
    assert _probation.probation_notes("2h", "It goes on.", True) == ["It goes on.", asked]
    for value, restart in (("2h", False), ("0", True), (None, True)):
        assert _probation.probation_notes(value, "", restart) == []
