# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a refused prompt tells about its own length. Pure: replies in, facts out.

The engine refuses a prompt that fills the context before any prefill, and names the exact count. Other servers word
the same refusal in their own ways, clip the count at limit + 1, or count the answer in. Only the engine's own count
is called exact here.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import json
import re
import typing as t

_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
# An error is short; the patterns take the square of its length.
_TEXT_LIMIT = 4 * 1024
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")

# 1.0.x: no separators; notes on 1.0.13 quote them with separators. Field `prompt` on completions, `messages` on chat.
# A gateway puts its own words before it, and around it what its client made of the reply, which need not be JSON.
_RADIANCE = re.compile(
    r"(?<![\w.])(prompt|messages): ([0-9]{1,12}) prompt tokens does not fit the ([0-9]{1,12}) token context"
    r"(?:.*? by at least ([0-9]{1,12}) tokens)?",
    re.DOTALL,
)
# Each of the others names the prompt's tokens and the limit, in either order.
_OTHERS = (
    re.compile(r"passed (?P<tokens>[0-9]{1,12}) input tokens.*?\bonly (?P<limit>[0-9]{1,12})\b", re.DOTALL),
    re.compile(
        r"maximum context length is (?P<limit>[0-9]{1,12}) tokens.*?(?:prompt contains|request has) (?:at least )?"
        r"(?P<tokens>[0-9]{1,12}) input tokens",
        re.DOTALL,
    ),
    re.compile(
        r"input \((?P<tokens>[0-9]{1,12}) tokens\) is longer than .*?\((?P<limit>[0-9]{1,12}) tokens\)", re.DOTALL
    ),
    re.compile(r"request \((?P<tokens>[0-9]{1,12}) tokens\) exceeds .*?\((?P<limit>[0-9]{1,12}) tokens\)", re.DOTALL),
)
_PARTS = re.compile(r"maximum context length is (?P<limit>[0-9]{1,12}) tokens.*?\((?P<parts>[^()]*)\)", re.DOTALL)
_PART = re.compile(r"(?<![0-9])([0-9]{1,12}) in the (messages|prompt|functions)")
_WORDS = re.compile(r"exceeds? the model's (?:maximum|context)|maximum context length|available context size")
_HINT = re.compile(r"parameter=input_tokens, value=([0-9]{1,12})(?![0-9])")


class Refusal(t.NamedTuple):
    """A context refusal. ``tokens`` is the prompt's count where ``exact``, else what it has at least (or None)."""

    tokens: int | None
    limit: int | None
    exact: bool
    field: str | None
    gateway: bool
    says: str


def error_of(body: t.Any) -> tuple[str, str | None]:
    """The message and the code (or type) of an error reply; an empty message where there is none."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, str):
        return error[:_TEXT_LIMIT], None
    if not isinstance(error, dict):
        return "", None
    text = next((error[k] for k in ("message", "detail") if isinstance(error.get(k), str)), "")
    code = next((error[k] for k in ("code", "type") if isinstance(error.get(k), str)), None)
    return text[:_TEXT_LIMIT], code


def read_refusal(body: t.Any) -> Refusal | None:
    """Read the parsed JSON of an error reply. None: this is no context refusal, whatever its status."""
    text, code = error_of(body)
    inner = _unwrap(text)
    gateway = inner is not None or text.startswith("litellm.")
    if inner is not None:
        text, inner_code = error_of(inner)
        code = inner_code or code
    text = _THOUSANDS.sub("", text)
    ours = _RADIANCE.search(text)
    gateway = gateway or (ours is not None and ours.start() > 0)
    if ours and (code is None or code in _CODES or gateway):
        return _radiance(ours, gateway)
    counts = _counts(text)
    if counts is not None:
        tokens, limit = counts
        clipped = tokens == limit + 1
        says = f"at least {tokens:,} tokens for a limit of {limit:,}" + (
            ", a count cut at the limit" if clipped else ""
        )
        return Refusal(tokens, limit, False, None, gateway, f"another engine's refusal: {says}")
    if code in _CODES or _WORDS.search(text):
        hint = _HINT.search(text)
        return Refusal(
            int(hint.group(1)) if hint else None, None, False, None, gateway, "a refusal that names no count of its own"
        )
    return None


def _radiance(match: re.Match[str], gateway: bool) -> Refusal:
    tokens, limit, by = int(match.group(2)), int(match.group(3)), match.group(4)
    # Inside the limit the engine's own words contradict each other, and so does a wrong difference.
    sound = tokens >= limit > 0 and (by is None or int(by) == tokens - limit + 1)
    says = f"the engine counted {tokens:,} tokens against a context of {limit:,}"
    return Refusal(tokens, limit, sound, match.group(1), gateway, says + (" (through a gateway)" if gateway else ""))


def _counts(text: str) -> tuple[int, int] | None:
    for pattern in _OTHERS:
        match = pattern.search(text)
        if match:
            return int(match.group("tokens")), int(match.group("limit"))
    match = _PARTS.search(text)
    if match:
        found = [int(number) for number, _what in _PART.findall(match.group("parts"))]
        if found:
            return sum(found), int(match.group("limit"))
    return None


def _unwrap(text: str) -> t.Any:
    """The JSON error that a gateway put into its own message, or None."""
    for candidate in (text, text.replace('\\"', '"')):
        at = candidate.find('{"')
        while at >= 0:
            try:
                found, _end = json.JSONDecoder().raw_decode(candidate, at)
            except (ValueError, RecursionError):
                pass
            else:
                if isinstance(found, dict) and error_of(found)[0]:
                    return found
            at = candidate.find('{"', at + 1)
    return None
