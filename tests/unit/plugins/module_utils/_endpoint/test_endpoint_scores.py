# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rates and verdicts from literal times and counts."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import Failure, Said
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.boundary import (
    plan_boundary,
    size_boundary,
)
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
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.replies import Heard
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.scoring import conclude as conclude_rates
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.scoring import score
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.turns import judge_streams, judge_turn
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.watch import read_sample, summarize
from hypothesis import given
from hypothesis import strategies as st

HEAD, MIDDLE, END = "AAAA-BBBB-CCCC", "GGGG-HHHH-JJJJ", "KKKK-LLLL-MMMM"
OWN, OTHER = f"{HEAD}, {MIDDLE}, {END}", "DDDD-EEEE-FFFF"
PLAN = Plan(sequences=3, window=200_000, generate_tokens=600, prompt_tokens=198_800, chars=549_000)


def said(
    *,
    first: float = 110.0,
    last: float = 114.0,
    tokens: t.Any = 40_000,
    made: t.Any = 401,
    cached: t.Any = 0,
    timings: t.Any = None,
    text: str = "x",
    failure: Failure | None = None,
) -> Said:
    """An answer to a request that began at 100.0, in forty pieces."""
    heard = Heard()
    for piece in range(40):
        heard.take({"choices": [{"text": text if piece == 0 else " and"}]}, first + (last - first) * piece / 39)
    usage = {"prompt_tokens": tokens, "completion_tokens": made, "prompt_tokens_details": {"cached_tokens": cached}}
    heard.take({"choices": [], "usage": usage, "timings": timings}, last)
    return Said(200, heard, failure, 100.0)


def test_wall_clock_rates() -> None:
    run = score(said(), 40_000, 1)
    assert (run["prefill_tps"], run["decode_tps"], run["method"], run["says"]) == (4000.0, 100.0, "wall_clock", None)
    assert run["ttft_seconds"] == 10.0


def test_timings_that_leave_out_the_queue() -> None:
    timings = {"prompt_n": 40_000, "prompt_ms": 9500, "predicted_per_second": 101.5}
    run = score(said(timings=timings), 40_000, 1)
    assert (run["prefill_tps"], run["decode_tps"], run["method"]) == (4210.53, 101.5, "timings")


@pytest.mark.parametrize(("made", "decode"), [(128, 31.75), (127, None), (9, None), (1, None), (0, None), (None, None)])
def test_a_decode_rate_takes_128_tokens(made: int | None, decode: float | None) -> None:
    assert score(said(made=made), 40_000, 1)["decode_tps"] == decode


def test_one_prompt_token_of_237_is_no_prefill_rate() -> None:
    timings = {"cache_n": 236, "prompt_n": 1, "prompt_ms": 30.958, "prompt_per_second": 32.3}
    run = score(said(tokens=237, timings=timings), 237, 1)
    assert (run["prefill_tps"], run["cached_tokens"]) == (None, 236)
    assert run["decode_tps"] == 100.0


def test_a_cache_hit_is_no_miracle() -> None:
    run = score(said(first=100.65, last=104.65, cached=39_936), 40_000, 1)
    assert (run["prefill_tps"], run["decode_tps"]) == (None, 100.0)


def test_traffic_spoils_both_rates() -> None:
    run = score(said(), 40_000, 2)
    assert (run["prefill_tps"], run["decode_tps"]) == (None, None)
    assert run["says"] == "other traffic: 2 requests in flight where the probe sent 1"


def test_medians_and_a_warm_run() -> None:
    runs = [score(said(first=last - 4.0, last=last), 40_000, 1) for last in (114.0, 112.0, 124.0)]
    rates = conclude_rates(runs, 3, 0.7)
    assert (rates["prefill_tps"], rates["decode_tps"], rates["verdict"]) == (4000.0, 100.0, "passed")
    assert (
        rates["says"]
        == "prefill 4,000 tokens/s over 40,000 tokens, decode 100.0 tokens/s over 401 tokens, median of 3 runs, "
        "spread 75.0 % and 0.0 %"
    )
    assert (rates["prefill_spread"], rates["decode_spread"]) == (0.75, 0.0)
    warm = conclude_rates([*runs[:2], score(said(cached=10), 40_000, 1)], 3, None)
    assert (warm["prefill_tps"], warm["cached_tokens"], warm["verdict"]) == (4500.0, 10, "inconclusive")


