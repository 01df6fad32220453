# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of a machine: its network, its power, its disks.

Each function begins a run, injects its fault, and returns when that run has ended. Of a generator, what follows its
``yield`` is mended by a person once it was seen what serves.
"""

from __future__ import annotations

import signal
import subprocess
import time
import typing as t

from hosts import A, B, Host, state_folder
from mending import mend_podman
from trial import Trial


def sshd_stopped(trial: Trial) -> t.Iterator[None]:
    """No new connection and none of the present ones, for 20 s in the middle; the run goes on once it is back."""
    play = trial.play_until("stop")
    trial.at_end(lambda: trial.host.root("systemctl", "start", "ssh.service"))
    trial.host.root("sh", "-c", "systemctl stop ssh.service; pkill -KILL -x sshd || true")
    time.sleep(20)
    trial.host.root("systemctl", "start", "ssh.service")
    play.wait()
    yield


def rebooted(trial: Trial, phase: str) -> None:
    """The machine goes down without a word and comes back, as another boot of it."""
    play = trial.play_until(phase)
    reboot(trial.host)
    play.wait()


def reboot(host: Host) -> None:
    """Restart the container of the host, all its processes killed."""
    subprocess.run(
        ["podman", "--log-level", "error", "restart", "--time", "0", host.box], check=True, stdout=subprocess.DEVNULL
    )
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if host.root("systemctl", "is-active", "ssh.service", check=False).strip() == "active":
            break
        time.sleep(0.5)


def full_state(trial: Trial, phase: str | None) -> t.Iterator[None]:
    """No byte is left on the disk of the state directory: before the run, or from a phase on."""
    yield from full_disk(trial, f"{trial.host.home}/.kvfleet", phase)


def full_target(trial: Trial) -> t.Iterator[None]:
    """No byte is left on the disk of the target directory's scripts."""
    yield from full_disk(trial, f"{trial.host.home}/scripts", None)


def full_disk(trial: Trial, folder: str, phase: str | None) -> t.Iterator[None]:
    """A small tmpfs with the folder's content over the folder, and a file that takes all that is left."""
    host = trial.host
    host.root("sh", "-ec", MOUNT, "sh", folder)
    trial.at_end(lambda: host.root("sh", "-ec", UNMOUNT, "sh", folder))
    filler = "/run/small/filler"
    if phase is None:
        host.root("sh", "-c", f"cat /dev/zero >{filler} 2>/dev/null; true")
        trial.play().wait()
    else:
        play = trial.play_until(phase, how="hold")
        host.root("sh", "-c", f"cat /dev/zero >{filler} 2>/dev/null; true")
        trial.go_on()
        play.wait()
    yield
    host.root("rm", "-f", filler)
    trial.mended += mend_podman(host)


# The folder is one of a small file system, whose root has room for a filler that nobody takes for a file of ours.


MOUNT = """
mkdir -p /run/small
mount -t tmpfs -o size=8m,mode=0755 small /run/small
cp -a "$1" /run/small/folder
mount --bind /run/small/folder "$1"
"""


UNMOUNT = """
umount "$1"
find "$1" -mindepth 1 -delete
cp -a /run/small/folder/. "$1"
umount /run/small
"""


def read_only(trial: Trial, phase: str | None) -> t.Iterator[None]:
    """The target directory's scripts are on a read-only file system: before the run, or from a phase on."""
    host, folder = trial.host, f"{trial.host.home}/scripts"
    host.root("mount", "--bind", folder, folder)
    trial.at_end(lambda: host.root("umount", folder))
    remount = ("mount", "-o", "remount,ro,bind", folder)
    if phase is None:
        host.root(*remount)
        trial.play().wait()
    else:
        play = trial.play_until(phase, how="hold")
        host.root(*remount)
        trial.go_on()
        play.wait()
    yield
    host.root("mount", "-o", "remount,rw,bind", folder)


def fleet_full(trial: Trial) -> None:
    """The fleet directory has no room: the run's own view of it is a small file system that is full."""
    fleet = state_folder() / "fleet"
    # The run sees it, nobody else does.
    inside = """
copy=$(mktemp -d)
cp -a "$1/." "$copy"
mount -t tmpfs -o size=$(( $(du -sk "$copy" | cut -f1) + 40 ))k small "$1"
cp -a "$copy/." "$1"
rm -rf "$copy"
cat /dev/zero >"$1/filler" 2>/dev/null || true
shift
exec "$@"
"""
    trial.play(wrap=["unshare", "--mount", "sh", "-ec", inside, "sh", str(fleet)]).wait()


def host_lost(trial: Trial, when: str) -> t.Iterator[None]:
    """A fleet of two, of which this host is the first: it is gone before, while or after it is switched."""
    host = trial.host
    trial.limit = f"{A},{B}"
    stop = ("sh", "-c", "systemctl stop ssh.service; pkill -KILL -x sshd || true")
    if when == "before":
        host.root(*stop)
        trial.play().wait()
    elif when == "while":
        play = trial.play_until("ready")
        subprocess.run(
            ["podman", "--log-level", "error", "stop", "--time", "0", host.box], check=True, stdout=subprocess.DEVNULL
        )
        # A run waits for a host that comes back; whoever started it gives up.
        time.sleep(45)
        play.process.send_signal(signal.SIGINT)
        play.wait()
    else:
        play = trial.play_until("keep")
        seen = len(play.text)
        while play.process.poll() is None and f"[{B} " not in play.text[seen:]:
            time.sleep(0.2)
        host.root(*stop)
        play.wait()
    yield
    if when == "while":
        reboot(host)
    else:
        host.root("systemctl", "start", "ssh.service")
