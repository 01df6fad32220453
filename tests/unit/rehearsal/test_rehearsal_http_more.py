# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rest of the HTTP side: introspection, bodies of every kind, limits, and other worlds."""

from __future__ import annotations

import http.client
import json
import re
from typing import Any

import pytest

PAIR = "--vram-weights-mib 24000 --vram-kv-mib 5120"
CHAT = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}


def test_server_info_is_of_the_start(served: Any) -> None:
    info = served.ask("GET", "/server_info")[1]
    assert set(info) == {"server", "request_defaults", "capabilities", "endpoints", "engine"}
    server, engine = info["server"], info["engine"]
    assert (server["model"], server["version"], server["max_model_len"]) == ("flash", "1.0.13", 200000)
    assert (server["queue_cap"], server["max_n"], server["default_max_tokens"]) == (6, 3, None)
    assert (engine["tensor_parallel"], engine["tp_wire"], engine["checkpoint_slots"]) == (2, "wht6", 8)
    # What it settled at: 2,058.30 and 2,068.30 MiB.
    assert [round(device["vram_free"] / 2**20, 1) for device in engine["devices"]] == [2058.3, 2068.3]
    paged, state = engine["kv_groups"][0], engine["kv_groups"][2]
    assert (paged["name"], paged["kind"], paged["block_size"], paged["tokens"]) == ("kv_attn", "full", 4, 600268)
    assert (state["name"], state["states"], state["bytes"]) == ("kv_gdn_state", 6, 6 * 54 * 2**20)
    assert "/v1/chat/completions" in info["endpoints"] and "/sessions" in info["endpoints"]


def test_stats_and_sessions_have_the_engines_fields(served: Any) -> None:
    stats = served.ask("GET", "/stats")[1]
    for name in ("kv_util", "kv_bytes_total", "linear_hit_rate", "checkpoints_written", "decode_tps", "draft_accept"):
        assert name in stats
    assert stats["kv_bytes_total"] == 5120 * 2**20
    assert [tier["name"] for tier in stats["experts"]["tiers"]] == ["vram", "host"]
    assert [card["index"] for card in stats["cards"]] == [0, 1]
    sessions = served.ask("GET", "/sessions")[1]
    assert set(sessions) == {"pool", "snapshots_moved", "tiers", "occupancy"}
    assert sessions["pool"]["tokens_total"] == 600268


def test_metrics_count_what_was_done(served: Any) -> None:
    def value(text: str, name: str) -> float:
        found = re.search(rf"^{re.escape(name)}.* (\S+)$", text, re.MULTILINE)
        assert found is not None, name
        return float(found.group(1))

    before = served.ask("GET", "/metrics")[1]
    body = served.ask("POST", "/v1/completions", {"prompt": "one two three", "max_tokens": 30})[1]
    status, after, headers = served.ask("GET", "/metrics")
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4")
    for name, more in [
        ("vllm:prompt_tokens_total", body["usage"]["prompt_tokens"]),
        ("vllm:generation_tokens_total", 30),
        ('vllm:request_success_total{model_name="flash",engine="0",finished_reason="length"}', 1),
        ("vllm:time_to_first_token_seconds_count", 1),
        ('vllm:e2e_request_latency_seconds_bucket{model_name="flash",engine="0",le="+Inf"}', 1),
    ]:
        assert value(after, name) - value(before, name) == more, name
    assert value(after, "radiance:http_responses_total") > 0
    assert "vram" not in after


def test_the_small_endpoints(served: Any) -> None:
    assert served.ask("GET", "/get_tokenizer_info")[1]["model_max_length"] == 200000
    assert served.ask("GET", "/graph")[1]["layers"] == 48
    assert served.ask("GET", "/")[0] == 200 and served.ask("GET", "/dashboard")[0] == 200
    assert served.ask("POST", "/reset_prefix_cache")[0] == 200
    status, body, _headers = served.ask("GET", "/v1/models/other")
    assert (status, body["error"]["type"]) == (404, "not_found_error")


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/stats"), ("DELETE", "/v1/completions"), ("PUT", "/health"), ("GET", "/tokenize")]
)
def test_methods_that_are_not_allowed(served: Any, method: str, path: str) -> None:
    status, body, _headers = served.ask(method, path)
    assert (status, body["error"]["message"]) == (405, f"{method} is not allowed on {path}")


