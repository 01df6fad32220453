# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Env files that sh, bash, zsh, systemd's EnvironmentFile, ``podman --env-file`` and docker's read alike.

These readers disagree about quotes, comments behind a value, ``export``, continuation lines, ``$`` and blanks around
``=``. A file that keeps to plain values means the same to each of them, so the reader here takes nothing else and says
on which line a file leaves that common ground, and who reads what there. What it says of them was seen of the real
programs: extensions/hosts/env_cases.py holds them to it. Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import MASK

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_CHARACTER = r"[A-Za-z0-9._:/@%+=,-]"
_PLAIN = re.compile(_PLAIN_CHARACTER + "*")
_PLAIN_IN_WORDS = "letters, digits and . _ : / @ % + = , -"
# podman and docker refuse a file with a longer line, be it a comment.
_LONGEST_LINE_BYTES = 65535
# Names that bash or zsh keeps for itself: such a line ends the script, or the variable has another value after it.
_NAMES_OF_SHELLS = re.compile(
    r"""_|[EP]?PID|E?[UG]ID|USERNAME|GROUPS|S?RANDOM|SECONDS|EPOCH(?:REALTIME|SECONDS)|LINENO|OPTIND|SHLVL|ERRNO|ARGC
    |BASH(?:OPTS|PID|_.*)|SHELLOPTS|DIRSTACK|FUNCN(?:AME|EST)|HIST(?:CMD|SIZE|CHARS)|SAVEHIST|histchars
    |COLUMNS|LINES|LISTMAX|MAILCHECK|KEY(?:TIMEOUT|BOARD_HACK)|TTYIDLE|TRY_BLOCK_.*|ZLE_.*|ZSH_.*|zsh_.*
    |(?:dis_)?(?:aliases|[gs]aliases|builtins|functions(?:_source)?|patchars|reswords)|commands|argv|path|cdpath|fpath
    |func(?:filetrace|sourcetrace|stack|trace)|history(?:words)?|job(?:dirs|states|texts)|keymaps|modules|nameddirs
    |options|parameters|pipestatus|status|termcap|terminfo|user(?:dirs|groups)|widgets""",
    re.VERBOSE,
)


class EnvError(t.NamedTuple):
    """What is wrong on a line (counted from 1), in a sentence with the way out."""

    line: int
    text: str


class EnvFile(t.NamedTuple):
    """A file as read: values in their order, what was not understood, and the line of each value."""

    values: dict[str, str]
    errors: list[EnvError]
    lines: dict[str, int]


def read_env(text: str | bytes) -> EnvFile:
    """Read an env file strictly. What is wrong is listed with its line, and such a line gives no value.

    Bytes that are not UTF-8 are an error of their line, in a comment too. A name that comes twice keeps its first value
    and is an error, because the readers do not agree on which one counts.
    """
    content = text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
    values: dict[str, str] = {}
    errors: list[EnvError] = []
    lines: dict[str, int] = {}
    body = content[:-1] if content.endswith("\n") else content
    for number, line in enumerate(body.split("\n") if body else [], start=1):
        marked = number == 1 and line.startswith("\ufeff")
        if marked:
            line = line[1:]
            errors.append(
                EnvError(
                    1,
                    "the file starts with a byte order mark, which hides the first line: docker drops the mark, podman "
                    "makes it a part of the name, systemd skips the line, and a shell ends there. Remove it.",
                )
            )
        name, _equals, value = line.partition("=")
        problem = _line_problem(line)
        if not problem and (not line.strip(" \t") or line.lstrip(" \t").startswith("#")):
            continue
        problem = problem or _problem(line, name, value)
        if not problem and name in lines:
            problem = (
                f"{name} stands on line {lines[name]} already: docker hands on both, for the others the last one "
                "counts. Keep one of them."
            )
        if problem:
            errors.append(EnvError(number, problem))
        elif not marked:
            values[name], lines[name] = value, number
    return EnvFile(values, errors, lines)


def without_loose_numbers(env: EnvFile, names: t.Collection[str]) -> EnvFile:
    """The file without those values of ``names`` that are no plain decimal digits, each an error of its line.

    The engine reads a number as far as it looks like one, and says nothing.
    """
    values, errors = dict(env.values), list(env.errors)
    for name in names:
        value = values.get(name)
        if value is None or re.fullmatch("0|[1-9][0-9]*", value):
            continue
        digits = re.match("[+-]?[0-9]+", value)
        errors.append(
            EnvError(
                env.lines[name],
                f"{name} is {value!r}, which the engine reads as {int(digits[0]) if digits else 0}. Write it in plain "
                "decimal digits, like 6144.",
            )
        )
        del values[name]
    return EnvFile(values, errors, env.lines)


