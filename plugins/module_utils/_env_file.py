# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Env files that a shell, systemd's EnvironmentFile and ``podman --env-file`` read alike.

The three readers disagree about quotes, comments behind a value, ``export``, continuation lines, ``$`` and blanks
around ``=``. A file that keeps to plain values means the same to each of them, so the reader here takes nothing else
and says on which line a file leaves that common ground. Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_PLAIN_CHARACTER = r"[A-Za-z0-9._:/@%+=,-]"
_PLAIN = re.compile(_PLAIN_CHARACTER + "*")


class EnvError(t.NamedTuple):
    """What is wrong on a line (counted from 1), in a sentence with the way out."""

    line: int
    text: str


class EnvFile(t.NamedTuple):
    """A file as read: values in their order, and what was not understood."""

    values: dict[str, str]
    errors: list[EnvError]


def is_plain(value: str) -> bool:
    """Whether a value reads the same to a shell, to systemd and to podman, unquoted."""
    return _PLAIN.fullmatch(value) is not None


def read_env(text: str | bytes) -> EnvFile:
    """Read an env file strictly. What is wrong is listed with its line, and such a line gives no value.

    Bytes that are not UTF-8 are an error of their line. A name that comes twice keeps its first value and is an
    error, because the three readers do not agree on which one counts.
    """
    content = text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
    values: dict[str, str] = {}
    errors: list[EnvError] = []
    if content.startswith("\ufeff"):
        errors.append(EnvError(1, "the file starts with a byte order mark, which hides the first line. Remove it."))
        content = content[1:]
    first_line_of: dict[str, int] = {}
    body = content[:-1] if content.endswith("\n") else content
    for number, line in enumerate(body.split("\n") if body else [], start=1):
        blank, comment = not line.strip(), line.startswith("#")
        if (blank or comment) and not line.endswith("\r"):
            continue
        name, _equals, value = line.partition("=")
        problem = _problem(line, name, value)
        if not problem and name in first_line_of:
            problem = f"{name} stands on line {first_line_of[name]} already. Keep one of them."
        if problem:
            errors.append(EnvError(number, problem))
            continue
        first_line_of[name] = number
        values[name] = value
    return EnvFile(values, errors)


def _problem(line: str, name: str, value: str) -> str:
    """What is wrong with a line that is neither blank nor a comment; an empty text if nothing is."""
    # The texts name the variable, never its value: an env file that is not ours may hold a secret.
    if line.endswith("\r"):
        return "the line ends in CR LF, so the value would end in a carriage return. Save the file with LF endings."
    if line != line.lstrip():
        return "the line starts with a blank. Start it with the name."
    if re.match(r"export\s", line):
        return "the line starts with `export`, which systemd and podman take for a part of the name. Leave it out."
    if "=" not in line:
        return "the line has no `=`. Write NAME=value, or make it a comment."
    if name != name.rstrip() or value != value.lstrip():
        return f"{name.strip()} has a blank beside its `=`. Write NAME=value."
    if not _NAME.match(name):
        return f"{name!r} is not a name of letters, digits and underscores."
    if value.endswith("\\"):
        return f"{name} ends in a backslash: systemd and a shell join the next line to it, podman does not."
    if "'" in value or '"' in value:
        return f"{name} holds a quote: a shell takes it away, podman keeps it. Write a plain value."
    if re.search(r"\s", value):
        tail = "a comment behind its value" if re.search(r"\s#", value) else "a blank in its value"
        return f"{name} has {tail}. Comments stand on their own lines, and values are one word."
    if not is_plain(value):
        character = re.sub(_PLAIN_CHARACTER, "", value)[0]
        return f"{name} holds {character!r}, a character that a shell, systemd and podman do not read alike."
    return ""


def render_env(header: t.Sequence[str], values: t.Mapping[str, str]) -> str:
    """The text of an env file: ``header`` as comment lines, a blank line, then the values in their order.

    Raises RadianceError ``env_name_unfit`` or ``env_value_not_plain`` for what could not be read back the same.
    """
    out: list[str] = []
    for line in header:
        for part in line.split("\n"):
            out.append(f"# {part}".rstrip())
    if out:
        out.append("")
    for name, value in values.items():
        if not _NAME.match(name):
            raise RadianceError(
                f"{name!r} cannot be the name of an env value: letters, digits and underscores only.",
                code="env_name_unfit",
            )
        if not is_plain(value):
            raise RadianceError(
                f"The value of {name} is {value!r}: its {re.sub(_PLAIN_CHARACTER, '', value)[0]!r} would not read the "
                "same to a shell, to systemd and to podman. Values of the env are one word of letters, digits and "
                ". _ : / @ % + = , - only.",
                code="env_value_not_plain",
            )
        out.append(f"{name}={value}")
    return "\n".join(out) + "\n"
