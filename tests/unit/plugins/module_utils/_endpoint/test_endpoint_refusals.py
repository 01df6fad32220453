# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Context refusals as public reports quote them, each with the numbers that may be taken from it."""

from __future__ import annotations

import time
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.refusals import (
    error_of,
    read_refusal,
)
from hypothesis import given, settings
from hypothesis import strategies as st

RADIANCE = (
    "{field}: {tokens} prompt tokens does not fit the {limit} token context, which leaves nothing to generate"
    " into; shorten the prompt by at least {by} tokens"
)


def error(message: str, **more: t.Any) -> dict[str, t.Any]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize("field", ["prompt", "messages"])
def test_the_engines_own_count_is_exact(field: str) -> None:
    text = RADIANCE.format(field=field, tokens=202777, limit=200000, by=2778)
    found = read_refusal(error(text, type="invalid_request_error", code="context_length_exceeded"))
    assert found is not None
    assert (found.tokens, found.limit, found.exact, found.field, found.gateway) == (202777, 200000, True, field, False)


def test_thousands_commas_are_read() -> None:
    found = read_refusal(error("prompt: 202,777 prompt tokens does not fit the 200000 token context"))
    assert found is not None
    assert (found.tokens, found.limit, found.exact) == (202777, 200000, True)


def test_the_edge_is_refused_with_its_count() -> None:
    text = RADIANCE.format(field="prompt", tokens=200000, limit=200000, by=1)
    found = read_refusal(error(text, code="context_length_exceeded"))
    assert found is not None
    assert (found.tokens, found.limit, found.exact) == (200000, 200000, True)


def test_numbers_that_contradict_each_other_are_not_exact() -> None:
    text = RADIANCE.format(field="prompt", tokens=202777, limit=200000, by=3000)
    found = read_refusal(error(text, code="context_length_exceeded"))
    assert found is not None
    assert found.exact is False


def test_a_count_inside_the_limit_is_not_exact() -> None:
    text = RADIANCE.format(field="prompt", tokens=150000, limit=200000, by=1)
    found = read_refusal(error(text, code="context_length_exceeded"))
    assert found is not None
    assert (found.tokens, found.exact) == (150000, False)


def test_a_refused_field_is_no_context_refusal() -> None:
    assert read_refusal(error("cache_prompt is not supported", code="unsupported_parameter")) is None
    text = RADIANCE.format(field="prompt", tokens=202777, limit=200000, by=2778)
    assert read_refusal(error(text, code="unsupported_parameter")) is None


@pytest.mark.parametrize(
    ("message", "tokens", "limit"),
    [
        (
            "You passed 16385 input tokens and requested 0 output tokens. However, the model's context length is only"
            " 16384 tokens, resulting in a maximum input length of 16384 tokens.",
            16385,
            16384,
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 64 output tokens and your"
            " prompt contains at least 8129 input tokens, for a total of at least 8193 tokens.",
            8129,
            8192,
        ),
        (
            "This model's maximum context length is 112000 tokens. However, you requested 122946 tokens (112946 in the"
            " messages, 10000 in the completion).",
            112946,
            112000,
        ),
        (
            "This model's maximum context length is 16385 tokens. However, your messages resulted in 29429 tokens"
            " (28993 in the messages, 436 in the functions).",
            29429,
            16385,
        ),
        (
            "The input (131123 tokens) is longer than the model's context length (131072 tokens).",
            131123,
            131072,
        ),
        (
            "request (66202 tokens) exceeds the available context size (65536 tokens), try increasing it",
            66202,
            65536,
        ),
    ],
)
def test_another_engines_count_is_never_exact(message: str, tokens: int, limit: int) -> None:
    found = read_refusal(error(message, type="BadRequestError", code=400))
    assert found is not None
    assert (found.tokens, found.limit, found.exact) == (tokens, limit, False)


def test_a_clipped_count_is_named() -> None:
    found = read_refusal(
        error("You passed 16385 input tokens ... the model's context length is only 16384 tokens", code=400)
    )
    assert found is not None
    assert "cut at the limit" in found.says


def test_a_refusal_without_counts() -> None:
    found = read_refusal(error("Requested token count exceeds the model's maximum context length", code=400))
    assert found is not None
    assert (found.tokens, found.limit, found.exact) == (None, None, False)


