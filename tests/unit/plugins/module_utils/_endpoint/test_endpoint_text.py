# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probes' text and figures: lengths, markers, medians, overlap, cost."""

from __future__ import annotations

import json
import random
import re
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import corpus
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import TEXT, json_body
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.measure import (
    agree,
    agree_on_decode,
    agree_on_prefill,
    apart,
    median,
    most_at_once,
    spread,
)
from hypothesis import given
from hypothesis import strategies as st

MARKER = re.compile(r"[A-Z0-9-]{12,}")


WORDS = corpus.Words("ABCD-EFGH-JKLM", "NPQR-STUV-WXYZ", "2345-6789-ABCD")


@given(st.integers(0, 60_000), st.integers(0, 2**48))
def test_a_prompt_is_as_long_as_it_says(chars: int, seed: int) -> None:
    prompt = corpus.recall_prompt(WORDS, chars, seed)
    text = "".join(prompt.parts())
    assert len(text) == prompt.chars
    assert chars < 500 or len(text) == chars
    assert MARKER.findall(text) == ["ABCD-EFGH-JKLM", "NPQR-STUV-WXYZ", "2345-6789-ABCD"]
    assert json.loads(json.dumps(text)) == text
    assert len(json.dumps(text)) == len(text) + 2


def test_a_marker_is_the_first_word_one_stands_in_the_middle_one_at_the_end_which_asks_for_all() -> None:
    text = "".join(corpus.recall_prompt(WORDS, 50_000, 1).parts())
    assert text.startswith("ABCD-EFGH-JKLM is the first code word")
    assert abs(text.index("NPQR-STUV-WXYZ is the second code word") - 25_000) < 200
    assert text.index("2345-6789-ABCD is the third code word") > 49_700
    assert text.endswith("The three code words of this document are")


def test_a_prompt_at_the_edge_begins_as_the_one_before_it() -> None:
    before = "".join(corpus.recall_prompt(WORDS, 50_000, 1).parts())
    edge = "".join(corpus.edge_prompt(WORDS, 50_000, 1, 1000, 12).parts())
    assert edge[:49_500] == before[:49_500]
    assert edge.endswith(". The end:" + " a" * 12)
    assert len("".join(corpus.edge_prompt(WORDS, 50_000, 1, 1000, 11).parts())) == len(edge) - 2


def test_a_text_is_the_same_at_each_reading_and_other_for_another_seed() -> None:
    one, other = corpus.cold_prompt("X", 40_000, 7), corpus.cold_prompt("X", 40_000, 8)
    assert list(one.parts()) == list(one.parts())
    assert "".join(one.parts())[200:] != "".join(other.parts())[200:]


def test_a_prompt_holds_none_of_its_text() -> None:
    pieces = [len(piece) for piece in corpus.cold_prompt("X", 600_000, 7).parts()]
    assert sum(pieces) == 600_000
    assert max(pieces) < 20_000


def test_a_word_is_as_long_as_calibration_takes_it() -> None:
    text = "".join(corpus.cold_prompt("X", 1_000_000, 3).parts())
    assert len(text.split()) == pytest.approx(1_000_000 / 5.62, rel=0.005)


def test_a_text_above_a_window_has_more_words_than_it() -> None:
    text = "".join(corpus.text_above(20_000, 3).parts())
    assert 25_000 < len(text.split()) < 28_000


def test_markers_are_unique_words() -> None:
    found = corpus.markers(64)
    assert len(set(found)) == 64
    assert all(re.fullmatch(r"[A-Z0-9-]{12,}", word) for word in found)


def test_no_two_prompts_share_a_marker() -> None:
    found = corpus.code_words(40)
    assert len({word for words in found for word in words}) == 120


def test_markers_differ_from_run_to_run_but_for_a_seed() -> None:
    assert corpus.markers(3) != corpus.markers(3)
    assert corpus.markers(3, random.Random(5)) == corpus.markers(3, random.Random(5))


