# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a switch is needed, and whether it can be made: all that can be refused before anything is stopped.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import pair_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import pair_text
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import receipt
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import (
    card_others,
    drain,
    files,
    host_memory,
    images,
    needed,
    probation,
    referee,
    restartable,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import manager_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State


class Found(t.NamedTuple):
    """What the precheck found: the process as the journal keeps it, the files that differ, no need to restart, and
    the services in its way."""

    old: dict[str, t.Any] | None
    changes: list[files.Change]
    same: bool
    in_the_way: list[dict[str, t.Any]]


def check(request: Request, state: State, run: Run) -> Found:
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
            check_port(request, manager, in_the_way)
            different = ["nothing runs"]
        else:
            different = referee.differences(expect["to"], process.flags)
            different += _other_flags(expect.get("flags") or {}, process.flags)
            different += images.difference(expect, images.of_ledger(ledger))
            if not different and not _listens(request, ledger):
                different = ["the process does not listen"]
            phase.says = f"process {process.pid} runs {pair_text(pair_of(process.flags))}"
        if not different:
            return Found(None, changes, True, [])
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
        return Found(old, changes, False, in_the_way)


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


def check_port(request: Request, manager: Manager, others: t.Sequence[card_others.Entry], left: str = "") -> None:
    """Refuse to start an engine where something answers already; one of ``others``, which is stopped for it, may.

    ``left``: what else an operator has to know. Raises RadianceError ``port_taken``.
    """
    if request.endpoint is None or card_others.answers(request.endpoint, others):
        return
    if drain.healthy(request.endpoint)[0]:
        raise RadianceError(
            f"{manager.nothing_runs()}, yet {request.endpoint} answers: somebody started the service in another way, "
            f"or another service has the port. Nothing was changed{left}. {manager.to_be_found()}, stop it, or "
            "correct endpoint.",
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
