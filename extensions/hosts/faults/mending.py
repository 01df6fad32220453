# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings a host back to a state in which it serves, so that a fault that came out badly is not the next one's as well.

What belongs to the product is told as bad. What a fault did to the runtime itself is mended here, and named.
"""

from __future__ import annotations

import time

from hosts import Host

_UP_SECONDS = 60
# Rootless podman keeps a process of its own for its user namespace; one that it cannot join any more ends every call.
_NO_PAUSE = "invalid internal status"


def mend_podman(host: Host) -> list[str]:
    """Have podman answer again; what was done, in words."""
    if _NO_PAUSE not in host.complaint("podman", "ps"):
        return []
    host.owner("podman", "system", "migrate")
    return ["podman of the user was brought back by `podman system migrate`"]


def free(host: Host) -> None:
    """Take away whatever a fault may have put there that its own end did not take away."""
    host.power_on()
    host.root("systemctl", "start", "ssh.service", check=False)
    host.owner("rm", "-f", f"{host.home}/models/flashnext.faults.json", check=False)
    host.owner("rm", "-rf", host.drop_ins, check=False)
    host.systemctl("daemon-reload", check=False)


def start(host: Host) -> list[str]:
    """Start the unit by hand where no run has brought it back; a complaint about that."""
    if host.running() is not None:
        return []
    host.systemctl("reset-failed", "flashnext.service", check=False)
    host.systemctl("start", "flashnext.service", check=False)
    end = time.monotonic() + _UP_SECONDS
    while time.monotonic() < end and not host.healthy():
        time.sleep(1)
    came = "served then" if host.healthy() else "did not serve then either"
    return [f"no run brought it back: it was started by hand, and {came}"]
