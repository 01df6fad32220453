# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line that a hand-written serve script becomes, read from its text. Nothing is ever executed.

A script that is taken sets variables, reads the env beside it and `exec`s one command. What else it does, and anything
that is not understood, is refused with the number of its line and what to write instead.
"""

from __future__ import annotations

import posixpath
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _shell_words
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._shell_expansion import Field, Scope
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._shell_words import Part, Statement, refuse

_READ_BY = re.compile(r"#! ?(?:/usr)?/bin/(?:env )?(?:sh|bash|dash)(?: -[euxf]+)?\s*")
_OPTIONS = re.compile(r"(?:[-+](?:[abCefhmuvx]+|[abCefhmuvx]*o (?:pipefail|nounset|errexit|allexport))(?: |$))*")
# What changes no word of the command line.
_HARMLESS = (":", "echo", "printf", "umask", "ulimit", "mkdir", "sleep", "logger")
# Of a runtime: what puts an old container away.
_CLEARS = ("rm", "stop", "kill")
# Before these an assignment stays in force in sh, and not in bash.
_KEEPS = (":", ".", "source", "export", "set")
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(rf"(?P<name>{_NAME.pattern})=")
# `|| exit 1` behind a command that may fail.
_GIVES_UP = ("exit", "return", "true", ":")

_SELF = r'"?\$(?:0|\{0\}|\{?BASH_SOURCE(?:\[0\])?\}?)"?'
_REAL = rf'"?\$\((?:readlink -f|realpath) (?:-- )?{_SELF}\)"?'
_DIRNAME = rf"dirname (?:-- )?(?:{_SELF}|{_REAL})"
# The folder of the script, by the ways in which people write it: with `cd` and `pwd` around, or without.
_FOLDER = re.compile(
    rf"(?:(?:CDPATH=(?:''|\"\")? )?cd (?:-P )?(?:-- )?\"?\$\({_DIRNAME}\)(?P<tail>[\w./-]*)\"?"
    rf"(?: >/dev/null(?: 2>&1)?)? && pwd(?: -[LP])?|{_DIRNAME})"
)
_CAT = re.compile(r"(?:cat (?:-- )?|< ?)(?P<path>[^\s<>|;&#]+|\"[^\"]+\")")


class Script(t.NamedTuple):
    """What a script becomes. ``command`` are the words behind `exec`; ``sources`` is the env that it reads, or None;
    ``optional`` the flags that an empty variable leaves out, by their variable; ``set_on`` the lines of its own
    assignments; ``key_file`` the file whose content is a word of the command."""

    command: list[Field]
    sources: str | None
    optional: dict[str, str]
    set_on: dict[str, int]
    key_file: str | None


def read_script(text: str, path: str, env: t.Mapping[str, str], env_path: str) -> Script:
    """What the script ``text``, which lies at ``path`` on its host, becomes with the values of the env at ``env_path``.

    Raises RadianceError ``script_not_understood`` with the line and what to write instead.
    """
    first = text.partition("\n")[0]
    if first.startswith("#!") and not _READ_BY.fullmatch(first):
        raise refuse(1, f"{first[:60]!r} names another interpreter than sh and bash", "Write #!/bin/sh.")
    return _Reading(path, env, env_path).read(_shell_words.statements(text))


class _Reading:
    def __init__(self, path: str, env: t.Mapping[str, str], env_path: str) -> None:
        self.path, self.env, self.env_path = path, env, env_path
        self.scope = Scope(path)
        self.set_on: dict[str, int] = {}
        self.sources: str | None = None
        self.key_file: str | None = None
        self.folder: str | None = None

    def read(self, statements: t.Sequence[Statement]) -> Script:
        skip = False
        for statement in statements:
            if skip:
                self._gives_up(statement)
            command = None if skip else self._statement(statement)
            if statement.ended_by not in ("\n", ";", "", "||"):
                raise refuse(
                    statement.line,
                    f"{statement.ended_by!r} joins two commands",
                    "Write each on a line of its own; with `set -e` a failure ends the script.",
                )
            if command is not None:
                return Script(command, self.sources, self.scope.optional, self.set_on, self.key_file)
            skip = statement.ended_by == "||"
        last = statements[-1].line if statements else 1
        raise refuse(
            last,
            "the script ends without `exec`",
            "Write `exec` before the command that runs the engine, so that it is the process of the unit.",
        )

    def _gives_up(self, statement: Statement) -> None:
        if not statement.words or statement.words[0].literal not in _GIVES_UP:
            raise refuse(statement.line, "what stands behind || decides what runs", "Leave it out, or write `exit 1`.")

    def _statement(self, statement: Statement) -> list[Field] | None:
        """Take one statement in; the words of its command where it is the `exec` that ends the script."""
        words, line = list(statement.words), statement.line
        assigned = []
        while words and self._assigns(words[0]):
            assigned.append(words.pop(0))
        if not words:
            for word in assigned:
                self._assign(word)
            if not assigned:
                raise refuse(line, f"{statement.ended_by!r} stands alone", "Take it out.")
            return None
        first = words[0].literal
        rest = words[1:]
        if assigned and (first in _KEEPS or (first == "exec" and not rest)):
            raise refuse(line, f"an assignment stands before `{first}`, where sh keeps it", "Write it on its own line.")
        if first == "exec":
            return self._exec(rest, line) if rest else None
        if first == "export":
            for word in rest:
                if self._assigns(word):
                    # Some shells part the value here.
                    self.scope.expand(word, self._substitution)
                    self._assign(word)
                elif not _NAME.fullmatch(word.literal or ""):
                    raise refuse(
                        line, "`export` has something else than a name and a value", "Write export NAME=value."
                    )
        elif first == "set":
            self._set(rest, line)
        elif first in (".", "source"):
            self._source(rest, line)
        elif first == "cd":
            self._cd(rest, line)
        elif (first not in _HARMLESS and not self._clears(first, rest)) or _sets_variable(first, rest):
            shown = f"`{first}`" if first is not None else "a command whose name is a value"
            raise refuse(
                line,
                f"it has {shown}, which may change what runs",
                "Only assignments, `set`, `export`, `cd`, `.` of the env and one `exec` are read: write what it gives.",
            )
        return None

    def _clears(self, first: str | None, rest: t.Sequence[_shell_words.Word]) -> bool:
        return first in ("podman", "docker") and bool(rest) and rest[0].literal in _CLEARS

    def _assigns(self, word: _shell_words.Word) -> re.Match[str] | None:
        plain = ""
        for part in word.parts:
            if part.kind != "text" or part.quoted:
                break
            plain += part.text
        return _ASSIGNMENT.match(plain)

    def _assign(self, word: _shell_words.Word) -> None:
        found = t.cast("re.Match[str]", self._assigns(word))
        name = found["name"]
        # Up to the sign each part is one plain character.
        value = self.scope.text(_shell_words.Word(word.line, word.parts[found.end() :]), self._substitution)
        _refuse_odd_name(name, word.line)
        if name in self.set_on:
            raise refuse(word.line, f"{name} is set on line {self.set_on[name]} already", "Keep one of the two.")
        if name in self.env:
            raise refuse(
                word.line,
                f"{name} is set there and in {self.env_path}, and their order decides",
                "Keep the one in the env.",
            )
        self.set_on[name] = word.line
        self.scope.values[name] = value

    def _set(self, words: t.Sequence[_shell_words.Word], line: int) -> None:
        if not _OPTIONS.fullmatch(" ".join(word.literal or "?" for word in words)):
            raise refuse(line, "`set` does more than to end the script at a failure", "Write `set -eu`.")

    def _source(self, words: t.Sequence[_shell_words.Word], line: int) -> None:
        fields = [field for word in words for field in self.scope.expand(word, self._substitution)]
        if len(fields) != 1:
            raise refuse(line, "it reads a file with arguments", "Name the env alone.")
        path = self._absolute(fields[0].text, line)
        if path != posixpath.normpath(self.env_path):
            raise refuse(
                line,
                f"it reads {path}, and the env of the service is {self.env_path}",
                "Put what it sets into the env, or name that file in `paths` of the service.",
            )
        if self.sources is not None:
            raise refuse(line, "it reads the env a second time", "Take it out.")
        for name in self.env:
            _refuse_odd_name(name, line)
        self.sources = path
        self.scope.values.update(self.env)

    def _cd(self, words: t.Sequence[_shell_words.Word], line: int) -> None:
        fields = [field for word in words for field in self.scope.expand(word, self._substitution)]
        texts = [field.text for field in fields if field.text not in ("--", "-P", "-L")]
        if len(texts) != 1:
            raise refuse(line, "it goes to another folder than one that is named", "Name one folder.")
        self.folder = self._absolute(texts[0], line)

    def _absolute(self, path: str, line: int) -> str:
        if not path.startswith("/"):
            if self.folder is None or "/" not in path:
                raise refuse(
                    line,
                    f"{path!r} depends on the folder that the script is started in",
                    'Write here=$(CDPATH=\'\' cd -- "$(dirname -- "$0")" && pwd) before, and "$here/…".',
                )
            path = posixpath.join(self.folder, path)
        return posixpath.normpath(path)

    def _exec(self, words: t.Sequence[_shell_words.Word], line: int) -> list[Field]:
        if (words[0].literal or "").startswith("-"):
            raise refuse(line, "`exec` has an option", "Write the command right behind it.")
        command = [field for word in words for field in self.scope.expand(word, self._substitution)]
        if not command:
            raise refuse(line, "`exec` has no command", "Write the command right behind it.")
        return command

    def _substitution(self, part: Part, line: int) -> tuple[str, bool]:
        """The text of a ``$(…)``: the script's folder, or a file that holds a secret."""
        inner = re.sub("[ \t]+", " ", part.text.strip(" \t"))
        folder = _FOLDER.fullmatch(inner)
        if folder is not None:
            return posixpath.normpath(posixpath.dirname(self.path) + (folder["tail"] or "")), False
        cat = _CAT.fullmatch(inner)
        if cat is not None:
            (word,) = (word for statement in _shell_words.statements(cat["path"], line) for word in statement.words)
            fields = self.scope.expand(word, self._substitution)
            self.key_file = self._absolute(fields[0].text, line) if fields else None
            return "", True
        raise refuse(line, f"$({inner}) is a command", "Write the value that it gives into the env.")


def _sets_variable(command: str | None, words: t.Sequence[_shell_words.Word]) -> bool:
    """Whether a command that changes nothing else puts its output into a variable: ``printf -v NAME``."""
    return command == "printf" and (not words or words[0].literal is None or words[0].literal.startswith("-"))


def _refuse_odd_name(name: str, line: int) -> None:
    if name == "IFS":
        raise refuse(line, "IFS decides how a shell parts values", "Leave it out.")


def engine_flags(command: t.Sequence[Field]) -> dict[str, tuple[str, Field]]:
    """The flags of a command line with their value and the field that holds it, as ``process.flags_of`` reads them."""
    out: dict[str, tuple[str, Field]] = {}
    position = 0
    while position < len(command):
        field = command[position]
        position += 1
        if not field.text.startswith("--") or field.text == "--":
            continue
        name, equals, value = field.text[2:].partition("=")
        holds = field
        if not equals and position < len(command) and not re.match(r"--|-[A-Za-z]", command[position].text):
            holds, value = command[position], command[position].text
            position += 1
        out[name] = (value, holds)
    return out
