# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Markdown as the documents of a fleet directory have it."""

from __future__ import annotations

import posixpath
import textwrap


def wrapped(text: str, indent: str = "") -> list[str]:
    """Prose in lines, each but the first indented. A path or a flag stays in one piece."""
    return textwrap.wrap(text, 100, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def fenced(*lines: str, kind: str = "text") -> list[str]:
    """Lines as they are, in a fence that none of them can end."""
    return [f"```{kind}", *(line.replace("`", "'") for line in lines), "```"]


def link(path: str, page: str, title: str = "") -> str:
    """A link to a file of the fleet directory from another one, by its path where it has no ``title``."""
    return f"[{title or path}]({posixpath.relpath(path, posixpath.dirname(page) or '.')})"
