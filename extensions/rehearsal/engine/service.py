# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serving: bind when the load is over, say so, answer until a signal, and stop gracefully."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType

from .faults import Faults
from .http_server import Server
from .log import Log
from .machine import Machine
from .scheduler import Scheduler


def serve(machine: Machine, log: Log, faults: Faults) -> int:
    """Serve until SIGTERM or SIGINT: exit status 0, or 1 where the port cannot be bound. A second signal kills."""
    flags = machine.flags
    host, port = flags.text("--host"), flags.number("--port")
    key = "  -- a bearer key is required" if flags.text("--api-key") else ""
    scheduler = Scheduler(machine, log)
    try:
        server = Server(machine, scheduler)
    except (OSError, OverflowError):
        log.error(f"server: cannot bind {host}:{port}")
        return 1
    stop = threading.Event()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    faults.ready()
    bound = server.server_port
    threads = flags.number("--http-threads")
    log.info(f"serving on http://{host}:{bound}  (/v1/completions; /v1/chat/completions with tools and reasoning){key}")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    log.info(
        f"server: listening on http://{host}:{bound} ({threads} threads, up to {max(threads, flags.queue_cap + 8)})"
    )
    stop.wait()
    faults.ended()
    _drain(server, machine)
    server.shutdown()
    server.server_close()
    log.info(server.about.shutdown_line())
    return 0


def _drain(server: Server, machine: Machine) -> None:
    """Refuse what comes, let what runs end, and be seen as stopping for a moment."""
    server.stopping = True
    world = machine.world
    began = time.monotonic()
    time.sleep(world.stop_seconds / world.load_speedup)
    while sum(server.scheduler.load) and time.monotonic() - began < world.drain_seconds:
        time.sleep(0.02)
    # The last answers leave after their sequences have ended.
    time.sleep(0.05)
