# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boundary probe against a small real endpoint: overlap, traffic, failures, deadlines."""

from __future__ import annotations

import re
import threading
import time
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import boundary
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import read
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.endpoint_server import Call
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_endpoint import Small, recall
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_probes import bound, run


def test_every_marker_and_every_sequence_at_once() -> None:
    found = bound(Small(together=3))
    assert (found["asked"], found["retrieved"], found["overlap"], found["verdict"]) == (3, 3, 3, "passed")
    assert [reply["marker"] for reply in found["replies"]] == ["found", "found", "found"]
    assert [reply["index"] for reply in found["replies"]] == [0, 1, 2]
    assert (found["max_model_len"], found["generate_tokens"]) == (6000, 128)
    # 6,000 less 128 to generate, less 1 % and 8 for what the stated ratio may be off.
    assert {reply["prompt_tokens"] for reply in found["replies"]} == {5804}


def test_the_prompts_of_a_boundary() -> None:
    _result, requests = run(Small(together=3), boundary.probe)
    bodies = [body for method, _path, _headers, body in requests if method == "POST"]
    asked = [body for body in bodies if body.get("ignore_eos")]
    assert (len(bodies), len(asked)) == (5, 3)
    places = []
    for body in asked:
        words = recall(body["prompt"]).split(", ")
        assert all(re.fullmatch(r"[A-Z0-9-]{12,}", word) for word in words)
        places += [(word, round(body["prompt"].index(word) / len(body["prompt"]), 1)) for word in words]
    assert len({word for word, _place in places}) == 9
    assert [place for _word, place in places] == [0.0, 0.5, 1.0] * 3
    assert all(body["ignore_eos"] is True and body["max_tokens"] == 128 for body in asked)
    honoured = {"model", "prompt", "max_tokens", "temperature", "ignore_eos", "stream", "stream_options"}
    assert all(set(body) == honoured for body in asked)


def test_sequences_that_queue_behind_each_other_prove_nothing() -> None:
    small = Small(together=1)
    one_at_a_time = threading.Lock()
    begin, end = one_at_a_time.acquire, one_at_a_time.release

    def queue(call: Call, number: int) -> bool:
        begin()
        return False

    def leave(prompt: int, made: int, prefill: float, decode: float) -> None:
        end()

    small.instead, small.timings = queue, leave
    found = bound(small)
    assert (found["retrieved"], found["overlap"], found["verdict"]) == (3, 1, "inconclusive")
    assert found["cause"] == "overlap_short"
    assert "only 1 of 3 sequences" in found["says"]


def test_other_traffic_is_inconclusive() -> None:
    small = Small(together=3)
    small.others = 1
    found = bound(small)
    assert (found["verdict"], found["replies"]) == ("inconclusive", [])
    assert "other traffic: 1 requests in flight" in found["says"]


def test_traffic_that_comes_meanwhile_is_inconclusive() -> None:
    small = Small(together=3)
    small.decode_tps = 200.0

    def come(call: Call, number: int) -> bool:
        small.others = 1
        return False

    small.instead = come
    found = bound(small)
    assert (found["verdict"], found["retrieved"]) == ("inconclusive", 3)
    assert "other traffic" in found["says"]


def test_it_waits_for_other_traffic_to_end() -> None:
    small = Small(together=3)
    small.others = 1
    asked: list[float] = []

    def leave(self: Small = small) -> None:
        time.sleep(0.6)
        self.others = 0

    threading.Thread(target=leave).start()
    asked.append(time.monotonic())
    found = bound(small, require_idle=True)
    assert time.monotonic() - asked[0] > 0.6
    assert found["verdict"] == "passed"


def test_a_preemption_fails() -> None:
    small = Small(together=3)

    def preempt(call: Call, number: int) -> bool:
        small.stats = {"preempted": 1}
        return False

    small.instead = preempt
    found = bound(small)
    assert (found["verdict"], found["retrieved"], found["witness"]["preempted"]) == ("failed", 3, 1)
    assert "the engine preempted 1 of them" in found["says"]


