# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a reply counts at all: whole, alone, and of as many tokens as were sent and asked for. Pure.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import Said

# A count below this part of what was sent, or above it the other way round, is not that of the same text.
_WHOLE = 0.95


def spoilt(
    said: Said,
    asked_tokens: int,
    in_flight: int | None,
    streams: int = 1,
    generate: int | None = None,
    more: int = 0,
) -> str | None:
    """Why nothing of a reply counts: it failed, others were served, or its counts cannot be; None where it counts.

    ``asked_tokens`` are about what the prompt was sized to, and ``more`` what it may have beside them; ``generate`` is
    what was to be generated whatever the text.
    """
    tokens = said.heard.prompt_tokens
    if said.failure is not None:
        return said.failure.says
    if in_flight is not None and in_flight > streams:
        return f"other traffic: {in_flight:,} requests in flight where the probe sent {streams:,}"
    if tokens is not None and tokens < _WHOLE * asked_tokens:
        return f"about {asked_tokens:,} prompt tokens were sent and {tokens:,} were read: the prompt was cut"
    if tokens is not None and _WHOLE * tokens > asked_tokens + more:
        return (
            f"about {asked_tokens:,} prompt tokens were sent and the reply counts {tokens:,}: either it or the "
            "chars_per_token that they were sized by is wrong"
        )
    made = said.heard.generated_tokens
    if made is None or generate is None:
        return None
    if _WHOLE * made > generate or (said.heard.finish == "length" and made < _WHOLE * generate):
        return f"{generate:,} tokens were to be generated and the reply counts {made:,}, which cannot be"
    return None
