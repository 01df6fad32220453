# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probes against the rehearsal engine, whose true rates and pool are known."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import boundary, calibration, rates
from ansible_collections.kvfleet.radiance.tests.unit.plugins.modules.rehearsed_engine import engine, options


def test_a_pool_that_holds_three_full_sequences(tmp_path: pathlib.Path) -> None:
    with engine(tmp_path, 50, 24_000, 5_120) as url:
        calibrated = calibration.probe(options(url))["calibration"]
        chat = calibration.probe(options(url, api="chat"))["calibration"]
        found = boundary.probe(options(url, chars_per_token=calibrated["chars_per_token"]))["boundary"]
    assert (chat["method"], chat["exact"], chat["prefilled_tokens"]) == ("refusal", True, 0)
    assert chat["chars_per_token"] == pytest.approx(calibrated["chars_per_token"], rel=0.002)
    assert (calibrated["method"], calibrated["exact"], calibrated["limit"]) == ("refusal", True, 200_000)
    assert calibrated["prefilled_tokens"] == 0
    assert found["says"].startswith("3 of 3 markers came back and 3 sequences")
    assert (found["asked"], found["retrieved"], found["overlap"], found["verdict"]) == (3, 3, 3, "passed")
    assert (found["max_model_len"], found["generate_tokens"]) == (200_000, 600)
    # Nearly the whole window, and never more than it.
    assert all(196_000 < reply["prompt_tokens"] <= 199_400 for reply in found["replies"])


def test_a_pool_that_holds_two_is_not_passed(tmp_path: pathlib.Path) -> None:
    with engine(tmp_path, 100, 24_000, 4_000) as url:
        found = boundary.probe(options(url, chars_per_token=2.715))["boundary"]
    assert found["verdict"] == "failed"
    assert "it does not hold them all" in found["says"] or "the engine preempted" in found["says"]


@pytest.mark.parametrize(
    ("fault", "cause", "marker", "says"),
    [
        ("lose_marker", "marker_lost", "lost", "of its end"),
        ("foreign_marker", "foreign_marker", "foreign", "CRITICAL: the reply holds"),
    ],
)
def test_what_a_boundary_says_of_a_fault(
    tmp_path: pathlib.Path, fault: str, cause: str, marker: str, says: str
) -> None:
    with engine(tmp_path, 100, 24_000, 5_120, fault) as url:
        found = boundary.probe(options(url, chars_per_token=2.715, max_model_len=40_000))["boundary"]
    assert (found["verdict"], found["cause"]) == ("failed", cause)
    assert marker in [reply["marker"] for reply in found["replies"]]
    assert found["critical"] is (cause == "foreign_marker")
    assert says in found["says"]


def test_an_engine_whose_answers_are_garbage_after_a_long_prompt(tmp_path: pathlib.Path) -> None:
    with engine(tmp_path, 100, 24_000, 5_120, "garbage") as url:
        found = boundary.probe(options(url, chars_per_token=2.715, sequences=1, max_model_len=50_000))["boundary"]
    assert (found["retrieved"], found["verdict"], found["cause"]) == (1, "failed", "wrong_after")


def test_an_engine_that_spills_into_host_memory(tmp_path: pathlib.Path) -> None:
    with engine(tmp_path, 100, 24_000, 5_120, "spill:14000", sysfs=True) as url:
        asked = {"chars_per_token": 2.715, "sequences": 2, "max_model_len": 50_000}
        found = boundary.probe(options(url, **asked, card_folder=str(tmp_path / "model.cards")))["boundary"]
    assert (found["retrieved"], found["verdict"], found["cause"]) == (2, "failed", "spill")
    assert found["memory"]["grown_mib"] == 14_000
    # The last one is no card that serves: its memory is that of the others, and it holds nothing of theirs.
    assert [card["vram_mib"]["before"] for card in found["memory"]["cards"]] == [30_565, 30_555, 342]


def test_the_edge_of_the_window(tmp_path: pathlib.Path) -> None:
    with engine(tmp_path, 400, 24_000, 5_120) as url:
        asked = {"chars_per_token": 2.715, "sequences": 1, "max_model_len": 30_000, "form": "full"}
        found = boundary.probe(options(url, **asked))["boundary"]
    assert (found["verdict"], found["edge"]["verdict"]) == ("passed", "passed")
    assert found["says"].endswith("199,999 tokens are served and 200,000 are refused with their count")
    assert (found["edge"]["refused_tokens"], found["edge"]["served_tokens"]) == (200_000, 199_999)
    # It went on from what the boundary had sent.
    assert found["edge"]["cached_tokens"] > 29_000


def measured(url: str, **more: t.Any) -> dict[str, t.Any]:
    """The rates of the first probe that called them measured.

    A host that is busy with other tests may hold back tokens: then a run is inconclusive, and not wrong.
    """
    for _attempt in range(6):
        found: dict[str, t.Any] = rates.probe(options(url, chars_per_token=2.715, **more))["rates"]
        if found["verdict"] == "passed":
            break
    assert found["verdict"] == "passed", found["says"]
    return found


def test_rates_are_the_engines_own(tmp_path: pathlib.Path) -> None:
    with engine(tmp_path, 2, 25_600, 5_120) as url:
        found = measured(url, prompt_tokens=4_000, generate_tokens=280, runs=1, form="full", most_prefill_tps=7_168)
    assert found["prefill_tps"] == pytest.approx(2 * 3_584, rel=0.05)
    assert found["decode_tps"] == pytest.approx(2 * 120, rel=0.05)
    # A step with three sequences in it takes half as long again.
    assert found["concurrent_decode_tps"] == pytest.approx(2 * 80, rel=0.05)
    assert found["second_turn"]["decode_tps"] == pytest.approx(2 * 120, rel=0.05)
    assert found["second_turn"]["cached_tokens"] == pytest.approx(4_000, rel=0.02)
    assert (found["cached_tokens"], found["method"], found["suspect"]) == (0, "timings", False)
    assert found["prompt_tokens"] == pytest.approx(4_000, rel=0.02)
    assert found["generated_tokens"] == 280
    for part in (found, found["runs"][0], found["second_turn"], found["concurrent"]):
        assert part["draft_acceptance"] == pytest.approx(0.7, abs=0.05)


def test_rates_without_timings_are_the_engines_own_too(tmp_path: pathlib.Path) -> None:
    with engine(tmp_path, 1, 25_600, 5_120, "null_rates") as url:
        found = measured(url, prompt_tokens=5_200, generate_tokens=160, runs=1)
    assert found["method"] == "wall_clock"
    assert found["prefill_tps"] == pytest.approx(3_584, rel=0.05)
    assert found["decode_tps"] == pytest.approx(120, rel=0.05)


def test_timings_that_lie_give_no_rate(tmp_path: pathlib.Path) -> None:
    with engine(tmp_path, 4, 25_600, 5_120, "wrong_timings:3") as url:
        found = rates.probe(options(url, chars_per_token=2.715, prompt_tokens=14_000, generate_tokens=128, runs=1))
    assert (found["rates"]["prefill_tps"], found["rates"]["verdict"]) == (None, "inconclusive")
    assert "timings put the prefill at" in found["rates"]["says"]
