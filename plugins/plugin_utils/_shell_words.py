# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of a small shell script, parted as sh and bash alike do. Nothing is ever executed.

Only what the two agree on is taken. Anything else is refused with the number of its line and what to write instead.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import MASK

_BLANKS = " \t"
_ENDS_WORD = " \t\n;&|<>()"
_OPERATORS = ("&&", "||", ";;", ";", "&", "|", "(", ")", "\n")
_REDIRECTIONS = (">>", ">&", "<&", ">", "<")
# Of a script that starts one service, in characters, and of expansions inside of each other.
_LONGEST = 1 << 16
_DEEPEST = 16
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?!$-]")
_OPERATOR_OF_NAME = re.compile(r":?[-+=?]|%%?|##?")


class Part(t.NamedTuple):
    """A part of a word: ``text``, a ``variable`` with the word of its operator, or a ``command`` substitution."""

    kind: str
    text: str
    quoted: bool
    operator: str = ""
    word: tuple[Part, ...] = ()


class Word(t.NamedTuple):
    """One word as written, with its line (counted from 1)."""

    line: int
    parts: tuple[Part, ...]

    @property
    def literal(self) -> str | None:
        """The word without its quotes where it has no expansion, else None."""
        return "".join(part.text for part in self.parts) if all(part.kind == "text" for part in self.parts) else None


class Statement(t.NamedTuple):
    """A simple command: its words, and the operator that stands behind it. Redirections are left out of the words."""

    line: int
    words: list[Word]
    ended_by: str


def refuse(line: int, what: str, instead: str) -> RadianceError:
    """The refusal of a line."""
    return RadianceError(f"line {line}: {what}. {instead}", code="script_not_understood")


def statements(text: str, first: int = 1) -> list[Statement]:
    """The simple commands of a script in their order, ``first`` being the number of its first line.

    Raises RadianceError ``script_not_understood``.
    """
    if len(text) > _LONGEST:
        raise refuse(
            first,
            f"the script has {len(text):,} characters, and up to {_LONGEST:,} are read",
            "Start the service by a small script of its own.",
        )
    reader = _Reader(text, first)
    reader.refuse_odd_ends()
    out: list[Statement] = []
    words: list[Word] = []
    line = first
    while True:
        token = reader.token()
        if isinstance(token, Word):
            line = line if words else token.line
            words.append(token)
            continue
        if words or token not in ("\n", ""):
            out.append(Statement(line if words else reader.line, words, token))
        words = []
        if token == "":
            return out


