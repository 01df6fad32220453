# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a test host: waits until a switch begins a phase, and may kill or hold it there.

``watch.py PROGRESS PHASE COUNT kill|hold|look SECONDS``: follows the progress of the next run of the module until it
begins PHASE for the COUNT-th time. With ``kill`` its process gets SIGKILL, with ``hold`` SIGSTOP. Prints ``{"phase":
the last one that it began, "pid": of the module}``, or ``null`` where that moment did not come within SECONDS.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time

PAUSE_SECONDS = 0.001


def lines(path: str) -> list[dict[str, object]]:
    """The whole lines of the progress; none while there is no file."""
    try:
        with open(path, encoding="ascii") as handle:
            return [json.loads(line) for line in handle.read().split("\n")[:-1]]
    except OSError:
        return []


def size(path: str) -> tuple[int, int] | None:
    """What is another with each line."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def main(path: str, phase: str, count: int, how: str, seconds: float) -> None:
    """Wait, kill where that was asked, and say where it was."""
    with contextlib.suppress(PermissionError):  # of a user
        os.nice(-15)
    # An empty file is no run yet: the first line follows.
    earlier = {line["run"] for line in lines(path)}
    end = time.monotonic() + seconds
    before = None
    while time.monotonic() < end:
        time.sleep(PAUSE_SECONDS)
        now = size(path)
        if now == before:
            continue
        before = now
        seen = [line for line in lines(path) if line["run"] not in earlier]
        begun = [line["phase"] for line in seen if not line["says"] and line["phase"] != "end"]
        if begun.count(phase) >= count:
            pid = int(str(seen[0]["pid"]))
            if how != "look":
                os.kill(pid, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
                begun = [line["phase"] for line in lines(path) if not line["says"]]
            print(json.dumps({"phase": begun[-1], "pid": pid}))
            return
    print("null")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], float(sys.argv[5]))
