# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of one call of service_switch: lock, finish what was interrupted, precheck, switch.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import os
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import pair_text
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import (
    boot_guard,
    card_others,
    files,
    precheck,
    probation,
    recovery,
    referee,
    saving,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.journal import Journal
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import manager_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import Progress, State, locked
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.steps import as_radiance_error
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.transaction import Transaction


def switch(request: Request, check_mode: bool) -> Run:
    """Do it, or with ``check_mode`` say what would be done. A RadianceError carries the result so far."""
    run = Run()
    state = State(request.state_dir, request.service)
    try:
        if check_mode:
            if request.save_receipt:
                saving.save_running(request, state, run, check_mode)
            else:
                _preview(request, state, run)
            return run
        with contextlib.ExitStack() as stack:
            with run.phase("lock") as phase:
                state.make()
                stack.enter_context(locked(state, request.cards))
                phase.says = f"the lock {state.lock} is ours"
            run.progress = Progress(state.progress)
            stack.callback(run.progress.close)
            if request.save_receipt:
                saving.save_running(request, state, run, check_mode)
            else:
                _work(request, state, run)
    except Exception as error:
        found = as_radiance_error(error)
        raise RadianceError(found.text, code=found.code, result=run.result()) from error
    return run


def _work(request: Request, state: State, run: Run) -> None:
    interrupted = Journal.load(state)
    if interrupted is not None:
        recovery.finish(request, state, run, interrupted)
    state.sweep()
    probation.look(request, state, run, check_mode=False)
    if request.expect is None:
        _tell_others(request, state, run)
        _install_alone(request, run, check_mode=False)
        if interrupted is None and not run.says:
            run.says.append("No switch was interrupted; nothing was done.")
        return
    found = precheck.check(request, state, run)
    if found.same:
        files.install(found.changes)
        run.changed = run.changed or bool(found.changes)
        run.says.append(_unchanged_says(request, found.changes))
        _tell_no_probation(request, run)
        return
    manager = manager_of(request.manager)
    boot_guard.prepare(manager, state, run, check_mode=False, others=found.in_the_way)
    journal = Journal.begin(
        state,
        manager=request.manager,
        expect=request.expect,
        old=found.old,
        before=run.before,
        probation=request.probation,
        others=found.in_the_way,
    )
    entries = files.journal_entries(found.changes, state.backup, journal.data["id"], manager.is_unit)
    journal.enter("precheck", files=entries)
    try:
        files.stage(found.changes, entries)
    except BaseException:
        files.discard(entries)
        journal.close()
        raise
    Transaction(request, state, run, journal).forward()


def _preview(request: Request, state: State, run: Run) -> None:
    interrupted = Journal.load(state)
    if interrupted is not None:
        run.outcome = recovery.would(request, state, interrupted)
        run.changed = run.outcome != "unchanged"
        run.recovered = (
            f"A switch to {pair_text(interrupted.data['expect']['to'])} was interrupted in phase "
            f"{interrupted.data['phase']}; it would be finished first ({run.outcome})."
        )
        run.says.append(run.recovered)
        if request.expect is None or run.changed:
            # What comes after depends on how that ends.
            return
    probation.look(request, state, run, check_mode=True)
    if request.expect is None:
        _tell_others(request, state, run)
        _install_alone(request, run, check_mode=True)
        if not run.says:
            run.says.append("No switch was interrupted; nothing would be done.")
        return
    found = precheck.check(request, state, run)
    if found.same:
        run.changed = bool(found.changes)
        run.says.append(_unchanged_says(request, found.changes))
        _tell_no_probation(request, run)
        return
    manager = manager_of(request.manager)
    boot_guard.prepare(manager, state, run, check_mode=True, others=found.in_the_way)
    if found.old is not None:
        if request.before_drain:
            run.acted(request.before_drain)
        run.acted(manager.stop_argv(found.old["pid"]))
    for entry in found.in_the_way:
        run.acted(manager_of(entry["manager"]).stop_argv(entry["pid"] or 0))
    run.acted(manager.start_argv)
    if request.after_ready:
        run.acted(request.after_ready)
    run.outcome, run.changed = "switched", True
    run.says.append(f"Would switch to {referee.goal_text(request.expect, (found.old or {}).get('image'))}.")
    if found.in_the_way:
        run.says.append(f"{card_others.names_of(found.in_the_way)} would be stopped for it and stay stopped.")
    if request.probation:
        run.says.append(f"It would be on probation for {request.probation:,} s.")


def _install_alone(request: Request, run: Run, check_mode: bool) -> None:
    """Install files that no pair is expected of, whatever runs: nothing is restarted for them."""
    changes = files.compare(request.files)
    run.diff = files.diffs(changes)
    if not changes:
        return
    if run.recovered:
        raise RadianceError(
            f"{run.recovered} The files were made of what was there before that, so none was written. Run this again.",
            code="switch_interrupted",
        )
    files.check_writable(changes)
    if not check_mode:
        files.install(changes)
    run.changed = True
    run.says.append(
        f"{len(changes)} file(s) {'would be' if check_mode else 'were'} written; nothing restarts for them."
    )


def _tell_others(request: Request, state: State, run: Run) -> None:
    """Who else runs on these cards, for whoever plans."""
    if request.others:
        card_others.look(request, state, run, manager_of(request.manager).current())


def _tell_no_probation(request: Request, run: Run) -> None:
    if request.probation:
        run.warnings.append("Nothing was switched, so nothing begins a probation.")


def _unchanged_says(request: Request, changes: t.Sequence[files.Change]) -> str:
    to = t.cast("dict[str, t.Any]", request.expect)["to"]
    says = f"The running process has {pair_text(to)} and its shape already; no restart."
    if changes:
        names = ", ".join(os.path.basename(change.dest) for change in changes)
        says += f" Files whose bytes differ: {names}."
    return says