def test_a_body_of_a_prompt_is_its_json() -> None:
    prompt = corpus.cold_prompt("X", 30_000, 3)
    body = json_body({"model": "m", "prompt": TEXT, "max_tokens": 1}, prompt)
    raw = b"".join(body.parts())
    assert len(raw) == body.length
    assert json.loads(raw) == {"model": "m", "prompt": "".join(prompt.parts()), "max_tokens": 1}


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], None), ([None, None], None), ([3.0], 3.0), ([11.2, None, 11.0], 11.1), ([25.1, 11.2, 11.0], 11.2)],
)
def test_median(values: list[float | None], expected: float | None) -> None:
    assert median(values) == (pytest.approx(expected) if expected is not None else None)


@pytest.mark.parametrize(
    ("intervals", "most", "stretch"),
    [
        ([], 0, None),
        ([(0, 0)], 0, None),
        ([(0, 1)], 1, (0, 1)),
        ([(0, 1), (1, 2), (2, 3)], 1, (0, 1)),
        ([(0, 10), (4, 12), (9, 20)], 3, (9, 10)),
        ([(0, 5), (1, 2), (3, 4)], 2, (1, 2)),
        ([(0, 10), (4, 12), (11, 20)], 2, (4, 10)),
    ],
)
def test_most_at_once(intervals: t.Any, most: int, stretch: t.Any) -> None:
    assert most_at_once(intervals) == (most, stretch)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8))
def test_overlap_is_what_counting_every_moment_gives(intervals: list[tuple[int, int]]) -> None:
    moments = [sum(a <= m + 0.5 < b for a, b in intervals) for m in range(50)]
    assert most_at_once(intervals)[0] == max(moments)


@pytest.mark.parametrize(
    ("wall", "server", "agrees"),
    [
        (10.9, 10.8, True),
        (11.3, 10.8, True),
        (11.5, 10.8, False),
        (10.3, 10.8, True),
        (10.2, 10.8, False),
        (0.11, 0.06, True),
        (0.12, 0.06, False),
        (0.06, 0.30, False),
        # A lie below the half second: the time it claims is next to nothing beside the time it took.
        (0.01, 0.000001, False),
        # Half of the true time, whatever that is.
        (0.20, 0.10, False),
        (0.90, 0.45, False),
        (0.90, 0.48, True),
    ],
)
def test_two_accounts_of_one_time(wall: float, server: float, agrees: bool) -> None:
    assert agree(wall, server) is agrees


@pytest.mark.parametrize(
    ("wall", "server", "agrees"),
    [
        (4.4, 4.25, True),
        (4.5, 4.25, False),
        (8.5, 8.1, True),
        (8.6, 8.1, False),
        (0.5, 0.34, True),
        (0.5, 0.33, False),
        (1.3, 0.9, False),
        (1.9, 1.7, True),
        # From two seconds on, a lie of a tenth is one.
        (2.2, 2.0, False),
        (2.1, 2.0, True),
    ],
)
def test_between_the_first_token_and_the_last_there_is_little_to_differ(
    wall: float, server: float, agrees: bool
) -> None:
    assert agree_on_decode(wall, server) is agrees


@pytest.mark.parametrize(
    ("wall", "server", "tokens", "agrees"),
    [
        (0.9, 0.6, 4_000, True),
        (1.5, 1.41, 4_000, True),
        (1.5, 1.3, 4_000, False),
        (2.6, 2.0, 4_000, False),
        (2.6, 2.49, 4_000, True),
        (2.6, 2.35, 43_500, True),
        (10.9, 10.4, 43_500, True),
        (10.9, 10.3, 43_500, False),
    ],
)
def test_the_longer_a_prefill_the_closer_both_clocks(wall: float, server: float, tokens: int, agrees: bool) -> None:
    assert agree_on_prefill(wall, server, tokens) is agrees


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], None), ([3.0], None), ([3.0, None, 4.0, 5.0], None), ([3.0, 5.0], 0.5), ([1.0, 3.0, 5.0, 99.0], 0.5)],
)
def test_how_far_apart_a_median_was_found(values: list[float | None], expected: float | None) -> None:
    assert apart(values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], None), ([3.0], None), ([3.0, None], None), ([90.0, 100.0, 120.0], 0.3), ([0.0, 0.0], None)],
)
def test_spread(values: list[float | None], expected: float | None) -> None:
    assert spread(values) == expected
