# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The three probes against a small real endpoint that plays one trap at a time."""

from __future__ import annotations

import pathlib
import re
import socket
import threading
import time
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import boundary, calibration, rates
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import read
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.endpoint_server import Call
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_endpoint import Small, recall

KEY = "sk-very-secret-key"


def run(small: Small, probe: t.Any, key: str | None = None, **options: t.Any) -> tuple[dict[str, t.Any], list[t.Any]]:
    """Run a probe against ``small``: its result, and the requests that arrived."""
    with small.serving() as server:
        params = {"endpoint": server.url, "model": None, "timeout": 10, **options}
        result = probe(read(params, key))
        return result, list(server.requests)


def calibrate(small: Small, **options: t.Any) -> dict[str, t.Any]:
    found: dict[str, t.Any] = run(small, calibration.probe, **options)[0]["calibration"]
    return found


def bound(small: Small, **options: t.Any) -> dict[str, t.Any]:
    found: dict[str, t.Any] = run(small, boundary.probe, **{"chars_per_token": 2.5, **options})[0]["boundary"]
    return found


def rate(small: Small, **options: t.Any) -> dict[str, t.Any]:
    asked = {"chars_per_token": 2.5, "prompt_tokens": 4000, "generate_tokens": 200, **options}
    found: dict[str, t.Any] = run(small, rates.probe, **asked)[0]["rates"]
    return found


def measured(make: t.Callable[[], Small], **options: t.Any) -> tuple[Small, dict[str, t.Any]]:
    """An endpoint and its rates, anew where a busy host held the tokens back: then a run may be inconclusive."""
    for _attempt in range(5):
        small = make()
        found = rate(small, **options)
        if found["verdict"] != "inconclusive":
            break
    return small, found


# Calibration


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


# Boundary


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


@pytest.mark.parametrize(("place", "name"), [(0, "head"), (1, "middle"), (2, "end")])
def test_a_lost_marker_fails_and_its_place_is_named(place: int, name: str) -> None:
    small = Small(together=3)

    def text(prompt: str, number: int) -> str:
        words = recall(prompt).split(", ")
        return ", ".join(word for at, word in enumerate(words) if number != 1 or at != place)

    small.text = text
    found = bound(small)
    assert (found["retrieved"], found["verdict"], found["cause"]) == (2, "failed", "marker_lost")
    assert sorted(reply["marker"] for reply in found["replies"]) == ["found", "found", "lost"]
    (lost,) = [reply for reply in found["replies"] if reply["marker"] == "lost"]
    assert {*lost["markers"], name} == {"head", "middle", "end"}
    assert lost["says"].endswith(f"of its {name}")


def test_a_foreign_marker_is_critical() -> None:
    small = Small(together=3)
    seen: list[str] = []

    def text(prompt: str, number: int) -> str:
        seen.append(recall(prompt))
        # Its own markers, and one from the middle of whatever came before it.
        return ", ".join([seen[-1], *(words.split(", ")[1] for words in seen[:-1])])

    small.text = text
    found = bound(small)
    assert (found["verdict"], found["cause"], found["critical"]) == ("failed", "foreign_marker", True)
    assert [reply["marker"] for reply in found["replies"]].count("foreign") == 2
    assert found["after"]["marker"] == "foreign"
    assert "CRITICAL" in found["says"]


def test_a_marker_that_nobody_sent_is_no_foreign_one() -> None:
    small = Small(together=3)
    small.text = lambda prompt, number: "ZZZZ-ZZZZ-ZZZZ" if number == 1 else recall(prompt)
    found = bound(small)
    assert (found["cause"], found["critical"]) == ("marker_lost", False)
    assert "it holds ZZZZ-ZZZZ-ZZZZ, which no prompt of this probe has" in found["says"]


def test_a_wrong_answer_after_the_long_prompts_fails() -> None:
    small = Small(together=3)
    small.text = lambda prompt, number: "of of of ;; !!!!" if number == 3 else recall(prompt)
    found = bound(small)
    assert (found["retrieved"], found["verdict"], found["cause"]) == (3, "failed", "wrong_after")
    assert found["after"]["markers"] == []
    assert "a short prompt after the long ones: the reply does not hold" in found["says"]


