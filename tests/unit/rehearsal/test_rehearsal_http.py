# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP side of a serving stand-in: answers, refusals, streams."""

from __future__ import annotations

import http.client
import json
import random
import socket
import time
from typing import Any

import pytest

FOX = "The quick brown fox jumps over the lazy dog. "


def complete(engine: Any, prompt: Any, **fields: Any) -> Any:
    """The body of a completion that must succeed."""
    status, body, _headers = engine.ask("POST", "/v1/completions", {"prompt": prompt, **fields})
    assert status == 200, body
    return body


def nonce() -> str:
    """A word that no other prompt begins with."""
    return f"NONCE-{random.SystemRandom().randrange(10**12):012d}"


def events(engine: Any, path: str, body: Any) -> list[str]:
    """The data of a stream's events."""
    connection = http.client.HTTPConnection("127.0.0.1", engine.port, timeout=20)
    connection.request("POST", path, json.dumps({**body, "stream": True}))
    answer = connection.getresponse()
    assert answer.getheader("Content-Type") == "text/event-stream"
    parts = answer.read().decode().split("\n\n")
    connection.close()
    assert parts.pop() == ""
    assert all(part.startswith("data: ") for part in parts)
    return [part[len("data: ") :] for part in parts]


@pytest.mark.parametrize("path", ["/health", "/ping"])
def test_health(served: Any, path: str) -> None:
    assert served.ask("GET", path)[:2] == (200, {"status": "ok", "model": "flash", "in_flight": 0, "queue_cap": 6})


def test_what_it_says_about_itself(served: Any) -> None:
    assert served.ask("GET", "/version")[1] == {"version": "1.0.13", "engine": "radiance", "abi_version": 13}
    assert served.ask("GET", "/load")[1] == {"server_load": 0.0, "queue_cap": 6, "running": 0, "waiting": 0}
    assert served.ask("GET", "/v1/models")[1]["data"][0]["id"] == "flash"
    assert served.ask("GET", "/v1/models/flash")[1]["max_model_len"] == 200000
    info = served.ask("GET", "/server_info")[1]
    assert info["server"]["max_num_seqs"] == 3
    assert info["engine"]["speculation"] == {"enabled": True, "drafter": "mtp", "kind": "serial", "depth": 2}
    stats = served.ask("GET", "/stats")[1]
    assert (stats["kv_tokens_total"], stats["requests"]) == (600268, [])
    assert stats["experts"]["flex_capacity"] == 3139
    assert 'vllm:num_requests_running{model_name="flash",engine="0"} 0\n' in served.ask("GET", "/metrics")[1]


def test_routes_that_are_none(served: Any) -> None:
    status, body, _headers = served.ask("GET", "/v1/nothing")
    assert (status, body["error"]["message"]) == (404, "no route for GET /v1/nothing")
    status, body, _headers = served.ask("GET", "/v1/completions")
    assert (status, body["error"]["message"]) == (405, "GET is not allowed on /v1/completions")


