# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each reader makes of an env file: of one that the strict reader takes, and of lines that it refuses.

env_readers.py holds the real programs to it, and the tests of the strict reader its sentences. Each case has names of
its own, so that all that a reader takes can stand in one file. Seen of dash 0.5.12, bash 5.2, zsh 5.9, systemd 252,
podman 4.3 and docker 20.10.
"""

from __future__ import annotations

import typing as t

Values = t.Optional[dict[str, str]]

# Every shape that a value may have, below comments that try to be more than that, and no newline at the end.
KEPT_VALUES = {
    "PAIR": "24000",
    "PLAIN": "a=b,c%d+e@f:g/h-i._j",
    "PERCENT": "%s%%h%",
    "IMAGE": "docker.io/x/y:1.0@sha256:0a",
    "EMPTY": "",
    "COLONS": ":a::b:",
    "SIGNS": "-+@/.,_",
    "EQUALS": "a==b=",
    "_under_1": "+",
    "LONG": 65500 * "x",
    "LAST": "1",
}
KEPT = "\n".join(
    [
        "# \"a quote, it's another, $(touch never), `touch never`, \\ and #",
        "  # \u00e9",
        "\t",
        *(f"{name}={value}" for name, value in KEPT_VALUES.items()),
    ]
).encode()


class Case(t.NamedTuple):
    """Lines that are refused, a word of the reason, and what each reader makes of them; None where it refuses them."""

    text: bytes
    word: str
    shells: Values  # sh, bash and zsh
    systemd: Values
    podman: Values
    docker: Values
    sh: t.Any = ...  # where it is another than bash and zsh
    zsh: t.Any = ...  # where it is another than sh and bash

    def told(self, reader: str) -> Values:
        """What a reader makes of it."""
        own = getattr(self, reader, self.shells)
        return self.shells if own is ... else own


def _case(
    text: str | bytes, word: str, shells: Values, systemd: Values, podman: Values, *docker: Values, **own: Values
) -> Case:
    """A case; docker reads as podman does where it is left out."""
    raw = text.encode() if isinstance(text, str) else text
    return Case(raw, word, shells, systemd, podman, *(docker or (podman,)), **own)


_LONG = 65535 * "x"

CASES = [
    _case("\ufeffMARK=1\n", "byte order mark", None, {}, {"\ufeffMARK": "1"}, {"MARK": "1"}),
    _case("CRLF=6144\r\n", "CR LF", {"CRLF": "6144\r"}, {"CRLF": "6144"}, {"CRLF": "6144"}),
    _case("# a\rCR=1\n", "carriage return", {}, {"CR": "1"}, {}),
    _case("NUL=1\0\n", "NUL", {"NUL": "1"}, None, {"NUL": "1\0"}),
    _case("# \0\n", "NUL", {}, None, {}),
    _case(b"LATIN=\xe9\n", "UTF-8", {"LATIN": "\udce9"}, None, {"LATIN": "\ufffd"}, None),
    _case(b"# \xe9\n", "UTF-8", {}, {}, {}, None),
    _case("# c\\\nCOMMENT=1\n", "comment ends in a backslash", {"COMMENT": "1"}, {}, {"COMMENT": "1"}),
    _case(f"L={_LONG[2:]}x\n", "65,536 bytes", {"L": _LONG[2:] + "x"}, {"L": _LONG[2:] + "x"}, None),
    _case(f"#{_LONG}\n", "65,536 bytes", {}, {}, None),
    _case("; c\n", "`;`", None, {}, {}, None),
    _case("export EXPORT=1\n", "export", {"EXPORT": "1"}, {}, {"export EXPORT": "1"}, None),
    _case("BARE\n", "no `=`", None, {}, {}),
    _case("PLUS+=1\n", "+=", {"PLUS": "1"}, {}, {"PLUS+": "1"}, sh=None),
    _case("BEFORE =1\n", "blank beside", None, {"BEFORE": "1"}, {"BEFORE ": "1"}, None),
    _case("BEHIND= 1\n", "blank beside", None, {"BEHIND": "1"}, {"BEHIND": " 1"}),
    _case("2A=1\n", "not a name", None, {}, {"2A": "1"}),
    _case("A-B=1\n", "not a name", None, {}, {"A-B": "1"}),
    _case("=1\n", "not a name", None, {}, None),
    _case("PPID=1\n", "keeps for itself", None, {"PPID": "1"}, {"PPID": "1"}, sh={"PPID": "1"}),
    _case("status=1\n", "keeps for itself", {"status": "1"}, {"status": "1"}, {"status": "1"}, zsh=None),
    _case(
        "JOINED=1\\\nNEXT=2\n",
        "backslash",
        {"JOINED": "1NEXT=2"},
        {"JOINED": "1NEXT=2"},
        {"JOINED": "1\\", "NEXT": "2"},
    ),
    _case("SLASH=a\\b\n", "backslash", {"SLASH": "ab"}, {"SLASH": "ab"}, {"SLASH": "a\\b"}),
    _case('QUOTE="qwen 27b"\n', "quote", {"QUOTE": "qwen 27b"}, {"QUOTE": "qwen 27b"}, {"QUOTE": '"qwen 27b"'}),
    _case("SINGLE='1'\n", "quote", {"SINGLE": "1"}, {"SINGLE": "1"}, {"SINGLE": "'1'"}),
    _case(
        "INLINE=6144 # was 8192\n",
        "comment behind",
        {"INLINE": "6144"},
        {"INLINE": "6144 # was 8192"},
        {"INLINE": "6144 # was 8192"},
    ),
    _case("TRAIL=1 \n", "ends in a blank", {"TRAIL": "1"}, {"TRAIL": "1"}, {"TRAIL": "1 "}),
    _case("WORDS=1 2\n", "a blank in its value", None, {"WORDS": "1 2"}, {"WORDS": "1 2"}),
    _case("DOLLAR=a$NONE\n", "a $", {"DOLLAR": "a"}, {"DOLLAR": "a$NONE"}, {"DOLLAR": "a$NONE"}),
    _case("TICK=`echo 1`\n", "a `", {"TICK": "1"}, {"TICK": "`echo 1`"}, {"TICK": "`echo 1`"}),
    _case("AND=a&nosuch\n", "ends a word", None, {"AND": "a&nosuch"}, {"AND": "a&nosuch"}),
    _case("SEMI=a;nosuch\n", "ends a word", None, {"SEMI": "a;nosuch"}, {"SEMI": "a;nosuch"}),
    _case("BRACKET=a(b)\n", "ends a word", None, {"BRACKET": "a(b)"}, {"BRACKET": "a(b)"}, zsh={"BRACKET": "a(b)"}),
    _case("HOUSE=~bin/x\n", "home directory", {"HOUSE": "/bin/x"}, {"HOUSE": "~bin/x"}, {"HOUSE": "~bin/x"}),
    _case("HOUSES=x:~bin\n", "home directory", {"HOUSES": "x:/bin"}, {"HOUSES": "x:~bin"}, {"HOUSES": "x:~bin"}),
    _case("EQUAL==nosuch\n", "zsh", {"EQUAL": "=nosuch"}, {"EQUAL": "=nosuch"}, {"EQUAL": "=nosuch"}, zsh=None),
    _case("COLON=x:=nosuch\n", "zsh", {"COLON": "x:=nosuch"}, {"COLON": "x:=nosuch"}, {"COLON": "x:=nosuch"}, zsh=None),
]
# Refused though all read it alike: what a person, or a script without quotes, takes for something else.
ALIKE = [
    (" LEAD=1\n", "starts with a blank", {"LEAD": "1"}),
    ("GLOB=/et*\n", "holds '*'", {"GLOB": "/et*"}),
    ("HASH=x#y\n", "holds '#'", {"HASH": "x#y"}),
    ("ACCENT=\u00e9\n", "holds '\u00e9'", {"ACCENT": "\u00e9"}),
]
CASES += [_case(text, word, values, values, values) for text, word, values in ALIKE]
