# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""How cards change hands: others are drained and stopped for this service, and started again where it does not hold.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import receipt
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import boots, drain, release
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.card_others import Entry
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import manager_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Phase, Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State


def wait_idle(request: Request, phase: Phase, others: t.Sequence[Entry]) -> list[str]:
    """Wait until none of them has a request; see ``drain.wait_idle``. Returns a sentence for each."""
    keys = {other.service: other.api_key_file for other in request.others}
    says = []
    for entry in others:
        try:
            drain.wait_idle(phase, entry["endpoint"], keys.get(entry["service"]), request.drain_timeout)
        except RadianceError as error:
            raise RadianceError(f"{entry['service']}: {error.text}", code=error.code) from error
        says.append(f"{entry['service']}: {phase.says}")
    return says


def keep_receipts(state: State, run: Run, others: t.Sequence[Entry]) -> None:
    """Save the receipt of each boot that is about to end: the cards are handed back by a plan from it."""
    for entry in others:
        if entry["pid"] is None:
            continue
        own = State(state.root, entry["service"])
        try:
            reading = manager_of(entry["manager"]).reading()
            if receipt.is_whole(reading) and receipt.find(own.receipts, reading).reading is None:
                own.make()
                boots.save_receipt(own, reading)
            whole = receipt.newest(own.receipts).reading is not None
            why = (reading.ledger["reason"] or {}).get("text", "") if not whole else ""
        except (RadianceError, OSError) as error:
            whole, why = False, str(error)
        if not whole:
            run.warnings.append(
                f"There is no receipt of {entry['service']}, so its cards cannot be handed back by a plan: it has to "
                f"be started by hand. {why}".rstrip()
            )


def grip(others: t.Sequence[Entry]) -> list[dict[str, t.Any]]:
    """What each of those that run holds of the cards; see ``release.held_by``."""
    found = []
    for entry in others:
        if entry["pid"] is not None:
            known = {"pair": entry["to"], "devices": {"used": entry["cards"]}}
            found.append(release.held_by(entry["pid"], known))
    return found


def stop(run: Run, others: t.Sequence[Entry], timeout: float) -> list[str]:
    """Stop them. Returns a sentence for each; raises RadianceError ``still_running``."""
    says = []
    for entry in others:
        manager = manager_of(entry["manager"])
        found = manager.current()
        run.changed = True
        run.acted(manager.stop_argv(found.pid if found is not None else 0))
        if found is None:
            manager.hold_down(timeout)
            says.append(f"{entry['service']} was between two starts and is stopped")
        else:
            says.append(f"{entry['service']}: {manager.stop(found.pid, found.started_ticks, timeout)}")
    return says


def start_again(run: Run, phase: Phase, entry: dict[str, t.Any], timeout: float, save: t.Callable[[], None]) -> str:
    """Have one of them serve again, started by us or by whoever was before us. ``save`` keeps the entry.

    Raises what the start and the wait for it raise.
    """
    manager = manager_of(entry["manager"])
    found, boot = manager.current(), entry["boot"]
    if found is not None:
        boot = boot if boot is not None and manager.owns(boot, found) else manager.boot_of(found, boot)
    else:
        entry["boot"] = manager.next_boot()
        save()
        run.acted(manager.start_argv)
        run.changed = True
        boot = entry["boot"] = manager.start(entry["boot"])
        save()
    if entry["pid"] is None:
        return f"{entry['service']} was started again"  # it did not serve before either
    boots.await_ready(manager, boot, phase, timeout=timeout, endpoint=entry["endpoint"])
    return f"{entry['service']}: {phase.says}"


def by_hand(others: t.Sequence[Entry]) -> list[str]:
    """The commands that start those which do not run."""
    commands = []
    for entry in others:
        manager = manager_of(entry["manager"])
        try:
            runs = manager.current() is not None
        except RadianceError:
            runs = False
        commands += [] if runs else manager.by_hand(None, [])
    return commands
