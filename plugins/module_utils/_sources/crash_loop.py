# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a boot that does not listen is one of many: what starts it goes on starting it."""

from __future__ import annotations

from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading

_MANY = 2


def tell_loop(reading: Reading) -> None:
    """Add to the reason of a boot that never listened how often it was tried, where the log or a manager knows."""
    ledger, known = reading.ledger, reading.known
    if ledger["ready"] or ledger["reason"] is None:
        return
    failed, restarts = known.get("failed") or 0, known.get("restarts") or 0
    if failed >= _MANY:
        ledger["reason"]["text"] += f" None of the last {failed:,} came to listen: it loops."
    elif restarts:
        times = f"{restarts:,} times: it loops" if restarts >= _MANY else "once"
        ledger["reason"]["text"] += f" {known['restarted_by']} has restarted it {times}."
