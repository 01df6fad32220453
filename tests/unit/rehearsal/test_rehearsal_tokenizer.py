# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in's tokenizer: exact, reversible, and in the ratio that the operator measured."""

from __future__ import annotations

import time

import pytest
from engine.reply import compose, markers
from engine.tokenizer import Tokenizer

FOX = "The quick brown fox jumps over the lazy dog. "


def test_ninety_characters_of_the_fox_are_35_tokens() -> None:
    tokenizer = Tokenizer()
    assert len(tokenizer.encode(FOX * 2000)) - len(tokenizer.encode(FOX * 1000)) == 17500


def test_plain_english_is_between_the_measured_ratios() -> None:
    text = (
        "It was a bright cold day in April, and the clocks were striking thirteen. Winston slipped quickly through the "
        "glass doors of Victory Mansions, though not quickly enough to prevent a swirl of gritty dust from entering."
    )
    ratio = len(text) / len(Tokenizer().encode(text))
    assert 2.5 < ratio < 2.8


@pytest.mark.parametrize("text", ["", " ", "a", "  two  blanks ", "x1234567\n\ny, zoë\t…", "MARKER-12 " + FOX])
def test_tokens_give_the_text_back(text: str) -> None:
    tokenizer = Tokenizer()
    assert "".join(tokenizer.pieces(tokenizer.encode(text))) == text


def test_a_prompt_has_one_token_more_than_its_text() -> None:
    tokenizer = Tokenizer()
    assert len(tokenizer.prompt(FOX)) == len(tokenizer.encode(FOX)) + 1


def test_two_processes_agree() -> None:
    assert Tokenizer().encode(FOX) == Tokenizer().encode(FOX)


def test_half_a_million_characters_are_quick() -> None:
    tokenizer, text = Tokenizer(), FOX * 12222
    began = time.process_time()
    assert len(tokenizer.encode(text)) == 213886
    # 0.03 s here; the bound only tells a tokenizer of another order.
    assert time.process_time() - began < 0.5


def test_markers_are_found_in_order_and_once() -> None:
    text = "CODE-ABC-0001 then X9-SHORT then CODE-ABC-0002, CODE-ABC-0001 and ------------ and aCODE-ABC-0003"
    assert markers(text) == ["CODE-ABC-0001", "CODE-ABC-0002", "CODE-ABC-0003"]


def test_a_reply_begins_with_the_markers_and_ends_where_it_should() -> None:
    tokenizer = Tokenizer()
    short = compose(tokenizer, markers("CODE-ABC-0001 " + FOX), most=500, natural=40, ignore_eos=False)
    assert (len(short.tokens), short.natural) == (40, True)
    assert short.text(0, 40).startswith("CODE-ABC-0001. ")
    forced = compose(tokenizer, [], most=500, natural=40, ignore_eos=True)
    assert (len(forced.tokens), forced.natural) == (500, False)
    stopped = compose(tokenizer, [], most=500, natural=40, ignore_eos=True, stop=["weather"])
    assert compose(tokenizer, None, most=9, natural=40, ignore_eos=False).text(0, 9).startswith("!!!!")
    assert stopped.natural
    assert "".join(stopped.pieces) == "The lighthouse keeper wrote down the "
