# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The switch killed with SIGKILL while nothing serves: the next run ends on one of the two pairs, and says which."""

from __future__ import annotations

import os
import pathlib
import signal

from rehearsals import Checkout, until
from test_whole_in_order import NEW, OLD, pair


def switch_processes(checkout: Checkout) -> list[int]:
    """The module's own processes on this host: the wrapper, and the module with its arguments about this checkout."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace")
            cwd = os.readlink(entry.parent / "cwd")
        except OSError:
            continue
        if "service_switch" in words and (str(checkout.path) in words or str(checkout.path) in cwd):
            found.append(int(entry.parent.name))
    return found


def journals(checkout: Checkout) -> list[pathlib.Path]:
    """The journal of a switch that runs or was interrupted."""
    return list(checkout.state.glob("target/**/journal.json"))


def test_the_next_run_finishes_or_restores(used: Checkout) -> None:
    process = used.start()
    until(lambda: used.engine() is not None, 60, "the old engine")
    old = used.engine()
    until(lambda: bool(journals(used)) and used.engine() != old, 90, "the old engine is stopped")
    victims = switch_processes(used)
    assert victims, "no process of the switch was found"
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert journals(used), "the journal went although the switch did not end"

    run = used.rehearse()
    assert run.code == 0, run.text
    assert "interrupted" in run.words, run.text
    assert not journals(used)
    assert pair(used.target_env()) in (OLD, NEW)
    assert used.engine() is None or pair(used.target_env()) == pair(used.fleet_env())


def test_after_that_the_job_is_done(used: Checkout) -> None:
    run = used.rehearse()
    assert run.code == 0, run.text
    assert pair(used.target_env()) == NEW
    assert pair(used.fleet_env()) == NEW
