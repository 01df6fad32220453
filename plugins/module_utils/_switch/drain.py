# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Traffic: the hooks of a gateway, and waiting for the requests that are still running.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import client
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import key_text
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Phase, Run

_POLL = 0.25
_TELL_EVERY = 5.0
_REQUEST_TIMEOUT = 5.0
_HOOK_TIMEOUT = 300.0
_HOOK_POLL = 0.05
# As much as a pipe holds: what a process has printed when it has ended is read at once.
_PIPE = 65536
# More requests than these are no count.
_MOST = 1_000_000


def hook(run: Run, name: str, argv: t.Sequence[str]) -> None:
    """Run a hook of the gateway, without a shell. Raises RadianceError ``hook_failed``."""
    run.acted(argv)
    try:
        # The core has no module at hand to run it with.
        process = subprocess.Popen(  # pylint: disable=ansible-bad-function
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,  # so that it can be ended with the processes that it starts itself
        )
    except OSError as error:
        raise RadianceError(f"The hook {name} ({argv[0]}) cannot run: {error.strerror}.", code="hook_failed") from error
    said = _followed(process)
    if said is None:
        raise RadianceError(
            f"The hook {name} ({argv[0]}) had not ended after {_HOOK_TIMEOUT:g} s, and was ended.", code="hook_failed"
        )
    if process.returncode != 0:
        words = said.decode("utf-8", "replace").strip().splitlines()
        raise RadianceError(
            f"The hook {name} ({argv[0]}) ended with status {process.returncode}"
            + (f" and says: {words[-1][-300:]}" if words else "."),
            code="hook_failed",
        )


def _followed(process: subprocess.Popen[bytes]) -> bytes | None:
    """The last of what a hook prints until it ends; None where it does not, and is ended.

    Something that it leaves running may keep the pipe open, and nothing bounds what it prints.
    """
    said, deadline = b"", time.monotonic() + _HOOK_TIMEOUT
    with t.cast("t.BinaryIO", process.stdout) as pipe:
        os.set_blocking(pipe.fileno(), False)
        while True:
            ended = process.poll() is not None
            more = pipe.read(_PIPE) or b""
            said = (said + more)[-_PIPE:]
            if ended:
                return said
            if time.monotonic() >= deadline:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return None
            if not more:
                time.sleep(_HOOK_POLL)


def read_key(path: str | None) -> str | None:
    """The API key from its file on the target. Raises RadianceError ``api_key_file_unreadable``."""
    if path is None:
        return None
    try:
        return key_text(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise RadianceError(
            f"api_key_file {path} cannot be read on the target: {why}. Name a file that holds the key and that this "
            "user may read.",
            code="api_key_file_unreadable",
        ) from error


def wait_idle(phase: Phase, endpoint: str | None, key_file: str | None, timeout: float) -> None:
    """Wait until nothing runs and nothing waits in the engine.

    Raises RadianceError ``traffic_still_running`` or ``load_unreadable``; nothing was stopped then.
    """
    if timeout == 0:
        phase.says = "drain_timeout is 0: requests that are running are cut"
        return
    if endpoint is None:
        phase.says = "no endpoint is given, so requests that are running cannot be seen and are cut"
        return
    http = client.Client(endpoint, api_key=read_key(key_file), timeout=_REQUEST_TIMEOUT)
    began = told = time.monotonic()
    while True:
        busy = _in_flight(http)
        waited = time.monotonic() - began
        if not busy:
            phase.says = f"no request is running or waiting, after {waited:.1f} s"
            return
        if waited >= timeout:
            raise RadianceError(
                f"{busy:,} request(s) were still running or waiting after {timeout:g} s (drain_timeout), as /load says."
                " Nothing was stopped or changed. Take the service out of its gateway (before_drain), give a longer "
                "drain_timeout (the role's endpoint_timeouts.drain), or 0 to cut what runs.",
                code="traffic_still_running",
            )
        if time.monotonic() - told >= _TELL_EVERY:
            told = time.monotonic()
            phase.tell(f"{busy:,} request(s) still running or waiting, {waited:.0f} of {timeout:g} s")
        time.sleep(_POLL)


def _in_flight(http: client.Client) -> int:
    reply = http.get("/load")
    if reply.fault is not None and reply.fault.code == "not_listening":
        return 0
    answer = reply.json() if reply.ok else None
    counts = [answer.get(name) for name in ("running", "waiting")] if isinstance(answer, dict) else []
    numbers = [count for count in counts if isinstance(count, int) and not isinstance(count, bool)]
    numbers = [count for count in numbers if 0 <= count <= _MOST]
    if len(numbers) == 2:
        return sum(numbers)
    why = reply.fault.text if reply.fault is not None else f"it answered with status {reply.status}"
    if reply.ok:
        why += f" and {reply.body[:100].decode('utf-8', 'replace')!r}"
    if reply.status == 401:
        why = "it asks for a key; give api_key_file"
    raise RadianceError(
        f"/load does not tell how many requests are running: {why}. Nothing was stopped or changed. "
        "Correct that, or give drain_timeout 0 to cut what runs.",
        code="load_unreadable",
    )


def healthy(endpoint: str) -> tuple[bool, str]:
    """Whether /health answers 200, and a few words on what it answers."""
    reply = client.get(endpoint, "/health", timeout=_REQUEST_TIMEOUT)
    if reply.ok:
        return True, "/health answers 200"
    return False, reply.fault.text if reply.fault is not None else f"/health answers {reply.status}"