def test_an_engine_that_cannot_hold_a_request_fails() -> None:
    small = Small(together=2)

    def fail(call: Call, number: int) -> bool:
        if number == 0:
            call.reply(
                {"error": {"message": "the engine failed this request: no blocks", "type": "internal_server_error"}},
                status=500,
            )
        return number == 0

    small.instead = fail
    found = bound(small)
    assert (found["verdict"], found["retrieved"]) == ("failed", 2)
    assert found["cause"] == "engine_error"
    assert "no blocks" in found["says"]


def test_an_error_within_the_stream_fails() -> None:
    small = Small(together=3)

    def fail(call: Call, number: int) -> bool:
        if number == 0:
            call.event({"error": {"message": "the engine failed this request: x", "type": "internal_server_error"}})
            call.event("[DONE]")
        return number == 0

    small.within = fail
    found = bound(small)
    assert (found["verdict"], found["retrieved"]) == ("failed", 2)


def test_a_refusal_inside_the_window_fails() -> None:
    small = Small(together=1)

    def refuse(call: Call, number: int) -> bool:
        call.reply(
            {
                "error": {
                    "message": "prompt: 5805 prompt tokens does not fit the 3000 token context, which leaves nothing to"
                    " generate into; shorten the prompt by at least 2806 tokens",
                    "code": "context_length_exceeded",
                }
            },
            status=400,
        )
        return True

    small.instead = refuse
    found = bound(small)
    assert (found["verdict"], found["retrieved"]) == ("failed", 0)
    assert found["cause"] == "refused_inside"
    assert "refused inside a window of 6,000 tokens" in found["says"]


def test_a_prompt_that_was_sized_too_long_is_the_probes_own_fault() -> None:
    found = bound(Small(), chars_per_token=3.0)
    assert found["verdict"] == "inconclusive"
    assert "sized too long" in found["says"]


def test_a_deadline_ends_the_whole_probe() -> None:
    small = Small(together=3)

    def hang(call: Call, number: int) -> bool:
        time.sleep(3)
        return True

    small.within = hang
    started = time.monotonic()
    found = bound(small, timeout=1)
    assert time.monotonic() - started < 2.5
    assert found["verdict"] == "inconclusive"
    assert "had not answered in full after 1 s" in found["says"]


def test_a_stream_that_is_cut_is_inconclusive_while_the_endpoint_lives() -> None:
    small = Small(together=3)
    small.within = lambda call, number: number == 0
    found = bound(small)
    assert (found["verdict"], found["retrieved"]) == ("inconclusive", 2)
    assert "the stream ended without its end" in found["says"]


def test_an_endpoint_that_goes_away_under_the_load_fails() -> None:
    small = Small(together=3)

    def go(call: Call, number: int) -> bool:
        if number == 0:
            call.server.shutdown()
            call.server.server_close()
        return number == 0

    small.within = go
    found = bound(small)
    assert (found["verdict"], found["retrieved"]) == ("failed", 2)
    assert (found["cause"], found["after"]) == ("gone", None)
    assert "nothing listens there any more" in found["says"]


def test_an_endpoint_that_does_not_say_its_shape() -> None:
    small = Small(together=2)
    with small.serving() as server:
        for path in ("/server_info", "/load", "/stats", "/health"):
            del server.answers[path]
        params = {"endpoint": server.url, "model": None, "timeout": 10, "chars_per_token": 2.5}
        with pytest.raises(RadianceError) as caught:
            boundary.probe(read(params, None))
        stated = {**params, "sequences": 2, "max_model_len": 5000}
        found = boundary.probe(read(stated, None))["boundary"]
    assert caught.value.code == "shape_unknown"
    assert (found["asked"], found["retrieved"], found["overlap"], found["cause"]) == (2, 2, 2, "no_witness")
    assert found["witness"]["samples"] == 0


