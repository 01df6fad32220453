# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calibration against a small real endpoint that plays one trap at a time."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import calibration
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import read
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.endpoint_server import Call
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_endpoint import Small
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_probes import calibrate, run


def test_calibration_by_refusal_costs_no_prefill() -> None:
    small = Small(window=6000)
    result, requests = run(small, calibration.probe)
    found = result["calibration"]
    assert (found["method"], found["exact"], found["limit"], found["prefilled_tokens"]) == ("refusal", True, 6000, 0)
    assert found["chars_per_token"] == pytest.approx(2.5, abs=0.0002)
    assert found["tokens"] == int(found["chars"] / 2.5) > 7800
    (sent,) = [body for method, _path, _headers, body in requests if method == "POST"]
    assert sent["max_tokens"] == 1
    assert set(sent) == {"model", "prompt", "max_tokens", "temperature"}
    assert "of 6,000" in result["says"]


def test_chat_is_calibrated_by_its_own_count() -> None:
    small = Small(window=6000)
    result, requests = run(small, calibration.probe, api="chat")
    found = result["calibration"]
    assert (found["method"], found["exact"], found["prefilled_tokens"]) == ("refusal", True, 0)
    assert found["tokens"] == int(found["chars"] / 2.5) + 9
    ((path, sent),) = [(path, body) for method, path, _headers, body in requests if method == "POST"]
    assert path == "/v1/chat/completions"
    assert set(sent) == {"model", "messages", "max_tokens", "temperature", "chat_template_kwargs"}
    assert (sent["max_tokens"], sent["chat_template_kwargs"]) == (1, {"enable_thinking": False})


def test_chat_that_refuses_nothing_is_calibrated_by_its_usage() -> None:
    small = Small(window=6000)
    small.refuses = False
    found = calibrate(small, api="chat")
    assert (found["method"], found["prefilled_tokens"]) == ("usage", int(found["chars"] / 2.5) + 9)


def vllm(call: Call, number: int) -> bool:
    if len(call.content["prompt"]) < 20_000:
        return False
    call.reply(
        {"error": {"message": "You passed 6001 input tokens ... context length is only 6000 tokens", "code": 400}},
        status=400,
    )
    return True


def test_a_clipped_count_becomes_no_ratio() -> None:
    small = Small(window=6000)
    small.instead = vllm
    found = calibrate(small)
    assert found["method"] == "usage"
    assert found["chars_per_token"] == pytest.approx(2.5, abs=0.001)
    assert found["prefilled_tokens"] == 2400


def test_a_clipped_count_in_the_engines_own_words_becomes_no_ratio() -> None:
    small = Small(window=6000)
    small.count = lambda prompt: min(6001, int(len(prompt) / 2.5))
    assert calibrate(small)["method"] == "usage"


def test_a_count_of_characters_becomes_no_ratio() -> None:
    small = Small(window=6000)
    small.count = len
    found = calibrate(small)
    assert (found["chars_per_token"], found["tokens"], found["exact"], found["method"]) == (None, None, False, None)


def test_a_prompt_that_was_cut_becomes_no_ratio() -> None:
    small = Small(window=6000)
    small.refuses = False
    small.usage = lambda prompt, made: {"prompt_tokens": 700, "completion_tokens": made}
    result, _requests = run(small, calibration.probe)
    found = result["calibration"]
    assert (found["chars_per_token"], found["exact"]) == (None, False)
    assert found["prefilled_tokens"] == 1400
    assert "it was cut" in result["says"]


def test_a_prompt_above_the_window_that_is_accepted_reports_its_cost() -> None:
    small = Small(window=6000)
    small.refuses = False
    found = calibrate(small)
    assert (found["method"], found["exact"]) == ("usage", True)
    assert found["prefilled_tokens"] == found["tokens"] > 7800


def test_tokenize_stands_in_for_the_refusal() -> None:
    small = Small(window=6000)
    small.instead = vllm
    with small.serving() as server:
        server.answers["/tokenize"] = lambda call: call.reply({"count": int(len(call.content["prompt"]) / 2.5)})
        found = calibration.probe(read({"endpoint": server.url, "model": None, "timeout": 10}, None))["calibration"]
    assert (found["method"], found["exact"], found["prefilled_tokens"]) == ("tokenize", True, 0)
    assert (found["chars"], found["tokens"], found["chars_per_token"]) == (200_000, 80_000, 2.5)
