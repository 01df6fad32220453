# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serving: bind when the load is over, say so, answer until a signal, and stop gracefully."""

from __future__ import annotations

import signal
import threading
import time

from .faults import Faults
from .http_server import Server
from .log import Log
from .machine import Machine
from .scheduler import Scheduler
from .sysfs import Cards

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve(machine: Machine, log: Log, faults: Faults, cards: Cards | None = None) -> int:
    """Serve until SIGTERM or SIGINT: exit status 0, or 1 where the port cannot be bound. A second signal kills."""
    flags = machine.flags
    host, port = flags.text("--host"), flags.number("--port")
    key = "  -- a bearer key is required" if flags.text("--api-key") else ""
    # Blocked before there are threads, so that only the wait below sees them.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    scheduler = Scheduler(machine, log, cards)
    try:
        if "bind_refused" in machine.hits:
            raise OSError
        server = Server(machine, scheduler)
    except (OSError, OverflowError):
        log.error(f"server: cannot bind {host}:{port}")
        return 1
    faults.ready()
    bound = server.server_port
    threads = flags.number("--http-threads")
    chat = "/v1/chat/completions with tools and reasoning" if machine.world.chat_template else "chat is 501"
    if not machine.world.chat_template:
        log.warn(
            "no chat template in this container; /v1/chat/completions will answer 501 and /v1/completions is the "
            "endpoint to use"
        )
    log.info(f"serving on http://{host}:{bound}  (/v1/completions; {chat}){key}")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    log.info(
        f"server: listening on http://{host}:{bound} ({threads} threads, up to {max(threads, flags.queue_cap + 8)})"
    )
    signal.sigwait(_SIGNALS)
    # The next one does what it does by default: it kills.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
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