def test_the_hint_of_a_newer_vllm() -> None:
    text = "This model's maximum context length is too small (parameter=input_tokens, value=8129)"
    found = read_refusal(error(text, code="context_length_exceeded"))
    assert found is not None
    assert found.tokens == 8129


def test_a_gateway_is_unwrapped_and_its_model_name_gives_no_numbers() -> None:
    inner = (
        '{"error":{"message":"You passed 98305 input tokens and requested 32768 output tokens. However, the model\'s'
        ' context length is only 131072 tokens."}}'
    )
    text = f"litellm.BadRequestError: OpenAIException - {inner}. Received Model Group=x/nano-30b-v3"
    for message in (text, text.replace('"', '\\"')):
        found = read_refusal(error(message, code="400"))
        assert found is not None
        assert (found.tokens, found.limit, found.exact, found.gateway) == (98305, 131072, False, True)


def test_the_engine_behind_a_gateway_keeps_its_count() -> None:
    inner = RADIANCE.format(field="prompt", tokens=202777, limit=200000, by=2778)
    text = 'litellm.BadRequestError: OpenAIException - {"error":{"message":"' + inner + '"}}'
    found = read_refusal(error(text, code="400"))
    assert found is not None
    assert (found.tokens, found.exact, found.gateway) == (202777, True, True)


@pytest.mark.parametrize(
    "text",
    [
        "litellm.BadRequestError: OpenAIException - Error code: 400 - {'error': {'message': '%s', 'param': 'prompt'}}",
        "litellm.ContextWindowExceededError: OpenAIException - %s. Received Model Group=x/nano-30b-v3",
        "upstream refused: %s",
    ],
)
def test_a_gateway_may_quote_the_engine_in_any_way(text: str) -> None:
    found = read_refusal(
        error(text % RADIANCE.format(field="prompt", tokens=202777, limit=200000, by=2778), code="400")
    )
    assert found is not None
    assert (found.tokens, found.limit, found.exact, found.gateway) == (202777, 200000, True, True)


@pytest.mark.parametrize(
    "text",
    [
        RADIANCE.format(field="prompt", tokens="9" * 5000, limit=200000, by=2778),
        f"request ({'9' * 5000} tokens) exceeds the available context size (65536 tokens), try increasing it",
        f"This model's maximum context length is 8192 tokens ({'9' * 5000} in the messages)",
        f"exceeds the model's maximum context length (parameter=input_tokens, value={'9' * 5000})",
    ],
)
def test_a_number_that_no_endpoint_counts_to_is_none(text: str) -> None:
    found = read_refusal(error(text, code="context_length_exceeded"))
    assert found is not None
    assert (found.tokens, found.exact) == (None, False)


@pytest.mark.parametrize("text", ['{"' * 32_000, "passed 5 input tokens" * 3_000, "litellm." + '{"a":' * 12_000])
def test_an_error_that_is_made_to_be_slow_is_not(text: str) -> None:
    started = time.process_time()
    assert read_refusal(error(text)) is None
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "body", [None, [], "no", 7, {}, {"error": None}, {"error": []}, {"error": {"message": 3}}, {"detail": "no"}]
)
def test_what_is_no_refusal(body: t.Any) -> None:
    assert read_refusal(body) is None


def test_the_message_of_an_error() -> None:
    assert error_of({"error": {"message": "invalid api key", "type": "authentication_error", "code": None}}) == (
        "invalid api key",
        "authentication_error",
    )
    assert error_of({"detail": "Not Found"}) == ("Not Found", None)


@given(st.integers(1, 10**7), st.integers(0, 10**7), st.booleans())
def test_any_count_of_the_engine_is_read_as_it_is_written(limit: int, over: int, commas: bool) -> None:
    tokens = limit + over
    shown = f"{tokens:,}" if commas else str(tokens)
    text = RADIANCE.format(field="prompt", tokens=shown, limit=f"{limit:,}" if commas else limit, by=over + 1)
    found = read_refusal(error(text, code="context_length_exceeded"))
    assert found is not None
    assert (found.tokens, found.limit, found.exact) == (tokens, limit, True)


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["error", "message", "code", "x"]), inner),
    )
)
def test_no_body_is_a_traceback(body: t.Any) -> None:
    found = read_refusal(body)
    assert found is None or not found.exact
