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
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import pair_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import pair_text
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import receipt
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import (
    boot_guard,
    card_others,
    drain,
    files,
    host_memory,
    images,
    needed,
    probation,
    recovery,
    referee,
    restartable,
    saving,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.journal import Journal
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager
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
    found = _precheck(request, state, run)
    if found.same:
        files.install(found.changes)
        run.changed = run.changed or bool(found.changes)
        run.says.append(_unchanged_says(request, found.changes))
        _tell_no_probation(request, run)
        return
    manager = manager_of(request.manager)
    probation.confirm(state, run, request)
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
    beside = request.manager["kind"] == "systemd"
    entries = files.journal_entries(found.changes, state.backup, journal.data["id"], beside)
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
        run.outcome = recovery.would(request, interrupted)
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
    found = _precheck(request, state, run)
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


class _Found(t.NamedTuple):
    """What the precheck found: the process as the journal keeps it, the files that differ, no need to restart, and
    the services in its way."""

    old: dict[str, t.Any] | None
    changes: list[files.Change]
    same: bool
    in_the_way: list[dict[str, t.Any]]


def _tell_others(request: Request, state: State, run: Run) -> None:
    """Who else runs on these cards, for whoever plans."""
    if request.others:
        card_others.look(request, state, run, manager_of(request.manager).current())


def _precheck(request: Request, state: State, run: Run) -> _Found:
    """Everything that can be refused before anything is stopped. Changes nothing."""
    expect = t.cast("dict[str, t.Any]", request.expect)
    manager = manager_of(request.manager)
    with run.phase("precheck") as phase:
        stranger = manager.stranger()
        if stranger is not None:
            raise RadianceError(f"{stranger}. Nothing was changed.", code="foreign_process")
        process = manager.current()
        reading = manager.reading(state.receipts) if process is not None else None
        ledger = reading.ledger if reading is not None else None
        run.before = run.ledger = ledger
        run.warnings += reading.notes if reading is not None else []
        _check_fingerprint(request, state, run, ledger, ledger is None and manager.crashed())
        in_the_way = card_others.look(request, state, run, process)
        changes = files.compare(request.files)
        run.diff = files.diffs(changes)
        files.check_writable(changes)
        if process is None:
            phase.says = "nothing runs"
            if not card_others.answers(request.endpoint, in_the_way):
                _check_port(request, manager)
            different = ["nothing runs"]
        else:
            different = referee.differences(expect["to"], process.flags)
            different += _other_flags(expect.get("flags") or {}, process.flags)
            different += images.difference(expect, images.of_ledger(ledger))
            if not different and not _listens(request, ledger):
                different = ["the process does not listen"]
            phase.says = f"process {process.pid} runs {pair_text(pair_of(process.flags))}"
        if not different:
            return _Found(None, changes, True, [])
        card_others.check(request, run, in_the_way)
        problem = manager.problem({change.dest for change in changes})
        if problem is not None:
            raise RadianceError(f"{problem}. Nothing was changed.", code="start_unusable")
        needed.check(manager, request.needs)
        image = manager.lost_image(request.image)
        if image is not None:
            raise RadianceError(
                f"The runtime does not have the image {image}, so neither this pair nor the old one could be started "
                "from it. Nothing was stopped or changed. Pull it or tag it on the target, then run this again.",
                code="image_missing",
            )
        images.check_names(manager, expect, images.of_ledger(ledger))
        if process is not None:
            host_memory.check(process, expect.get("flags") or {})
            restartable.check(manager, changes, pair_text(pair_of(process.flags)))
        probation.check(request, manager, changes, process is not None)
        for path, what in [(state.journal, "state_dir"), *manager.writes()]:
            files.check_room(path, what)
        if request.drain_timeout and request.api_key_file:
            drain.read_key(request.api_key_file)
        phase.says += f"; {len(changes)} file(s) differ; {'; '.join(different)}"
        old = None
        if process is not None:
            old = {
                "pid": process.pid,
                "ticks": process.started_ticks,
                "to": pair_of(process.flags),
                "image": images.of_ledger(ledger),
            }
        return _Found(old, changes, False, in_the_way)


def _check_fingerprint(
    request: Request, state: State, run: Run, ledger: t.Mapping[str, t.Any] | None, crashed: bool
) -> None:
    if request.fingerprint is None or (ledger is not None and ledger["fingerprint"] == request.fingerprint):
        return
    if ledger is None and (request.handover or crashed):
        last = receipt.newest(state.receipts).reading
        if last is not None and last.ledger["fingerprint"] == request.fingerprint:
            return
    expect = t.cast("dict[str, t.Any]", request.expect)
    asked = (expect["to"], expect.get("image"))
    finished = any(
        record["kind"] == "switched" and (record["to"], record.get("image")) == asked for record in run.records
    )
    if finished:
        return  # the switch that this very call asks for was interrupted, and has just been finished
    runs = f"boot {ledger['fingerprint']} runs" if ledger is not None else "nothing runs"
    raise RadianceError(
        f"The plan was made from boot {request.fingerprint}, and {runs}. Nothing was changed. Plan again from the "
        "ledger of what runs now.",
        code="plan_is_stale",
    )


def _check_port(request: Request, manager: Manager) -> None:
    if request.endpoint is not None and drain.healthy(request.endpoint)[0]:
        raise RadianceError(
            f"{manager.nothing_runs()}, yet {request.endpoint} answers: another service has the port. Nothing was "
            f"changed. {manager.to_be_found()}, stop it, or correct endpoint.",
            code="port_taken",
        )


def _listens(request: Request, ledger: t.Mapping[str, t.Any] | None) -> bool:
    if ledger is not None and ledger["ready"]:
        return True
    # A log that was rotated away no longer shows the boot; the endpoint does.
    return request.endpoint is not None and drain.healthy(request.endpoint)[0]


def _other_flags(wanted: t.Mapping[str, t.Any], flags: t.Mapping[str, str]) -> list[str]:
    return [
        f"--{option} is {flags.get(option, 'not given')}, asked is {text}"
        for option, text in sorted(wanted.items())
        if flags.get(option) != str(text)
    ]


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
