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
import io
import json
import socket
import ssl
import threading
import time
import typing as t
import urllib.parse

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

REPLY_LIMIT = 4 * 1024 * 1024
STREAM_LIMIT = 64 * 1024 * 1024
EVENT_LIMIT = 1024 * 1024
_PIECE = 64 * 1024
_CANCEL_POLL = 0.2
# The engine serves these without a key, so they never get one.
_OPEN_PATHS = frozenset({"/health", "/ping"})
_TEXT_PLACE = "@@the streamed text goes here@@"


class Fault(t.NamedTuple):
    """Why there is no whole reply.

    ``code``: not_listening, unreachable, timeout, cut (the connection ended within the reply), too_large,
    not_http, redirect, cancelled. ``text`` is a sentence without the key.
    """

    code: str
    text: str


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


def parse_json(raw: bytes) -> t.Any:
    """JSON or None; never an exception, whatever the bytes."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def json_body(fields: t.Mapping[str, t.Any], text: Text | None = None) -> Body:
    """``fields`` as a JSON body; where ``text`` is given, its pieces stand at every place that holds TEXT."""
    head, *tails = json.dumps(fields).split(json.dumps(_TEXT_PLACE))
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


TEXT = _TEXT_PLACE


class _Late(OSError):
    """The deadline of the request has passed."""


class _Cancelled(OSError):
    """The caller no longer wants the reply."""


class _TimedSocket(io.RawIOBase):
    """A connected socket whose every wait ends at one deadline. http.client takes it for a socket."""

    def __init__(self, raw: socket.socket, deadline: float, cancel: threading.Event | None) -> None:
        super().__init__()
        self._raw = raw
        self._deadline = deadline
        self._cancel = cancel

    def _wait(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise _Late()
        if self._cancel is not None:
            if self._cancel.is_set():
                raise _Cancelled()
            left = min(left, _CANCEL_POLL)
        self._raw.settimeout(left)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: t.Any) -> int:
        while True:
            self._wait()
            try:
                return self._raw.recv_into(buffer)
            except socket.timeout:
                continue

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self._wait()
            try:
                view = view[self._raw.send(view[:_PIECE]) :]
            except socket.timeout:
                continue

    def makefile(self, mode: str = "rb", *_more: t.Any) -> io.BufferedReader:
        return io.BufferedReader(self, _PIECE)

    def close(self) -> None:
        """Nothing: http.client closes early with ``Connection: close``; the exchange closes the real socket."""


class _Address(t.NamedTuple):
    tls: bool
    host: str
    port: int
    prefix: str


def parse_endpoint(endpoint: str) -> _Address:
    """Split a base URL. Raises RadianceError ``endpoint_unusable`` for what is not one."""

    def refuse(why: str) -> RadianceError:
        return RadianceError(
            f"The endpoint {why}. Give the base URL, for example http://127.0.0.1:8000.", code="endpoint_unusable"
        )

    try:
        parts = urllib.parse.urlsplit(endpoint)
        port = parts.port
    except ValueError:
        raise refuse(f"{endpoint!r} is not a URL") from None
    if parts.username is not None or parts.password is not None:
        raise refuse("holds a user name or password, which would be printed; use api_key_file instead")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise refuse(f"{endpoint!r} is not an http or https URL with a host")
    if parts.query or parts.fragment or any(c.isspace() or not c.isprintable() for c in endpoint):
        raise refuse(f"{endpoint!r} holds a query, a fragment or white space")
    prefix = parts.path.rstrip("/")
    if prefix.endswith("/v1"):
        raise refuse(f"{endpoint!r} ends in /v1, which the probes add themselves")
    tls = parts.scheme == "https"
    return _Address(tls, parts.hostname, port or (443 if tls else 80), prefix)


class _Exchange:
    """One request and the reading of its reply. Every method may raise OSError or HTTPException."""

    def __init__(self, address: _Address, deadline: float, cancel: threading.Event | None) -> None:
        self._address = address
        self._deadline = deadline
        self._cancel = cancel
        self._raw: socket.socket | None = None
        self._response: http.client.HTTPResponse | None = None
        self._left: int | None = None

    def open(self, method: str, path: str, headers: dict[str, str], body: Body | None) -> http.client.HTTPResponse:
        self._raw = self._connect()
        connection = http.client.HTTPConnection(self._address.host, self._address.port)
        connection.sock = t.cast(socket.socket, _TimedSocket(self._raw, self._deadline, self._cancel))
        headers = {"Connection": "close", **headers}
        try:
            if body is None:
                connection.request(method, self._address.prefix + path, headers=headers)
            else:
                headers["Content-Length"] = str(body.length)
                connection.request(method, self._address.prefix + path, body=body.parts(), headers=headers)
        except (BrokenPipeError, ConnectionResetError):
            # A server may refuse a long body before it has read it; its reason is worth reading.
            pass
        self._response = connection.getresponse()
        length = self._response.length
        self._left = None if self._response.chunked else length
        return self._response

    def _connect(self) -> socket.socket:
        last: OSError | None = None
        found = socket.getaddrinfo(self._address.host, self._address.port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _name, where in found:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise _Late()
            raw = socket.socket(family, kind, protocol)
            raw.settimeout(left)
            try:
                raw.connect(where)
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._address.tls:
                    raw = ssl.create_default_context().wrap_socket(raw, server_hostname=self._address.host)
                return raw
            except OSError as error:
                raw.close()
                last = error
        raise last or OSError("the host has no address")

    def read_some(self) -> bytes:
        """What arrives next, b"" at the end. Raises IncompleteRead where the end comes too early."""
        assert self._response is not None
        if self._left == 0:
            return b""
        got = self._response.read1(_PIECE if self._left is None else min(_PIECE, self._left))
        if self._left is not None:
            if not got:
                raise http.client.IncompleteRead(b"", self._left)
            self._left -= len(got)
        return got

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()


def _fault(error: Exception, where: str, timeout: float, started_reply: bool) -> Fault:
    if isinstance(error, _Cancelled):
        return Fault("cancelled", f"the request to {where} was given up")
    if isinstance(error, (_Late, socket.timeout)):
        return Fault("timeout", f"{where} had not answered in full after {timeout:g} s")
    if isinstance(error, ConnectionRefusedError):
        return Fault("not_listening", f"nothing listens at {where}")
    if isinstance(error, http.client.IncompleteRead) or (started_reply and isinstance(error, OSError)):
        return Fault("cut", f"the connection ended within the reply of {where}")
    if isinstance(error, (ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected)):
        return Fault("cut", f"the connection ended before {where} answered")
    if isinstance(error, OSError):
        return Fault("unreachable", f"{where} cannot be reached: {error.strerror or type(error).__name__}")
    return Fault("not_http", f"{where} did not answer in HTTP ({type(error).__name__})")


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
        exchange = _Exchange(self._client.address, self.started + timeout, cancel)
        try:
            response = exchange.open("POST", path, self._client.headers(path, body), body)
            self.status, self.headers = response.status, _lower(response)
            if self.status == 200 and "event-stream" in self.headers.get("content-type", ""):
                yield from self._events(exchange)
            else:
                self.body, self.fault = _read_bounded(exchange, path, REPLY_LIMIT)
                self.body = self._client.blank(self.body)
                self.fault = self.fault or _redirect(self.status, path)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.fault = _fault(error, self._client.where(path), timeout, self.status is not None)
        finally:
            self.ended = time.monotonic()
            exchange.close()

    def _events(self, exchange: _Exchange) -> t.Iterator[Event]:
        pending, total = b"", 0
        while True:
            got = exchange.read_some()
            at = time.monotonic()
            total += len(got)
            *lines, pending = (pending + got).split(b"\n")
            if total > STREAM_LIMIT or len(pending) > EVENT_LIMIT:
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

    def get(self, path: str, *, timeout: float | None = None, limit: int = REPLY_LIMIT) -> Reply:
        """GET ``path`` (with its leading slash), reading at most ``limit`` bytes."""
        return self._exchange("GET", path, None, timeout, limit)

    def post(self, path: str, body: Body, *, timeout: float | None = None, limit: int = REPLY_LIMIT) -> Reply:
        """POST a JSON body and read the whole reply, at most ``limit`` bytes."""
        return self._exchange("POST", path, body, timeout, limit)

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
        """``raw`` without the key: some servers and gateways repeat it in their errors."""
        return raw.replace(self._key.encode(), b"***") if self._key else raw

    def _exchange(self, method: str, path: str, body: Body | None, timeout: float | None, limit: int) -> Reply:
        timeout = self.timeout if timeout is None else timeout
        started = time.monotonic()
        exchange = _Exchange(self.address, started + timeout, None)
        status: int | None = None
        headers: dict[str, str] = {}
        raw = b""
        fault: Fault | None
        try:
            response = exchange.open(method, path, self.headers(path, body), body)
            status, headers = response.status, _lower(response)
            raw, fault = _read_bounded(exchange, path, limit)
            fault = fault or _redirect(status, path)
        except (OSError, http.client.HTTPException, ValueError) as error:
            fault = _fault(error, self.where(path), timeout, status is not None)
        finally:
            exchange.close()
        return Reply(status, headers, self.blank(raw), fault, time.monotonic() - started)


def get(endpoint: str, path: str, *, timeout: float, api_key: str | None = None, limit: int = REPLY_LIMIT) -> Reply:
    """One bounded GET: ``get("http://127.0.0.1:8000", "/health", timeout=5)``."""
    return Client(endpoint, api_key=api_key, timeout=timeout).get(path, limit=limit)


def _lower(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def _redirect(status: int | None, path: str) -> Fault | None:
    if status is not None and 300 <= status < 400:
        return Fault("redirect", f"{path} answers with a redirect ({status}), which a probe does not follow")
    return None


def _read_bounded(exchange: _Exchange, path: str, limit: int) -> tuple[bytes, Fault | None]:
    pieces: list[bytes] = []
    total = 0
    while True:
        got = exchange.read_some()
        if not got:
            return b"".join(pieces), None
        total += len(got)
        if total > limit:
            return b"".join(pieces), Fault("too_large", f"the reply of {path} is larger than {limit:,} bytes")
        pieces.append(got)
