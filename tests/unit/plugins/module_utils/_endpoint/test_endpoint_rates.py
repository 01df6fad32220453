# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rate probe against a small real endpoint that plays one trap at a time."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import rates
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.endpoint_server import Call
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_endpoint import Small
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_probes import (
    honest,
    measured,
    rate,
    run,
)


def test_rates_by_the_wall_clock() -> None:
    def slow() -> Small:
        small = Small()
        small.prefill_tps, small.decode_tps = 1600.0, 100.0
        return small

    small, found = measured(slow, runs=1, prompt_tokens=2000, generate_tokens=130)
    prefill, decode = small.took[1]
    assert (found["verdict"], found["method"], found["cached_tokens"]) == ("passed", "wall_clock", 0)
    assert found["prefill_tps"] == pytest.approx(2000 / prefill, rel=0.1)
    assert found["decode_tps"] == pytest.approx(129 / decode, rel=0.1)


def test_rates_by_timings_that_the_wall_clock_bears_out() -> None:
    def with_timings() -> Small:
        small = Small()
        small.timings = honest
        return small

    small, found = measured(with_timings)
    assert (found["verdict"], found["method"]) == ("passed", "timings")
    assert found["prefill_tps"] == pytest.approx(
        sum(4000 / prefill for prefill, _decode in small.took[1:]) / 2, abs=0.1
    )
    assert found["decode_tps"] == pytest.approx(sum(199 / decode for _prefill, decode in small.took[1:]) / 2, abs=0.1)
    assert (found["prompt_tokens"], found["generated_tokens"], len(found["runs"])) == (4000, 200, 2)
    assert (found["draft_acceptance"], found["concurrent_decode_tps"]) == (0.5, None)
    assert small.completions == 3


def test_each_run_is_cold_text_with_its_own_head() -> None:
    small = Small()
    small.timings = honest
    _result, requests = run(small, rates.probe, chars_per_token=2.5, prompt_tokens=4000, generate_tokens=200, runs=3)
    prompts = [body["prompt"] for method, _path, _headers, body in requests if method == "POST"]
    assert len(prompts) == 4
    assert len({prompt.split(" ", 1)[0] for prompt in prompts}) == 4
    assert len({prompt[1000:2000] for prompt in prompts}) == 4
    assert {len(prompt) for prompt in prompts} == {10_000}


@pytest.mark.parametrize(
    ("timings", "says"),
    [
        ({"prompt_n": 4000, "prompt_ms": 900.0, "predicted_per_second": 2000}, "timings put the prefill at 0.90 s"),
        ({"prompt_n": 40, "prompt_ms": 100.0, "predicted_per_second": 2000}, "timings count 40 prompt tokens"),
        ({"prompt_n": 4000, "prompt_ms": 100.0, "predicted_per_second": 9}, "timings say 9.0 tokens/s of decode"),
    ],
)
def test_timings_that_the_wall_clock_contradicts_give_no_rate(timings: dict[str, t.Any], says: str) -> None:
    small = Small()
    small.timings = lambda prompt, made, prefill, decode: timings
    found = rate(small, runs=1)
    assert found["verdict"] == "inconclusive"
    assert says in found["says"]
    assert None in (found["prefill_tps"], found["decode_tps"])


@pytest.mark.parametrize("timings", [None, {}, {"prompt_ms": None, "predicted_per_second": 0}, "none"])
def test_without_timings_a_short_time_is_no_rate(timings: t.Any) -> None:
    small = Small()
    small.timings = lambda prompt, made, prefill, decode: timings
    found = rate(small, runs=1)
    assert (found["prefill_tps"], found["decode_tps"], found["verdict"]) == (None, None, "inconclusive")
    assert "too short for the wall clock alone" in found["says"]


def test_a_warm_prompt_has_no_prefill_rate() -> None:
    small = Small()
    small.timings = honest
    small.usage = lambda prompt, made: {
        "prompt_tokens": prompt,
        "completion_tokens": made,
        "prompt_tokens_details": {"cached_tokens": 3900},
    }
    found = rate(small)
    assert (found["prefill_tps"], found["cached_tokens"], found["verdict"]) == (None, 3900, "inconclusive")
    assert "3,900 of 4,000 prompt tokens came from a cache" in found["says"]


def test_a_reply_that_hides_its_cache_is_not_called_cold() -> None:
    small = Small()
    small.usage = lambda prompt, made: {"prompt_tokens": prompt, "completion_tokens": made}
    found = rate(small, runs=1)
    assert (found["prefill_tps"], found["cached_tokens"], found["verdict"]) == (None, None, "inconclusive")


