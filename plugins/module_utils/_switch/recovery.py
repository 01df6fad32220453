# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finishing what an earlier run began: its journal says how far it came, the live process says what became of it.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import alive
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import referee
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.journal import Journal
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import ProcessManager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.transaction import Transaction, as_radiance_error

_NOTHING_STOPPED = ("precheck", "drain")
# From here on the new files are in place, and whatever runs was started from them.
_STARTED = ("start", "ready", "referee", "receipt", "keep")


def would(journal: Journal) -> str:
    """The outcome that finishing this journal aims at: unchanged, switched or rolled_back. Changes nothing."""
    data = journal.data
    lives = ProcessManager(data["start"], data["pid_file"], data["log"]).current() is not None
    if data["direction"] == "back":
        return "rolled_back"
    if data["phase"] in _NOTHING_STOPPED and (lives or data["old"] is None):
        return "unchanged"
    return "switched" if data["phase"] in _STARTED and lives else "rolled_back"


def finish(request: Request, state: State, run: Run, journal: Journal) -> None:
    """Restore or finish, and say which in ``run.recovered``. Raises RadianceError where the service stays down."""
    data = journal.data
    transaction = Transaction(request, state, run, journal)
    run.before = data["before"]
    interrupted = (
        f"The switch to {referee.pair_text(data['expect']['to'])} of {data['at']} was interrupted in phase "
        f"{data['phase']}" + (" of the way back" if data["direction"] == "back" else "")
    )
    aim = would(journal)
    if aim == "unchanged":
        transaction.cancel()
        says = "nothing had been stopped, so nothing was changed"
    elif aim == "switched":
        says = _forward(transaction)
    else:
        says = _back(transaction)
    run.recovered = f"{interrupted}: {says}."
    run.says.insert(0, run.recovered)


def _forward(transaction: Transaction) -> str:
    _adopt(transaction)
    try:
        transaction.judge_boot()
    except Exception as error:
        _raise_if_down(transaction, transaction.go_back(as_radiance_error(error)))
        return "the new pair did not hold, and the old pair was restored"
    transaction.keep()
    return "the new pair was up, and it was finished"


def _back(transaction: Transaction) -> str:
    data = transaction.journal.data
    if data["direction"] == "back":
        started = data["phase"] in _STARTED and transaction.manager.current() is not None
        if started:
            _adopt(transaction)
        error = transaction.restore(started=started)
    else:
        cause = RadianceError("the run that switched was interrupted before the new pair was up", code="interrupted")
        error = transaction.go_back(cause)
    _raise_if_down(transaction, error)
    return "the old pair was restored"


def _adopt(transaction: Transaction) -> None:
    """Make the live process the journal's boot, whoever started it."""
    boot: dict[str, t.Any] = dict(transaction.journal.data["boot"])
    found = transaction.manager.current()
    if found is None or (boot["pid"] is not None and alive(boot["pid"], boot["ticks"])):
        return
    # A boot that we noted and that is gone left its text before that of the one that runs.
    bounded = bool(boot.get("bounded", True)) and boot["pid"] is None
    boot.update(pid=found.pid, ticks=found.started_ticks, bounded=bounded)
    transaction.journal.enter(transaction.journal.data["phase"], boot=boot)


def _raise_if_down(transaction: Transaction, error: RadianceError) -> None:
    if transaction.run.outcome == "failed":
        raise error