def test_a_rate_beyond_all_arms_is_suspect_and_no_pass() -> None:
    miracle = score(said(first=100.66, last=104.66), 40_000, 1, None, 4379.0)
    assert (miracle["suspect"], miracle["prefill_tps"]) == (True, None)
    told = {"prompt_n": 40_000, "prompt_ms": 600.0}
    assert score(said(first=100.66, last=104.66, timings=told), 40_000, 1, None, 4379.0)["suspect"] is True
    assert score(said(first=100.66, last=104.66, cached=39_936), 40_000, 1, None, 4379.0)["suspect"] is False
    rates = conclude_rates([miracle], 1, None)
    assert (rates["verdict"], rates["suspect"]) == ("inconclusive", True)
    assert "suspect: 60,606 tokens/s of prefill, where the fastest arm has 4,379" in rates["says"]
    fast = score(said(first=106.2, last=110.2), 40_000, 1, None, 4379.0)
    assert (fast["suspect"], conclude_rates([fast], 1, None)["verdict"]) == (False, "passed")
    assert score(said(first=100.66, last=104.66), 40_000, 1)["suspect"] is False


@pytest.mark.parametrize(
    ("tokens", "seconds", "rate"),
    [(40_000, 3.7, 10_810.81), (40_000, 3.5, None), (4_000, 0.8, 5_000.0), (4_000, 0.7, None)],
)
def test_the_wall_clock_alone_takes_a_time_beside_which_parsing_is_nothing(
    tokens: int, seconds: float, rate: float | None
) -> None:
    assert score(said(first=100 + seconds, last=110.0, tokens=tokens), tokens, 1)["prefill_tps"] == rate


# The full form


def test_a_second_turn() -> None:
    turn = judge_turn(said(first=100.31, last=104.31, tokens=40_500, cached=39_936), 40_000, 1, 0.7)
    assert (turn["measured"], turn["cached_tokens"], turn["effective"], turn["ttft_seconds"]) == (
        True,
        39_936,
        True,
        0.31,
    )
    assert (turn["decode_tps"], turn["draft_acceptance"]) == (100.0, 0.7)
    assert turn["says"] == "40,500 tokens, 39,936 of it came from the cache; first token after 0.31 s"


def test_a_cache_that_is_switched_off_without_a_word_is_a_finding_of_its_own() -> None:
    turn = judge_turn(said(cached=0), 40_000, 1, None)
    assert (turn["measured"], turn["effective"]) == (True, False)
    rates = conclude_rates([score(said(), 40_000, 1)], 1, None, turn)
    assert rates["verdict"] == "passed"
    assert "second turn: 40,000 tokens, none of it: the prefix cache had no effect" in rates["says"]


@pytest.mark.parametrize(
    ("one", "in_flight", "says"),
    [
        (said(cached=None), 1, "does not say how many tokens came from a cache"),
        (said(made=100), 1, "100 generated tokens are too few"),
        (said(), 2, "other traffic: 2 requests in flight where the probe sent 1"),
        (said(failure=Failure("late", "too late")), 1, "too late"),
    ],
)
def test_a_second_turn_that_was_not_measured_is_no_pass(one: Said, in_flight: int, says: str) -> None:
    turn = judge_turn(one, 40_000, in_flight, None)
    assert turn["measured"] is False
    rates = conclude_rates([score(said(), 40_000, 1)], 1, None, turn)
    assert rates["verdict"] == "inconclusive"
    assert says in rates["says"]


def test_streams_count_only_while_all_of_them_decode() -> None:
    # 401 tokens in 4 s each, the last one a second later: three seconds in common.
    streams = [said(first=first, last=first + 4.0) for first in (110.0, 110.5, 111.0)]
    found = judge_streams(streams, 3, 40_000, 3, 0.7)
    assert (found["measured"], found["streams"], found["draft_acceptance"]) == (True, 3, 0.7)
    assert found["decode_tps"] == pytest.approx(100, rel=0.03)
    assert found["tokens"] == pytest.approx(300, rel=0.03)
    rates = conclude_rates([score(said(), 40_000, 1)], 1, None, None, found)
    assert (rates["verdict"], rates["concurrent_decode_tps"]) == ("passed", found["decode_tps"])


