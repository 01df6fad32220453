# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One HTTP connection: bodies, keys, refusals, and how an answer is written."""

from __future__ import annotations

import abc
import contextlib
import hmac
import json
import select
import socket
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Callable

from .api_requests import ApiError

if TYPE_CHECKING:
    from .http_server import Server

OPEN_PATHS = ("/health", "/ping", "/", "/dashboard")
_DRAIN_SECONDS = 2
Route = Callable[[bytes], None]


class Connection(BaseHTTPRequestHandler):
    """One connection; what it answers is its heir's."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        """Idle connections close after ``--keep-alive-timeout``."""
        self._idle_seconds = self.server.flags.number("--keep-alive-timeout") or None
        super().setup()
        self.connection.settimeout(self._idle_seconds)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """The engine does not log requests."""

    def do_GET(self) -> None:
        """Any method goes through the same routes."""
        self._answer()

    do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = do_GET

    @abc.abstractmethod
    def route(self, path: str) -> Route:
        """What answers this path with this method; ApiError where nothing does."""

    def _answer(self) -> None:
        path = self.path.split("?", 1)[0]
        try:
            body = self._body()
            self._authorize(path)
            self.server.misbehaviour.admit(path, self.server.flags.number("--retry-after"))
            self.route(path)(body)
        except ApiError as error:
            self.send_answer(error.status, error.body, retry_after=error.retry_after)
        except OSError:
            self.close_connection = True

    def _body(self) -> bytes:
        most = self.server.flags.number("--max-body-mib") * 2**20
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return self._chunks(most)
        size = self.headers.get("Content-Length", "0")
        if not size.isdigit():
            self.close_connection = True
            raise ApiError(400, "Content-Length: not a number")
        if int(size) > most:
            raise self._too_large(int(size))
        self.connection.settimeout(self.server.flags.number("--read-timeout"))
        body = self.rfile.read(int(size)) if int(size) else b""
        self.connection.settimeout(self.server.flags.number("--write-timeout"))
        return body

    def _chunks(self, most: int) -> bytes:
        """A body in chunks, as a client sends it that does not know its length."""
        body = b""
        self.connection.settimeout(self.server.flags.number("--read-timeout"))
        while True:
            head = self.rfile.readline(100).split(b";")[0].strip()
            try:
                size = int(head, 16)
            except ValueError:
                size = -1
            if size < 0:
                self.close_connection = True
                raise ApiError(400, "a chunk without its length")
            if len(body) + size > most:
                raise self._too_large(size)
            body += self.rfile.read(size)
            self.rfile.readline(100)
            if not size:
                break
        self.connection.settimeout(self.server.flags.number("--write-timeout"))
        return body

    def _too_large(self, size: int) -> ApiError:
        # Read before it is refused, so that the client sees the answer and not a reset.
        self.connection.settimeout(_DRAIN_SECONDS)
        with contextlib.suppress(OSError):
            while size > 0 and (part := self.rfile.read1(min(size, 2**16))):
                size -= len(part)
        self.close_connection = True
        return ApiError(413, "the body is over --max-body-mib")

    def _authorize(self, path: str) -> None:
        key = self.server.flags.text("--api-key")
        if not key or path in OPEN_PATHS:
            return
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {key}".encode()):
            raise ApiError(401, "invalid api key", "authentication_error")

    def send_answer(
        self, status: int, body: Any, *, kind: str = "application/json", retry_after: int | None = None
    ) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.server.scheduler.counters.answered(status)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self._write(data)
        self.connection.settimeout(self._idle_seconds)

    def _write(self, data: bytes) -> None:
        for piece in self.server.misbehaviour.pieces(data):
            self.server.misbehaviour.drip()
            self.wfile.write(piece)

    def client_gone(self) -> bool:
        """Whether the other side has closed the connection."""
        with contextlib.suppress(OSError, ValueError):
            readable, _writable, _broken = select.select([self.connection], [], [], 0)
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        return True
