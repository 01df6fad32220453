# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One prompt to /v1/completions, and why it failed where it did.

A full queue and an endpoint that still loads are waited for, as long as they ask for, within the request's deadline.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import datetime
import email.utils
import threading
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import client as http
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import TEXT, Body
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.refusals import (
    Refusal,
    error_of,
    read_refusal,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.replies import Heard, shown

COMPLETIONS = "/v1/completions"
# What is waited where a refusal does not say how long.
_RETRY_SECONDS = 1.0
_LEAST_RETRY_SECONDS = 0.1
# Longer than any deadline, and still a number of seconds.
_MOST_RETRY_SECONDS = 1e9
# What an engine says of its own failure. 501 is a path that it does not have, and further ones are a gateway's words of
# an engine that it did not hear.
_ENGINE_STATUS = (200, 500)

Answer = t.TypeVar("Answer")


class Failure(t.NamedTuple):
    """Why a request has no whole answer.

    ``kind``: key, busy (429), loading (503), late, gone (nothing listens any more), cut, refused (the context),
    engine (the engine failed the request), cancelled, other. ``retry_seconds`` is how long to wait before it is worth
    asking again, None where it is not.
    """

    kind: str
    says: str
    refusal: Refusal | None = None
    retry_seconds: float | None = None


class Said(t.NamedTuple):
    """One asked prompt: what was heard, from which moment (monotonic seconds), and the failure if there is one.

    ``refused`` is how often a full queue had refused it before.
    """

    status: int | None
    heard: Heard
    failure: Failure | None
    started: float
    refused: int = 0


def fields(model: str | None, max_tokens: int, **more: t.Any) -> dict[str, t.Any]:
    """The fields of a completion request that the engine honours, with the place for the prompt."""
    named = {} if model is None else {"model": model}
    return {**named, "prompt": TEXT, "max_tokens": max_tokens, "temperature": 0, **more}


def patiently(
    send: t.Callable[[float], tuple[Answer, Failure | None]], timeout: float, cancel: threading.Event | None = None
) -> tuple[Answer, Failure | None, int]:
    """``send``, and again after each refusal that asks for it, within ``timeout`` seconds as a whole.

    ``send`` gets the seconds that are left. Returns the last answer, its failure, and how often a full queue refused.
    """
    end, left, refused = time.monotonic() + timeout, timeout, 0
    never = threading.Event()
    while True:
        answer, failure = send(left)
        if failure is None or failure.retry_seconds is None:
            return answer, failure, refused
        refused += failure.kind == "busy"
        if time.monotonic() + failure.retry_seconds >= end or (cancel or never).wait(failure.retry_seconds):
            return answer, failure, refused
        left = round(max(0.0, end - time.monotonic()), 3)


def ask(
    client: http.Client,
    body: Body,
    timeout: float,
    cancel: threading.Event | None = None,
) -> Said:
    """Send one streamed completion request and hear it to its end."""

    def send(left: float) -> tuple[Said, Failure | None]:
        said = _ask_once(client, body, left, cancel)
        return said, said.failure

    said, _failure, refused = patiently(send, timeout, cancel)
    return said._replace(refused=refused)


def _ask_once(client: http.Client, body: Body, timeout: float, cancel: threading.Event | None) -> Said:
    heard = Heard()
    stream = client.stream(COMPLETIONS, body, timeout=timeout, cancel=cancel)
    events = 0
    for event in stream:
        events += 1
        heard.take(event.data, event.at)
    if not events:
        heard.take(http.parse_json(stream.body), stream.ended)
    failure = why_failed(stream.reply(), heard.error)
    if failure is None and events and not stream.finished and heard.finish is None:
        failure = Failure("cut", "the stream ended without its end")
    return Said(stream.status, heard, failure, stream.started)


def why_failed(reply: http.Reply, error: t.Any = None) -> Failure | None:
    """Why this reply is no answer, None where it is one. ``error``: an error object heard within a stream. Pure."""
    if reply.fault is not None and reply.fault.code != "redirect":
        kind = {"timeout": "late", "not_listening": "gone", "cut": "cut", "cancelled": "cancelled"}
        return Failure(kind.get(reply.fault.code, "other"), reply.fault.text)
    status, body = reply.status, error if error is not None else reply.json()
    text, code = error_of(body)
    text = shown(text)
    if status == 200 and error is None:
        return None
    if status in (401, 403):
        return Failure("key", f"the key is refused ({status})")
    if status == 429 or code in ("server_overloaded", "rate_limit_error"):
        seconds = _retry_after(reply)
        said = "" if seconds is None else f", retry after {seconds:g} s"
        wait = max(_LEAST_RETRY_SECONDS, _RETRY_SECONDS if seconds is None else seconds)
        return Failure("busy", f"the queue is full (429{said})", retry_seconds=wait)
    if status == 503:
        wait = max(_LEAST_RETRY_SECONDS, _retry_after(reply) or _RETRY_SECONDS)
        return Failure("loading", f"the endpoint is not ready (503): {text}", retry_seconds=wait)
    refusal = read_refusal(body)
    if refusal is not None:
        return Failure("refused", refusal.says, refusal)
    if status in _ENGINE_STATUS:
        return Failure("engine", f"the engine failed the request ({status}): {text or 'without a reason'}")
    return Failure("other", f"the endpoint answered {status}: {text or 'without a reason'}")


def _retry_after(reply: http.Reply) -> float | None:
    """The seconds that a refusal asks to wait, also by a date; None where it names none."""
    text = reply.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), _MOST_RETRY_SECONDS)
    until = _date(text)
    if until is None:
        return None
    # Both dates by the server's clock, where it tells it: ours may be another.
    now = _date(reply.headers.get("date", "")) or datetime.datetime.now(datetime.timezone.utc)
    return max(0.0, round((until - now).total_seconds(), 3))


def _date(text: str) -> datetime.datetime | None:
    try:
        found = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=datetime.timezone.utc)
