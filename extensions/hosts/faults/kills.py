# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults in which a process dies: the module, the controller, the engine.

Each function begins a run, injects its fault, and returns when that run has ended. Of a generator, what follows its
``yield`` is mended by a person once it was seen what serves.
"""

from __future__ import annotations

import time

from trial import Trial


def module_killed(trial: Trial, phase: str, count: int = 1) -> None:
    """SIGKILL of the module as soon as it has begun the phase."""
    trial.play_until(phase, count=count, how="kill").wait()


def module_killed_back(trial: Trial, phase: str) -> None:
    """The same on the way back from a pair that the engine refuses."""
    trial.arm("short_by")
    try:
        module_killed(trial, phase, 1 if phase == "restore" else 2)
    finally:
        trial.disarm()


def controller_killed(trial: Trial, phase: str) -> None:
    """SIGKILL of ansible-playbook and its workers. The module goes on without it."""
    trial.play_until(phase).kill()
    await_module(trial)


def await_module(trial: Trial) -> None:
    """Until the switch that nobody follows has let go of its lock."""
    end = time.monotonic() + 300
    while trial.host.held_locks() and time.monotonic() < end:
        time.sleep(1)


def engine_killed_loading(trial: Trial) -> None:
    """SIGKILL of the engine while it loads."""
    play = trial.play_until("ready")
    kill_engine(trial)
    play.wait()


def kill_engine(trial: Trial) -> None:
    """As soon as there is one."""
    end = time.monotonic() + 60
    while time.monotonic() < end and not trial.host.engines():
        time.sleep(0.05)
    trial.host.root("pkill", "-KILL", "-x", "radiance")


def engine_killed_ready(trial: Trial, *words: str) -> None:
    """SIGKILL of the engine once the run has ended well."""
    play = trial.play(*words).wait()
    assert play.code == 0, play.text[-2000:]
    kill_engine(trial)
    time.sleep(2)


def engine_killed_ready_in_probation(trial: Trial) -> None:
    """The same in a probation: systemd returns to the old pair."""
    engine_killed_ready(trial, "-e", "probation=1h")
