# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boundary's sizes, markers and verdicts from literal times and counts."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import Failure, Said
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.boundary import plan_boundary, size_boundary
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.corpus import Words
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.facts import Facts
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.judging import (
    Look,
    Plan,
    conclude,
    findings_of,
    judge_reply,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import read
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.watch import (
    Clock,
    read_clock,
    read_sample,
    summarize,
)
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.heard_replies import said

HEAD, MIDDLE, END = "AAAA-BBBB-CCCC", "GGGG-HHHH-JJJJ", "KKKK-LLLL-MMMM"
OWN, OTHER = f"{HEAD}, {MIDDLE}, {END}", "DDDD-EEEE-FFFF"
PLAN = Plan(sequences=3, window=200_000, generate_tokens=600, prompt_tokens=198_800, chars=549_000)


@pytest.mark.parametrize(
    ("chunk", "depth", "stated", "generate"),
    [
        (2048, 2, None, 600),
        (8192, 2, None, 600),
        (512, 2, None, 2400),
        (None, None, None, 600),
        (2048, 0, None, 200),
        (2048, 2, 64, 64),
    ],
)
def test_what_a_boundary_generates(chunk: int | None, depth: int | None, stated: int | None, generate: int) -> None:
    settings = read({"endpoint": "http://127.0.0.1:1", "model": None, "timeout": 1, "generate_tokens": stated}, None)
    assert plan_boundary(Facts("m", 200_000, 3, chunk, depth), settings) == (3, 200_000, generate)


@pytest.mark.parametrize(
    ("method", "tokens"), [("refusal", 198_793), ("tokenize", 198_395), ("usage", 195_404), (None, 197_398)]
)
def test_the_reserve_is_as_large_as_the_ratio_may_be_off(method: str | None, tokens: int) -> None:
    plan = size_boundary(3, 200_000, 600, 2.5, method)
    assert (plan.prompt_tokens, plan.chars) == (tokens, int(tokens * 2.5))


def look(one: Said) -> Look:
    return judge_reply(one, Words(HEAD, MIDDLE, END), [OTHER], PLAN)


@pytest.mark.parametrize(
    ("text", "tokens", "marker"),
    [
        (OWN, 198_795, "found"),
        (f"It is {OWN}.", 193_000, "found"),
        (OWN, 192_000, "truncated"),
        ("nothing", 4096, "truncated"),
        ("nothing", 198_795, "lost"),
        (OWN.lower(), 198_795, "lost"),
        (OTHER, 198_795, "foreign"),
        (f"{OWN} {OTHER}", 198_795, "foreign"),
        (OTHER, 4096, "foreign"),
        (OWN, None, "found"),
    ],
)
def test_a_marker(text: str, tokens: int | None, marker: str) -> None:
    assert look(said(text=text, tokens=tokens)).marker == marker


def test_a_foreign_marker_counts_in_a_failed_request_too() -> None:
    assert look(said(text=OTHER, failure=Failure("cut", "the stream ended"))).marker == "foreign"


def verdict(*answers: Said, samples: t.Sequence[t.Mapping[str, t.Any]] = ()) -> dict[str, t.Any]:
    taken = [read_sample(sample, 110.0 + n, 110.1 + n) for n, sample in enumerate(samples)]
    looks = [look(answer) for answer in answers]
    return conclude(PLAN, looks, answers, taken, findings_of(PLAN, looks, answers, taken))


def answer(first: float, last: float, **more: t.Any) -> Said:
    return said(**{"first": first, "last": last, "text": OWN, "tokens": 198_795, "made": 600, **more})


def test_three_of_three_together() -> None:
    decoding = {"running": 3, "requests": [{"state": "decode"}] * 3}
    found = verdict(answer(160, 300), answer(220, 301), answer(290, 303), samples=[decoding])
    assert (found["retrieved"], found["overlap"], found["verdict"]) == (3, 3, "passed")
    assert found["says"] == (
        "3 of 3 markers came back and 3 sequences of about 198,800 tokens held the pool at the same time"
    )


def test_the_first_ends_before_the_last_begins() -> None:
    found = verdict(answer(160, 280), answer(220, 301), answer(290, 303))
    assert (found["overlap"], found["verdict"]) == (2, "inconclusive")
    assert "more than 600 generate_tokens would keep them together" in found["says"]


def test_one_whose_tokens_came_in_one_moment_held_the_pool_alone() -> None:
    assert verdict(answer(160, 160), answer(220, 220), answer(290, 290))["overlap"] == 1


def test_a_sequence_that_stopped_early_is_named() -> None:
    found = verdict(answer(160, 280, made=212), answer(220, 301), answer(290, 303))
    assert "one stopped after 212 of 600 tokens" in found["says"]


def test_a_failure_outweighs_traffic() -> None:
    found = verdict(answer(160, 300, text="nothing"), answer(220, 301), answer(290, 303), samples=[{"running": 5}])
    assert found["verdict"] == "failed"


def test_preemption_under_other_traffic_is_not_the_pools_failure() -> None:
    found = verdict(
        answer(160, 300), answer(220, 301), answer(290, 303), samples=[{"running": 4, "waiting": 1, "preempted": 1}]
    )
    assert found["verdict"] == "inconclusive"


def test_a_pool_that_is_too_small_by_the_engines_own_account() -> None:
    spread = (answer(160, 280), answer(220, 301), answer(290, 303))
    found = verdict(*spread, samples=[{"running": 2, "waiting": 1, "kv_tokens_total": 443_432}])
    assert (found["overlap"], found["verdict"]) == (2, "failed")
    assert "the pool has 443,432 tokens and they need about 596,400" in found["says"]
    assert "generate_tokens" not in found["says"]
    large_enough = verdict(*spread, samples=[{"running": 3, "kv_tokens_total": 600_268}])
    assert large_enough["verdict"] == "inconclusive"


def test_the_witness() -> None:
    samples = [
        read_sample(
            {"running": 3, "kv_tokens_used": 400_000, "preemptions": 7, "requests": [{"state": "decode"}]}, 1.0, 1.1
        ),
        read_sample(
            {"running": 3, "kv_tokens_used": 597_000, "kv_tokens_total": 600_268, "preemptions": 9, "requests": "?"},
            2.0,
            2.1,
        ),
        read_sample({"running": "3", "requests": [{"state": "decode"}, {"state": "decode"}, 3]}, 3.0, 3.1),
        read_sample(None, 4.0, 4.1),
    ]
    found = summarize(samples, (0.5, 1.5))
    assert tuple(found) == (4, 3, 2, 597_000, 600_268, 2, 1)
    assert found.as_dict() == {
        "samples": 4,
        "decoding": 2,
        "kv_tokens_used": 597_000,
        "kv_tokens_total": 600_268,
        "preempted": 2,
    }
    assert tuple(summarize([])) == (0, None, None, None, None, None, None)


def test_an_engine_that_ended_before_its_tokens_arrived() -> None:
    running, idle = {"running": 1, "waiting": 0}, {"running": 0, "waiting": 0}
    samples = [read_sample(said_by, at, at + 0.1) for said_by, at in ((idle, 99.5), (running, 110.2), (idle, 111.0))]
    assert read_clock(samples, 110.0, 114.0).ended_early == 111.0
    assert read_clock(samples[:2], 110.0, 114.0).ended_early is None
    # Read as the last token came: nothing was held back.
    assert read_clock(samples, 110.0, 111.05).ended_early is None
    assert read_clock(samples, None, None).ended_early is None


def test_a_sample_that_was_late() -> None:
    def sampled(*moments: float) -> Clock:
        return read_clock([read_sample({"running": 1}, at, at + 0.01) for at in moments], 100.0, 102.0)

    assert sampled(100.0, 100.26, 100.52, 100.6).late_seconds == pytest.approx(0.01)
    assert sampled(100.0, 100.26, 101.0).late_seconds == pytest.approx(0.49)
    assert (sampled(100.0, 100.1).late_seconds, sampled(100.0).late_seconds, sampled().late_seconds) == (0.0, 0.0, 0.0)
