# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rehearsal engine for the tests of the probes."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import client
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import read

ENGINE = pathlib.Path(client.__file__).absolute().parents[3] / "extensions" / "rehearsal" / "radiance.py"
KEY = "sk-rehearsal-key"
FLAGS = {
    "--tp": "2",
    "--max-num-seqs": "3",
    "--max-model-len": "200000",
    "--kv-cache-dtype": "fp8",
    "--host-pool-mib": "16384",
    "--max-num-batched-tokens": "2048",
    "--api-key": KEY,
}


@contextlib.contextmanager
def engine(
    folder: pathlib.Path,
    speedup: float,
    weights: int,
    kv: int,
    fault: str | None = None,
    depth: int = 2,
    **world: t.Any,
) -> t.Iterator[str]:
    """A rehearsal engine that serves this pair, misbehaving as ``fault`` says; its URL."""
    (folder / "model.rad").touch()
    (folder / "model.world.json").write_text(json.dumps({"load_speedup": 10_000, "serve_speedup": speedup, **world}))
    if fault:
        # The first ready boot is spared; this is the memory of one.
        (folder / "model.faults.json").write_text(json.dumps([fault]))
        armed = (folder / "model.faults.json").stat().st_mtime_ns
        (folder / "model.state.json").write_text(json.dumps({"armed_ns": armed, "ready_boots": 1}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pair = {"--vram-weights-mib": str(weights), "--vram-kv-mib": str(kv)}
    flags = {**FLAGS, **pair, "--num-speculative-tokens": str(depth), "--port": str(port)}
    words = [word for flag in flags.items() for word in flag]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(ENGINE), "--model", str(folder / "model.rad"), "--host", "127.0.0.1", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "LC_ALL": "C"},
        )
    try:
        end = time.monotonic() + 20
        while not listening(port):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < end, (folder / "log").read_text()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def listening(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def options(url: str, **more: t.Any) -> t.Any:
    return read({"endpoint": url, "model": None, "timeout": 60, **more}, KEY)
