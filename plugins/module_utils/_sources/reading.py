# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reading one boot gives: its ledger, and what is needed to read the same ledger again from the text alone."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import absent_ledger, read_ledger


class Reading(t.NamedTuple):
    """``text`` is what the boot printed up to its listening line, empty where nothing could be read.

    ``known`` is the ``source`` that the ledger was read with (see ``read_ledger``). Of a boot that runs it has
    ``runs``: what no other boot has, {container_id, started_at}, {invocation} or {pid, ticks, host_boot}.
    ``notes`` are sentences for a person.
    """

    ledger: dict[str, t.Any]
    text: str
    known: dict[str, t.Any]
    notes: list[str]


def read_text(
    text: str, known: dict[str, t.Any], flags: t.Mapping[str, str] | None = None, bounded: bool = True
) -> Reading:
    """The reading of a text that is one boot, or with ``bounded`` false of the last boot in it."""
    return Reading(read_ledger(text, source=known, flags=flags or None, bounded=bounded), text, known, [])


def absent(known: dict[str, t.Any], code: str, text: str) -> Reading:
    """The reading of nothing, with the reason."""
    return Reading(absent_ledger(known, code, text), "", known, [])
