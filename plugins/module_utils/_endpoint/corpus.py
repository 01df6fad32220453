# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prompt text of a wanted length, made piece by piece: markers, English-like filler, a question at the end.

The same seed gives the same text. All text is plain ASCII that JSON does not escape, so that its length in a request
is its number of characters. Filler is lower case but for the first letter of a sentence, so that no filler can be
taken for a marker.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import random
import secrets
import typing as t

# Without I, O, 0 and 1, which are misread.
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_VOCABULARY = (
    "a about above across after again against air all almost along also always among an and animal another answer any "
    "are around as ask at away back bad bank be because become before began begin behind being believe below best "
    "better between big bird black blue boat body book both bottom bring brought build built business but by call "
    "came can car care carry cause certain change check children city clear close cold color come common complete "
    "could country course cover cross cut dark day deep did different direct distance do does dog done door down draw "
    "dry during each early earth east easy eat end enough even ever every example eye face fact fall family far farm "
    "fast father feel feet few field figure fill final find fine fire first fish five flat floor follow food foot for "
    "force form found four free friend from front full game garden gave general get girl give go gold good great green "
    "ground group grow had half hand happen hard has have he head hear heat heavy help her here high hill him his hold "
    "home horse hot hour house how hundred idea if important in inch interest into iron is island it its just keep "
    "kind king knew know land language large last late laugh lay lead learn leave left less let letter life light like "
    "line list listen little live long look love low machine made make man many map mark market matter may mean "
    "measure men might mile mind minute miss money moon more morning most mother mountain move much music must name "
    "near need never new next night no north note nothing notice now number object of off often old on once one only "
    "open or order other our out over own page paper part pass pattern people perhaps person picture piece place plain "
    "plan plant play point port possible power press problem produce pull put question quick quite rain ran reach read "
    "ready real reason record red remember rest right river road rock room round rule run said sail same saw say "
    "school science sea second see seem self sentence serve set several shape she ship short should show side sign "
    "simple since sing six size sky sleep slow small snow so some song soon sound south space special spell stand star "
    "start state stay step still stone stood stop story street strong study such summer sun sure surface system table "
    "take talk tall teach tell ten test than that the their them then there these they thing think this those though "
    "thought thousand three through time to together told too took top toward town travel tree true try turn two under "
    "unit until up upon us use usual valley very village voice vowel wait walk wall want war warm was watch water wave "
    "way we week weight well went were west what wheel when where which while white who whole why wide will wind "
    "window winter with without wood word work world would write year yes yet you young your"
)
_WORDS = _VOCABULARY.split()
_PIECE = 16 * 1024
# Characters of filler a word, with its space and its share of the punctuation; see the test that measures it.
CHARS_PER_WORD = 5.62

# What stands between the turns of a talk.
ANSWER_CHARS = 1_500


def marker(rng: random.Random | None = None) -> str:
    """A word like ``Q7FM-2KDX-9RTA`` that no corpus holds. Random unless a test gives its own ``rng``."""
    pick: t.Callable[[str], str] = rng.choice if rng is not None else secrets.choice
    return "-".join("".join(pick(_ALPHABET) for _letter in range(4)) for _part in range(3))


def markers(count: int, rng: random.Random | None = None) -> list[str]:
    """``count`` different markers."""
    found: list[str] = []
    while len(found) < count:
        one = marker(rng)
        if one not in found:
            found.append(one)
    return found


def fresh_seed() -> int:
    """A seed for text that no cache has seen."""
    return secrets.randbits(48)


class Filler(t.NamedTuple):
    """``chars`` characters of English-like text; the same seed gives the same text, of whatever length."""

    seed: int
    chars: int


class Prompt:
    """A prompt of words as they stand and of filler, which it makes anew at each reading and never holds."""

    def __init__(self, *sections: str | Filler) -> None:
        self._sections = sections

    @property
    def chars(self) -> int:
        """The length of the whole prompt."""
        return sum(len(part) if isinstance(part, str) else max(0, part.chars) for part in self._sections)

    def parts(self) -> t.Iterator[str]:
        """The prompt in pieces, the same at each call."""
        for section in self._sections:
            if isinstance(section, str):
                yield section
            else:
                yield from _first(section.chars, _filler(section.seed))


