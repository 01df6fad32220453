# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an endpoint says of itself before a probe begins, and whether it has time for one.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.client import Client, Reply
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.refusals import error_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.replies import count_of, shown
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

# What the engine answers from memory needs no more than this, however busy the cards are.
QUICK_SECONDS = 15.0
MOST_WINDOW = 2**24
MOST_SEQUENCES = 4096
_SETTLE_SECONDS = 1.0
_POLL_SECONDS = 0.25


class Inconclusive(Exception):
    """Nothing was measured, and ``says`` why, under the word of its cause. Never a fault of the options."""

    def __init__(self, says: str, cause: str) -> None:
        super().__init__(says)
        self.says = says
        self.cause = cause


class Facts(t.NamedTuple):
    """The shape that an endpoint serves; None where it does not say."""

    model: str | None
    max_model_len: int | None
    max_num_seqs: int | None
    chunk_tokens: int | None
    speculative_tokens: int | None


def refuse_key(status: int | None) -> None:
    """Raise RadianceError ``wrong_key`` for 401 and 403."""
    if status in (401, 403):
        raise RadianceError(
            f"The endpoint refuses the key ({status}). Give the key that the engine was started with in api_key or "
            "api_key_file.",
            code="wrong_key",
        )


def read_facts(client: Client, model: str | None, timeout: float, load_timeout: float = 0.0) -> Facts:
    """Wait while the endpoint loads, then ask what it serves.

    The engine listens only when its model is loaded, so that nothing listening is waited for ``load_timeout`` seconds.
    Raises RadianceError for nothing listening, another protocol, a wrong key or a model that is not served, and
    Inconclusive where the endpoint is still loading after ``timeout`` seconds.
    """
    _wait_until_listening(client, load_timeout)
    _wait_until_ready(client, timeout)
    models = _ask(client, "/v1/models")
    served = _names(models.json()) if models.ok else []
    if model is not None and served and model not in served:
        raise RadianceError(
            f"The endpoint serves {shown(', '.join(served))}, not the model {model!r} that was asked for. Leave model "
            "out to take what it serves.",
            code="model_unknown",
        )
    info = _ask(client, "/server_info")
    said: t.Any = info.json() if info.ok else None
    entries = _list(_get(models.json(), "data")) if models.ok else []
    first = next((entry for entry in entries if _get(entry, "id") == (model or (served[0] if served else None))), None)
    longest = count_of(_get(said, "server", "max_model_len")) or count_of(_get(first, "max_model_len")) or 0
    most_at_once = count_of(_get(said, "server", "max_num_seqs")) or 0
    depth = count_of(_get(said, "engine", "speculation", "depth"))
    if _get(said, "engine", "speculation", "enabled") is False:
        depth = 0
    return Facts(
        model=model or (served[0] if served else None),
        # What no endpoint serves is nothing that a probe could be sized by.
        max_model_len=longest if 0 < longest <= MOST_WINDOW else None,
        max_num_seqs=most_at_once if 0 < most_at_once <= MOST_SEQUENCES else None,
        chunk_tokens=count_of(_get(said, "engine", "max_num_batched_tokens")) or None,
        speculative_tokens=depth,
    )


def in_flight(client: Client) -> int | None:
    """The requests that the endpoint runs or queues now, None where it does not say."""
    for path in ("/load", "/stats"):
        reply = client.get(path, timeout=min(client.timeout, QUICK_SECONDS))
        refuse_key(reply.status)
        if reply.ok:
            counts = [count_of(_get(reply.json(), name)) for name in ("running", "waiting")]
            if counts[0] is not None:
                return counts[0] + (counts[1] or 0)
    return None


def wait_for_idle(client: Client, require_idle: bool, timeout: float) -> None:
    """Return when no other request is in flight. Raises Inconclusive after ``timeout`` seconds of traffic.

    Without ``require_idle`` it waits only as long as a request that has just ended takes to leave the books.
    """
    allowed = timeout if require_idle else min(timeout, _SETTLE_SECONDS)
    end = time.monotonic() + allowed
    while True:
        busy = in_flight(client)
        if not busy:
            return
        if time.monotonic() >= end:
            way_out = "Try at a quieter time." if require_idle else "Wait for it to end with require_idle."
            raise Inconclusive(
                f"other traffic: {busy:,} requests in flight after {allowed:g} s. {way_out}", "other_traffic"
            )
        time.sleep(_POLL_SECONDS)


def _wait_until_listening(client: Client, load_timeout: float) -> None:
    end = time.monotonic() + load_timeout
    while time.monotonic() < end:
        fault = client.get("/health", timeout=min(client.timeout, QUICK_SECONDS)).fault
        if fault is None or fault.code != "not_listening":
            return
        time.sleep(_POLL_SECONDS)


def _wait_until_ready(client: Client, timeout: float) -> None:
    end = time.monotonic() + timeout
    while True:
        reply = _ask(client, "/health")
        if reply.status != 503:
            return
        text = error_of(reply.json())[0] or str(_get(reply.json(), "status") or "503")
        if time.monotonic() >= end:
            raise Inconclusive(f"the endpoint is not ready after {timeout:g} s: {shown(text)}", "loading")
        time.sleep(_POLL_SECONDS)


def _ask(client: Client, path: str) -> Reply:
    reply = client.get(path, timeout=min(client.timeout, QUICK_SECONDS))
    refuse_key(reply.status)
    if reply.fault is None or reply.fault.code == "too_large":
        return reply
    if reply.fault.code in ("timeout", "cut"):
        raise Inconclusive(f"the endpoint does not answer: {reply.fault.text}", "no_answer")
    way_out = (
        "Is the service up, and is this its port?"
        if reply.fault.code == "not_listening"
        else "Give the endpoint's own base URL."
    )
    raise RadianceError(f"The endpoint cannot be probed: {reply.fault.text}. {way_out}", code=reply.fault.code)


def _get(value: t.Any, *path: str) -> t.Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _list(value: t.Any) -> list[t.Any]:
    return value if isinstance(value, list) else []


def _names(models: t.Any) -> list[str]:
    return [entry["id"] for entry in _list(_get(models, "data")) if isinstance(_get(entry, "id"), str)]
