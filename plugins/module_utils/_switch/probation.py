# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new pair on probation: where its engine crashes before a deadline, systemd itself returns to the old pair.

While it lasts a drop-in of the unit, ``kvfleet-probation.conf``, runs ``probation.sh`` of the state directory whenever
the unit stops. The old files lie beside those in force and are renamed over them; that they are gone, or that
``probation.mark`` is there, tells the next run what happened. That run writes it into the record and clears up.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable, _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import host_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import files, unit_files
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import manager_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.probation_begun import (
    SCHEMA,
    Probation,
    file_hash,
    uptime,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.scripts import Until, probation_script
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State


def check(request: Request, manager: Manager, changes: t.Sequence[files.Change], runs: bool) -> None:
    """Refuse a probation that nothing could return from. Raises RadianceError ``probation_impossible``."""
    if not request.probation:
        return
    why = ""
    if not runs:
        why = "nothing runs, so there is no pair to return to"
    elif not any(change.before is not None for change in changes):
        why = "no file of the old pair is replaced, so nothing could be put back"
    else:
        try:
            unit_files.check_writable(drop_in(manager))
        except RadianceError as error:
            why = error.text.rstrip(".")
    if why:
        raise RadianceError(
            f"probation: {why}. Nothing was changed. Leave probation out.",
            code="probation_impossible",
        )


def drop_in(manager: Manager) -> str:
    """Where the drop-in goes."""
    unit, scope = t.cast("tuple[str, str]", manager.watched())
    return os.path.join(unit_files.folder(scope), f"{unit}.d", "kvfleet-probation.conf")


def begin(state: State, run: Run, journal: t.Mapping[str, t.Any], host: str) -> bool:
    """Have systemd watch the new pair, which has been found good; says whether the old files are needed for it.

    It is no reason to give up a pair that serves: what stands in the way is a warning.
    """
    seconds = journal.get("probation")
    if not seconds:
        return False
    try:
        manager = manager_of(journal["manager"])
        unit, scope = t.cast("tuple[str, str]", manager.watched())
        until = Until(host_boot(), int(uptime()) + seconds, int(time.time()) + seconds)
        found = Probation(
            state,
            {
                "schema": SCHEMA,
                "service": state.service,
                "host": host,
                "attempt": journal["expect"].get("attempt"),
                "seconds": seconds,
                "unit": unit,
                "scope": scope,
                "drop_in": drop_in(manager),
                "until": until._asdict(),
                "to": journal["expect"]["to"],
                "image": journal["expect"].get("image"),
                "old": journal["old"],
                "files": [{**entry, "sha256": entry["old"] and file_hash(entry["old"])} for entry in journal["files"]],
            },
        )
        script = probation_script(
            state.service, unit, scope, until, state.probation_armed, state.probation_mark, journal["files"]
        )
        _durable.remove(state.probation_mark)
        _durable.remove(state.probation_ended)
        data = json.dumps(found.data, sort_keys=True).encode("ascii") + b"\n"
        _durable.replace(state.probation, data, 0o600)
        _durable.replace(state.probation_armed, b"", 0o600)
        _durable.replace(state.probation_script, script.encode("utf-8", "surrogateescape"), 0o600)
        text = "\n".join(
            [
                f"{unit_files.MARK}until {found.until} a crash returns to the pair before",
                "[Service]",
                f"ExecStopPost=-+/bin/sh {unit_files.word(state.probation_script)}",
                "",
            ]
        )
        unit_files.write(found.data["drop_in"], text)
        unit_files.ask(scope, "daemon-reload")
    except (RadianceError, OSError) as error:
        run.warnings.append(f"The new pair is not on probation, nothing watches it: {error}")
        with contextlib.suppress(RadianceError, OSError):
            left = Probation.load(state)
            if left is not None:
                run.warnings += left.end()
        return False
    run.probation = found.watching()
    run.says.append(f"{run.probation['says']}.")
    return True


def look(request: Request, state: State, run: Run, check_mode: bool) -> None:
    """What has become of an earlier switch's probation: put it on record, clear it up, or tell that it goes on.

    Raises RadianceError ``probation_failed`` where it came back and this call is for another pair than came back.
    """
    found = Probation.load(state)
    if found is None:
        return
    if found.ended:
        if not check_mode:
            run.warnings += found.end()
        return
    if found.crashed():
        _crashed(found, request, state, run, check_mode)
        return
    over = found.over()
    if not over and request.probation != 0:
        run.probation = found.watching()
        if request.expect is None:
            run.says.append(f"{run.probation['says']}.")
        return
    why = f"its probation was over at {found.until}" if over else "its probation was ended"
    run.probation = found.result("confirmed", f"{found.pair} is confirmed: {why}")
    run.says.append(f"{run.probation['says']}.")
    run.changed = True
    if not check_mode:
        run.warnings += found.end()


def has_crashed(state: State) -> bool:
    """Whether a pair on probation has crashed and no run has looked at that yet."""
    found = Probation.load(state)
    return found is not None and not found.ended and found.crashed()


def confirm(state: State, run: Run, request: Request) -> None:
    """Another switch is about to stop what is on probation. Raises ``probation_failed`` where it has come back."""
    found = Probation.load(state)
    if found is None or found.ended:
        return
    _durable.remove(state.probation_script)  # no crash after this one returns, so what is found now stays so
    if found.crashed():
        _crashed(found, request, state, run, False)
        return
    run.warnings += found.end()
    run.says.append(f"The probation of {found.pair} was ended by this switch.")


def _crashed(found: Probation, request: Request, state: State, run: Run, check_mode: bool) -> None:
    data = found.data
    how, at = found.what_ended_it()
    runs = manager_of(request.manager).current() is not None
    ended = f"The engine ended {how} in the probation of {found.pair}"
    run.changed = True
    if not found.returned():
        # Not a pair that came back, so nothing for the record either.
        says = (
            f"{ended}" + (f" at {at}" if at else "") + ". The copies of the old files were gone, so nothing came back."
        )
        run.probation = found.result("confirmed", says)
        run.warnings.append(says)
        if not check_mode:
            run.warnings += found.end()
        return
    says = f"{ended}, and the unit returned to the old pair {found.old_pair} by itself" + (f" at {at}." if at else ".")
    run.probation = found.result("returned", says)
    if run.outcome == "rolled_back":
        # The journal of that very switch was still there, and has put the same thing on record.
        if not check_mode:
            run.warnings += found.end()
        return
    entry = _records.entry(
        "rolled_back",
        str(data["host"]),
        state.service,
        data.get("attempt"),
        **({"at": at} if at else {}),
        to=(data["old"] or {}).get("to"),
        image=((data["old"] or {}).get("image") or {}).get("name"),
        tried=data["to"],
        phase="probation",
        says=f"{ended}.",
        downtime_seconds=None,
        serving=runs,
    )
    run.records.append(entry)
    run.recovered = says if run.recovered is None else f"{run.recovered} {says}"
    run.says.append(says)
    if not runs:
        run.warnings.append(f"Nothing of {state.service} runs now.")
    if not check_mode:
        found.finish_return()
        run.warnings += _records.append(state.records, [entry])
        run.warnings += found.end()
    if request.expect is None:
        run.outcome = "rolled_back"
    elif not check_mode:
        run.outcome = "rolled_back"
        raise RadianceError(
            f"{says} What was asked now was meant for another pair, so nothing was started. Plan again.",
            code="probation_failed",
        )
