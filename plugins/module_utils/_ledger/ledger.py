# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts a ledger together and judges it: complete, incomplete, refused or absent."""

from __future__ import annotations

import hashlib
import json
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import (
    agreement,
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
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.refusals import read_refusal

_SOURCE_KEYS = ("kind", "name", "log_driver", "container_id", "image", "image_digest", "started_at")
_NO_CAPACITY: shapes.Capacity = {
    "sequences": None,
    "tokens": None,
    "full": None,
    "backing_percent": None,
    "full_length_sessions": None,
}
_ENGINE_LINE = re.compile(r"(?<=.)[EWI](?:\[\d{1,3}\])? (?:device: (?:AQL|host) backend|VRAM budget, per card:)")
_NAMED = 24
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
    _judge(ledger, log, chosen, source.get("asked", boot))
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


def _judge(ledger: shapes.Ledger, log: list[Message], chosen: boots.Boots, boot: int) -> None:
    status, code, text = "complete", "", ""
    refusal = None if ledger["ready"] else read_refusal(log)
    broken = [check for check in ledger["checks"] if not check["holds"]]
    quarrels = agreement.quarrels(ledger, log)
    unread = tables.read_budget(log).unread
    printed = [message for message in log if message.text]
    behind = _behind_a_prefix(chosen.lines or [])
    seen = ledger["source"]["boots_seen"]
    if chosen.lines is None or (not chosen.lines and seen):
        status, code = "absent", "boot_not_in_log"
        text = f"Boot {boot} was asked for and the log holds {seen:,}. Ask for one of them; -1 is the last."
    elif refusal is not None:
        status, code, text = "refused", refusal["code"], refusal["text"]
    elif chosen.headless and not _of_engine(ledger, log):
        status, code = "absent", "no_boot" if chosen.lines else "log_empty"
        text = (
            "There is no boot of radiance in this text: no device inventory line and no line of its budget. "
            f"Point to the engine's stderr, or to the receipt of its boot.{behind}"
            if chosen.lines
            else "The log is empty. Start the service, or point to the receipt of its last boot."
        )
    elif chosen.headless and behind:
        status, code = "incomplete", "rows_unreadable"
        text = f"The beginning of this boot cannot be read.{behind}"
    elif chosen.headless and not _of_info(ledger, printed):
        status, code = "incomplete", "table_hidden"
        text = (
            "The log holds warnings of the engine and no info line, so its log level hides the budget table. "
            "Start it without RADIANCE_LOG, or with RADIANCE_LOG=info."
        )
    elif chosen.headless:
        status, code = "incomplete", "log_cut"
        text = (
            f"The beginning of this boot is missing ({_some(ledger['missing'])}). "
            "Read the boot's receipt, or restart the service and read again."
        )
    elif not ledger["ready"]:
        status, code, text = "incomplete", "not_ready", _last_words(log, chosen.lines)
    elif behind:
        status, code = "incomplete", "rows_unreadable"
        text = f"The log has lost the end of a line, so that two boots are one.{behind}"
    elif unread:
        status, code = "incomplete", "rows_unreadable"
        quoted = ", ".join(f"{name} {figure!r}" for name, figure in unread.items())
        text = f"Not one size in the engine's form: {quoted}. Start the engine with LC_ALL=C, and read its own log."
    elif ledger["missing"]:
        status, code = "incomplete", "rows_missing"
        text = (
            f"The boot serves, and did not print, or not in a form known here: {_some(ledger['missing'])}. "
            "Read the boot's receipt if the log may have been cut."
        )
    elif broken:
        status, code = "incomplete", "sums_off"
        one = broken[0]
        text = (
            f"The figures contradict each other: the sum {one['name']} is off by {one['difference_mib']:,.2f} MiB, "
            f"with a tolerance of {one['tolerance_mib']:,.2f} MiB. Read again from the boot's receipt."
        )
    elif quarrels:
        status, code = "incomplete", "sums_off"
        text = f"The figures contradict each other: {'; '.join(quarrels)}. Read again from the boot's receipt."
    if code in ("not_ready", "log_cut") or status == "refused":
        text += _of_how_many(ledger["source"])
    ledger["status"] = status
    ledger["reason"] = {"code": code, "text": text} if code else None
    if status not in ("complete", "incomplete"):  # a boot that the engine ended was not to print the rest
        ledger["missing"] = []


def _of_engine(ledger: shapes.Ledger, log: list[Message]) -> bool:
    """Whether a text without an inventory line is of this engine all the same: one of its figures is in it."""
    known = ("device: using ", "VRAM budgets total ", "tp wire: LOSSY", "kv group '", "checkpoint slots: ")
    return (
        any(row is not None for row in ledger["budget"]["rows"].values())
        or ledger["model"]["name"] is not None
        or bool(ledger["settled"] or ledger["slab"] or ledger["host_pool"] or ledger["kv"]["groups"])
        or any(message.level in ("W", "E") and message.text.startswith(known) for message in log)
    )


def _of_info(ledger: shapes.Ledger, printed: t.Sequence[Message]) -> bool:
    """Whether the log has anything that the engine prints as information, though it may be the rest of a report."""
    rows = ledger["budget"]["rows"].values()
    return any(message.level == "I" for message in printed) or any(row is not None for row in rows)


def _some(names: t.Sequence[str]) -> str:
    """The names, as many of them as a person reads."""
    more = f", and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _behind_a_prefix(lines: t.Sequence[Line]) -> str:
    """A sentence for a log of the engine of which every line has something before it that is not known here."""
    for line in lines:
        found = _ENGINE_LINE.search(line.text[:400])
        if found:
            return (
                f" A line of the engine stands behind {line.text[: found.start()]!r}, which is not known here: "
                "read the log without it."
            )
    return ""


def _of_how_many(source: shapes.Source) -> str:
    """A sentence for a log with several boots: a crash loop shows by it."""
    seen, boot = source["boots_seen"], source["boot"]
    return "" if seen < 2 or boot is None else f" The log holds {seen:,} boots, and this is number {boot + 1:,}."


def _last_words(log: list[Message], lines: t.Sequence[Line]) -> str:
    told = [line.text.strip() for line in lines if line.level not in ("D", "T") and line.text.strip()]
    last = told[-1] if told else ""
    percent = reports.load_percent(log)
    loaded = f" (the model is {percent} % read)" if percent is not None else ""
    errors = [message.text for message in log if message.level == "E" and message.text != last]
    error = f" Its last error line is {errors[-1][:300]!r}." if errors else ""
    return (
        f"The boot has not come to its listening line{loaded}; the last thing that it printed is "
        f"{last[:300]!r}.{error} Wait if it is still loading; if its process has ended, these were its last words."
    )