def cards_in(folder: pathlib.Path, gtt: int, integrated_gtt: int = 600) -> str:
    """Two cards as the driver shows them, the second one integrated graphics; GTT in MiB."""
    for card, total, used, host in (("card0", 32_624, 30_000, gtt), ("card1", 2_048, 511, integrated_gtt)):
        device = folder / card / "device"
        device.mkdir(parents=True, exist_ok=True)
        for name, mib in (("vram_total", total), ("vram_used", used), ("gtt_used", host)):
            part = device / f"part{threading.get_ident()}"
            part.write_text(f"{mib * 1024 * 1024}\n")
            part.replace(device / f"mem_info_{name}")
    (folder / "card0-DP-1").mkdir(exist_ok=True)
    return str(folder)


def test_memory_that_moves_to_the_host_fails_however_right_the_answers_are(tmp_path: pathlib.Path) -> None:
    small = Small(together=3)

    def spill(call: Call, number: int) -> bool:
        cards_in(tmp_path, gtt=15_200)
        return False

    small.instead = spill
    found = bound(small, card_folder=cards_in(tmp_path, gtt=620))
    assert (found["retrieved"], found["verdict"], found["cause"]) == (3, "failed", "spill")
    assert found["memory"]["grown_mib"] == 14_580
    assert found["memory"]["cards"][0] == {
        "card": "card0",
        "counted": True,
        "vram_mib": {"before": 30_000, "most": 30_000, "after": 30_000},
        "gtt_mib": {"before": 620, "most": 15_200, "after": 15_200},
    }
    assert "GTT of a card grew by 14,580 MiB" in found["says"]


def test_a_spill_that_is_over_again_was_one(tmp_path: pathlib.Path) -> None:
    small = Small(together=3)

    def spill(call: Call, number: int) -> bool:
        cards_in(tmp_path, gtt=15_200 if number < 3 else 620)
        return False

    small.instead = spill
    small.decode_tps = 256.0
    found = bound(small, card_folder=cards_in(tmp_path, gtt=620))
    assert found["cause"] == "spill"
    assert found["memory"]["cards"][0]["gtt_mib"] == {"before": 620, "most": 15_200, "after": 620}


def test_what_integrated_graphics_use_is_no_spill(tmp_path: pathlib.Path) -> None:
    small = Small(together=3)

    def draw(call: Call, number: int) -> bool:
        cards_in(tmp_path, gtt=860, integrated_gtt=3_000)
        return False

    small.instead = draw
    found = bound(small, card_folder=cards_in(tmp_path, gtt=620))
    assert (found["verdict"], found["cause"], found["critical"]) == ("passed", None, False)
    assert [card["counted"] for card in found["memory"]["cards"]] == [True, False]
    assert found["memory"]["grown_mib"] == 240


def test_a_host_that_shows_no_card(tmp_path: pathlib.Path) -> None:
    (tmp_path / "card0" / "device").mkdir(parents=True)
    (tmp_path / "card0" / "device" / "mem_info_vram_used").write_text("garbage")
    found = bound(Small(together=3), card_folder=str(tmp_path))
    assert (found["verdict"], found["memory"]) == ("passed", None)


def test_a_prompt_that_was_cut_is_not_a_lost_marker() -> None:
    small = Small(together=3)
    small.text = lambda prompt, number: "who knows"
    small.usage = lambda prompt, made: {"prompt_tokens": 4096, "completion_tokens": made}
    found = bound(small)
    assert [reply["marker"] for reply in found["replies"]] == ["truncated"] * 3
    assert (found["verdict"], found["cause"]) == ("failed", "truncated")
    assert "about 5,805 tokens were sent and 4,096 were read" in found["says"]


def test_a_marker_in_the_reasoning_is_found() -> None:
    small = Small(together=1, sequences=1)

    def reason(call: Call, number: int) -> bool:
        word = recall(call.content["prompt"])
        call.begin_events()
        call.event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        call.event({"choices": [{"delta": {"reasoning_content": word}}]})
        call.event({"choices": [{"delta": {"reasoning_content": " so"}, "finish_reason": "stop"}]}, after=0.05)
        call.event({"choices": [], "usage": {"prompt_tokens": 5805, "completion_tokens": 128}})
        call.event("[DONE]")
        return True

    small.instead = reason
    found = bound(small)
    assert found["verdict"] == "passed"
    assert found["replies"][0]["says"] == "in the reasoning"


