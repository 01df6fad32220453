# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Request bodies that are made while they are sent, so that no copy of a long prompt is kept.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import json
import secrets
import typing as t

# A word that no server can know, and so none can name its model by.
TEXT = f"@@{secrets.token_hex(16)}@@"


class Text(t.Protocol):
    """A long text that is made piece by piece: plain ASCII without quotes, backslashes and control characters."""

    @property
    def chars(self) -> int:
        """The number of characters of all pieces together."""

    def parts(self) -> t.Iterator[str]:
        """The pieces, the same ones at each call."""


class Body(t.NamedTuple):
    """A request body of known length that is made while it is sent, so that no copy of a long prompt is kept."""

    length: int
    parts: t.Callable[[], t.Iterator[bytes]]


def json_body(fields: t.Mapping[str, t.Any], text: Text | None = None) -> Body:
    """``fields`` as a JSON body; where ``text`` is given, its pieces stand at every place that holds TEXT."""
    head, *tails = json.dumps(fields).split(json.dumps(TEXT))
    if not tails:
        return Body(len(head.encode()), lambda: iter([head.encode()]))
    if text is None or len(tails) != 1:
        raise ValueError("a body with a place for a text needs exactly one place and one text")
    tail, body = tails[0], text

    def parts() -> t.Iterator[bytes]:
        yield (head + '"').encode()
        for part in body.parts():
            yield part.encode("ascii")
        yield ('"' + tail).encode()

    return Body(len(head.encode()) + len(tail.encode()) + 2 + body.chars, parts)
