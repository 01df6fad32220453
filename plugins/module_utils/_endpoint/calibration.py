# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Characters per token of the probes' own text, at no prefill where the endpoint allows it.

A prompt above the window is refused with its exact count, before any prefill. Where that count cannot be had or not
be trusted, /tokenize counts; failing that, the usage of a short prompt that is answered.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import client as http
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import corpus
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.asking import (
    COMPLETIONS,
    Failure,
    patiently,
    why_failed,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import TEXT, Body, json_body
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.facts import (
    Facts,
    Inconclusive,
    read_facts,
    refuse_key,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import Settings
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.replies import Heard, count_of

_TOKENIZE_CHARS = 200_000
_SHORT_CHARS = 12_000
# No tokenizer needs a token for less than this of plain English; a count of characters would be 1.
_LEAST_CHARS_PER_TOKEN = 1.2
# Each word is a token or more, but for a few pairs that a tokenizer may hold as one.
_LEAST_TOKENS_PER_WORD = 0.8
# How far other text of the same make may be from the measured ratio.
RESERVES: t.Mapping[str | None, float] = {"refusal": 0.003, "tokenize": 0.005, "usage": 0.02, None: 0.01}


class WayIn(t.NamedTuple):
    """One of the engine's two ways to complete a text: each counts the same text in its own way."""

    path: str
    prompt: dict[str, t.Any]
    more: dict[str, t.Any]


# Completions adds a token at the front, chat the words of its template. Thinking would only cost time.
_WAYS_IN = {
    "completions": WayIn(COMPLETIONS, {"prompt": TEXT}, {}),
    "chat": WayIn(
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": TEXT}]},
        {"chat_template_kwargs": {"enable_thinking": False}},
    ),
}


class Calibration(t.NamedTuple):
    """The fields of design section 4, and ``says``: how the ratio was found or why it was not."""

    chars_per_token: float | None
    tokens: int | None
    chars: int | None
    limit: int | None
    exact: bool
    method: str | None
    prefilled_tokens: int
    says: str

    def as_dict(self) -> dict[str, t.Any]:
        """``{chars_per_token, tokens, chars, limit, exact, method, prefilled_tokens}``."""
        fields_of = self._asdict()
        del fields_of["says"]
        return fields_of


def plausible(tokens: int | None, chars: int) -> bool:
    """Whether ``tokens`` can be the whole count of ``chars`` of our text: not characters, not clipped, not cut."""
    if not tokens or chars / tokens < _LEAST_CHARS_PER_TOKEN:
        return False
    return tokens >= _LEAST_TOKENS_PER_WORD * corpus.words_of(chars)


def calibrate(client: http.Client, facts: Facts, timeout: float, api: str = "completions") -> Calibration:
    """Find the ratio of ``api``. Raises RadianceError for a wrong key; whatever else fails leaves the ratio None."""
    way_in = _WAYS_IN[api]
    notes: list[str] = []
    spent = 0
    limit = facts.max_model_len
    if limit is None:
        notes.append("the endpoint does not say its window")
    else:
        found = _by_refusal(client, way_in, facts.model, limit, timeout)
        if found.chars_per_token is not None:
            return found
        spent, limit = found.prefilled_tokens, found.limit
        notes.append(found.says)
    for way in (_by_tokenize, _by_usage):
        found = way(client, way_in, facts.model, limit, timeout)
        spent += found.prefilled_tokens
        notes.append(found.says)
        if found.chars_per_token is not None:
            break
    return found._replace(prefilled_tokens=spent, says="; ".join(notes))


def probe(settings: Settings) -> dict[str, t.Any]:
    """Calibrate alone: ``{calibration, says}``. Raises RadianceError for a wrong key or nothing listening."""
    try:
        found = calibrate(
            settings.client,
            read_facts(settings.client, settings.model, settings.timeout, settings.load_timeout),
            settings.timeout,
            settings.api,
        )
    except Inconclusive as reason:
        found = _nothing(None, reason.says)
    return {"calibration": found.as_dict(), "says": found.says}


def _nothing(limit: int | None, says: str, prefilled: int = 0) -> Calibration:
    return Calibration(None, None, None, limit, False, None, prefilled, says)


def _found(tokens: int, chars: int, limit: int | None, method: str, prefilled: int, says: str) -> Calibration:
    return Calibration(round(chars / tokens, 4), tokens, chars, limit, True, method, prefilled, says)


def _failed(failure: Failure, limit: int | None, way: str) -> Calibration:
    if failure.kind == "gone":
        raise Inconclusive(f"the endpoint went away: {failure.says}", "gone")
    return _nothing(limit, f"{way}: {failure.says}")


def _post(client: http.Client, path: str, body: Body, timeout: float) -> tuple[http.Reply, Failure | None]:
    def send(left: float) -> tuple[http.Reply, Failure | None]:
        reply = client.post(path, body, timeout=left)
        refuse_key(reply.status)
        return reply, why_failed(reply)

    reply, failure, _refused = patiently(send, timeout)
    return reply, failure


def _complete(
    client: http.Client, way_in: WayIn, model: str | None, text: corpus.Prompt, timeout: float
) -> tuple[Heard, Failure | None]:
    named = {} if model is None else {"model": model}
    wanted = {**named, **way_in.prompt, **way_in.more, "max_tokens": 1, "temperature": 0}
    reply, failure = _post(client, way_in.path, json_body(wanted, text), timeout)
    heard = Heard()
    heard.take(reply.json(), reply.seconds)
    return heard, failure


def _by_refusal(client: http.Client, way_in: WayIn, model: str | None, window: int, timeout: float) -> Calibration:
    text = corpus.text_above(window, corpus.fresh_seed())
    heard, failure = _complete(client, way_in, model, text, timeout)
    if failure is None:
        return _accepted(heard, text.chars, window, "a prompt above the window was accepted")
    if failure.refusal is None:
        return _failed(failure, window, "refusal")
    refusal = failure.refusal
    limit = refusal.limit or window
    if not refusal.exact or refusal.tokens is None:
        return _nothing(limit, f"the refusal's count is no measurement: {refusal.says}")
    if not plausible(refusal.tokens, text.chars):
        return _nothing(
            limit, f"the refusal counts {refusal.tokens:,} tokens for {text.chars:,} characters, which cannot be all"
        )
    return _found(refusal.tokens, text.chars, limit, "refusal", 0, f"{refusal.says}, before any prefill")


def _accepted(heard: Heard, chars: int, limit: int | None, what: str) -> Calibration:
    tokens = heard.prompt_tokens
    spent = tokens or 0
    if tokens is None:
        return _nothing(limit, f"{what}, and its reply does not count the prompt")
    if not plausible(tokens, chars):
        return _nothing(limit, f"{what}, and only {tokens:,} tokens of it were read: it was cut", spent)
    return _found(tokens, chars, limit, "usage", spent, f"{what}, and its usage counts {tokens:,} tokens")


def _by_tokenize(
    client: http.Client, way_in: WayIn, _model: str | None, limit: int | None, timeout: float
) -> Calibration:
    text = corpus.cold_prompt(corpus.marker(), _TOKENIZE_CHARS, corpus.fresh_seed())
    reply, failure = _post(client, "/tokenize", json_body(way_in.prompt, text), timeout)
    if failure is not None:
        return _failed(failure, limit, "/tokenize")
    said = reply.json()
    tokens = count_of(said.get("count")) if isinstance(said, dict) else None
    if tokens is None or not plausible(tokens, text.chars):
        return _nothing(limit, f"/tokenize counts {tokens} tokens for {text.chars:,} characters, which cannot be all")
    return _found(tokens, text.chars, limit, "tokenize", 0, f"/tokenize counts {tokens:,} tokens")


def _by_usage(client: http.Client, way_in: WayIn, model: str | None, limit: int | None, timeout: float) -> Calibration:
    chars = min(_SHORT_CHARS, limit or _SHORT_CHARS)
    text = corpus.cold_prompt(corpus.marker(), chars, corpus.fresh_seed())
    heard, failure = _complete(client, way_in, model, text, timeout)
    if failure is not None:
        return _failed(failure, limit, "a short prompt")
    return _accepted(heard, text.chars, limit, "a short prompt was answered")
