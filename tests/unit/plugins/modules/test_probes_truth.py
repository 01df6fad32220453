# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever the engine is like, and however it misleads: a rate that is called measured is within 5 % of the truth."""

from __future__ import annotations

import contextlib
import pathlib
import threading
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import rates
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import ask, fields
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import json_body
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.corpus import cold_prompt
from ansible_collections.kvfleet.radiance.tests.unit.plugins.modules.rehearsed_engine import engine, options

ASKED = {"chars_per_token": 2.715, "prompt_tokens": 3_000, "generate_tokens": 256, "runs": 1}
STEP_MS, DRAFT_MS = 12.0, 4.0


def decode_of(speedup: float, depth: int, acceptance: float) -> float:
    """Decode of one stream in tokens/s, as the world's README has it."""
    return speedup * 1000 * (1 + acceptance * depth) / (STEP_MS + DRAFT_MS * depth)


@contextlib.contextmanager
def other_traffic(url: str) -> t.Iterator[None]:
    """Somebody else asks again and again, for the length of the block."""
    settings, over = options(url), threading.Event()

    def others() -> None:
        while not over.is_set():
            body = json_body(fields(None, 64, ignore_eos=True, stream=True), cold_prompt("SOMEBODY-ELSE", 900, 1))
            ask(settings.client, body, 5, over)

    thread = threading.Thread(target=others)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(
    ("speedup", "depth", "acceptance", "prefill", "fault", "honest"),
    [
        (5, 0, 0.7, 2_000, None, True),
        (10, 6, 0.9, 4_000, None, True),
        (3, 2, 0.25, 3_000, "no_timings", False),
        (5, 2, 0.7, 4_000, "wrong_timings:2", False),
        (6, 2, 0.7, 4_000, "no_timings+slow_drip:15", False),
        (5, 2, 0.7, 4_000, "traffic", False),
    ],
)
def test_what_is_called_measured_is_true(
    tmp_path: pathlib.Path,
    speedup: float,
    depth: int,
    acceptance: float,
    prefill: float,
    fault: str | None,
    honest: bool,
) -> None:
    world = {"draft_acceptance": acceptance, "prefill_law": [[24_000, prefill]]}
    traffic = fault == "traffic"
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(engine(tmp_path, speedup, 24_000, 5_120, None if traffic else fault, depth, **world))
        if traffic:
            stack.enter_context(other_traffic(url))
        # A host that is busy with other tests may hold back tokens: then a run is inconclusive, and not wrong.
        for _attempt in range(5 if honest else 1):
            found = rates.probe(options(url, **ASKED))["rates"]
            if found["verdict"] == "passed":
                break
    truth = {"prefill_tps": speedup * prefill, "decode_tps": decode_of(speedup, depth, acceptance)}
    for one in [found, *found["runs"]]:
        for name, rate in truth.items():
            assert one[name] is None or one[name] == pytest.approx(rate, rel=0.05), (name, found["says"])
        if one["draft_acceptance"] is not None:
            assert one["draft_acceptance"] == pytest.approx(acceptance, abs=0.02)
    assert (found["verdict"] == "passed") >= honest, found["says"]
    if not honest and fault != "no_timings":
        assert (found["verdict"], found["prefill_tps"], found["decode_tps"]) == ("inconclusive", None, None)
    if honest:
        assert (found["draft_acceptance"] is None) is (depth == 0)
