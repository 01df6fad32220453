# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Markdown as the documents of a fleet directory have it."""

from __future__ import annotations

import posixpath
import re
import textwrap
import urllib.parse


def wrapped(text: str, indent: str = "") -> list[str]:
    """Prose in lines, each but the first indented. A path or a flag stays in one piece."""
    return textwrap.wrap(text, 100, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def fenced(*lines: str, kind: str = "text") -> list[str]:
    """Lines as they are, in a fence that none of them can end."""
    return [f"```{kind}", *(line.replace("`", "'") for line in lines), "```"]


def link(path: str, page: str, title: str = "") -> str:
    """A link to a file of the fleet directory from another one, by its path where it has no ``title``."""
    target = posixpath.relpath(path, posixpath.dirname(page) or ".")
    return f"[{plain(title or path)}]({urllib.parse.quote(target, safe='/')})"


def plain(text: str) -> str:
    """A name or a path as it is, in prose and in a table: nothing in it means anything to Markdown."""
    return re.sub(r"[\\`*\[\]<>|]", r"\\\g<0>", text)


def cell(text: str) -> str:
    """Markdown in a cell of a table: a bar would end it, in code too."""
    return text.replace("|", "\\|")