def test_embeddings_are_not_served(served: Any) -> None:
    status, body, _headers = served.ask("POST", "/v1/embeddings", {"input": "a few words"})
    assert (status, body["error"]["type"]) == (501, "not_implemented_error")
    status, body, _headers = served.ask("POST", "/v1/embeddings", {"input": "fox " * 210000})
    assert (status, body["error"]["code"]) == (400, "context_length_exceeded")
    assert body["error"]["message"] == "input: exceeds the model context"


def test_too_many_stop_strings(served: Any) -> None:
    assert served.ask("POST", "/v1/completions", {"prompt": "x", "stop": ["s"] * 17})[0] == 400
    assert served.ask("POST", "/v1/completions", {"prompt": "x", "stop": ["s" * 1025]})[0] == 400


def test_a_body_in_chunks(served: Any) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    parts = [b'{"prompt": "in ', b'chunks", "max_', b'tokens": 3}']
    connection.request(
        "POST", "/v1/completions", iter(parts), encode_chunked=True, headers={"Transfer-Encoding": "chunked"}
    )
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["usage"]["completion_tokens"]) == (200, 3)
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    connection.close()


def test_several_prompts_of_token_ids(served: Any) -> None:
    body = served.ask("POST", "/v1/completions", {"prompt": [[1, 2, 3], [4, 5]], "max_tokens": 4})[1]
    assert [choice["index"] for choice in body["choices"]] == [0, 1]
    assert body["usage"]["prompt_tokens"] == 5


def test_a_body_that_is_too_large_and_a_world_without_a_template(start: Any) -> None:
    engine = start(f"{PAIR} --max-body-mib 1", chat_template=False, request_log=True).ready()
    status, body, headers = engine.ask("POST", "/v1/completions", {"prompt": "x" * 2**20 * 2})
    assert (status, headers["Connection"]) == (413, "close")
    status, body, _headers = engine.ask("POST", "/v1/chat/completions", CHAT)
    assert (status, body["error"]["type"]) == (501, "not_implemented_error")
    engine.line(r"^W no chat template in this container; /v1/chat/completions will answer 501 ")
    engine.line(r"^I serving on http://\S+  \(/v1/completions; chat is 501\)$")
    assert engine.ask("POST", "/v1/completions", {"prompt": "x y", "max_tokens": 2})[0] == 200
    engine.line(r"^I request 1: \d+ prompt tokens \(0 cached\), 2 output tokens, length$")


def test_a_later_release_takes_more_fields(start: Any) -> None:
    engine = start("", release="1.3.0").ready()
    assert engine.ask("GET", "/version")[1]["version"] == "1.3.0"
    body = {"prompt": "x", "max_tokens": 2, "cache_prompt": True}
    assert engine.ask("POST", "/v1/completions", body)[0] == 200
    assert engine.ask("POST", "/v1/chat/completions", {**CHAT, "tool_choice": "required"})[0] == 200
    engine.line(r"^I request \d+: ")


def test_a_dense_model_has_no_experts_to_speak_of(start: Any) -> None:
    engine = start("--vram-weights-mib 14000 --vram-kv-mib 8192 --max-model-len 32768", world="dense").ready()
    assert "experts" not in engine.ask("GET", "/stats")[1]
    groups = engine.ask("GET", "/server_info")[1]["engine"]["kv_groups"]
    assert [group["name"] for group in groups] == ["kv_attn"]
    assert engine.ask("POST", "/v1/completions", {"prompt": "x", "max_tokens": 2})[0] == 200
    assert engine.stop() == 0


def test_cards_of_different_sizes_are_told_apart(start: Any) -> None:
    engine = start("--vram-weights-mib 21500 --vram-kv-mib 4352 --host-pool-mib 20480", world="unequal").ready()
    cards = engine.ask("GET", "/stats")[1]["cards"]
    assert [card["vram_total"] // 2**20 for card in cards] == [32624, 30576]
    devices = engine.ask("GET", "/server_info")[1]["engine"]["devices"]
    assert [device["vram_bytes"] // 2**20 for device in devices] == [32624, 30576]
    assert devices[0]["vram_free"] > devices[1]["vram_free"]
