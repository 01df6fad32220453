# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One HTTP request on one fresh connection, with one deadline from connect to last byte.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import threading
import time
import typing as t
import urllib.parse

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import Body
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

_PIECE = 64 * 1024
_CANCEL_POLL = 0.2
# A socket takes no time of any length; a wait that is over before the deadline begins anew.
_LONGEST_WAIT = 86_400.0


class Fault(t.NamedTuple):
    """Why there is no whole reply.

    ``code``: not_listening, unreachable, timeout, cut (the connection ended within the reply), too_large,
    not_http, redirect, cancelled. ``text`` is a sentence without the key.
    """

    code: str
    text: str


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
        self._raw.settimeout(min(left, _LONGEST_WAIT))

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


class Address(t.NamedTuple):
    tls: bool
    host: str
    port: int
    prefix: str


def parse_endpoint(endpoint: str) -> Address:
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
    return Address(tls, parts.hostname, port or (443 if tls else 80), prefix)


class Exchange:
    """One request and the reading of its reply. Every method may raise OSError or HTTPException."""

    def __init__(self, address: Address, deadline: float, cancel: threading.Event | None) -> None:
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
            raw.settimeout(min(left, _LONGEST_WAIT))
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
        if self._response is None or self._left == 0:
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


def fault_of(error: Exception, where: str, timeout: float, started_reply: bool) -> Fault:
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


def read_bounded(exchange: Exchange, path: str, limit: int) -> tuple[bytes, Fault | None]:
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