def test_thinking_that_used_everything_up_is_no_lost_marker() -> None:
    small = Small(sequences=1)

    def think(call: Call, number: int) -> bool:
        call.reply(
            {
                "choices": [{"message": {"content": "", "reasoning": "well"}, "finish_reason": "length"}],
                "usage": {"prompt_tokens": 5805, "completion_tokens": 128},
            }
        )
        return True

    small.instead = think
    found = bound(small)
    assert (found["verdict"], found["replies"][0]["marker"]) == ("inconclusive", "error")
    assert "went into reasoning" in found["says"]


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
    assert (found["asked"], found["retrieved"], found["overlap"], found["verdict"]) == (2, 2, 2, "passed")
    assert found["witness"]["samples"] == 0


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


# The edge of the window


def edge_of(small: Small, **options: t.Any) -> dict[str, t.Any]:
    found = bound(small, sequences=1, form="full", **options)
    assert found["verdict"] == found["edge"]["verdict"]
    return t.cast("dict[str, t.Any]", found["edge"])


def test_the_edge_is_served_up_to_the_last_token_and_refused_from_there() -> None:
    small = Small(sequences=1)
    result, requests = run(small, boundary.probe, form="full")
    found, edge = result["boundary"], result["boundary"]["edge"]
    assert (found["verdict"], edge["verdict"], edge["cause"]) == ("passed", "passed", None)
    assert (edge["limit"], edge["refused_tokens"], edge["served_tokens"]) == (6000, 6000, 5999)
    assert found["says"].endswith("; 5,999 tokens are served and 6,000 are refused with their count")
    prompts = [body["prompt"] for method, _path, _headers, body in requests if method == "POST"]
    # The long prompt, the short one after it, and at the edge what is nearly the long one.
    long, _short, *edges = prompts[1:]
    assert all(prompt[:14_000] == long[:14_000] for prompt in edges)
    assert sum(small.count(prompt) < 6000 for prompt in edges) == 1
    assert bound(Small(sequences=1))["edge"] is None


def test_an_edge_that_is_found_with_a_ratio_that_is_a_little_off() -> None:
    assert edge_of(Small(sequences=1), chars_per_token=2.52)["served_tokens"] == 5999


def refuses(tokens: int, limit: int) -> t.Callable[[Call], None]:
    def refuse(call: Call) -> None:
        text = (
            f"prompt: {tokens} prompt tokens does not fit the {limit} token context, which leaves nothing to generate"
            f" into; shorten the prompt by at least {tokens - limit + 1} tokens"
        )
        call.reply({"error": {"message": text, "code": "context_length_exceeded"}}, status=400)

    return refuse


def edge_case(
    small: Small, reply: t.Callable[[Call], None], least: int = 5990, most: int = 5999
) -> t.Callable[[Call, int], bool]:
    """Answer a prompt of so many tokens with ``reply``."""

    def instead(call: Call, number: int) -> bool:
        hit = least <= small.count(call.content["prompt"]) <= most
        if hit:
            reply(call)
        return hit

    return instead


def fails(call: Call) -> None:
    call.reply({"error": {"message": "the engine failed this request: the KV pool cannot hold it"}}, status=500)


@pytest.mark.parametrize(
    ("reply", "cause", "says"),
    [
        (fails, "engine_error", "a prompt of about 5,999 tokens in a window of 6,000 was not served"),
        (refuses(5999, 5000), "refused_inside", "5,999 tokens against a context of 5,000"),
    ],
)
def test_what_fails_inside_the_window_has_its_own_verdict(
    reply: t.Callable[[Call], None], cause: str, says: str
) -> None:
    small = Small(sequences=1)
    small.instead = edge_case(small, reply)
    edge = edge_of(small)
    assert (edge["verdict"], edge["cause"], edge["refused_tokens"], edge["served_tokens"]) == (
        "failed",
        cause,
        6000,
        None,
    )
    assert says in edge["says"]


def test_a_window_that_is_smaller_than_it_is_said_to_be() -> None:
    small = Small(sequences=1)
    told: list[int] = []

    def refuse(call: Call, number: int) -> bool:
        if small.count(call.content["prompt"]) < 5990:
            return False
        told.append(small.count(call.content["prompt"]))
        refuses(told[-1], 5990)(call)
        return True

    small.instead = refuse
    edge = edge_of(small)
    assert (edge["verdict"], edge["cause"]) == ("failed", "refused_inside")