class _Reader:
    """Reads a text from its beginning, one token after the other."""

    def __init__(self, text: str, first: int) -> None:
        self.text = text
        self.first = first
        self.at = 0
        self.depth = 0

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.at) + self.first

    def refuse_odd_ends(self) -> None:
        """Refuse what an editor may hide: a shell takes a carriage return for a part of the word before it."""
        for mark, what in (("\r", "a carriage return"), ("\0", "a NUL")):
            if mark in self.text:
                self.at = self.text.index(mark)
                raise refuse(
                    self.line, f"it has {what}, which a shell does not read as the end of a word", "Remove it."
                )

    def token(self) -> Word | str:
        """The next word, or an operator; an empty text at the end. A redirection is read over."""
        while True:
            self._skip_blanks()
            if self.at >= len(self.text):
                return ""
            if self.text[self.at] == "#":
                self.at = self._until("\n", self.at)
                continue
            if self._redirection():
                continue
            for operator in _OPERATORS:
                if self.text.startswith(operator, self.at):
                    self.at += len(operator)
                    return operator
            return self.word()

    def _skip_blanks(self) -> None:
        while self.at < len(self.text):
            if self.text[self.at] in _BLANKS:
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            else:
                return

    def _until(self, mark: str, start: int) -> int:
        found = self.text.find(mark, start)
        return len(self.text) if found < 0 else found

    def _redirection(self) -> bool:
        """Read over ``2>&1``, ``>>FILE`` and the like: they are no words of the command."""
        digits = re.compile(r"[0-9]*").match(self.text, self.at)
        start = digits.end() if digits else self.at
        if self.text.startswith(("<<", "<(", ">("), start):
            raise refuse(self.line, "it has a here-document or a process substitution", "Put the text into a file.")
        mark = next((mark for mark in _REDIRECTIONS if self.text.startswith(mark, start)), None)
        if mark is None:
            return False
        if start - self.at > 1:
            raise refuse(self.line, "a number of two digits stands before its redirection", "Put a blank between them.")
        self.at = start + len(mark)
        self._skip_blanks()
        self.word()
        return True

    def word(self) -> Word:
        """The word that begins here."""
        line, parts = self.line, self._parts(_ENDS_WORD)
        if not parts:
            raise refuse(line, f"{self.text[self.at : self.at + 1]!r} stands where a word has to", "Take it out.")
        if self.at < len(self.text) and self.text[self.at] == "(":
            raise refuse(line, "it has an array or a function", "Write the words behind `exec`, each as it is.")
        return Word(line, tuple(parts))

    def _parts(self, ends: str, quoted: bool = False) -> list[Part]:
        """The parts up to one of ``ends``, which is left to be read."""
        parts: list[Part] = []
        while self.at < len(self.text) and self.text[self.at] not in ends:
            character = self.text[self.at]
            if self.text.startswith("\\\n", self.at):
                self.at += 2
            elif self.text.startswith(MASK, self.at):
                # A secret that was hidden where the file was read.
                parts.append(Part("text", MASK, True))
                self.at += len(MASK)
            elif character == "\\":
                escaped = self.text[self.at + 1 : self.at + 2]
                # A brace is only escaped where it would end something.
                kept = quoted and escaped not in ("$", "`", '"', "\\", *ends)
                parts.append(Part("text", "\\" + escaped if kept else escaped, True))
                self.at += 2
            elif character == "'" and not quoted:
                close = self._closing("'", self.at + 1)
                parts.append(Part("text", self.text[self.at + 1 : close], True))
                self.at = close + 1
            elif character == '"':
                parts += self._in_quotes(quoted)
            elif character == "`":
                raise refuse(self.line, "it has a command in backticks", "Write the value that it gives.")
            elif character == "$":
                parts.append(self._dollar(quoted))
            else:
                parts.append(Part("text", character, quoted))
                self.at += 1
        return parts

    def _closing(self, mark: str, start: int) -> int:
        found = self.text.find(mark, start)
        if found < 0:
            raise refuse(self.line, f"a {mark} that opens there is never closed", "Close it.")
        return found

    def _in_quotes(self, nested: bool) -> list[Part]:
        if nested:
            raise refuse(self.line, "it has quotes inside of quotes", "Leave the outer ones away.")
        opened = self.at
        self.at += 1
        inner = self._parts('"', quoted=True)
        if self.at >= len(self.text):
            self.at = opened
            raise refuse(self.line, 'a " that opens there is never closed', "Close it.")
        self.at += 1
        return inner or [Part("text", "", True)]

    def _dollar(self, quoted: bool) -> Part:
        if self.text.startswith("$((", self.at):
            raise refuse(self.line, "it calculates", "Write the number that it gives.")
        if self.text.startswith("$(", self.at):
            return self._command(quoted)
        if not quoted and self.text.startswith(("$'", '$"'), self.at):
            raise refuse(self.line, "it has a quote behind a $", "Write plain quotes.")
        if self.text.startswith("${", self.at):
            return self._braces(quoted)
        name = _NAME.match(self.text, self.at + 1)
        if self.text.startswith("\\\n", name.end() if name else self.at + 1):
            raise refuse(self.line, "a variable is parted by the end of the line", "Write it on one line, in braces.")
        self.at += 1
        if name is None:
            return Part("text", "$", True)
        self.at = name.end()
        return Part("variable", name.group(), quoted)

    def _command(self, quoted: bool) -> Part:
        """``$(…)`` with what is in it as it stands there."""
        start, depth, at = self.at, 0, self.at + 1
        while at < len(self.text):
            depth += {"(": 1, ")": -1}.get(self.text[at], 0)
            at += 1
            if depth == 0:
                self.at = at
                return Part("command", self.text[start + 2 : at - 1], quoted)
        raise refuse(self.line, "a $( that opens there is never closed", "Close it.")

    def _braces(self, quoted: bool) -> Part:
        start = self.at
        name = _NAME.match(self.text, self.at + 2)
        operator = None
        if name is not None:
            self.at = name.end()
            operator = _OPERATOR_OF_NAME.match(self.text, self.at)
            if operator is not None:
                self.at = operator.end()
                if operator.group().endswith("="):
                    raise refuse(
                        self.line,
                        f"${{{name.group()}{operator.group()}…}} sets a variable on its way",
                        f"Write {name.group()}=… into the env.",
                    )
            self.depth += 1
            if self.depth > _DEEPEST:
                raise refuse(self.line, f"more than {_DEEPEST} expansions stand in each other", "Write the value.")
            word = self._parts("}", quoted) if operator is not None else []
            self.depth -= 1
            if self.text.startswith("}", self.at):
                self.at += 1
                return Part("variable", name.group(), quoted, operator.group() if operator else "", tuple(word))
        shown = self.text[start : self._until("\n", start)]
        self.at = start
        raise refuse(
            self.line, f"{shown[:40]!r} is an expansion that is not read here", "Write the value that it gives."
        )
