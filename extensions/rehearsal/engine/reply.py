# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the stand-in answers: the marker words that it finds in a prompt, then filler.

A prompt with a code word in it gets that word back, whatever it asks; so an honest retrieval probe passes, and one that
reads its own question into the answer cannot tell more than it could of a real model.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from .tokenizer import Tokenizer

_MARKER = re.compile(r"(?<![A-Z0-9-])[A-Z0-9-]{12,}(?![A-Z0-9-])")
_ALNUM = re.compile(r"[A-Z0-9]")
_FILLER = (
    "The lighthouse keeper wrote down the weather every morning before the boats went out. "
    "Nobody had asked for it, yet the small brown books filled one shelf after another. "
)
_THOUGHT = "The user wants an answer from the text above. I look for what is asked, and then I answer briefly. "
_GARBAGE = "!!!! the the 0 ,, !!!! of of of ;; !!!! 0 0 the ,,,, !!!! "


@dataclass(frozen=True)
class Reply:
    """A whole reply in tokens: ``thinking`` of them come first; ``natural`` says whether it ends by itself."""

    tokens: array[int]
    pieces: list[str]
    thinking: int
    natural: bool

    def text(self, start: int, end: int) -> str:
        """The text between two token positions."""
        return "".join(self.pieces[start:end])


def markers(text: str) -> list[str]:
    """The distinct marker words of a prompt, in their order."""
    found = (word for word in _MARKER.findall(text) if _ALNUM.search(word))
    return list(dict.fromkeys(found))


def compose(
    tokenizer: Tokenizer,
    words: list[str] | None,
    *,
    most: int,
    natural: int,
    ignore_eos: bool,
    stop: Sequence[str] = (),
    thinking: int = 0,
) -> Reply:
    """A reply of these marker words in at most ``most`` tokens; without words to say (None) it is garbage.

    It ends by itself after ``natural`` tokens unless ``ignore_eos``.
    """
    wanted = most if ignore_eos else min(most, thinking + natural)
    thoughts = _fill(tokenizer, "", _THOUGHT, min(thinking, wanted))
    head = ", ".join(words) + ". " if words else ""
    answer = _fill(tokenizer, head, _FILLER if words is not None else _GARBAGE, wanted - len(thoughts))
    tokens = thoughts + answer
    ended = len(tokens) < most
    if stop:
        text = "".join(tokenizer.pieces(answer))
        cuts = [at for at in (text.find(word) for word in stop if word) if at >= 0]
        if cuts:
            tokens = thoughts + tokenizer.encode(text[: min(cuts)])
            ended = True
    return Reply(tokens, tokenizer.pieces(tokens), len(thoughts), ended)


def _fill(tokenizer: Tokenizer, head: str, filler: str, count: int) -> array[int]:
    # A filler is more than 50 tokens a turn, so that this many turns always suffice.
    return tokenizer.encode(head + filler * (count // 20 + 1))[:count]
