# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets in somebody's own files stay on their machine: hidden where a text is read, put back where it is written.

What a module returns stands on a screen and in a log. Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

MASK = "********"
# A name that holds a secret ends in one of these words: API_KEY and HF_TOKEN do, API_KEY_FILE and MAX_TOKENS do not.
_SECRET_WORD = r"(?:key|token|secret|password|passwd|passphrase|credentials?|authorization)"
SECRET_NAME = r"(?:[a-z0-9]+[_.-])*" + _SECRET_WORD
# NAME=value, also in a comment; --name value. A variable or a command in place of the value is no secret.
_ASSIGNED = re.compile(rf"(?i)((?:#\s*)?(?:export\s+)?{SECRET_NAME}=)([^$`]+)")
_WORD = r"('[^']*'|\"[^\"$`]*\"|[^\s$`\\]+)"
_GIVEN = re.compile(rf"(?i)(--{SECRET_NAME}(?:=|[ \t]+)){_WORD}")
# NAME=value as a word of a command: -e NAME=value, --env=NAME=value, and before a command.
NAMED_BEFORE = r"(?:(?<![^\s;\"'])|(?<=\s-e)|(?<=\s-e=)|(?<=--env=))"
_NAMED = re.compile(rf"(?i)({NAMED_BEFORE}{SECRET_NAME}=){_WORD}")
# Quotes and blanks stay, for they tell how a line is read.
_PLAIN = re.compile(r"[A-Za-z0-9._:/@%+=,*-]+")


def hidden(text: str) -> str:
    """The text with a mask in place of each secret that has a name."""
    return "\n".join(_hidden(line) for line in text.split("\n"))


def put_back(text: str, there: str) -> str:
    """A text that was hidden, with the secrets that the file ``there`` has in the same lines.

    Raises RadianceError ``secret_missing`` where it has none for a line.
    """
    kept: dict[str, list[str]] = {}
    for line in there.split("\n"):
        kept.setdefault(_hidden(line), []).append(line)
    return "\n".join(
        _line_back(number, line, kept) if MASK in line else line for number, line in enumerate(text.split("\n"), 1)
    )


def _line_back(number: int, line: str, kept: dict[str, list[str]]) -> str:
    if kept.get(line):
        return kept[line].pop(0)
    if line.startswith("#") or not (_ASSIGNED.fullmatch(line) or _GIVEN.search(line) or _NAMED.search(line)):
        return line
    raise RadianceError(
        f"line {number} holds a secret, {line.strip()!r}, which the file there does not have. Secrets are not carried "
        "from one machine to another: write the line into it yourself.",
        code="secret_missing",
    )


def _hidden(line: str) -> str:
    assigned = _ASSIGNED.fullmatch(line)
    if assigned:
        return assigned[1] + _PLAIN.sub(MASK, assigned[2])
    for pattern in (_GIVEN, _NAMED):
        line = pattern.sub(lambda given: given[1] + _PLAIN.sub(MASK, given[2]), line)
    return line
