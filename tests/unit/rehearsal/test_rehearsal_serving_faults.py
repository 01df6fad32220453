# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a stand-in does wrong while it serves, and what it holds when it has ended."""

from __future__ import annotations

import concurrent.futures
import fcntl
import http.client
import json
import os
import pathlib
import random
import signal
import time
from typing import Any, Callable

import pytest
from engine import fault_names

PAIR = "--vram-weights-mib 24000 --vram-kv-mib 5120"
FOX = "The quick brown fox jumps over the lazy dog. "
MIB = 2**20


@pytest.fixture
def faulty(start: Any, tmp_path: pathlib.Path) -> Callable[..., Any]:
    """Starts an engine whose boot a fault hits, ready."""

    def begin(fault: str, flags: str = PAIR, **world: Any) -> Any:
        listed = tmp_path / "flash.faults.json"
        listed.write_text(json.dumps([fault]))
        state = {"armed_ns": listed.stat().st_mtime_ns, "ready_boots": 1}
        (tmp_path / "flash.state.json").write_text(json.dumps(state))
        return start(flags, **world).ready()

    return begin


def ask(engine: Any, words: int = 20, **fields: Any) -> tuple[int, Any, Any]:
    """A completion of a prompt that begins with a marker of its own, of about 18 tokens a fox and word."""
    marker = f"MARK-{random.SystemRandom().randrange(10**12):012d}"
    body = {"prompt": f"{marker} {FOX * words}", "max_tokens": 40, **fields}
    status, answer, headers = engine.ask("POST", "/v1/completions", body)
    if status == 200:
        answer["right"] = answer["choices"][0]["text"].startswith(marker)
    return status, answer, headers


def test_every_serving_fault_has_its_test() -> None:
    here = pathlib.Path(__file__).read_text()
    assert [name for name in fault_names.SERVING if f'faulty("{name}' not in here] == []


def test_a_lost_marker(faulty: Any) -> None:
    engine = faulty("lose_marker")
    status, answer, _headers = ask(engine)
    assert (status, answer["right"], "MARK" in answer["choices"][0]["text"]) == (200, False, False)
    two = engine.ask("POST", "/v1/completions", {"prompt": "HEAD-0000-0001 and TAIL-0000-0002", "max_tokens": 40})[1]
    assert two["choices"][0]["text"].startswith("HEAD-0000-0001. ") and "TAIL" not in two["choices"][0]["text"]


def test_a_foreign_marker(faulty: Any) -> None:
    engine = faulty("foreign_marker")
    assert ask(engine)[1]["choices"][0]["text"].startswith("FOREIGN-0000-MARKER. ")
    engine.ask("POST", "/v1/completions", {"prompt": "ALPHA-0000-0001 x"})
    assert ask(engine)[1]["choices"][0]["text"].startswith("ALPHA-0000-0001. ")


def test_a_prompt_that_is_cut_without_a_word(faulty: Any) -> None:
    engine = faulty("truncate_prompt:500")
    status, answer, _headers = ask(engine, 100)
    assert (status, answer["usage"]["prompt_tokens"], answer["right"]) == (200, 500, False)
    status, answer, _headers = ask(engine, 12000)
    assert (status, answer["usage"]["prompt_tokens"]) == (200, 500)


@pytest.mark.parametrize("stream", [False, True])
def test_timings_that_are_null_or_none(faulty: Any, stream: bool) -> None:
    def last(engine: Any) -> Any:
        body = {"prompt": "x", "max_tokens": 5, "stream": stream}
        answer = engine.ask("POST", "/v1/completions", body)[1]
        return json.loads(answer.split("\n\n")[-3][6:]) if stream else answer

    assert last(faulty("null_timings"))["timings"] is None
    assert "timings" not in last(faulty("no_timings"))
    rates = last(faulty("null_rates"))["timings"]
    assert len(rates) == 7 and set(rates.values()) == {None}


def test_the_oldest_release_has_no_timings(start: Any) -> None:
    assert "timings" not in ask(start(PAIR, release="1.0.5").ready())[1]