def test_a_stream_that_was_held_up_while_others_were_prefilled_does_not_count_that() -> None:
    held = Heard()
    # A step a second while the others are prefilled, then a hundred tokens a second.
    for piece in range(10):
        held.take({"choices": [{"text": "12 tokens "}]}, 100.0 + piece)
    for piece in range(40):
        held.take({"choices": [{"text": "12 tokens "}]}, 110.0 + 0.12 * piece)
    held.take({"choices": [], "usage": {"prompt_tokens": 40_000, "completion_tokens": 600}}, 115.0)
    streams = [Said(200, held, None, 99.0), said(first=110.0, last=114.0)]
    assert judge_streams(streams, 2, 40_000, 2, None)["decode_tps"] == pytest.approx(100, rel=0.03)


def test_streams_that_were_held_up_for_a_moment_show_no_pace() -> None:
    held = Heard()
    for piece in range(40):
        held.take({"choices": [{"text": " and"}]}, 110.0 + piece / 10 + (0.4 if piece > 30 else 0.0))
    held.take({"choices": [], "usage": {"prompt_tokens": 40_000, "completion_tokens": 400}}, 115.0)
    found = judge_streams([Said(200, held, None, 100.0)] * 2, 2, 40_000, 2, None)
    assert (found["measured"], found["decode_tps"]) == (False, None)
    assert "their pace was uneven" in found["says"]


@pytest.mark.parametrize(
    ("streams", "in_flight", "says"),
    [
        ([said(first=110, last=114), said(first=113, last=117)], 2, "they decoded together for only"),
        ([said(first=110, last=110.9), said(first=110, last=110.9)], 2, "together for 0.90 s, which is too short"),
        ([said(), said(timings={"predicted_per_second": 104})], 2, "timings say 104.0 tokens/s of decode"),
        ([said(), said()], 3, "other traffic: 3 requests in flight where the probe sent 2"),
        ([said(), said(made=None)], 2, "does not count what it generated"),
        ([said()], 2, "1 of 2 requests could not be made"),
        ([said(), said(timings={"predicted_per_second": 50})], 2, "timings say 50.0 tokens/s of decode"),
    ],
)
def test_streams_that_were_not_measured(streams: list[Said], in_flight: int, says: str) -> None:
    found = judge_streams(streams, 2, 40_000, in_flight, None)
    assert (found["measured"], found["decode_tps"]) == (False, None)
    assert says in found["says"]
    assert conclude_rates([score(said(), 40_000, 1)], 1, None, None, found)["verdict"] == "inconclusive"


def test_too_few_runs_are_inconclusive() -> None:
    assert conclude_rates([], 2, None)["verdict"] == "inconclusive"
    assert conclude_rates([score(said(), 40_000, 1)], 2, None)["verdict"] == "inconclusive"


@given(
    tokens=st.none() | st.integers(0, 10**6),
    made=st.none() | st.integers(0, 10**4),
    cached=st.none() | st.integers(0, 10**6),
    first=st.floats(100, 200),
    length=st.floats(0, 100),
    timings=st.dictionaries(
        st.sampled_from(["prompt_n", "cache_n", "prompt_ms", "prompt_per_second", "predicted_per_second"]),
        st.none() | st.integers(-5, 10**6) | st.floats(),
    ),
)
def test_nothing_passes_that_was_not_measured(
    tokens: int | None, made: int | None, cached: int | None, first: float, length: float, timings: dict[str, t.Any]
) -> None:
    run = score(
        said(first=first, last=first + length, tokens=tokens, made=made, cached=cached, timings=timings), 40_000, 1
    )
    rates = conclude_rates([run], 1, None)
    if rates["verdict"] == "passed":
        assert (run["cached_tokens"], run["says"]) == (0, None)
        assert made is not None
        assert made >= 128
        assert tokens is not None
        assert tokens >= 38_000
        wall = first - 100
        assert rates["prefill_tps"] >= 0.94 * tokens / wall or wall - tokens / rates["prefill_tps"] < 0.51
    else:
        assert run["says"]
    assert (run["prefill_tps"] is None) <= (rates["verdict"] == "inconclusive")


# Boundary


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
    found = verdict(answer(160, 300), answer(220, 301), answer(290, 303))
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