def _line_problem(line: str) -> str:
    """What is wrong with a line as such, be it a comment; an empty text if nothing is."""
    length = len(line.encode("utf-8", "surrogatepass"))
    if length > _LONGEST_LINE_BYTES:
        return (
            f"the line has {length:,} bytes: podman and docker refuse a file with a line of more than "
            f"{_LONGEST_LINE_BYTES:,}. Shorten it."
        )
    if line.endswith("\r"):
        return (
            "the line ends in CR LF: a shell keeps the carriage return in the value, systemd, podman and docker drop "
            "it. Save the file with LF endings."
        )
    if "\r" in line:
        return "the line holds a carriage return: systemd begins a new line there, and no other reader does. Remove it."
    if "\0" in line:
        return (
            "the line holds a NUL: systemd refuses the whole file, a shell drops it, podman and docker keep it. "
            "Remove it."
        )
    if re.search("[\ud800-\udfff]", line):
        return "the line is not UTF-8: docker refuses the whole file, and systemd such a value. Save the file as UTF-8."
    if line.lstrip(" \t").startswith("#") and line.endswith("\\"):
        return (
            "the comment ends in a backslash: systemd takes the next line for a part of it, and no other reader does. "
            "End it otherwise."
        )
    return ""


def _problem(line: str, name: str, value: str) -> str:
    """What is wrong with a line that is neither blank nor a comment; an empty text if nothing is."""
    # The texts name the variable, never its value: an env file that is not ours may hold a secret.
    if line.startswith(";"):
        return "the line starts with `;`, a comment for systemd alone. Start it with `#`."
    if line != line.lstrip():
        return "the line starts with a blank, so a search for ^NAME= does not find it. Start it with the name."
    if re.match(r"export\s", line):
        return (
            "the line starts with `export`, which only a shell knows: systemd skips the line, podman makes it a part "
            "of the name, docker refuses the file. Leave it out."
        )
    if "=" not in line:
        return (
            "the line has no `=`: a shell runs it as a command, podman and docker look the name up in their own "
            "environment, systemd skips it. Write NAME=value, or make it a comment."
        )
    if name.endswith("+"):
        return (
            f"{name[:-1]} is appended to by `+=`, which bash and zsh alone know: systemd skips the line, podman and "
            "docker make the + a part of the name. Write the whole value behind `=`."
        )
    if name != name.rstrip() or value != value.lstrip():
        return (
            f"{name.strip()} has a blank beside its `=`: a shell takes the parts for commands, systemd drops the "
            "blank, podman keeps it. Write NAME=value."
        )
    return _name_problem(name) or _value_problem(name, value)


def _name_problem(name: str) -> str:
    if not _NAME.fullmatch(name):
        return (
            f"{name!r} is not a name of letters, digits and underscores: a shell takes the line for a command, systemd "
            "skips it, podman and docker take it. Rename it."
        )
    if _NAMES_OF_SHELLS.fullmatch(name):
        return (
            f"{name} is a name that bash or zsh keeps for itself, so what the line says is not its value there, as it "
            "is for systemd, podman and docker. Rename it."
        )
    return ""


def _value_problem(name: str, value: str) -> str:
    """Why a value does not read the same everywhere: who reads what, and the way out; an empty text where it does."""
    if value.endswith("\\"):
        says = "ends in a backslash: systemd and a shell join the next line to it, podman and docker do not"
    elif "'" in value or '"' in value:
        says = "holds a quote: a shell and systemd take it away, podman and docker keep it"
    elif "$" in value or "`" in value:
        says = "holds a $ or a `: a shell puts something else there, systemd, podman and docker do not"
    elif re.search(r"\s#", value):
        says = "has a comment behind its value: a shell drops it, systemd, podman and docker take it for the value"
    elif re.search(r"\s$", value):
        says = "ends in a blank in its value: a shell and systemd drop it, podman and docker keep it"
    elif re.search(r"\s", value):
        says = "has a blank in its value: a shell takes what follows for a command, the others for the value"
    elif "\\" in value:
        says = "holds a backslash: a shell and systemd take it away, podman and docker keep it"
    elif re.search("[&;|<>()]", value):
        says = "holds a sign that ends a word in a shell, and in no other reader"
    elif re.search("(^|:)~", value):
        says = "has a ~ that a shell reads as a home directory, systemd, podman and docker as it is"
    elif re.search("(^|:)=", value):
        says = "has a = where zsh puts the path of a command, which none of the others does"
    elif not _PLAIN.fullmatch(value.replace(MASK, "")):
        odd = re.sub(_PLAIN_CHARACTER, "", value.replace(MASK, ""))[0]
        says = f"holds {odd!r}, which is safe only as long as everybody quotes the variable"
    else:
        return ""
    return f"{name} {says}. Write a plain value: one word of {_PLAIN_IN_WORDS}."


def render_env(header: t.Sequence[str], values: t.Mapping[str, str]) -> str:
    """The text of an env file: ``header`` as comment lines, a blank line, then the values in their order.

    Raises RadianceError ``env_name_unfit`` or ``env_value_not_plain`` for what could not be read back the same.
    """
    out: list[str] = []
    for line in header:
        for part in re.split("[\r\n]", line):
            # bash loses lines behind a NUL, and systemd takes the next one for comment where this ends in a backslash.
            shown = re.sub("[\0-\x1f\x7f]", " ", part).replace("\ufffd", "?")
            out.append(f"# {shown}".rstrip("\\ "))
    if out:
        out.append("")
    for name, value in values.items():
        problem = _name_problem(name)
        if problem:
            raise RadianceError(problem, code="env_name_unfit")
        problem = _value_problem(name, value)
        if problem:
            raise RadianceError(f"{problem} It is {value!r}.", code="env_value_not_plain")
        out.append(f"{name}={value}")
    return "\n".join(out) + "\n"
