# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts a ledger together from the lines of one boot."""

from __future__ import annotations

import hashlib
import json
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import (
    boots,
    checks,
    kv_plan,
    reports,
    shapes,
    tables,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import (
    Line,
    Message,
    messages,
    read_line,
    split_lines,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.owed import missing_rows
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.status import judge

_SOURCE_KEYS = ("kind", "name", "log_driver", "container_id", "image", "image_digest", "started_at")
_NO_CAPACITY: shapes.Capacity = {
    "sequences": None,
    "tokens": None,
    "full": None,
    "backing_percent": None,
    "full_length_sessions": None,
}
_NO_MODEL: shapes.Model = {"name": None, "arch": None, "quant": None, "layers": None, "trained_context": None}


def read_ledger(
    text: str,
    *,
    source: t.Mapping[str, t.Any],
    flags: t.Mapping[str, str] | None = None,
    boot: int = -1,
    bounded: bool = False,
) -> dict[str, t.Any]:
    """The ledger of one boot in ``text`` (schemas/ledger.schema.json). Any text has one; nothing is raised.

    ``source``: the ledger's ``source`` keys as far as they are known, and ``invocation``, or ``inode`` and ``offset``
    (of the boot's first byte), which join the fingerprint. ``boots_seen`` and ``boot`` in it overrule what is counted
    here, for a text that was cut out of a longer log; ``asked`` is then the boot that was asked for.
    ``flags``: the command line of the process that printed this boot, or None where it cannot be read.
    ``boot``: 0 is the first boot of the text, -1 the last. ``bounded``: the text is known to be one boot, so that
    nothing after its listening line counts.
    """
    lines = [read_line(raw) for raw in split_lines(text)]
    chosen = boots.select(lines, boot, bounded)
    known_flags = dict(flags or {})
    log = messages(chosen.lines or [])
    ledger = _read(log, known_flags, ready=any(boots.is_listening(line) for line in (chosen.lines or [])[-1:]))
    ledger["source"] = _source(source, chosen)
    ledger["fingerprint"] = _fingerprint(source, chosen.lines or [])
    ledger["missing"] = missing_rows(ledger, log, chosen.headless)
    judge(ledger, log, chosen, source.get("asked", boot))
    return t.cast("dict[str, t.Any]", ledger)


def absent_ledger(source: t.Mapping[str, t.Any], code: str, text: str) -> dict[str, t.Any]:
    """The ledger of a log that could not be read at all, with the reason that a person can mend."""
    ledger = read_ledger("", source=source)
    ledger["reason"] = {"code": code, "text": text}
    return ledger


def _read(log: list[Message], flags: dict[str, str], ready: bool) -> shapes.Ledger:
    table = tables.read_budget(log)
    settled = reports.read_settled(log)
    tp = reports.read_tp(log, flags)
    devices = reports.read_devices(log, tp, [row["card"] for row in settled])
    pools = reports.read_pools(log, tp)
    plan = kv_plan.read_kv(log)
    judged = [
        *checks.check_budget(table),
        *checks.check_pools(table, pools, plan),
        *checks.check_kv(table, plan),
        *checks.check_settled(table, settled),
        *checks.check_flags(table, flags),
    ]
    return {
        "schema": shapes.SCHEMA,
        "status": "incomplete",
        "reason": None,
        "source": _source({}, None),
        "engine": {"version": None, "version_from": None},
        "ready": ready,
        "essential": ready and _essential(table, devices, settled, judged),
        "missing": [],
        "flags": flags,
        "tp": tp,
        "devices": devices or {"used": [], "ignored": []},
        "model": reports.read_model(log) or _NO_MODEL.copy(),
        "budget": {
            "weights": table.stated_by("vram_weights"),
            "kv": table.stated_by("vram_kv"),
            "rows": {name: table.rows[name].as_dict() if name in table.rows else None for name in tables.ROWS},
        },
        "pair": _pair(table, flags),
        "capacity": tables.read_capacity(table) or _NO_CAPACITY.copy(),
        "settled": settled,
        "slab": reports.read_slab(log, tp),
        "host_pool": reports.read_host_pool(pools),
        "lent": reports.read_lent(log),
        "kv": plan.kv,
        "sampler": reports.read_sampler(log),
        "wire": reports.read_wire(log, bool(table.rows)),
        "chunk": reports.read_chunk(log),
        "warnings": reports.read_warnings(log, tp),
        "checks": judged,
        "fingerprint": "",
    }


def _essential(
    table: tables.BudgetTable,
    devices: shapes.Devices | None,
    settled: t.Sequence[shapes.Settled],
    judged: t.Sequence[shapes.Check],
) -> bool:
    """Whether a referee can judge: both pools, a settled line for each used card, and none of them contradicted."""
    used = set(devices["used"]) if devices else set()
    contradicted = any(
        not check["holds"] and check["name"].startswith(("pools_match_table", "settled_")) for check in judged
    )
    return (
        {"vram_weights", "vram_kv"} <= table.rows.keys()
        and bool(used)
        and used <= {row["card"] for row in settled}
        and not contradicted
    )


def _pair(table: tables.BudgetTable, flags: dict[str, str]) -> shapes.Pair:
    """The pair in MiB: exact where the command line states both pools, else as rounded in the table."""
    weights, kv = checks.stated_mib(flags, "vram-weights-mib"), checks.stated_mib(flags, "vram-kv-mib")
    if weights and kv:
        return {"weights_mib": weights, "kv_mib": kv, "exact": True}
    printed_weights, printed_kv = table.rows.get("vram_weights"), table.rows.get("vram_kv")
    return {
        "weights_mib": weights or (printed_weights.mib if printed_weights else None),
        "kv_mib": kv or (printed_kv.mib if printed_kv else None),
        "exact": False,
    }


def _source(source: t.Mapping[str, t.Any], chosen: boots.Boots | None) -> shapes.Source:
    known = {key: source.get(key) for key in _SOURCE_KEYS}
    known["boots_seen"] = source.get("boots_seen", chosen.seen if chosen else 0)
    known["boot"] = source.get("boot", chosen.number if chosen else None)
    return t.cast("shapes.Source", known)


def _fingerprint(source: t.Mapping[str, t.Any], lines: t.Sequence[Line]) -> str:
    """12 hex digits over what tells this boot from every other: where it ran, when it began, and what it printed."""
    identity: object = source.get("container_id") or source.get("invocation")
    if not identity and source.get("inode") is not None:
        identity = [source.get("inode"), source.get("offset")]
    printed = [[line.level, line.rank, line.text] for line in lines]
    whole = json.dumps([identity, source.get("started_at"), printed], default=str)
    return hashlib.sha256(whole.encode("ascii", "backslashreplace")).hexdigest()[:12]