def test_tokens_that_something_held_back_show_no_overlap() -> None:
    small, alone = Small(), threading.Lock()
    small.stats = {"requests": None}

    def one_after_another(call: Call, number: int) -> bool:
        prompt = call.content["prompt"]
        if len(prompt) < 2_500:
            return False
        with alone:
            time.sleep(0.1)
        call.begin_events()
        call.event({"choices": [{"text": recall(prompt)}]})
        for _piece in range(10):
            call.event({"choices": [{"text": " on"}]}, after=0.05)
        call.event({"choices": [], "usage": small.usage(small.count(prompt), 128)})
        call.event("[DONE]")
        return True

    small.instead = one_after_another
    found = bound(small)
    assert (found["retrieved"], found["overlap"]) == (3, 3)
    assert (found["verdict"], found["cause"]) == ("inconclusive", "no_witness")
    assert "nothing but the arrival of tokens shows that they held the pool together" in found["says"]


@pytest.mark.parametrize(
    ("status", "verdict", "cause"),
    [(500, "failed", "engine_error"), (501, "inconclusive", "no_answer"), (502, "inconclusive", "no_answer")]
    + [(504, "inconclusive", "no_answer"), (524, "inconclusive", "no_answer")],
)
def test_what_a_gateway_says_is_no_error_of_the_engine(status: int, verdict: str, cause: str) -> None:
    small = Small(sequences=1)
    small.instead = lambda call, number: number == 0 and call.reply(b"<h1>Gateway</h1>", status) is None
    found = bound(small)
    assert (found["verdict"], found["cause"]) == (verdict, cause)


@pytest.mark.parametrize(
    ("times", "found", "cause"), [(0.64, 3, "unsized"), (1.6, 3, "unsized"), (1.02, 3, None), (0.98, 3, None)]
)
def test_a_ratio_that_was_stated_may_be_wrong(times: float, found: int, cause: str | None) -> None:
    small = Small(together=3)
    small.usage = lambda prompt, made: {"prompt_tokens": int(times * prompt), "completion_tokens": made}
    boundary = bound(small)
    assert (boundary["retrieved"], boundary["cause"]) == (found, cause)
    assert boundary["verdict"] == ("inconclusive" if cause else "passed")


def test_a_ratio_that_was_measured_makes_a_short_count_a_cut_prompt() -> None:
    small = Small(together=3)
    small.usage = lambda prompt, made: {"prompt_tokens": int(0.64 * prompt), "completion_tokens": made}
    assert bound(small, chars_per_token=None)["cause"] == "truncated"


def test_a_reply_that_does_not_count_its_prompt_proves_nothing() -> None:
    small = Small(together=3)
    small.usage = lambda prompt, made: None
    found = bound(small)
    assert (found["verdict"], found["retrieved"], found["overlap"]) == ("inconclusive", 3, 3)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sequences": 4}, "sequences: 4 asked, and the endpoint runs 3"),
        ({"max_model_len": 6001}, "max_model_len: a window of 6,001 tokens asked, and the endpoint serves 6,000"),
    ],
)
def test_more_than_the_endpoint_serves_is_inconclusive(options: dict[str, t.Any], says: str) -> None:
    result, requests = run(Small(), boundary.probe, chars_per_token=2.5, **options)
    assert result["boundary"]["verdict"] == "inconclusive"
    assert says in result["boundary"]["says"]
    assert not [path for method, path, _headers, _body in requests if method == "POST"]


def test_the_second_witness_may_contradict() -> None:
    small = Small(together=3)
    small.decode_tps = 250.0
    small.stats = {"requests": [{"state": "decode"}, {"state": "decode"}, {"state": "preempted"}]}
    found = bound(small)
    assert (found["overlap"], found["verdict"]) == (3, "inconclusive")
    assert "/stats shows 2 sequences decoding while 3 were streaming" in found["says"]
