# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replies with fields missing, null, zero or of another type, as servers send them."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.replies import (
    Heard,
    count_of,
    positive,
    read_timings,
    shown,
)
from hypothesis import given, settings
from hypothesis import strategies as st


def heard(*events: tuple[float, t.Any]) -> Heard:
    found = Heard()
    for at, data in events:
        found.take(data, at)
    return found


def delta(**fields: t.Any) -> dict[str, t.Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def test_the_first_token_is_the_first_reasoning() -> None:
    found = heard(
        (0.02, delta(role="assistant", content="")),
        (28.6, delta(reasoning_content="Let")),
        (34.7, delta(content="Yes")),
    )
    assert (found.first_at, found.last_at) == (28.6, 34.7)
    assert (found.content, found.reasoning) == ("Yes", "Let")


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_a_plain_reply_whose_content_is_empty(name: str) -> None:
    found = heard(
        (
            1.0,
            {
                "choices": [{"message": {"role": "assistant", "content": "", name: "ABC"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 250},
            },
        )
    )
    assert (found.content, found.reasoning, found.finish) == ("", "ABC", "stop")
    assert (found.prompt_tokens, found.generated_tokens, found.cached_tokens) == (9, 250, None)


def test_chunks_are_not_tokens() -> None:
    events = [(float(n), {"choices": [{"text": "abc "}]}) for n in range(20)]
    found = heard(*events, (20.0, {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 80}}))
    assert (found.pieces, found.generated_tokens) == (20, 80)
    assert heard(*events).generated_tokens is None


def test_pieces_are_moments() -> None:
    assert heard(*[(1.0, {"choices": [{"text": "a"}]})] * 5, (2.0, {"choices": [{"text": "a"}]})).pieces == 2


def test_a_usage_of_nulls_hides_nothing_that_came_before() -> None:
    found = heard(
        (1.0, {"choices": [], "usage": {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}}}),
        (2.0, {"choices": [], "usage": {"prompt_tokens": None, "prompt_tokens_details": None}}),
    )
    assert (found.prompt_tokens, found.cached_tokens) == (5, 2)


def test_the_larger_account_of_cached_tokens_counts() -> None:
    usage = {"prompt_tokens": 300, "prompt_tokens_details": {"cached_tokens": 0}}
    assert heard((1.0, {"usage": usage, "timings": {"cache_n": 236}})).cached_tokens == 236


@pytest.mark.parametrize(
    "timings",
    [
        None,
        "none",
        [],
        {},
        {"predicted_n": 1, "predicted_ms": 0},
        {"predicted_per_second": 0},
        {"predicted_per_second": None, "prompt_per_second": None, "prompt_ms": None, "prompt_n": None},
        {"predicted_per_second": float("nan"), "prompt_per_second": float("inf"), "prompt_ms": -5},
        {"predicted_per_second": True, "prompt_ms": "12", "prompt_n": 4.5},
        {"predicted_per_second": 10**400},
    ],
)
def test_timings_that_say_nothing(timings: t.Any) -> None:
    found = read_timings(timings)
    assert (found.prompt_seconds, found.prefill_tps, found.decode_tps) == (None, None, None)


def test_timings_as_the_engine_writes_them() -> None:
    found = read_timings({"prompt_n": 43500, "cache_n": 0, "prompt_ms": 10875.0, "predicted_per_second": 121.5})
    assert found == (43500, 0, 10.875, 4000.0, 121.5)


def test_timings_from_a_rate_or_from_times() -> None:
    assert read_timings({"prompt_n": 1000, "prompt_per_second": 500.0}).prompt_seconds == 2.0
    assert read_timings({"predicted_n": 101, "predicted_ms": 1000}).decode_tps == 100.0


def test_a_number_that_nothing_counts_to_is_none() -> None:
    heard = Heard()
    heard.take({"usage": {"prompt_tokens": 10**400, "completion_tokens": 1e300}, "timings": {"prompt_n": 10**13}}, 1.0)
    assert (heard.prompt_tokens, heard.generated_tokens, heard.timings.prompt_tokens) == (None, None, None)
    assert read_timings({"prompt_n": 10**400, "prompt_ms": 1000}).prefill_tps is None


def test_the_words_of_a_server_are_one_bounded_line() -> None:
    assert shown("not\r\nready\x1b[2J \x00now") == "not ready [2J now"
    assert shown("l" * 100_000) == "l" * 300 + " ..."


def test_counts() -> None:
    assert [count_of(v) for v in (0, 7, 7.0, True, -1, 7.5, "7", None)] == [0, 7, 7, None, None, None, None, None]
    assert [positive(v) for v in (0, 7, 0.5, True, -1, "7", None)] == [None, 7.0, 0.5, None, None, None, None]


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["choices", "usage", "timings", "delta", "content", "text", "prompt_tokens", "error"]),
                inner,
            )
        ),
    )
)
def test_no_event_is_a_traceback(data: t.Any) -> None:
    found = heard((1.0, data))
    assert found.prompt_tokens is None or found.prompt_tokens >= 0
    assert found.timings.decode_tps is None or found.timings.decode_tps > 0
