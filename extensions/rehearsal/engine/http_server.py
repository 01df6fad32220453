# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP side: routes, keys, bodies, and answers that follow the scheduler."""

from __future__ import annotations

import contextlib
import hmac
import json
import select
import socket
import socketserver
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable

from . import api_requests
from .api_requests import ApiError
from .generation import Generation
from .introspection import Introspection
from .machine import Machine
from .misbehaviour import Misbehaviour
from .scheduler import Scheduler
from .tokenizer import Tokenizer

OPEN_PATHS = ("/health", "/ping", "/", "/dashboard")


class Server(ThreadingHTTPServer):
    """Listens, and holds what the handlers share."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, machine: Machine, scheduler: Scheduler) -> None:
        self.machine = machine
        self.flags = machine.flags
        self.scheduler = scheduler
        self.tokenizer = Tokenizer()
        self.stopping = False
        self.misbehaviour = Misbehaviour(machine)
        self.about = Introspection(machine, scheduler, sorted(set(_GET) | set(_POST)))
        host = self.flags.text("--host")
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, self.flags.number("--port")), Handler)

    def server_bind(self) -> None:
        """Bind without the look-up of the host's name, which can take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no event."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

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

    def _answer(self) -> None:
        path = self.path.split("?", 1)[0]
        try:
            body = self._body()
            self._authorize(path)
            self.server.misbehaviour.admit(path, self.server.flags.number("--retry-after"))
            routes = _GET if self.command in ("GET", "HEAD") else _POST if self.command == "POST" else {}
            route = routes.get(path)
            if route is None and self.command == "GET" and path.startswith("/v1/models/"):
                route = Handler._one_model
            if route is None:
                if path in _GET or path in _POST:
                    raise ApiError(405, f"{self.command} is not allowed on {path}")
                raise ApiError(404, f"no route for {self.command} {path}", "not_found_error")
            route(self, body)
        except ApiError as error:
            self._send(error.status, error.body, retry_after=error.retry_after)
        except OSError:
            self.close_connection = True

    def _body(self) -> bytes:
        size = self.headers.get("Content-Length", "0")
        if not size.isdigit():
            self.close_connection = True
            raise ApiError(400, "Content-Length: not a number")
        if int(size) > self.server.flags.number("--max-body-mib") * 2**20:
            self.close_connection = True
            raise ApiError(413, "the body is over --max-body-mib")
        self.connection.settimeout(self.server.flags.number("--read-timeout"))
        body = self.rfile.read(int(size)) if int(size) else b""
        self.connection.settimeout(self.server.flags.number("--write-timeout"))
        return body

    def _authorize(self, path: str) -> None:
        key = self.server.flags.text("--api-key")
        if not key or path in OPEN_PATHS:
            return
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), f"Bearer {key}".encode()):
            raise ApiError(401, "invalid api key", "authentication_error")

    def _send(self, status: int, body: Any, *, kind: str = "application/json", retry_after: int | None = None) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
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

    def _json(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except ValueError as error:
            raise ApiError(400, f"the body is not JSON: {error}") from error

    def _health(self, _body: bytes) -> None:
        stopping = self.server.stopping
        self._send(503 if stopping else 200, self.server.about.health(stopping))

    def _version(self, _body: bytes) -> None:
        self._send(200, self.server.about.version())

    def _load(self, _body: bytes) -> None:
        self._send(200, self.server.about.load())

    def _stats(self, _body: bytes) -> None:
        self._send(200, self.server.about.stats())

    def _server_info(self, _body: bytes) -> None:
        self._send(200, self.server.about.server_info())

    def _models(self, _body: bytes) -> None:
        self._send(200, self.server.about.models())

    def _one_model(self, _body: bytes) -> None:
        rows = self.server.about.models()["data"]
        name = self.path.split("?", 1)[0][len("/v1/models/") :]
        if name != rows[0]["id"]:
            raise ApiError(404, f"no model {name}", "not_found_error")
        self._send(200, rows[0])

    def _metrics(self, _body: bytes) -> None:
        self._send(200, self.server.about.metrics(), kind="text/plain; version=0.0.4")

    def _root(self, _body: bytes) -> None:
        self._send(200, "radiance, a rehearsal stand-in\n", kind="text/plain")

    def _reset_prefix_cache(self, _body: bytes) -> None:
        self._send(200, {"dropped": self.server.scheduler.reset_cache()})

    def _tokenize(self, body: bytes) -> None:
        asked = self._json(body)
        if not isinstance(asked, dict) or ("prompt" in asked) == ("messages" in asked):
            raise ApiError(400, "either prompt or messages")
        tokenizer = self.server.tokenizer
        if "messages" in asked:
            kwargs = asked.get("chat_template_kwargs") or {}
            tokens = tokenizer.chat(api_requests.messages(asked["messages"]), kwargs.get("enable_thinking", True))
        elif not isinstance(asked["prompt"], str):
            raise ApiError(400, "prompt: must be a string", param="prompt")
        elif asked.get("add_special_tokens", True):
            tokens = tokenizer.prompt(asked["prompt"])
        else:
            tokens = tokenizer.encode(asked["prompt"])
        strings = tokenizer.pieces(tokens) if asked.get("return_token_strs") else None
        context = self.server.about.context
        self._send(200, {"count": len(tokens), "max_model_len": context, "tokens": list(tokens), "token_strs": strings})

    def _detokenize(self, body: bytes) -> None:
        asked = self._json(body)
        tokens = api_requests.token_ids("tokens", asked.get("tokens") if isinstance(asked, dict) else None)
        self._send(200, {"prompt": "".join(self.server.tokenizer.pieces(tokens))})

    def _completions(self, body: bytes) -> None:
        self._generate(body, chat=False)

    def _chat(self, body: bytes) -> None:
        self._generate(body, chat=True)

    def _generate(self, body: bytes, *, chat: bool) -> None:
        server = self.server
        asked = api_requests.read(
            self._json(body),
            chat=chat,
            machine=server.machine,
            tokenizer=server.tokenizer,
            most_prompt=server.misbehaviour.longest_prompt,
        )
        if server.stopping:
            raise ApiError(429, "the server is shutting down", "rate_limit_error")
        work = Generation(asked, server.about.model, server.machine, server.tokenizer, server.misbehaviour)
        with work.running(server.scheduler):
            if not asked.stream:
                self._send(200, work.whole(self._client_gone))
                return
            work.wait_first(self._client_gone)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-cache")
            self.send_header("Connection", "close")
            self.close_connection = True
            self.end_headers()
            for event in work.events(self._client_gone):
                server.misbehaviour.drip()
                self.wfile.write(b"data: " + event.encode() + b"\n\n")

    def _client_gone(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            readable, _writable, _broken = select.select([self.connection], [], [], 0)
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        return True


_Route = Callable[[Handler, bytes], None]
_GET: dict[str, _Route] = {
    "/health": Handler._health,
    "/ping": Handler._health,
    "/version": Handler._version,
    "/load": Handler._load,
    "/stats": Handler._stats,
    "/server_info": Handler._server_info,
    "/v1/models": Handler._models,
    "/metrics": Handler._metrics,
    "/": Handler._root,
    "/dashboard": Handler._root,
}
_POST: dict[str, _Route] = {
    "/ping": Handler._health,
    "/v1/completions": Handler._completions,
    "/v1/chat/completions": Handler._chat,
    "/tokenize": Handler._tokenize,
    "/detokenize": Handler._detokenize,
    "/reset_prefix_cache": Handler._reset_prefix_cache,
}
