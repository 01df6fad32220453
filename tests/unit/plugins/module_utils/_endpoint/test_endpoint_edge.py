# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge of the window, which the full form of the boundary probe checks."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import boundary
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.endpoint_server import Call
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_endpoint import Small
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_probes import bound, run


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
