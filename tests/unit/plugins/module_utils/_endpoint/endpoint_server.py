# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small programmable HTTP server that plays one trap at a time. It shares no code with the probes."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import time
import typing as t

Answer = t.Callable[["Call"], None]


class Call(http.server.BaseHTTPRequestHandler):
    """One request, with the few ways of answering that the tests need."""

    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.content: t.Any = None

    def log_message(self, format: str, *args: t.Any) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _serve(self, raw: bytes) -> None:
        self.close_connection = True
        self.content = json.loads(raw) if raw else None
        with self.server.lock:
            self.server.requests.append((self.command, self.path, dict(self.headers), self.content))
        answer = self.server.answers.get(self.path)
        with contextlib.suppress(OSError):
            if answer is None:
                self.reply({"error": {"message": f"no route for {self.command} {self.path}"}}, status=404)
            else:
                answer(self)

    def reply(self, content: t.Any, status: int = 200, headers: t.Mapping[str, str] | None = None) -> None:
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def begin_events(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()

    def event(self, content: t.Any, after: float = 0.0) -> None:
        time.sleep(after)
        text = content if isinstance(content, str) else json.dumps(content)
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()


class Server(http.server.ThreadingHTTPServer):
    """``answers`` maps a path to what answers it; ``requests`` lists (method, path, headers, JSON body)."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, answers: t.Mapping[str, Answer], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Call)
        self.answers: dict[str, Answer] = dict(answers)
        self.requests: list[tuple[str, str, dict[str, str], t.Any]] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextlib.contextmanager
def serving(answers: t.Mapping[str, Answer], port: int = 0) -> t.Iterator[Server]:
    """Run a server with these answers for the length of the block."""
    server = Server(answers, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sends(content: t.Any, status: int = 200, headers: t.Mapping[str, str] | None = None) -> Answer:
    """An answer that is always this."""
    return lambda call: call.reply(content, status, headers)
