# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of a test host's endpoint that asks all the time, in a process of its own.

``client.py CONTAINER`` sends a small completion every 0.2 s from within the network of that host, through restarts of
the service and of the host, and prints a JSON line for each: ``{at (monotonic seconds), good, wrong, says}``. An answer
is good when it is 200 and begins with the word that its prompt asked for; a 200 that does not is wrong.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

EVERY_SECONDS = 0.2
PATIENCE_SECONDS = 3.0
_CLONE_NEWNET = 0x40000000


def enter_network(container: str) -> bool:
    """Go into the network of the host as it is now; False while the host is down."""
    shown = subprocess.run(
        ["podman", "--log-level", "error", "container", "inspect", "--format", "{{.State.Pid}}", container],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    if not shown.isdecimal() or shown == "0":
        return False
    try:
        with open(f"/proc/{shown}/ns/net", encoding="ascii") as handle:
            return ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), _CLONE_NEWNET) == 0
    except OSError:
        return False


def ask(word: str) -> tuple[bool, bool, str]:
    """One completion: whether it is good, whether it is wrong, and what came instead."""
    request = urllib.request.Request(
        "http://127.0.0.1:8000/v1/completions",
        json.dumps({"prompt": f"{word} Which word came first?", "max_tokens": 12}).encode(),
        {"Authorization": "Bearer a-key-of-the-test-hosts", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as reply:
            text = json.load(reply)["choices"][0]["text"]
    except urllib.error.HTTPError as error:
        return False, False, f"status {error.code}"
    except (OSError, ValueError) as error:
        return False, False, str(getattr(error, "reason", error))
    good = text.startswith(word)
    return good, not good, "" if good else f"answered {text[:40]!r}"


def main(container: str) -> None:
    """Ask until somebody ends this process."""
    inside = False
    for number in itertools.count():
        began = time.monotonic()
        if not inside:
            inside = enter_network(container)
        good, wrong, says = ask(f"CODE-{number:06d}-ASKED") if inside else (False, False, "the host is down")
        line = {"at": time.monotonic(), "good": good, "wrong": wrong, "says": says}
        os.write(sys.stdout.fileno(), json.dumps(line).encode() + b"\n")
        # A host that was started again has another network.
        inside = inside and (good or number % 10 != 0)
        time.sleep(max(0.0, EVERY_SECONDS - (time.monotonic() - began)))


if __name__ == "__main__":
    main(sys.argv[1])
