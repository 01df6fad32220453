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
from .sizes import humanb
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
    _say_defaults(machine, log)
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


def _say_defaults(machine: Machine, log: Log) -> None:
    """The batch's buffers, and what a request gets that asks for nothing."""
    flags, staging = machine.flags, machine.split.card.staging
    paged = sum(1 for group in machine.kv.groups if group.paged)
    log.info(
        f"step batch: {humanb(staging // 8)} pinned staging ring + {humanb(staging)} device slab a rank, "
        f"{paged} KV group(s), {len(machine.kv.groups) - paged} derived buffer(s); of the slab, "
        f"{humanb(staging // 2)} is block tables carved for the worst step and only the filled rows cross"
    )
    log.info("sampling defaults for requests that send none: temperature 1, top_p 1, top_k 0 (from the container)")
    bounds = [name for name in ("--default-max-tokens", "--max-tokens-cap", "--max-n") if name in flags.given]
    if bounds:
        stated = ", ".join(f"{name[2:]} {flags.stated(name)}" for name in bounds)
        log.info(f"request defaults and bounds from the command line: {stated}")


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
