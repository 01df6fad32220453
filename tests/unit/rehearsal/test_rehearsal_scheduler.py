# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sequences that run together: what holds the pool, what waits, what is refused, and how the engine stops."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import random
import signal
import time
from typing import Any

import pytest

FOX = "The quick brown fox jumps over the lazy dog. "
WEIGHTS = "--vram-weights-mib 24000"


def ask(engine: Any, tokens: int, most: int) -> tuple[int, Any, Any]:
    """A completion of about this many tokens behind a marker of its own."""
    marker = f"MARK-{random.SystemRandom().randrange(10**12):012d}"
    body = {"prompt": f"{marker} {FOX * round(tokens / 17.5)}", "max_tokens": most, "ignore_eos": True}
    status, answer, headers = engine.ask("POST", "/v1/completions", body)
    if status == 200 and most > 1:
        assert answer["choices"][0]["text"].startswith(marker)
    return status, answer, headers


def watch(engine: Any, futures: list[Any]) -> list[dict[str, Any]]:
    """/stats, sampled until all requests are answered."""
    samples = []
    while not all(future.done() for future in futures):
        samples.append(engine.ask("GET", "/stats")[1])
        time.sleep(0.02)
    return samples


@pytest.fixture
def pool() -> Any:
    """Threads for clients."""
    with concurrent.futures.ThreadPoolExecutor(8) as executor:
        yield executor


def test_three_full_contexts_hold_the_pool_at_once(start: Any, pool: Any) -> None:
    engine = start(f"{WEIGHTS} --vram-kv-mib 5120", serve_speedup=100).ready()
    futures = [pool.submit(ask, engine, 197900, 2000) for _client in range(3)]
    samples = watch(engine, futures)
    assert [future.result()[0] for future in futures] == [200, 200, 200]
    together = [row for row in samples if [item["state"] for item in row["requests"]] == ["decode"] * 3]
    assert together
    assert max(row["kv_tokens_used"] for row in together) > 595000
    assert max(row["preemptions"] for row in samples) == 0


def test_a_thin_pool_lets_the_second_wait(start: Any, pool: Any) -> None:
    engine = start(f"{WEIGHTS} --vram-kv-mib 3543", serve_speedup=200).ready()
    futures = [pool.submit(ask, engine, 195000, 300) for _client in range(2)]
    samples = watch(engine, futures)
    assert [future.result()[0] for future in futures] == [200, 200]
    assert any((row["running"], row["waiting"]) == (1, 1) for row in samples)
    assert max(row["running"] for row in samples) == 1


def test_what_grows_past_the_pool_preempts_the_youngest(start: Any, pool: Any) -> None:
    # 379,436 tokens: two of 189,000 fit, and then grow by 1,000 each.
    engine = start(f"{WEIGHTS} --vram-kv-mib 3543", serve_speedup=200).ready()
    futures = [pool.submit(ask, engine, 189000, 1000) for _client in range(2)]
    samples = watch(engine, futures)
    assert [future.result()[0] for future in futures] == [200, 200]
    assert samples and engine.ask("GET", "/stats")[1]["preemptions"] >= 1


def test_what_never_fits_fails(start: Any) -> None:
    engine = start(f"{WEIGHTS} --vram-kv-mib 2048", serve_speedup=400).ready()
    status, body, _headers = ask(engine, 180000, 10)
    assert status == 500
    message = body["error"]["message"]
    assert message.startswith("the engine failed this request: the KV pool cannot hold 1800")
    assert message.endswith(" tokens at any occupancy")
    engine.line(r"^W request 1 failed: the KV pool cannot hold 1800\d\d tokens at any occupancy$")


def test_decoding_goes_one_step_a_chunk_while_others_prefill(start: Any, pool: Any) -> None:
    engine = start(f"{WEIGHTS} --vram-kv-mib 5120", serve_speedup=30).ready()
    first = pool.submit(ask, engine, 100, 4000)
    while not engine.ask("GET", "/stats")[1]["requests"]:
        time.sleep(0.005)
    began = engine.ask("GET", "/stats")[1]["requests"][0]["output"]
    status, second, _headers = ask(engine, 100000, 1)
    ended = engine.ask("GET", "/stats")[1]["requests"][0]["output"]
    assert status == 200
    chunks = second["usage"]["prompt_tokens"] / 2048
    # 49 chunks with 2.4 tokens each; what ran before and after the prefill is on top.
    assert chunks * 2 < ended - began < 3500
    assert first.result()[1]["usage"]["completion_tokens"] == 4000


def test_more_sequences_than_run_at_once_wait_and_a_full_queue_refuses(start: Any, pool: Any) -> None:
    engine = start(
        f"{WEIGHTS} --vram-kv-mib 5120 --max-queued-requests 4 --max-n 2 --retry-after 7", serve_speedup=5
    ).ready()
    futures = [pool.submit(ask, engine, 50, 800) for _client in range(4)]
    load = engine.ask("GET", "/load")[1]
    # The one that waits is admitted, or not, between two steps.
    while (load["running"], load["waiting"]) != (3, 1) and not any(future.done() for future in futures):
        load = engine.ask("GET", "/load")[1]
    assert (load["running"], load["waiting"], load["server_load"]) == (3, 1, 1.0)
    status, body, headers = ask(engine, 50, 10)
    assert (status, headers["Retry-After"], body["error"]["code"]) == (429, "7", "server_overloaded")
    assert body["error"]["message"].startswith("the admission queue is full; retry after 7s. ")
    assert [future.result()[0] for future in futures] == [200] * 4


def test_it_stops_gracefully(start: Any, pool: Any) -> None:
    engine = start(f"{WEIGHTS} --vram-kv-mib 5120", serve_speedup=1, stop_seconds=400).ready()
    running = pool.submit(ask, engine, 50, 100)
    while not engine.ask("GET", "/stats")[1]["requests"]:
        time.sleep(0.005)
    engine.process.send_signal(signal.SIGTERM)
    end = time.monotonic() + 5
    while engine.ask("GET", "/health")[0] != 503 and time.monotonic() < end:
        time.sleep(0.005)
    assert engine.ask("GET", "/health")[1]["status"] == "stopping"
    status, body, _headers = ask(engine, 10, 1)
    assert (status, body["error"]["message"]) == (429, "the server is shutting down")
    assert running.result()[1]["usage"]["completion_tokens"] == 100
    assert engine.exit() == 0
    engine.line(r"^I mover: \d+ dispatches, ")


def test_a_second_signal_kills(start: Any) -> None:
    engine = start(f"{WEIGHTS} --vram-kv-mib 5120", stop_seconds=60000).ready()
    engine.process.send_signal(signal.SIGTERM)
    while engine.ask("GET", "/health")[0] != 503:
        time.sleep(0.005)
    engine.process.send_signal(signal.SIGTERM)
    assert engine.exit() == -signal.SIGTERM


def test_a_client_that_leaves_frees_its_place(start: Any) -> None:
    engine = start(f"{WEIGHTS} --vram-kv-mib 5120", serve_speedup=1).ready()
    connection = http.client.HTTPConnection("127.0.0.1", engine.port, timeout=10)
    connection.request("POST", "/v1/completions", json.dumps({"prompt": "x", "max_tokens": 5000, "ignore_eos": True}))
    while engine.ask("GET", "/load")[1]["running"] != 1:
        time.sleep(0.005)
    connection.sock.close()
    end = time.monotonic() + 3
    while engine.ask("GET", "/load")[1]["running"] and time.monotonic() < end:
        time.sleep(0.01)
    assert engine.ask("GET", "/load")[1]["running"] == 0