def test_wrong_timings_contradict_the_rates(faulty: Any) -> None:
    timings = ask(faulty("wrong_timings:10"), 1000)[1]["timings"]
    assert timings["prompt_per_second"] == pytest.approx(10 * 3290 * 40, rel=0.001)


def test_one_at_a_time(faulty: Any) -> None:
    engine = faulty("serve_one", serve_speedup=2)
    with concurrent.futures.ThreadPoolExecutor(2) as clients:
        futures = [clients.submit(ask, engine, 20, max_tokens=300, ignore_eos=True) for _client in range(2)]
        seen = []
        while not all(future.done() for future in futures):
            load = engine.ask("GET", "/load")[1]
            seen.append((load["running"], load["waiting"]))
            time.sleep(0.01)
    assert (1, 1) in seen and max(running for running, _waiting in seen) == 1


def test_a_spill_into_host_memory_is_seen_in_gtt_and_in_the_rates(faulty: Any, tmp_path: pathlib.Path) -> None:
    engine = faulty("spill:2000")
    gtt = tmp_path / "flash.cards" / "card1" / "device" / "mem_info_gtt_used"
    assert ask(engine, 100)[1]["timings"]["prompt_per_second"] == pytest.approx(3290 * 40, rel=0.001)
    assert int(gtt.read_text()) == 24 * MIB
    assert ask(engine, 2400)[1]["timings"]["prompt_per_second"] == pytest.approx(0.4 * 3290 * 40, rel=0.001)
    assert int(gtt.read_text()) == 2024 * MIB
    engine.stop()
    wait_for(gtt, 24 * MIB)


def test_garbage_after_the_first_long_prompt(faulty: Any) -> None:
    engine = faulty("garbage")
    assert ask(engine)[1]["right"]
    assert ask(engine, 2400)[1]["right"]
    answer = ask(engine)[1]
    assert not answer["right"] and answer["choices"][0]["text"].startswith("!!!!")


def test_503_for_a_while(faulty: Any) -> None:
    engine = faulty("unavailable:1")
    assert engine.ask("GET", "/v1/models")[0] == 200
    status, body, _headers = engine.ask("GET", "/health")
    if status != 200:
        assert (status, body["error"]["message"]) == (503, "Loading model")
    engine.wait_for("listening")
    end = time.monotonic() + 20
    while ask(engine)[0] != 200 and time.monotonic() < end:
        time.sleep(0.05)
    assert engine.ask("GET", "/health")[0] == 200


def test_503_while_it_lasts(faulty: Any) -> None:
    engine = faulty("unavailable:600")
    assert engine.ask("GET", "/health")[0] == 503
    assert ask(engine)[0] == 503
    assert engine.ask("GET", "/stats")[0] == 200


def test_429_for_some_requests(faulty: Any) -> None:
    engine = faulty("queue_full:2", f"{PAIR} --retry-after 4")
    answers = [ask(engine) for _request in range(3)]
    assert [status for status, _body, _headers in answers] == [429, 429, 200]
    assert answers[0][2]["Retry-After"] == "4"
    assert answers[0][1]["error"]["code"] == "server_overloaded"


def test_a_slow_drip(faulty: Any) -> None:
    engine = faulty("slow_drip:30")
    began = time.monotonic()
    status, answer, _headers = ask(engine)
    assert (status, answer["right"]) == (200, True)
    assert time.monotonic() - began >= 0.5, "an answer comes in up to 20 pieces"


def test_a_failure_in_the_middle(faulty: Any) -> None:
    # Slow and late enough that a stream has begun when it comes, also where the machine is busy.
    engine = faulty("fail_midway:100", serve_speedup=1)
    status, body, _headers = ask(engine, max_tokens=200, ignore_eos=True)
    assert (status, body["error"]["type"]) == (500, "internal_server_error")
    assert body["error"]["message"] == "the engine failed this request: a step of it failed on the device"
    connection = http.client.HTTPConnection("127.0.0.1", engine.port, timeout=20)
    connection.request(
        "POST", "/v1/completions", json.dumps({"prompt": "x y", "max_tokens": 200, "ignore_eos": True, "stream": True})
    )
    answer = connection.getresponse()
    assert answer.status == 200
    events = answer.read().decode().split("\n\n")[:-1]
    assert events[-1] == "data: [DONE]"
    assert json.loads(events[-2][6:])["error"]["message"].endswith("a step of it failed on the device")
    connection.close()