def _first(chars: int, pieces: t.Iterator[str]) -> t.Iterator[str]:
    for piece in pieces:
        if chars <= 0:
            return
        yield piece[:chars]
        chars -= len(piece)


def _filler(seed: int) -> t.Iterator[str]:
    """Endless sentences of seven to sixteen words, in pieces of about 16 KiB."""
    rng = random.Random(seed)
    number = rng.random
    count = len(_WORDS)
    while True:
        sentences: list[str] = []
        size = 0
        while size < _PIECE:
            words = [_WORDS[int(number() * count)] for _word in range(7 + int(number() * 10))]
            words[0] = words[0].capitalize()
            if len(words) > 11:
                words[6] += ","
            sentence = " ".join(words) + ". "
            sentences.append(sentence)
            size += len(sentence)
        yield "".join(sentences)


class Words(t.NamedTuple):
    """The markers of one prompt, by where they stand in it."""

    head: str
    middle: str
    end: str


def code_words(count: int) -> list[Words]:
    """``count`` sets of markers, none of which is like another."""
    found = markers(len(Words._fields) * count)
    return [Words(*found[at : at + len(Words._fields)]) for at in range(0, len(found), len(Words._fields))]


def recall_prompt(words: Words, chars: int, seed: int) -> Prompt:
    """A prompt with a marker as its first word, one in its middle and one at its end, which then asks for all three.

    Too few ``chars`` for all that give just these words, without filler.
    """
    head, middle, end = _recall(words)
    return Prompt(*_around(head, middle, chars - len(end), seed), end)


def edge_prompt(words: Words, chars: int, seed: int, more: int, units: int) -> Prompt:
    """The text of the ``recall_prompt`` of the same figures up to its end, ``more`` characters, and ``units`` tokens.

    Filler stands in the place of the end. The ``units`` are as many times the same short word, each a token by itself,
    so that a prompt can be sized to the token.
    """
    head, middle, end = _recall(words)
    return Prompt(*_around(head, middle, chars - len(end), seed, len(end) + more), ". The end:", " a" * units)


def _recall(words: Words) -> tuple[str, str, str]:
    return (
        f"{words.head} is the first code word of this document. Remember its three code words. The document follows. ",
        f" {words.middle} is the second code word of this document. ",
        f" {words.end} is the third code word of this document, which ends here. Return the three code words of this "
        "document in their order, first and by themselves. The three code words of this document are",
    )


def _around(head: str, middle: str, chars: int, seed: int, more: int = 0) -> tuple[str | Filler, ...]:
    filler = max(0, chars - len(head) - len(middle))
    return head, Filler(seed, filler // 2), middle, Filler(seed + 1, filler - filler // 2 + more)


def cold_prompt(nonce: str, chars: int, seed: int) -> Prompt:
    """A prompt that no prefix cache can know: the nonce stands at the head. Its end asks for more of the same."""
    return Prompt(*_cold(nonce, chars, seed))


def later_prompt(nonce: str, chars: int, seed: int, answer_seed: int) -> Prompt:
    """A later turn of the same talk: the whole ``cold_prompt`` of the same figures, an answer to it, and more asked."""
    return Prompt(*_cold(nonce, chars, seed), Filler(answer_seed, ANSWER_CHARS), " Go on with it: ")


def _cold(nonce: str, chars: int, seed: int) -> tuple[str | Filler, ...]:
    head, end = f"{nonce} is the number of this document. ", " Go on with this document at length: "
    return head, Filler(seed, chars - len(head) - len(end)), end


def text_above(tokens: int, seed: int) -> Prompt:
    """A prompt that certainly has more than ``tokens`` tokens: 1.3 times as many words, each a token or more."""
    return cold_prompt(marker(), int(tokens * 1.3 * CHARS_PER_WORD) + 1000, seed)


def words_of(chars: int) -> int:
    """About how many words ``chars`` characters of filler hold."""
    return int(chars / CHARS_PER_WORD)
