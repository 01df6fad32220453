# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rates and their verdict from literal times and counts."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import Failure, Said
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.counters import Counters, total
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.replies import Heard
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.scoring import Bounds, decode_rate, score
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.scoring import conclude as conclude_rates
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.turns import judge_streams, judge_turn
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.watch import Clock
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.heard_replies import said
from hypothesis import given
from hypothesis import strategies as st

ARM = Bounds(prefill_tps=4379.0)
DRAFTS = Counters(drafted=1000, accepted=700, steps=500)


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


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (
            {"tokens": 60_000},
            "the reply counts 60,000: either it or the chars_per_token that they were sized by is wrong",
        ),
        ({"made": 560}, "400 tokens were to be generated and the reply counts 560, which cannot be"),
        ({"made": 280}, "400 tokens were to be generated and the reply counts 280, which cannot be"),
    ],
)
def test_a_reply_that_counts_what_cannot_be_gives_no_rate(reply: dict[str, t.Any], says: str) -> None:
    one = said(**reply)
    one.heard.finish = "length"
    run = score(one, 40_000, 1, generate=400)
    assert (run["prefill_tps"], run["decode_tps"]) == (None, None)
    assert says in run["says"]


def test_an_answer_that_ended_by_itself_may_be_shorter() -> None:
    one = said(made=280)
    one.heard.finish = "stop"
    assert score(one, 40_000, 1, generate=400)["decode_tps"] == 69.75


def test_traffic_that_no_sample_saw_is_in_the_engines_count() -> None:
    others = Counters(prompted=40_900, generated=465)
    run = score(said(), 40_000, 1, others)
    assert (run["prefill_tps"], run["decode_tps"]) == (None, None)
    assert "other traffic: the engine counted 40,900 prompt tokens" in run["says"]
    assert judge_turn(said(), 40_000, 1, others)["measured"] is False
    both = judge_streams([said(), said()], 2, 40_000, 2, Counters(prompted=81_900))
    assert "other traffic: the engine counted 81,900 prompt tokens, and the replies to the probe 80,000" in both["says"]


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [((110.0, 111.0), "passed"), ((110.0, 111.2), "inconclusive"), ((110.0, 120.0), "inconclusive")],
)
def test_two_runs_that_lie_apart_have_no_median(ends: tuple[float, float], verdict: str) -> None:
    rates = conclude_rates([score(said(first=end, last=end + 4.0), 40_000, 1) for end in ends], 2)
    assert rates["verdict"] == verdict
    assert ("apart in prefill, so that the median is the rate of none of them" in rates["says"]) is (
        verdict == "inconclusive"
    )


def test_medians_and_a_warm_run() -> None:
    runs = [score(said(first=last - 4.0, last=last), 40_000, 1) for last in (114.0, 112.0, 124.0)]
    rates = conclude_rates(runs, 3)
    assert (rates["prefill_tps"], rates["decode_tps"], rates["verdict"]) == (4000.0, 100.0, "passed")
    assert (
        rates["says"]
        == "prefill 4,000 tokens/s over 40,000 tokens, decode 100.0 tokens/s over 401 tokens, median of 3 runs, "
        "spread 75.0 % and 0.0 %"
    )
    assert (rates["prefill_spread"], rates["decode_spread"]) == (0.75, 0.0)
    warm = conclude_rates([*runs[:2], score(said(cached=10), 40_000, 1)], 3)
    assert (warm["prefill_tps"], warm["cached_tokens"], warm["verdict"]) == (4500.0, 10, "inconclusive")


def test_a_rate_beyond_all_arms_is_suspect_and_no_pass() -> None:
    miracle = score(said(first=100.66, last=104.66), 40_000, 1, bounds=ARM)
    assert (miracle["suspect"], miracle["prefill_tps"]) == (True, None)
    told = {"prompt_n": 40_000, "prompt_ms": 600.0}
    assert score(said(first=100.66, last=104.66, timings=told), 40_000, 1, bounds=ARM)["suspect"] is True
    assert score(said(first=100.66, last=104.66, cached=39_936), 40_000, 1, bounds=ARM)["suspect"] is False
    rates = conclude_rates([miracle], 1)
    assert (rates["verdict"], rates["suspect"]) == ("inconclusive", True)
    assert "suspect: 60,606 tokens/s of prefill, where the fastest arm has 4,379" in rates["says"]
    quick = score(said(), 40_000, 1, bounds=Bounds(decode_tps=66.0))
    assert (quick["suspect"], quick["decode_tps"], conclude_rates([quick], 1)["verdict"]) == (
        True,
        100.0,
        "inconclusive",
    )
    assert "suspect: 100 tokens/s of decode, where the fastest arm has 66" in str(quick["says"])
    assert score(said(), 40_000, 1, bounds=Bounds(decode_tps=67.0))["suspect"] is False
    fast = score(said(first=106.2, last=110.2), 40_000, 1, bounds=ARM)
    assert (fast["suspect"], conclude_rates([fast], 1)["verdict"]) == (False, "passed")
    assert score(said(first=100.66, last=104.66), 40_000, 1)["suspect"] is False