def test_a_crash_under_load(faulty: Any) -> None:
    engine = faulty("crash_under_load:2", serve_speedup=1)
    assert ask(engine, max_tokens=5)[0] == 200
    with concurrent.futures.ThreadPoolExecutor(2) as clients:
        futures = [clients.submit(ask, engine, 20, max_tokens=3000, ignore_eos=True) for _client in range(2)]
        assert engine.exit() == 70
        assert all(isinstance(future.exception(), (OSError, http.client.HTTPException)) for future in futures)
    assert engine.lines[-1] == "radiance: fatal: the device was lost while a step ran"


def test_the_boot_after_it_is_well(faulty: Any, start: Any) -> None:
    faulty("lose_marker").stop()
    assert ask(start(PAIR).ready())[1]["right"]


def wait_for(path: pathlib.Path, value: int, within: int = 0) -> None:
    """Wait until a file of a card says this, within so many bytes."""
    end = time.monotonic() + 20
    while abs(int(path.read_text()) - value) > within and time.monotonic() < end:
        time.sleep(0.02)
    assert abs(int(path.read_text()) - value) <= within


def test_cards_hold_what_a_process_takes_until_it_ends(start: Any, tmp_path: pathlib.Path) -> None:
    engine = start(PAIR, sysfs=True).ready()
    device = tmp_path / "flash.cards" / "card0" / "device"
    used = device / "mem_info_vram_used"
    assert int((device / "mem_info_vram_total").read_text()) == 32624 * MIB
    # 32,624 less what it settled at: 2,058.30 MiB.
    assert int(used.read_text()) / MIB == pytest.approx(32624 - 2058.30, abs=0.01)
    assert int((tmp_path / "flash.cards" / "card2" / "device" / "mem_info_vram_used").read_text()) == 342 * MIB
    engine.process.kill()
    wait_for(used, 342 * MIB)


def test_memory_that_is_held_after_the_end_refuses_the_next_boot(
    faulty: Any, start: Any, tmp_path: pathlib.Path
) -> None:
    engine = faulty("hold_memory:600", sysfs=True)
    used = tmp_path / "flash.cards" / "card0" / "device" / "mem_info_vram_used"
    holder = int((tmp_path / "flash.cards" / "holder").read_text())
    serving = int(used.read_text()) / MIB
    engine.stop()
    try:
        # Three fifths go at once.
        wait_for(used, round((342 + 0.4 * (serving - 342)) * MIB), within=2)
        early = start(PAIR, sysfs=True)
        assert early.exit() == 1
        early.line(r"^  already held +12\.\d\d GiB   \(driver context")
    finally:
        os.kill(holder, signal.SIGKILL)
    with open(tmp_path / "flash.cards" / "holder") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    start(PAIR, sysfs=True).ready().line(r"^  already held       342\.00 MiB   measured: ")


def test_memory_that_is_held_is_free_in_the_end(faulty: Any, start: Any, tmp_path: pathlib.Path) -> None:
    faulty("hold_memory:0.3", sysfs=True).stop()
    wait_for(tmp_path / "flash.cards" / "card0" / "device" / "mem_info_vram_used", 342 * MIB)
    start(PAIR, sysfs=True).ready()


def test_a_crash_loop_crashes_as_often_as_it_says(start: Any, tmp_path: pathlib.Path) -> None:
    (tmp_path / "flash.faults.json").write_text('["crash_loop:2"]')
    start(PAIR).ready().stop()
    for _boot in range(2):
        engine = start(PAIR)
        assert engine.exit() == 70
        assert engine.lines[-1] == "radiance: fatal: the driver lost the device"
        engine.line(r"^  unclaimed ")
    start(PAIR).ready()


def test_a_slow_boot_and_another_pair_together(faulty: Any) -> None:
    began = time.monotonic()
    engine = faulty("slow_boot:100+other_pair:100", load_speedup=5000)
    assert time.monotonic() - began > 62 * 100 / 5000
    engine.line(r"^  vram_weights        23\.34 GiB   stated by --vram-weights-mib$")
