# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals to a process that is known by its number and its start, and waiting for what they bring about.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import signal
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import process

# After SIGKILL only the kernel is in the way: memory to give back, a device to let go of.
KILL_WAIT = 30.0


def send(pid: int, ticks: int, number: signal.Signals) -> bool:
    """Send a signal to this very process; False when it has ended. Raises RadianceError ``still_running``."""
    if not process.alive(pid, ticks):
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise RadianceError(
            f"This user may not stop process {pid}. Run the task as the user that owns it.", code="still_running"
        ) from error
    return True


def wait_until(condition: t.Callable[[], bool], seconds: float, pause: float) -> bool:
    """Whether ``condition`` came true within ``seconds``, asked every ``pause``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
    return True


def held_by_the_kernel(pid: int) -> RadianceError:
    """What to raise for a process that SIGKILL did not end."""
    return RadianceError(
        f"Process {pid} is still there {KILL_WAIT:g} s after SIGKILL: the kernel holds it, usually in a driver. "
        "Nothing can use its cards before the machine is restarted.",
        code="still_running",
    )
