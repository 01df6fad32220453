# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the boundary probe makes of the markers in an answer, against a small real endpoint."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.endpoint_server import Call
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_endpoint import Small, recall
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_probes import bound


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
