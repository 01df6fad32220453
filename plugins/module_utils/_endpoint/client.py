# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP to an endpoint, so that no reply can hang, flood or redirect a probe.

* One fresh connection a request: an idle kept-alive connection may be reset by a healthy server.
* One deadline a request, from connect to last byte: a server that drips a byte a second passes no deadline.
* Replies are bounded, redirects are not followed, proxies of the environment are not used.
* What goes wrong on the wire is a result (``Fault``), never an exception.
* The key goes only where the engine asks for it, and is blanked in everything that comes back.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import Body
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.wire import (
    Exchange,
    Fault,
    fault_of,
    parse_endpoint,
    read_bounded,
)

REPLY_LIMIT = 4 * 1024 * 1024
_STREAM_LIMIT = 64 * 1024 * 1024
_EVENT_LIMIT = 1024 * 1024
# The engine serves these without a key, so they never get one.
_OPEN_PATHS = frozenset({"/health", "/ping"})


class Reply(t.NamedTuple):
    """What a request brought back. ``status`` is None where no status line arrived; ``headers`` are lower case."""

    status: int | None
    headers: dict[str, str]
    body: bytes
    fault: Fault | None
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether a whole reply with status 200 arrived."""
        return self.status == 200 and self.fault is None

    def json(self) -> t.Any:
        """The body as JSON, or None where it is not JSON."""
        return parse_json(self.body)


class Event(t.NamedTuple):
    """One server-sent event: its arrival on the monotonic clock and its JSON (None where it is not JSON)."""

    at: float
    data: t.Any


def parse_json(raw: bytes) -> t.Any:
    """JSON or None; never an exception, whatever the bytes."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


class Stream:
    """A streamed reply. Iterate it once; after that ``fault``, ``finished`` and ``body`` are final.

    ``started`` is when the connection was begun. ``finished`` is whether ``[DONE]`` came. A reply that is no
    event stream gives no events, and its (bounded) bytes are in ``body``.
    """

    def __init__(self, client: Client, path: str, body: Body, timeout: float, cancel: threading.Event | None) -> None:
        self.started = time.monotonic()
        self.ended = self.started
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.body = b""
        self.fault: Fault | None = None
        self.finished = False
        self._client = client
        self._request = (path, body, timeout, cancel)

    def __iter__(self) -> t.Iterator[Event]:
        path, body, timeout, cancel = self._request
        exchange = Exchange(self._client.address, self.started + timeout, cancel)
        try:
            response = exchange.open("POST", path, self._client.headers(path, body), body)
            self.status, self.headers = response.status, _lower(response)
            if self.status == 200 and "event-stream" in self.headers.get("content-type", "").lower():
                yield from self._events(exchange)
            else:
                self.body, self.fault = read_bounded(exchange, path, REPLY_LIMIT)
                self.body = self._client.blank(self.body)
                self.fault = self.fault or _redirect(self.status, path)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.fault = fault_of(error, self._client.where(path), timeout, self.status is not None)
        finally:
            self.ended = time.monotonic()
            exchange.close()

    def _events(self, exchange: Exchange) -> t.Iterator[Event]:
        pending, total = b"", 0
        while True:
            got = exchange.read_some()
            at = time.monotonic()
            total += len(got)
            *lines, pending = (pending + (got or b"\n")).split(b"\n")
            if total > _STREAM_LIMIT or len(pending) > _EVENT_LIMIT:
                self.fault = Fault("too_large", f"{self._request[0]} streamed more than a probe reads")
                return
            for line in lines:
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip()
                if data == b"[DONE]":
                    self.finished = True
                    return
                yield Event(at, parse_json(self._client.blank(data)))
            if not got:
                return

    def reply(self) -> Reply:
        """The stream as a plain reply, for what came as no event stream."""
        return Reply(self.status, self.headers, self.body, self.fault, self.ended - self.started)


class Client:
    """Requests to one endpoint. ``timeout`` is in seconds, for each request as a whole.

    Raises RadianceError ``endpoint_unusable`` for a URL that is none. Nothing else raises.
    """

    def __init__(self, endpoint: str, *, api_key: str | None = None, timeout: float = 30.0) -> None:
        self.address = parse_endpoint(endpoint)
        self.endpoint = endpoint
        self.timeout = timeout
        self._key = api_key
        self._shapes = _shapes(api_key) if api_key else None

    def get(self, path: str, *, timeout: float | None = None, limit: int = REPLY_LIMIT) -> Reply:
        """GET ``path`` (with its leading slash), reading at most ``limit`` bytes."""
        return self._exchange("GET", path, None, timeout, limit)

    def post(self, path: str, body: Body, *, timeout: float | None = None) -> Reply:
        """POST a JSON body and read the whole reply."""
        return self._exchange("POST", path, body, timeout, REPLY_LIMIT)

    def stream(
        self, path: str, body: Body, *, timeout: float | None = None, cancel: threading.Event | None = None
    ) -> Stream:
        """POST a JSON body and read the reply event by event. ``cancel`` ends it within a fraction of a second."""
        return Stream(self, path, body, self.timeout if timeout is None else timeout, cancel)

    def headers(self, path: str, body: Body | None) -> dict[str, str]:
        """The headers of a request: the key only where the engine asks for one."""
        headers = {"Accept": "*/*", "User-Agent": "kvfleet.radiance"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._key and path not in _OPEN_PATHS:
            headers["Authorization"] = f"Bearer {self._key}"
        return headers

    def where(self, path: str) -> str:
        """The whole URL of ``path``, for messages."""
        return self.endpoint.rstrip("/") + path

    def blank(self, raw: bytes) -> bytes:
        """``raw`` without the key: some servers and gateways repeat it in their errors, and escape what is in it."""
        return self._shapes.sub(b"***", raw) if self._shapes else raw

    def _exchange(self, method: str, path: str, body: Body | None, timeout: float | None, limit: int) -> Reply:
        timeout = self.timeout if timeout is None else timeout
        started = time.monotonic()
        exchange = Exchange(self.address, started + timeout, None)
        status: int | None = None
        headers: dict[str, str] = {}
        raw = b""
        fault: Fault | None
        try:
            response = exchange.open(method, path, self.headers(path, body), body)
            status, headers = response.status, _lower(response)
            raw, fault = read_bounded(exchange, path, limit)
            fault = fault or _redirect(status, path)
        except (OSError, http.client.HTTPException, ValueError) as error:
            fault = fault_of(error, self.where(path), timeout, status is not None)
        finally:
            exchange.close()
        return Reply(status, headers, self.blank(raw), fault, time.monotonic() - started)


def get(endpoint: str, path: str, *, timeout: float, api_key: str | None = None, limit: int = REPLY_LIMIT) -> Reply:
    """One bounded GET: ``get("http://127.0.0.1:8000", "/health", timeout=5)``."""
    return Client(endpoint, api_key=api_key, timeout=timeout).get(path, limit=limit)


def _shapes(key: str) -> re.Pattern[bytes]:
    """The key in each form that comes out of JSON (within JSON), of an URL or of HTML as the key again."""

    def shape(character: str) -> str:
        code = ord(character)
        return rf"(?:\\{{0,4}}(?:{re.escape(character)}|u(?i:00{code:02x}))|%(?i:{code:02x})|&\#{code};)"

    return re.compile("".join(map(shape, key)).encode())


def _lower(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def _redirect(status: int | None, path: str) -> Fault | None:
    if status is not None and 300 <= status < 400:
        return Fault("redirect", f"{path} answers with a redirect ({status}), which a probe does not follow")
    return None
