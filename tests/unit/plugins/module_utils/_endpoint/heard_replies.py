# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of literal times and counts, for the tests of what is made of them."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import Failure, Said
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.replies import Heard


def said(
    *,
    first: float = 110.0,
    last: float = 114.0,
    tokens: t.Any = 40_000,
    made: t.Any = 401,
    cached: t.Any = 0,
    timings: t.Any = None,
    text: str = "x",
    failure: Failure | None = None,
) -> Said:
    """An answer to a request that began at 100.0, in forty pieces."""
    heard = Heard()
    for piece in range(40):
        heard.take({"choices": [{"text": text if piece == 0 else " and"}]}, first + (last - first) * piece / 39)
    usage = {"prompt_tokens": tokens, "completion_tokens": made, "prompt_tokens_details": {"cached_tokens": cached}}
    heard.take({"choices": [], "usage": usage, "timings": timings}, last)
    return Said(200, heard, failure, 100.0)
