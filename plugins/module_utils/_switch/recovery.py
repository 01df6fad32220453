# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finishing what an earlier run began: its journal says how far it came, the live process says what became of it.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import os
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import pair_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import pair_text
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import Process, host_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import (
    boots,
    card_others,
    files,
    images,
    precheck,
    probation,
    referee,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.back import cause_of, interruption
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.journal import Journal
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import manager_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import BACK, BEFORE_STOP, FORWARD, Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.steps import as_radiance_error
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.transaction import Transaction

# In these, in either direction, its files are in place, and whatever runs was started from them.
_STARTED = {*FORWARD[FORWARD.index("start") :], *BACK[BACK.index("start") :]}


class _Serving(t.NamedTuple):
    """A process that serves and that needs no restart, and what it is: ``old``, ``new``, or ``other``."""

    process: Process
    pair: str


def would(request: Request, state: State, journal: Journal) -> str:
    """The outcome that finishing this journal aims at: unchanged, switched or rolled_back. Changes nothing.

    Raises RadianceError ``foreign_process`` or ``port_taken`` where something is in the way of it.
    """
    return _aim(request, state, journal, _serving(request, journal))


def _came_back(journal: Journal) -> bool:
    """Whether what runs was started from the old files, which something else than a run of ours has put back.

    The machine went down and its restore came first, a probation ended, or it was somebody's hand.
    """
    data, manager = journal.data, _manager(journal)
    found = manager.current()
    if found is None or data["old"] is None or data["phase"] in BEFORE_STOP or not files.are_back(data["files"]):
        return False
    if data["direction"] == "back" and data["phase"] in _STARTED:
        return False
    if (data["old"]["pid"], data["old"]["ticks"]) == (found.pid, found.started_ticks):
        return False
    runs = manager.image()
    if not referee.differences(data["old"]["to"], found.flags) and images.is_same(runs, data["old"].get("image")):
        return True
    # Before its exec it is still the serve script, whose command line states nothing.
    return bool(referee.differences(data["expect"]["to"], found.flags)) or not images.is_asked(data["expect"], runs)


def _note_return(journal: Journal) -> None:
    """Go on as on a way back of ours that has started the old pair."""
    stopped = journal.data["stopped"]
    went_down = stopped is not None and stopped["boot_id"] != host_boot()
    why = interruption("the machine went down") if went_down else interruption()
    journal.enter("ready", direction="back", cause=journal.data["cause"] or cause_of(journal, why))


def _aim(request: Request, state: State, journal: Journal, serving: _Serving | None) -> str:
    data = journal.data
    if serving is not None:
        return {"old": "rolled_back", "new": "switched", "other": "unchanged"}[serving.pair]
    if _came_back(journal):
        return "rolled_back"
    lives = _manager(journal).current() is not None
    # Where a pair on probation has crashed since, systemd has put other files back than those of the journal.
    as_it_was = lives or data["old"] is None or probation.has_crashed(state)
    if data["direction"] != "back" and data["phase"] in BEFORE_STOP and as_it_was:
        return "unchanged"
    if not lives:
        _refuse_beside(request, _manager(journal), data["others"])
    if data["direction"] == "back":
        return "rolled_back"
    return "switched" if data["phase"] in _STARTED and lives else "rolled_back"


def _manager(journal: Journal) -> Manager:
    return manager_of(journal.data["manager"])


def _serving(request: Request, journal: Journal) -> _Serving | None:
    """What serves by now although the journal does not know it, usually because somebody started it by hand.

    None where nothing does, and where it is what the journal tells how to deal with: the old process that was not
    stopped yet, or the new one that its next phase judges.
    """
    data = journal.data
    manager = _manager(journal)
    found = manager.current()
    if found is None or data["phase"] in BEFORE_STOP:
        return None
    back, started = data["direction"] == "back", data["phase"] in _STARTED
    is_old = data["old"] is not None and (data["old"]["pid"], data["old"]["ticks"]) == (found.pid, found.started_ticks)
    ours = is_old or (data["boot"] is not None and manager.owns(data["boot"], found))
    if ours and not (back and started):
        return None
    runs = manager.image()
    # What a way back of ours started from the old files is the old pair, whatever its command line states.
    old = ours or (
        data["old"] is not None
        and not referee.differences(data["old"]["to"], found.flags)
        and images.is_same(runs, data["old"].get("image"))
    )
    new = not referee.differences(data["expect"]["to"], found.flags) and images.is_asked(data["expect"], runs)
    if started and not back and (new or (data["boot"]["pid"] is None and not old)):
        return None
    if not boots.serves(manager, found, request.endpoint):
        return None
    return _Serving(found, "old" if old else "new" if new and not back else "other")


def _refuse_beside(request: Request, manager: Manager, others: t.Sequence[card_others.Entry]) -> None:
    """Refuse to start an engine beside one that runs that was started in another way."""
    stranger = manager.stranger()
    if stranger is not None:
        raise RadianceError(f"{stranger}. The switch before is not finished yet.", code="foreign_process")
    precheck.check_port(request, manager, others, ", and the switch before is not finished yet")


def finish(request: Request, state: State, run: Run, journal: Journal) -> None:
    """Restore or finish, and say which in ``run.recovered``. Raises RadianceError where the service stays down."""
    data = journal.data
    transaction = Transaction(request, state, run, journal)
    run.before = data["before"]
    interrupted = (
        f"The switch to {pair_text(data['expect']['to'])} of {data['at']} was interrupted in phase "
        f"{data['phase']}" + (" of the way back" if data["direction"] == "back" else "")
    )
    if _came_back(journal):
        _note_return(journal)
        interrupted += ", and the old pair came back without us"
    serving = _serving(request, journal)
    aim = _aim(request, state, journal, serving)
    if serving is not None and serving.pair != "new":
        says = _let_be(transaction, serving)
    elif aim == "unchanged":
        transaction.cancel()
        says = "nothing had been stopped, so nothing was changed"
    elif aim == "switched":
        says = _forward(transaction)
    else:
        says = _back(transaction)
    run.recovered = f"{interrupted}: {says}."
    run.says.insert(0, run.recovered)


def _let_be(transaction: Transaction, serving: _Serving) -> str:
    """Put the old files back round a process that serves, and close the journal. It is not restarted."""
    run, process = transaction.run, serving.process
    pair = pair_text(pair_of(process.flags))
    transaction.put_back_files()
    ledger = transaction.manager.reading(transaction.state.receipts).ledger
    if serving.pair == "old":
        run.restored = ledger
        transaction.hand_back()
        transaction.rolled_back()
        return f"the old pair {pair} serves already in process {process.pid}, so nothing was restarted"
    run.ledger = ledger
    transaction.after_ready()
    transaction.journal.close()
    return (
        f"{pair} serves in process {process.pid}, which no run of ours started, so it was left as it is; the files on "
        "the target are those from before the switch"
    )


def _forward(transaction: Transaction) -> str:
    found = transaction.manager.current()
    if found is not None and transaction.journal.data["phase"] not in _STARTED:
        transaction.swap()  # somebody else started the new pair before we came to it
        boot = transaction.manager.boot_of(found, None)
        transaction.journal.enter("ready", boot=boot)
    if transaction.journal.data["stopped"] is not None and os.path.exists(transaction.state.restore):
        transaction.guard()  # the machine is in another boot perhaps: nothing restores while this goes forward
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
        error = transaction.go_back(interruption())
    _raise_if_down(transaction, error)
    if transaction.others:
        return f"{card_others.names_of(transaction.others)}, which was stopped for it, serves again"
    return "the old pair was restored"


def _adopt(transaction: Transaction) -> None:
    """Make the live process the journal's boot, whoever started it."""
    journal, manager = transaction.journal, transaction.manager
    boot = journal.data["boot"]
    found = manager.current()
    if found is None:
        return
    if boot is None or boot["pid"] is None or not manager.lives(boot):
        journal.enter(journal.data["phase"], boot=manager.boot_of(found, boot))
    with contextlib.suppress(OSError, RadianceError):  # of a log that cannot be read nothing is known
        transaction.served_before = boots.is_up(manager, journal.data["boot"], transaction.request.endpoint)


def _raise_if_down(transaction: Transaction, error: RadianceError) -> None:
    if transaction.run.outcome == "failed":
        raise error
