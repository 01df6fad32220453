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


def found_on(url: str, attempts: int, **more: t.Any) -> dict[str, t.Any]:
    """The rates of the first probe that called them measured, or of the last one.

    A host that is busy with other tests may hold back tokens: then a run is inconclusive, and not wrong.
    """
    for _attempt in range(attempts):
        found: dict[str, t.Any] = rates.probe(options(url, **{**ASKED, **more}))["rates"]
        if found["verdict"] == "passed":
            break
    return found


def check(found: dict[str, t.Any], prefill: float, decode: float, acceptance: float) -> None:
    """Each rate that is there is within 5 % of the truth, and so is the acceptance beside it."""
    for one in [found, *found["runs"]]:
        for name, rate in (("prefill_tps", prefill), ("decode_tps", decode)):
            assert one[name] is None or one[name] == pytest.approx(rate, rel=0.05), (name, found["says"])
        if one["draft_acceptance"] is not None:
            assert one["draft_acceptance"] == pytest.approx(acceptance, abs=0.02)


@pytest.mark.parametrize(("depth", "acceptance", "prefill"), [(0, 0.7, 2_000), (6, 0.9, 4_000)])
def test_what_is_called_measured_is_true(tmp_path: pathlib.Path, depth: int, acceptance: float, prefill: float) -> None:
    world = {"draft_acceptance": acceptance, "prefill_law": [[24_000, prefill]]}
    truth = (10 * prefill, decode_of(10, depth, acceptance), acceptance)
    with engine(tmp_path, 10, 24_000, 5_120, None, depth, **world) as url:
        found = found_on(url, 5)
        check(found, *truth)
        assert found["verdict"] == "passed", found["says"]
        assert (found["draft_acceptance"] is None) is (depth == 0)
        if depth:
            with other_traffic(url):
                found = found_on(url, 1, generate_tokens=1_024)
            check(found, *truth)
            assert (found["verdict"], found["prefill_tps"], found["decode_tps"]) == ("inconclusive", None, None)


@pytest.mark.parametrize(
    ("speedup", "generate", "acceptance", "prefill", "fault"),
    [
        # Between first and last token the wall clock alone takes more than a second, here as there.
        (3, 290, 0.25, 6_000, "no_timings"),
        (12, 768, 0.7, 4_000, "no_timings+slow_drip:4"),
        (10, 256, 0.7, 4_000, "wrong_timings:2"),
    ],
)
def test_however_it_misleads_what_is_called_measured_is_true(
    tmp_path: pathlib.Path, speedup: float, generate: int, acceptance: float, prefill: float, fault: str
) -> None:
    world = {"draft_acceptance": acceptance, "prefill_law": [[24_000, prefill]]}
    with engine(tmp_path, speedup, 24_000, 5_120, fault, **world) as url:
        found = found_on(url, 1, generate_tokens=generate)
    check(found, speedup * prefill, decode_of(speedup, 2, acceptance), acceptance)
    if fault != "no_timings":
        assert (found["verdict"], found["prefill_tps"], found["decode_tps"]) == ("inconclusive", None, None)
