# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts the stand-in engine as a process of its own, as its users do."""

from __future__ import annotations

import http.client
import json
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, Callable

import pytest

REHEARSAL = pathlib.Path(__file__).resolve().parents[3] / "extensions" / "rehearsal"
sys.path[:0] = [str(REHEARSAL), str(pathlib.Path(__file__).parent)]

SHAPE = (
    "--tp 2 --tp-wire wht6 --max-num-seqs 3 --max-model-len 200000 --kv-cache-dtype fp8 --num-speculative-tokens 2 "
    "--host-pool-mib 16384 --host 127.0.0.1 --port 0"
)
PAIR = "--vram-weights-mib 24000 --vram-kv-mib 5120"


class Engine:
    """One process of the stand-in; ``log`` is what it has written so far."""

    def __init__(self, directory: pathlib.Path, flags: str, environment: dict[str, str] | None = None) -> None:
        self._path = directory / "stderr.log"
        with open(self._path, "ab") as log:
            self.offset = log.tell()
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    str(REHEARSAL / "radiance.py"),
                    "--model",
                    str(directory / "flash.rad"),
                    *flags.split(),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={"PATH": "/usr/bin:/bin", **(environment or {})},
            )

    @property
    def log(self) -> str:
        """What this boot wrote."""
        return self._path.read_bytes()[self.offset :].decode()

    @property
    def lines(self) -> list[str]:
        """The log in lines."""
        return self.log.splitlines()

    def line(self, pattern: str) -> str:
        """The first line in which a pattern is found."""
        found = next((line for line in self.lines if re.search(pattern, line)), None)
        assert found is not None, f"no line with {pattern!r} in\n{self.log}"
        return found

    def wait_for(self, pattern: str) -> str:
        """Wait until a line is printed."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if re.search(pattern, self.log, re.MULTILINE):
                return self.line(pattern)
            time.sleep(0.01)
        raise AssertionError(f"{pattern!r} did not come:\n{self.log}")

    def ready(self) -> Engine:
        """Wait until it listens."""
        found = re.search(r"listening on http://.*:(\d+) ", self.wait_for(r"server: listening"))
        assert found is not None
        self.port = int(found.group(1))
        return self

    def exit(self) -> int:
        """Wait for its end: the exit status."""
        return self.process.wait(20)

    def stop(self) -> int:
        """Stop it gracefully: the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.exit()

    def ask(self, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any, dict[str, str]]:
        """(status, body, headers) of a request; a body that is not JSON comes as text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            kind = answer.getheader("Content-Type", "")
            return answer.status, json.loads(text) if kind == "application/json" else text, dict(answer.getheaders())
        finally:
            connection.close()


Starter = Callable[..., Engine]


def _world(directory: pathlib.Path, fields: dict[str, Any]) -> None:
    (directory / "flash.rad").touch()
    world = {"load_speedup": 2000, "serve_speedup": 40, "stop_seconds": 100, **fields}
    (directory / "flash.world.json").write_text(json.dumps(world))


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Iterator[Starter]:
    """Starts engines in one directory; each call takes flags beyond the shape, and fields of the world."""
    started: list[Engine] = []

    def begin(flags: str = PAIR, environment: dict[str, str] | None = None, **fields: Any) -> Engine:
        _world(tmp_path, fields)
        started.append(Engine(tmp_path, f"{SHAPE} {flags}", environment))
        return started[-1]

    yield begin
    for engine in started:
        engine.process.kill()
        engine.process.wait()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One engine that serves for a whole file of tests."""
    directory = tmp_path_factory.mktemp("served")
    _world(directory, {})
    engine = Engine(directory, f"{SHAPE} {PAIR} --max-queued-requests 6 --max-n 3").ready()
    yield engine
    engine.process.kill()
    engine.process.wait()
