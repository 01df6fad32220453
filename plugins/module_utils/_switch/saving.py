# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Saving the receipt of the boot that runs, for one that no switch of ours has started.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import receipt
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.boots import save_receipt
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.journal import Journal
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import manager_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State


def save_running(request: Request, state: State, run: Run, check_mode: bool) -> None:
    """Save it where this boot has none, and change nothing else; in check mode say what would be done.

    Raises RadianceError ``switch_interrupted`` and ``receipt_impossible``.
    """
    if Journal.load(state) is not None:
        raise RadianceError(
            f"A switch of {request.service} was interrupted ({state.journal}), and what runs may be about to change. "
            "No receipt was saved. Finish it first: resize does.",
            code="switch_interrupted",
        )
    with run.phase("receipt") as phase:
        # Read without receipts: one that is no longer whole is to be replaced from the log.
        reading = manager_of(request.manager).reading()
        run.before = run.ledger = reading.ledger
        found = receipt.find(state.receipts, reading)
        if found.reading is not None:
            run.ledger, run.receipt = found.reading.ledger, found.path
            phase.says = f"the boot that runs has its receipt already: {found.path}"
        elif receipt.is_whole(reading):
            run.warnings += found.notes
            run.changed = True
            if check_mode:
                run.receipt = receipt.path_of(state.receipts, reading.ledger)
                phase.says = f"would save the receipt of the boot that runs as {run.receipt}"
            else:
                run.receipt = _save(state, reading)
                phase.says = f"saved the receipt of the boot that runs as {run.receipt}"
        else:
            run.warnings += found.notes
            reason = reading.ledger["reason"]
            why = reason["text"] if reason else "Nothing tells which container, unit or process it is of."
            raise RadianceError(
                f"There is no boot that runs and that its log still tells whole, so no receipt was saved. {why}",
                code="receipt_impossible",
            )
    run.says.append(phase.says[0].upper() + phase.says[1:] + ".")


def _save(state: State, reading: Reading) -> str:
    try:
        return save_receipt(state, reading)
    except OSError as error:
        raise RadianceError(
            f"The receipt cannot be written into {state.receipts} ({error.strerror}). Make room, or give state_dir a "
            "directory that this user may write.",
            code="receipt_impossible",
        ) from error
