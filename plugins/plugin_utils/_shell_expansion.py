# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the words of a small shell script expand to, as sh and bash alike do it. Nothing is ever executed."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import MASK
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._shell_words import Part, Word, refuse

_GLOB = re.compile(r"[*?\[{]")
# What parts words; any other blank is a character like another.
_BLANK = re.compile(r"[ \t\n]")
# Answers a `$(…)` on its line with a text, and whether that is a secret.
Substitution = t.Callable[[Part, int], tuple[str, bool]]


class Field(t.NamedTuple):
    """What a word expands to. ``names`` are the variables whose value is in it, ``written`` tells whether there is text
    beside them, and ``secret`` whether the content of a file is in it, which nobody reads here."""

    text: str
    line: int
    names: frozenset[str]
    written: bool
    secret: bool = False


class Scope:
    """The variables that a script has set so far, each with the place that it has its value from."""

    def __init__(self, script: str) -> None:
        self.values: dict[str, str] = {"0": script}
        self.set_by: dict[str, str] = {}
        # Flags that stand behind a variable which is there and empty: ${NAME:+--flag "$NAME"}
        self.optional: dict[str, str] = {}

    def expand(self, word: Word, command: Substitution) -> list[Field]:
        """The fields of a word, none where it is an expansion that gives nothing. ``command`` answers a ``$(…)`` with a
        text and whether that is a secret. Raises RadianceError ``script_not_understood``.
        """
        fields = _Fields(word.line)
        self._expand(word.parts, word.line, fields, command)
        return fields.done()

    def text(self, word: Word, command: Substitution) -> str:
        """The one text of a word that is not parted: the right side of an assignment."""
        _refuse_home(word.parts, word.line)
        return "".join(field.text for field in self.expand(Word(word.line, _as_quoted(word.parts)), command))

    def _expand(
        self,
        parts: t.Sequence[Part],
        line: int,
        fields: _Fields,
        command: Substitution,
    ) -> None:
        _refuse_home(parts, line)
        for part in parts:
            if part.kind == "text":
                if not part.quoted and _GLOB.search(part.text):
                    raise refuse(line, f"{part.text!r} is not quoted, and a shell looks for files by it", "Quote it.")
                fields.add(part.text, part.quoted)
            elif part.kind == "command":
                text, secret = command(part, line)
                self._whole(part, "$(…)", text, line)
                fields.add(text, True, secret=secret)
            elif part.text == "@" and part.quoted and not part.operator:
                continue  # what a unit gives to its script, which is nothing
            else:
                self._variable(part, line, fields, command)

    def _variable(
        self,
        part: Part,
        line: int,
        fields: _Fields,
        command: Substitution,
    ) -> None:
        name, value = part.text, self.values.get(part.text)
        if not re.fullmatch("[A-Za-z_0-9]+", name):
            raise refuse(line, f"${name} tells of the shell itself", "Write the value that it gives.")
        literally = any(inner.quoted != part.quoted for inner in part.word)
        if (
            name == "0"
            and part.operator == "%"
            and "".join(inner.text for inner in part.word) == "/*"
            and not literally
        ):
            fields.add(self.values["0"].rpartition("/")[0], True)
            return
        given = value is not None and (value != "" or not part.operator.startswith(":"))
        operator = part.operator[-1:]
        if operator in ("%", "#"):
            raise refuse(line, f"${{{name}{part.operator}…}} cuts a value", "Write the value that it gives.")
        if operator == "+":
            if given:
                self._expand(part.word, line, fields, command)
            elif value is not None:
                self._note_optional(part, line, command)
            return
        if given:
            self._whole(part, f"${name}", value or "", line)
            fields.add(value or "", part.quoted, name=name)
        elif operator == "-":
            self._expand(part.word, line, fields, command)
        elif value is None or operator == "?":
            raise refuse(
                line,
                f"${name} is set neither in the script nor in its env before that",
                f"Write {name}=… into the env.",
            )

    def _whole(self, part: Part, shown: str, value: str, line: int) -> None:
        if not part.quoted and (_BLANK.search(value) or _GLOB.search(value.replace(MASK, ""))):
            raise refuse(line, f"{shown} is not quoted, and a shell parts or matches its value", f'Write "{shown}".')

    def _note_optional(self, part: Part, line: int, command: Substitution) -> None:
        inner = _Fields(line)
        self._expand(part.word, line, inner, command)
        fields = inner.done()
        if len(fields) == 2 and fields[1].names == {part.text} and fields[0].text.startswith("--"):
            self.optional[fields[0].text[2:]] = part.text


def _as_quoted(parts: t.Sequence[Part]) -> tuple[Part, ...]:
    """The parts with nothing in them that a blank would part."""
    return tuple(part._replace(quoted=True, word=_as_quoted(part.word)) for part in parts)


def _refuse_home(parts: t.Sequence[Part], line: int) -> None:
    """Refuse a ``~`` where a shell may put a home directory: at the beginning, and behind `=`, `:` and a blank."""
    before = ":"
    for part in parts:
        if part.kind == "text" and not part.quoted:
            if part.text == "~" and before in ":= \t\n":
                raise refuse(line, "~ is another folder for each user", "Write the folder out.")
            before = part.text
        else:
            before = "x"


class _Fields:
    """Puts the fields of a word together; a blank that is not quoted, inside of an expansion, ends one."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.out: list[Field] = []
        self.open: Field | None = None

    def add(self, text: str, quoted: bool, name: str | None = None, secret: bool = False) -> None:
        """A further piece of text: the value of ``name``, or what is written there."""
        if not quoted and name is None and _BLANK.search(text):
            for piece in re.findall(r"[ \t\n]+|[^ \t\n]+", text):
                if _BLANK.match(piece):
                    self._end()
                else:
                    self.add(piece, True)
            return
        if not text and not quoted:
            return
        so_far = self.open or Field("", self.line, frozenset(), False)
        names = so_far.names | ({name} if name is not None else frozenset())
        written = so_far.written or (name is None and text != "")
        self.open = Field(so_far.text + text, self.line, names, written, so_far.secret or secret)

    def _end(self) -> None:
        if self.open is not None:
            self.out.append(self.open)
        self.open = None

    def done(self) -> list[Field]:
        """All fields, the last one ended."""
        self._end()
        return self.out