@pytest.mark.parametrize(
    ("read", "cause", "says"),
    [
        (None, "accepted_at_window", "6,000 tokens were served in a window of 6,000"),
        (2000, "truncated", "about 6,000 tokens were sent and 2,000 were read"),
    ],
)
def test_a_window_that_refuses_nothing(read: int | None, cause: str, says: str) -> None:
    small = Small(sequences=1)
    small.refuses = False
    usage = small.usage
    small.usage = lambda prompt, made: usage(read if read and prompt > 5950 else prompt, made)
    edge = edge_of(small)
    assert (edge["verdict"], edge["cause"], edge["refused_tokens"]) == ("failed", cause, None)
    assert says in edge["says"]


def test_a_count_that_is_clipped_shows_no_edge() -> None:
    small = Small(sequences=1)
    small.instead = edge_case(small, refuses(6001, 6000), least=6000, most=10_000)
    edge = edge_of(small)
    assert (edge["verdict"], edge["cause"]) == ("inconclusive", "unsized")


def test_nothing_more_is_asked_of_a_boundary_that_has_failed() -> None:
    small = Small(sequences=1)
    small.text = lambda prompt, number: "who knows"
    found = bound(small, form="full")
    assert (found["verdict"], found["edge"], small.completions) == ("failed", None, 2)


# Rates


def test_rates_by_the_wall_clock() -> None:
    def slow() -> Small:
        small = Small()
        small.prefill_tps, small.decode_tps = 3000.0, 120.0
        return small

    small, found = measured(slow, runs=1, prompt_tokens=2000, generate_tokens=130)
    prefill, decode = small.took[1]
    assert (found["verdict"], found["method"], found["cached_tokens"]) == ("passed", "wall_clock", 0)
    assert found["prefill_tps"] == pytest.approx(2000 / prefill, rel=0.1)
    assert found["decode_tps"] == pytest.approx(129 / decode, rel=0.1)


def honest(prompt: int, made: int, prefill: float, decode: float) -> dict[str, t.Any]:
    return {"prompt_n": prompt, "cache_n": 0, "prompt_ms": prefill * 1000, "predicted_per_second": (made - 1) / decode}


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


# What fails a module


@pytest.mark.parametrize("probe", [calibration.probe, boundary.probe, rates.probe])
def test_a_wrong_key_is_an_error_and_a_right_one_is_sent(probe: t.Any) -> None:
    small = Small(window=60_000, sequences=1)
    small.key, small.timings, small.prefill_tps = KEY, honest, 400_000.0
    small.decode_tps = 20_000.0
    with pytest.raises(RadianceError) as caught:
        run(small, probe, key="sk-another-secret")
    assert caught.value.code == "wrong_key"
    assert "sk-another-secret" not in caught.value.text
    assert run(small, probe, key=KEY)[0]


@pytest.mark.parametrize("probe", [calibration.probe, boundary.probe, rates.probe])
def test_nothing_listening_is_an_error(probe: t.Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(RadianceError) as caught:
            probe(read({"endpoint": f"http://127.0.0.1:{port}", "model": None, "timeout": 5}, None))
    assert caught.value.code == "not_listening"
    assert f"http://127.0.0.1:{port}" in caught.value.text


def test_a_model_that_is_not_served_is_an_error() -> None:
    with pytest.raises(RadianceError) as caught:
        run(Small(), boundary.probe, model="large")
    assert caught.value.code == "model_unknown"
    assert "serves small" in caught.value.text


def test_a_loading_endpoint_is_waited_for_and_then_inconclusive() -> None:
    small = Small(together=3)
    with small.serving() as server:
        server.answers["/health"] = lambda call: call.reply({"error": {"message": "Loading model"}}, status=503)
        params = {"endpoint": server.url, "model": None, "timeout": 1, "chars_per_token": 2.5}
        found = boundary.probe(read(params, None))["boundary"]
        assert found["verdict"] == "inconclusive"
        assert "not ready after 1 s: Loading model" in found["says"]
        asked: list[int] = []

        def soon(call: Call) -> None:
            asked.append(1)
            call.reply({"status": "loading" if len(asked) < 3 else "ok"}, status=503 if len(asked) < 3 else 200)

        server.answers["/health"] = soon
        assert boundary.probe(read({**params, "timeout": 10}, None))["boundary"]["verdict"] == "passed"
