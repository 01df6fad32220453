# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of a service and of the hands that keep it: its unit, its image, its files, two of them at once.

Each function begins a run, injects its fault, and returns when that run has ended. Of a generator, what follows its
``yield`` is mended by a person once it was seen what serves.
"""

from __future__ import annotations

import time
import typing as t

from hosts import Host, state_folder
from trial import Trial


def unit_cannot_start(trial: Trial) -> t.Iterator[None]:
    """From the stop on the unit has a command that ends at once, whichever pair the files say."""
    host = trial.host
    play = trial.play_until("stop", how="hold")
    trial.at_end(lambda: remove_drop_in(host, "broken.conf"))
    host.write(f"{host.drop_ins}/broken.conf", "[Service]\nExecStart=\nExecStart=/bin/false\n")
    host.systemctl("daemon-reload")
    trial.go_on()
    play.wait()
    yield
    remove_drop_in(host, "broken.conf")


def remove_drop_in(host: Host, name: str) -> None:
    """Take a drop-in of the unit away again, and its folder."""
    host.owner("sh", "-c", 'rm -f "$1/$2"; rmdir "$1" 2>/dev/null || true', "sh", host.drop_ins, name)
    host.systemctl("daemon-reload")


def image_gone(trial: Trial, phase: str | None) -> t.Iterator[None]:
    """The image that is asked for is removed from the host: before the run, or after the precheck has seen it."""
    host, image = trial.host, trial.host.other_image()
    kept = f"/var/tmp/{trial.host.scope}-kept.tar"
    host.owner("podman", "save", "--quiet", "--output", kept, image)

    def bring_back() -> None:
        if host.complaint("podman", "image", "exists", image):
            host.owner("podman", "load", "--quiet", "--input", kept)
        host.owner("rm", "-f", kept)

    trial.at_end(bring_back)
    if phase is None:
        host.owner("podman", "rmi", image)
        trial.play("-e", f"image={image}").wait()
    else:
        play = trial.play_until(phase, "-e", f"image={image}", how="hold")
        host.owner("podman", "rmi", image)
        trial.go_on()
        play.wait()
    yield
    bring_back()


def two_operators(trial: Trial) -> None:
    """A second run for another pair begins 2 s after the first: it finds the lock held, or its plan of another boot."""
    first = trial.play()
    time.sleep(2)
    second = trial.play("-e", "weights_mib=24500").wait()
    first.wait()
    assert sorted([first.code == 0, second.code == 0]) == [False, True], first.text[-1000:] + second.text[-1000:]


def refused_with_restart(trial: Trial) -> t.Iterator[None]:
    """The engine refuses the new pair, in a unit that systemd starts again and again."""
    host = trial.host
    host.write(
        f"{host.drop_ins}/again.conf", "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=1\n"
    )
    host.systemctl("daemon-reload")
    trial.at_end(lambda: remove_drop_in(host, "again.conf"))
    trial.at_end(trial.disarm)
    trial.arm("short_by")
    trial.play().wait()
    trial.disarm()
    yield
    remove_drop_in(host, "again.conf")


def fleet_edited(trial: Trial) -> None:
    """Somebody edits the pair in the fleet directory, to one that never ran; a run without a request stops."""
    path = state_folder() / "fleet/scripts" / f"flashnext.{trial.host.name}.env"
    path.write_text(path.read_text().replace(f"VRAM_WEIGHTS_MIB={trial.before[0]}", "VRAM_WEIGHTS_MIB=24800"))
    play = trial.play(plain=True).wait()
    assert play.code != 0, play.text[-2000:]


def target_edited(trial: Trial) -> None:
    """Somebody edits the pair on the host; a run without a request stops."""
    host = trial.host
    host.root("sed", "-i", f"s/^VRAM_WEIGHTS_MIB=.*/VRAM_WEIGHTS_MIB={trial.asked[0]}/", host.env)
    play = trial.play(plain=True).wait()
    assert play.code != 0, play.text[-2000:]


def process_by_hand(trial: Trial) -> None:
    """Somebody edits the env on the host, restarts the unit, and puts the env back: what runs is in no file."""
    host = trial.host
    text = host.root("cat", host.env)
    target_env = ["sed", "-i", f"s/^VRAM_WEIGHTS_MIB=.*/VRAM_WEIGHTS_MIB={trial.asked[0]}/", host.env]
    host.root(*target_env)
    host.systemctl("restart", "flashnext.service")
    trial.settle()
    host.root("sh", "-c", 'cat >"$1"', "sh", host.env, stdin=text)
    play = trial.play(plain=True).wait()
    assert play.code != 0, play.text[-2000:]