def test_usage_agrees_with_the_tokenizer(served: Any) -> None:
    prompt = f"{nonce()} {FOX * 20}"
    counted = served.ask("POST", "/tokenize", {"prompt": prompt})[1]
    bare = served.ask("POST", "/tokenize", {"prompt": prompt, "add_special_tokens": False, "return_token_strs": True})[
        1
    ]
    body = complete(served, prompt, max_tokens=150)
    assert body["usage"] == {
        "prompt_tokens": counted["count"],
        "completion_tokens": 150,
        "total_tokens": counted["count"] + 150,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    assert counted["count"] == bare["count"] + 1
    assert "".join(bare["token_strs"]) == prompt
    assert served.ask("POST", "/detokenize", {"tokens": bare["tokens"]})[1] == {"prompt": prompt}
    again = served.ask("POST", "/tokenize", {"prompt": body["choices"][0]["text"], "add_special_tokens": False})[1]
    assert again["count"] == 150


def test_a_prompt_of_token_ids_is_the_same_prompt(served: Any) -> None:
    word = nonce()
    tokens = served.ask("POST", "/tokenize", {"prompt": f"{word} tell me the word"})[1]["tokens"]
    body = complete(served, tokens, max_tokens=30)
    assert body["usage"]["prompt_tokens"] == len(tokens)
    assert body["choices"][0]["text"].startswith(word)


def test_the_marker_comes_back_and_a_reply_ends_by_itself(served: Any) -> None:
    word = nonce()
    body = complete(served, f"{word} {FOX * 3} What is the first word?")
    assert body["choices"][0]["text"].startswith(f"{word}. ")
    assert (body["usage"]["completion_tokens"], body["choices"][0]["finish_reason"]) == (256, "stop")
    forced = complete(served, f"{nonce()} {FOX}", max_tokens=300, ignore_eos=True)
    assert (forced["usage"]["completion_tokens"], forced["choices"][0]["finish_reason"]) == (300, "length")


def test_a_repeated_head_is_cached(served: Any) -> None:
    prompt = f"{nonce()} {FOX * 100}"
    cold = complete(served, prompt, max_tokens=8)
    warm = complete(served, prompt, max_tokens=8)
    count = cold["usage"]["prompt_tokens"]
    cached = warm["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cold["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    assert cached == (count - 1) // 4 * 4
    assert (warm["timings"]["cache_n"], warm["timings"]["prompt_n"]) == (cached, count - cached)


def test_timings_follow_the_rates(served: Any) -> None:
    prompt = f"{nonce()} {FOX * 1000}"
    timings = complete(served, prompt, max_tokens=512, ignore_eos=True)["timings"]
    assert timings["prompt_n"] == timings["prompt_n"] // 1 > 17000
    assert timings["prompt_per_second"] == pytest.approx(3290 * 40, rel=0.001)
    assert timings["predicted_n"] == 512
    assert timings["predicted_per_second"] == pytest.approx(120 * 40, rel=0.02)
    assert complete(served, nonce(), max_tokens=1)["timings"]["predicted_per_second"] is None


def test_too_long_a_prompt_is_refused_with_its_count(served: Any) -> None:
    began = time.monotonic()
    prompt = FOX * 12000
    status, body, _headers = served.ask("POST", "/v1/completions", {"prompt": prompt, "max_tokens": 1})
    assert status == 400
    assert body["error"] == {
        "message": "prompt: 210002 prompt tokens does not fit the 200000 token context, which leaves nothing to "
        "generate into; shorten the prompt by at least 10003 tokens",
        "type": "invalid_request_error",
        "param": "prompt",
        "code": "context_length_exceeded",
    }
    chat = {"messages": [{"role": "user", "content": prompt}]}
    status, body, _headers = served.ask("POST", "/v1/chat/completions", chat)
    assert (status, body["error"]["message"][:10]) == (400, "messages: ")
    assert time.monotonic() - began < 5
    assert served.ask("GET", "/load")[1]["running"] == 0


def test_a_prompt_of_the_whole_context_is_refused_and_one_token_less_is_not(served: Any) -> None:
    tokens = [served.ask("POST", "/tokenize", {"prompt": nonce()})[1]["tokens"][1]] * 200000
    status, body, _headers = served.ask("POST", "/v1/completions", {"prompt": tokens})
    assert status == 400
    assert body["error"]["message"].endswith("shorten the prompt by at least 1 tokens")
    body = complete(served, tokens[1:], max_tokens=1000)
    assert body["usage"]["completion_tokens"] == 1


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        ("/v1/completions", "cache_prompt", True),
        ("/v1/completions", "logit_bias", {}),
        ("/v1/completions", "chat_template_kwargs", {}),
        ("/v1/completions", "max_completion_tokens", 5),
        ("/v1/chat/completions", "prompt", "x"),
        ("/v1/chat/completions", "tool_choice", "required"),
    ],
)
def test_unknown_fields_are_refused(served: Any, path: str, field: str, value: Any) -> None:
    base = {"prompt": "x"} if path == "/v1/completions" else {"messages": [{"role": "user", "content": "x"}]}
    status, body, _headers = served.ask("POST", path, {**base, field: value})
    assert (status, body["error"]["code"], body["error"]["param"]) == (400, "unsupported_parameter", field)