@pytest.mark.parametrize(
    ("tokens", "seconds", "rate"),
    [(40_000, 4.3, 9_302.33), (40_000, 4.1, None), (4_000, 1.4, 2_857.14), (4_000, 1.3, None)],
)
def test_the_wall_clock_alone_takes_a_time_beside_which_parsing_is_nothing(
    tokens: int, seconds: float, rate: float | None
) -> None:
    assert score(said(first=100 + seconds, last=110.0, tokens=tokens), tokens, 1)["prefill_tps"] == rate


def test_more_tokens_than_the_engines_own_steps_can_yield_are_no_rate() -> None:
    # 401 tokens, the first of prefill: 134 steps of at most three each, and one that was read within.
    depth = Bounds(depth=2)
    assert score(said(), 40_000, 1, Counters(266, 133, 133), depth)["decode_tps"] == 100.0
    run = score(said(), 40_000, 1, Counters(264, 132, 132), depth)
    assert (run["decode_tps"], run["suspect"], run["prefill_tps"]) == (None, True, 4000.0)
    assert run["says"] == (
        "suspect: 401 generated tokens by usage, where 132 steps of decode by the engine's own count yield at most 400 "
        "at a depth of 2"
    )
    # An engine that does not count its steps, or not like this, says nothing.
    assert score(said(), 40_000, 1, Counters(264, 132, 0), depth)["decode_tps"] == 100.0
    assert score(said(), 40_000, 1, Counters(264, 132, 132))["decode_tps"] == 100.0
    streams = judge_streams([said(), said()], 2, 40_000, 2, Counters(264, 132, 133), 2)
    assert (streams["measured"], streams["draft_acceptance"]) == (True, 0.5)
    streams = judge_streams([said(), said()], 2, 40_000, 2, Counters(264, 132, 65), 1)
    assert (streams["measured"], streams["says"][:9]) == (False, "suspect: ")


def test_the_acceptance_is_that_of_the_runs_themselves() -> None:
    runs = [score(said(), 40_000, 1, counted) for counted in (Counters(200, 150, 100), Counters(200, 100, 100))]
    assert [run["draft_acceptance"] for run in runs] == [0.75, 0.5]
    found = conclude_rates(runs, 2, total([Counters(200, 150, 100), Counters(200, 100, 100)]))
    assert found["draft_acceptance"] == 0.625
    assert "decode 100.0 tokens/s over 401 tokens at 62 % of drafts accepted" in found["says"]
    # Others' drafts are among the counters, and what failed has no rate to stand beside.
    assert score(said(), 40_000, 2, Counters(200, 150, 100))["draft_acceptance"] is None
    assert conclude_rates(runs, 2)["draft_acceptance"] is None


def test_without_timings_tokens_that_were_held_back_have_no_rate() -> None:
    run = score(said(), 40_000, 1, clock=Clock(113.0))
    assert (run["prefill_tps"], run["decode_tps"]) == (None, None)
    assert run["says"] == (
        "no timings, and the engine had ended 1.00 s before its last token arrived: something between holds tokens back"
    )
    timings = {"prompt_n": 40_000, "prompt_ms": 9990, "predicted_per_second": 100.0}
    assert score(said(timings=timings), 40_000, 1, clock=Clock(113.0))["decode_tps"] == 100.0


def test_without_timings_a_busy_host_tells_no_rate() -> None:
    # Ten seconds of prefill and four of decode: a twentieth of each is half a second, and a fifth of one.
    late = score(said(), 40_000, 1, clock=Clock(None, 0.3))
    assert (late["prefill_tps"], late["decode_tps"]) == (4000.0, None)
    assert "what is answered from memory came 0.30 s late" in str(late["says"])
    assert score(said(), 40_000, 1, clock=Clock(None, 0.6))["prefill_tps"] is None
    assert score(said(), 40_000, 1, clock=Clock(None, 0.19))["says"] is None


