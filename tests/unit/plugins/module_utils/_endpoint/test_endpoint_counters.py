# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of /metrics, and what they grew by over one run."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.client import Client
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.counters import (
    UNCOUNTED,
    Counters,
    growth,
    others_counted,
    parse_counters,
    read_counters,
    total,
)
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.endpoint_server import serving

TEXT = """# TYPE radiance:draft_tokens_total counter
radiance:draft_tokens_total{model_name="a{b}c",engine="0"} 1000
radiance:draft_tokens_total{model_name="a{b}c",engine="1"} 1e2
radiance:draft_accepted_total{model_name="a",engine="0"} 700
radiance:engine_steps_decode_total{model_name="a",engine="0"} 550 1764460800000
radiance:engine_steps_prefill_total{model_name="a",engine="0"} 9
vllm:generation_tokens_total{model_name="a",engine="0"} 5000
radiance:draft_accepted_total_ratio 3
radiance:draft_accepted_total{model_name="a",engine="1"} NaN
"""


def test_the_counters_in_the_text() -> None:
    assert parse_counters(TEXT) == Counters(1100, 700, 550, None, 5000)
    assert parse_counters("draft_tokens_total 5") == Counters(5, None, None)
    # What nothing counts as far as is no count.
    assert parse_counters("draft_tokens_total 1e999\nengine_steps_decode_total 7") == Counters(None, None, 7)
    assert parse_counters("draft_tokens_total " + "9" * 5000) == UNCOUNTED
    assert parse_counters("garbage\n\x00{{{}}") == UNCOUNTED


@pytest.mark.parametrize(
    ("before", "after", "grown", "acceptance"),
    [
        (Counters(1000, 300, 500), Counters(1200, 440, 600), Counters(200, 140, 100), 0.7),
        (Counters(1000, 300, 500), Counters(1000, 300, 600), Counters(0, 0, 100), None),
        # The engine began anew between the two.
        (Counters(1000, 300, 500), Counters(200, 440, 600), Counters(None, 140, 100), None),
        (UNCOUNTED, Counters(200, 140, 100), UNCOUNTED, None),
        (Counters(0, 0, 0), Counters(10, 11, 1), Counters(10, 11, 1), None),
    ],
)
def test_what_they_grew_by_is_the_runs_own(
    before: Counters, after: Counters, grown: Counters, acceptance: float | None
) -> None:
    assert growth(before, after) == grown
    assert grown.acceptance == acceptance


@pytest.mark.parametrize(
    ("counted", "says"),
    [
        (Counters(prompted=40_000, generated=512), None),
        # The prompt's last chunk, and the answer's last steps, may be counted late.
        (Counters(prompted=38_000, generated=500), None),
        (Counters(prompted=40_700, generated=528), None),
        (
            Counters(prompted=41_200, generated=512),
            "the engine counted 41,200 prompt tokens, and the replies to the probe",
        ),
        (Counters(generated=576), "the engine counted 576 generated tokens, and the replies to the probe 512"),
        (UNCOUNTED, None),
    ],
)
def test_what_the_engine_counted_of_others(counted: Counters, says: str | None) -> None:
    found = others_counted(counted, 40_000, 512)
    assert found == says if says is None else says in (found or "")
    assert growth(UNCOUNTED._replace(prompted=1), UNCOUNTED._replace(prompted=9), tokens=False) == UNCOUNTED


def test_several_runs_together() -> None:
    assert total([Counters(200, 140, 100), Counters(100, 40, 50)]) == Counters(300, 180, 150)
    assert total([Counters(200, 140, 100), Counters(100, None, 50)]) == Counters(300, None, 150)
    assert total([]) == UNCOUNTED


def test_they_are_read_from_metrics_where_it_answers() -> None:
    with serving(
        {"/metrics": lambda call: call.reply(TEXT.encode(), headers={"Content-Type": "text/plain"})}
    ) as server:
        assert read_counters(Client(server.url)) == Counters(1100, 700, 550, None, 5000)
    with serving({}) as server:
        assert read_counters(Client(server.url)) == UNCOUNTED
