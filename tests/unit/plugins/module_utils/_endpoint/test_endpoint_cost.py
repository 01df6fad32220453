# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the probes will cost: by arithmetic, and of an endpoint that nobody planned."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cost import (
    boundary_generate_tokens,
    cost_words,
    probe_cost,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.foresight import foresee
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import read
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_endpoint import Small


@pytest.mark.parametrize(
    ("sequences", "window", "chunk", "depth", "tokens"),
    [
        (3, 200_000, 2048, 2, 600),
        (3, 200_000, 1024, 2, 1200),
        (3, 200_000, 2048, 0, 200),
        (8, 200_000, 2048, 3, 2800),
        (1, 200_000, 2048, 2, 128),
        (2, 4096, 2048, 2, 128),
    ],
)
def test_what_each_sequence_generates(sequences: int, window: int, chunk: int, depth: int, tokens: int) -> None:
    assert boundary_generate_tokens(sequences, window, chunk, depth) == tokens


def test_cost() -> None:
    assert probe_cost("none", 3, 200_000) == {"prompt_tokens": 0, "generated_tokens": 0, "seconds": 0.0}
    assert probe_cost("quick", 3, 200_000) == {"prompt_tokens": 728_700, "generated_tokens": 3_464, "seconds": None}
    assert probe_cost("quick", 3, 200_000, prefill_tps=3996.0)["seconds"] == 205.0
    assert probe_cost("quick", 3, 200_000, prompt_tokens=10_000, runs=4)["prompt_tokens"] == 648_200
    # The edge, the second turn, and three streams, as if no cache knew any of it.
    assert probe_cost("full", 3, 200_000) == {"prompt_tokens": 1_102_700, "generated_tokens": 5_513, "seconds": None}
    assert probe_cost("full", 1, 200_000)["prompt_tokens"] == 573_872
    # Three streams of 2,400 tokens/s generate for two seconds, not only 512 tokens each.
    fast = probe_cost("full", 3, 200_000, decode_tps=2_400.0)["generated_tokens"]
    assert fast == 3 * 600 + 128 + 4 * 512 + 1 + 3 * 4_800


def test_cost_of_what_is_stated() -> None:
    cost = probe_cost("quick", 3, 200_000, prefill_tps=79_917.0, generate_tokens=3_072, decode_tps=2_400.0)
    assert cost == {"prompt_tokens": 728_700, "generated_tokens": 11_144, "seconds": 13.3}
    assert cost_words(cost) == "about 13 s; 728,700 prompt tokens go through the caches, 11,144 are generated"
    # No drafts: a step yields one token, and a third of them keeps the sequences together.
    assert probe_cost("quick", 3, 200_000, speculative_tokens=0)["generated_tokens"] == 600 + 128 + 1_536
    # Rates that do not fit the window are not asked.
    assert probe_cost("quick", 3, 40_000) == {"prompt_tokens": 119_400, "generated_tokens": 728, "seconds": None}


def foreseen(small: Small, probes: str = "quick", **options: t.Any) -> tuple[dict[str, t.Any], list[str]]:
    """What is foreseen of ``small``, and the paths that were asked."""
    rates = [options.pop(name, None) for name in ("prefill_tps", "decode_tps")]
    with small.serving() as server:
        settings = read({"endpoint": server.url, "model": None, "timeout": 2, **options}, None)
        cost = foresee(settings, probes, *rates)
        return cost, [path for _method, path, _headers, _body in server.requests]


def test_an_endpoint_that_nobody_planned_tells_its_shape_and_nothing_is_completed() -> None:
    cost, asked = foreseen(Small(window=100_000, sequences=4), prefill_tps=5_000.0)
    assert (cost["sequences"], cost["max_model_len"]) == (4, 100_000)
    # 4 x (100,000 - 500) and 3 x 43,500; 4 x 500, 128 and 3 x 512.
    assert (cost["prompt_tokens"], cost["generated_tokens"]) == (528_500, 3_664)
    assert cost["says"].startswith("quick: about 127 s; 528,500 prompt tokens go through the caches")
    assert not [path for path in asked if "completions" in path or "tokenize" in path]


def test_a_stated_shape_goes_before_the_endpoints_own() -> None:
    cost, _asked = foreseen(Small(window=100_000, sequences=4), sequences="2", max_model_len="90000")
    assert (cost["sequences"], cost["max_model_len"], cost["seconds"]) == (2, 90_000, None)
    assert cost["says"].endswith("no prefill rate of this service is known that would tell the time")
    cost, _asked = foreseen(Small(window=100_000, sequences=4), "full", prefill_tps=5_000.0)
    assert cost["says"].endswith("; more are generated where a stream decodes faster than 256 tokens/s")
    cost, _asked = foreseen(Small(window=100_000, sequences=4), sequences="5")
    assert "max_num_seqs is 5 where the endpoint serves 4: the boundary will not be asked" in cost["says"]


def test_what_cannot_be_known_is_said_with_its_reason() -> None:
    small = Small()
    with small.serving() as server:
        del server.answers["/server_info"]
        cost = foresee(read({"endpoint": server.url, "model": None, "timeout": 2}, None), "full", 5_000.0, None)
    assert (cost["prompt_tokens"], cost["generated_tokens"], cost["seconds"]) == (None, None, None)
    assert cost["says"] == (
        "full: cannot be known: nothing is stated of max_num_seqs and max_model_len, and the endpoint does not say it"
    )


def test_an_endpoint_that_loads_leaves_the_stated_shape() -> None:
    small = Small()
    with small.serving() as server:
        server.answers["/health"] = lambda call: call.reply({"error": {"message": "Loading model"}}, status=503)
        settings = read({"endpoint": server.url, "model": None, "timeout": 1, "sequences": 3}, None)
        cost = foresee(settings._replace(max_model_len=200_000), "quick", 3_996.0, None)
    assert cost["says"] == (
        "quick: about 205 s; 728,700 prompt tokens go through the caches, 3,464 are generated; the endpoint is not "
        "ready after 1 s: Loading model"
    )


def test_no_probes_cost_nothing_and_ask_nothing() -> None:
    cost, asked = foreseen(Small(), "none")
    assert (cost["prompt_tokens"], cost["seconds"], cost["says"]) == (0, 0.0, "none will run (probes=none)")
    assert asked == []


def test_a_wrong_key_is_an_error() -> None:
    small = Small()
    small.key = "sk-very-secret-key"
    with pytest.raises(RadianceError) as caught:
        foreseen(small)
    assert caught.value.code == "wrong_key"