@pytest.mark.parametrize(
    ("pieces", "says"),
    [
        # A tenth of the text at once, then one piece every tenth of a second.
        ([(110.0, 10)] + [(110.0 + n / 10, 1) for n in range(1, 41)], "20 % of the text arrived in its first moment"),
        # Half a second of nothing in the middle.
        ([(110.0 + n / 10 + (0.5 if n > 20 else 0.0), 1) for n in range(41)], "for 0.30 of 4.50 s nothing arrived"),
        ([(110.0 + n / 10 + (0.3 if n > 20 else 0.0), 1) for n in range(41)], None),
    ],
)
def test_without_timings_tokens_that_came_in_bursts_have_no_decode_rate(
    pieces: list[tuple[float, int]], says: str | None
) -> None:
    heard = Heard()
    for at, words in pieces:
        heard.take({"choices": [{"text": " and" * words}]}, at)
    heard.take({"choices": [], "usage": {"prompt_tokens": 40_000, "completion_tokens": 401}}, 115.0)
    rate = decode_rate(heard)
    assert (rate.tps is None) is (says is not None)
    assert says is None or says in str(rate.says)


# The full form


def test_a_second_turn() -> None:
    turn = judge_turn(said(first=100.31, last=104.31, tokens=40_500, cached=39_936), 40_000, 1, DRAFTS)
    assert (turn["measured"], turn["cached_tokens"], turn["effective"], turn["ttft_seconds"]) == (
        True,
        39_936,
        True,
        0.31,
    )
    assert (turn["decode_tps"], turn["draft_acceptance"]) == (100.0, 0.7)
    assert turn["says"] == (
        "40,500 tokens, 39,936 of it came from the cache; first token after 0.31 s, then 100.0 tokens/s at 70 % of "
        "drafts accepted"
    )


def test_a_cache_that_is_switched_off_without_a_word_is_a_finding_of_its_own() -> None:
    turn = judge_turn(said(cached=0), 40_000, 1)
    assert (turn["measured"], turn["effective"]) == (True, False)
    rates = conclude_rates([score(said(), 40_000, 1)], 1, second_turn=turn)
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
    turn = judge_turn(one, 40_000, in_flight)
    assert turn["measured"] is False
    rates = conclude_rates([score(said(), 40_000, 1)], 1, second_turn=turn)
    assert rates["verdict"] == "inconclusive"
    assert says in rates["says"]


def test_streams_count_only_while_all_of_them_decode() -> None:
    # 401 tokens in 4 s each, the last one a second later: three seconds in common.
    streams = [said(first=first, last=first + 4.0) for first in (110.0, 110.5, 111.0)]
    found = judge_streams(streams, 3, 40_000, 3, DRAFTS)
    assert (found["measured"], found["streams"], found["draft_acceptance"]) == (True, 3, 0.7)
    assert found["decode_tps"] == pytest.approx(100, rel=0.03)
    assert found["tokens"] == pytest.approx(300, rel=0.03)
    rates = conclude_rates([score(said(), 40_000, 1)], 1, concurrent=found)
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
    assert judge_streams(streams, 2, 40_000, 2)["decode_tps"] == pytest.approx(100, rel=0.03)


def test_streams_that_were_held_up_for_a_moment_show_no_pace() -> None:
    held = Heard()
    for piece in range(40):
        held.take({"choices": [{"text": " and"}]}, 110.0 + piece / 10 + (0.4 if piece > 30 else 0.0))
    held.take({"choices": [], "usage": {"prompt_tokens": 40_000, "completion_tokens": 400}}, 115.0)
    found = judge_streams([Said(200, held, None, 100.0)] * 2, 2, 40_000, 2)
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
    found = judge_streams(streams, 2, 40_000, in_flight)
    assert (found["measured"], found["decode_tps"]) == (False, None)
    assert says in found["says"]
    assert conclude_rates([score(said(), 40_000, 1)], 1, concurrent=found)["verdict"] == "inconclusive"


def test_too_few_runs_are_inconclusive() -> None:
    assert conclude_rates([], 2)["verdict"] == "inconclusive"
    assert conclude_rates([score(said(), 40_000, 1)], 2)["verdict"] == "inconclusive"


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
    rates = conclude_rates([run], 1)
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