def test_few_tokens_are_no_decode_rate() -> None:
    small = Small()
    small.timings = honest
    found = rate(small, generate_tokens=127, runs=1)
    assert (found["decode_tps"], found["verdict"]) == (None, "inconclusive")
    assert found["prefill_tps"] is not None
    assert "127 generated tokens are too few" in found["says"]


@pytest.mark.parametrize(("first", "verdict"), [(1, "inconclusive"), (0, "passed")])
def test_what_only_the_engine_counted_is_other_traffic_unless_it_counts_otherwise(first: int, verdict: str) -> None:
    def counting() -> Small:
        small = Small()
        small.timings = honest

        def within(_call: Call, number: int) -> bool:
            small.totals["generation_tokens"] += 100 if number >= first else 0
            return False

        small.within = within
        return small

    _small, found = measured(counting, runs=1)
    assert found["verdict"] == verdict, found["says"]
    assert ("other traffic: the engine counted" in found["says"]) is (first == 1)


def test_a_reply_in_one_piece_shows_no_pace() -> None:
    small = Small()
    small.timings, small.pieces = honest, 2
    found = rate(small, runs=1)
    assert (found["decode_tps"], found["verdict"]) == (None, "inconclusive")


def test_a_prompt_that_was_cut_gives_no_rate() -> None:
    small = Small()
    small.timings = honest
    small.count = lambda prompt: min(2048, int(len(prompt) / 2.5))
    found = rate(small, runs=1)
    assert (found["prefill_tps"], found["decode_tps"], found["verdict"]) == (None, None, "inconclusive")
    assert "2,048 were read" in found["says"]


def test_a_window_that_is_too_short_for_the_rates_is_named() -> None:
    found = rate(Small(window=4100))
    assert found["verdict"] == "inconclusive"
    assert "4,000 and 200 to generate do not fit the 4,100 token window" in found["says"]


def test_a_failed_run_is_not_half_a_rate() -> None:
    small = Small()
    small.timings = honest

    def fail(call: Call, number: int) -> bool:
        if number == 2:
            call.reply({"error": {"message": "the engine failed this request: x"}}, status=500)
        return number == 2

    small.instead = fail
    found = rate(small)
    assert found["verdict"] == "inconclusive"
    assert found["runs"][1]["prefill_tps"] is None
    assert "run 1: the engine failed the request (500)" in found["says"]


def test_the_full_form_adds_a_second_turn_and_streams_at_once() -> None:
    small = Small(together=1)
    small.prefill_tps = 40_000.0
    small.usage = lambda prompt, made: {
        "prompt_tokens": prompt,
        "completion_tokens": made,
        "prompt_tokens_details": {"cached_tokens": 3900 if prompt > 4100 else 0},
    }
    result, requests = run(
        small, rates.probe, chars_per_token=2.5, prompt_tokens=4000, generate_tokens=300, runs=2, form="full"
    )
    found = result["rates"]
    prompts = [body["prompt"] for method, _path, _headers, body in requests if method == "POST"]
    assert len(prompts) == 7
    warm_up, first, last, second, *streams = prompts
    assert second.startswith(last)
    assert sorted(prompt[:9000] for prompt in streams) == sorted(prompt[:9000] for prompt in (warm_up, first, last))
    assert len({prompt[10_200:] for prompt in streams}) == 3
    assert (found["second_turn"]["cached_tokens"], found["second_turn"]["effective"]) == (3900, True)
    assert found["concurrent"]["streams"] == 3
    assert found["concurrent"]["says"].startswith("they decoded together for")


def test_streams_on_an_endpoint_that_runs_one_at_a_time() -> None:
    small = Small(sequences=1)
    small.timings = honest
    found = rate(small, runs=1, form="full")
    assert (found["concurrent"], small.completions) == (None, 3)


def test_a_second_turn_that_does_not_fit_is_named_before_anything_is_sent() -> None:
    found = rate(Small(window=5100), form="full")
    assert "4,000 and 200 to generate, and 1,000 for a second turn, do not fit the 5,100 token window" in found["says"]


def test_a_cache_that_does_not_show_itself_is_suspect() -> None:
    small = Small()
    small.timings = honest
    found = rate(small, runs=1, most_prefill_tps=4379.0)
    assert (found["verdict"], found["suspect"], found["cached_tokens"]) == ("inconclusive", True, 0)
    assert "suspect:" in found["says"]