def test_fields_that_change_nothing(served: Any) -> None:
    complete(
        served, "x", max_tokens=2, user="me", metadata={}, temperature=0.7, top_p=1, seed=3, stop=["zzz"], model="flash"
    )


def test_chat_thinks_first_unless_it_is_told_not_to(served: Any) -> None:
    word = nonce()
    base = {"messages": [{"role": "user", "content": f"{word} what is the word?"}], "max_tokens": 140}
    message = served.ask("POST", "/v1/chat/completions", base)[1]["choices"][0]["message"]
    assert message["reasoning_content"].startswith("The user wants")
    assert message["content"].startswith(word)
    short = served.ask("POST", "/v1/chat/completions", {**base, "max_tokens": 20})[1]["choices"][0]
    assert (short["message"]["content"], short["finish_reason"]) == ("", "stop")
    plain = {**base, "chat_template_kwargs": {"enable_thinking": False}, "max_tokens": 20}
    choice = served.ask("POST", "/v1/chat/completions", plain)[1]["choices"][0]
    assert "reasoning_content" not in choice["message"]
    assert (choice["message"]["content"][: len(word)], choice["finish_reason"]) == (word, "length")


def test_a_stream_has_the_same_text_and_its_usage(served: Any) -> None:
    word = nonce()
    body = {"prompt": f"{word} go on", "max_tokens": 60, "stream_options": {"include_usage": True}}
    got = events(served, "/v1/completions", body)
    assert got.pop() == "[DONE]"
    chunks = [json.loads(item) for item in got]
    usage = chunks.pop()
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 60)
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    text = "".join(chunk["choices"][0]["text"] for chunk in chunks)
    assert text == complete(served, f"{word} go on", max_tokens=60)["choices"][0]["text"]


def test_a_chat_stream_opens_with_the_role(served: Any) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 120}
    chunks = [json.loads(item) for item in events(served, "/v1/chat/completions", body)[:-1]]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert deltas[-1] == {}
    kinds = [next(iter(delta)) for delta in deltas[1:-1]]
    assert kinds == sorted(kinds, reverse=True) and set(kinds) == {"reasoning_content", "content"}


def test_several_answers_and_several_prompts(served: Any) -> None:
    first, second = nonce(), nonce()
    body = complete(served, [f"{first} a", f"{second} b"], max_tokens=30)
    assert [choice["text"].split(".")[0] for choice in body["choices"]] == [first, second]
    assert body["usage"]["completion_tokens"] == 60
    twice = complete(served, "x", max_tokens=5, n=2)
    assert [choice["index"] for choice in twice["choices"]] == [0, 1]


def test_bodies_that_are_none(served: Any) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    connection.request("POST", "/v1/completions", "{not json")
    answer = connection.getresponse()
    assert answer.status == 400
    answer.read()
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200, "the connection is kept"
    connection.close()
    wrong: list[Any] = [[], {"prompt": 5}, {"prompt": "x", "max_tokens": "many"}, {"prompt": "x", "stream": 1}]
    for body in wrong:
        assert served.ask("POST", "/v1/completions", body)[0] == 400


def test_an_idle_connection_is_closed(start: Any) -> None:
    engine = start("--vram-weights-mib 24000 --vram-kv-mib 5120 --keep-alive-timeout 1").ready()
    with socket.create_connection(("127.0.0.1", engine.port), 10) as connection:
        connection.sendall(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        began = time.monotonic()
        while connection.recv(65536):
            pass
        assert 0.5 < time.monotonic() - began < 8


def test_a_key_is_asked_for_but_on_health(start: Any) -> None:
    engine = start("--vram-weights-mib 24000 --vram-kv-mib 5120 --api-key sesame-open").ready()
    engine.line(r"  -- a bearer key is required$")
    assert "sesame" not in engine.log
    assert engine.ask("GET", "/health")[0] == 200
    status, body, _headers = engine.ask("GET", "/version")
    expected = {"message": "invalid api key", "type": "authentication_error", "param": None, "code": None}
    assert (status, body) == (401, {"error": expected})
    assert engine.ask("GET", "/version", key="sesame-opeN")[0] == 401
    assert engine.ask("GET", "/version", key="sesame-open")[0] == 200
