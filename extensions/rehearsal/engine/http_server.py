# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP side: the routes, and answers that follow the scheduler."""

from __future__ import annotations

import functools
import json
import socket
import socketserver
from http.server import ThreadingHTTPServer
from typing import Any, Callable

from . import api_requests
from .api_requests import ApiError
from .generation import Generation
from .http_connection import Connection, Route
from .introspection import Introspection
from .machine import Machine
from .misbehaviour import Misbehaviour
from .scheduler import Scheduler
from .tokenizer import Tokenizer


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


class Handler(Connection):
    """The engine's routes."""

    def route(self, path: str) -> Route:
        """What answers this path with this method; ApiError where nothing does."""
        routes = _GET if self.command in ("GET", "HEAD") else _POST if self.command == "POST" else {}
        found = routes.get(path)
        if found is None and self.command == "GET" and path.startswith("/v1/models/"):
            found = Handler._one_model
        if found is None:
            if path in _GET or path in _POST:
                raise ApiError(405, f"{self.command} is not allowed on {path}")
            raise ApiError(404, f"no route for {self.command} {path}", "not_found_error")
        return functools.partial(found, self)

    def _json(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except ValueError as error:
            raise ApiError(400, f"the body is not JSON: {error}") from error

    def _health(self, _body: bytes) -> None:
        stopping = self.server.stopping
        self.send_answer(503 if stopping else 200, self.server.about.health(stopping))

    def _version(self, _body: bytes) -> None:
        self.send_answer(200, self.server.about.version())

    def _load(self, _body: bytes) -> None:
        self.send_answer(200, self.server.about.load())

    def _stats(self, _body: bytes) -> None:
        self.send_answer(200, self.server.about.stats())

    def _server_info(self, _body: bytes) -> None:
        self.send_answer(200, self.server.about.server_info())

    def _models(self, _body: bytes) -> None:
        self.send_answer(200, self.server.about.models())

    def _one_model(self, _body: bytes) -> None:
        rows = self.server.about.models()["data"]
        name = self.path.split("?", 1)[0][len("/v1/models/") :]
        if name != rows[0]["id"]:
            raise ApiError(404, f"no model {name}", "not_found_error")
        self.send_answer(200, rows[0])

    def _metrics(self, _body: bytes) -> None:
        self.send_answer(200, self.server.about.metrics(), kind="text/plain; version=0.0.4")

    def _sessions(self, _body: bytes) -> None:
        self.send_answer(200, self.server.about.sessions())

    def _tokenizer_info(self, _body: bytes) -> None:
        self.send_answer(200, self.server.about.tokenizer_info())

    def _graph(self, _body: bytes) -> None:
        self.send_answer(200, self.server.about.graph())

    def _embeddings(self, body: bytes) -> None:
        asked = self._json(body)
        given = asked.get("input") if isinstance(asked, dict) else None
        texts = given if isinstance(given, list) else [given]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise ApiError(400, "input: must be a string or an array of strings", param="input")
        if any(len(self.server.tokenizer.prompt(str(text))) >= self.server.about.context for text in texts):
            raise ApiError(400, "input: exceeds the model context", code="context_length_exceeded", param="input")
        raise ApiError(501, "this container has no pooling head", "not_implemented_error")

    def _root(self, _body: bytes) -> None:
        self.send_answer(200, "radiance, a rehearsal stand-in\n", kind="text/plain")

    def _reset_prefix_cache(self, _body: bytes) -> None:
        self.send_answer(200, {"dropped": self.server.scheduler.reset_cache()})

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
        self.send_answer(
            200, {"count": len(tokens), "max_model_len": context, "tokens": list(tokens), "token_strs": strings}
        )

    def _detokenize(self, body: bytes) -> None:
        asked = self._json(body)
        tokens = api_requests.token_ids("tokens", asked.get("tokens") if isinstance(asked, dict) else None)
        self.send_answer(200, {"prompt": "".join(self.server.tokenizer.pieces(tokens))})

    def _completions(self, body: bytes) -> None:
        self._generate(body, chat=False)

    def _chat(self, body: bytes) -> None:
        if not self.server.machine.world.chat_template:
            raise ApiError(501, "this container carries no chat template", "not_implemented_error")
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
                self.send_answer(200, work.whole(self.client_gone))
                return
            work.wait_first(self.client_gone)
            server.scheduler.counters.answered(200)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-cache")
            self.send_header("Connection", "close")
            self.close_connection = True
            self.end_headers()
            for event in work.events(self.client_gone):
                server.misbehaviour.drip()
                self.wfile.write(b"data: " + event.encode() + b"\n\n")


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
    "/sessions": Handler._sessions,
    "/get_tokenizer_info": Handler._tokenizer_info,
    "/graph": Handler._graph,
    "/": Handler._root,
    "/dashboard": Handler._root,
}
_POST: dict[str, _Route] = {
    "/ping": Handler._health,
    "/v1/completions": Handler._completions,
    "/v1/chat/completions": Handler._chat,
    "/v1/embeddings": Handler._embeddings,
    "/tokenize": Handler._tokenize,
    "/detokenize": Handler._detokenize,
    "/reset_prefix_cache": Handler._reset_prefix_cache,
}
