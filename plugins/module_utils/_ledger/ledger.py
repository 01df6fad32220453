# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts a ledger together and judges it: complete, incomplete, refused or absent."""

from __future__ import annotations

import hashlib
import json
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import boots, checks, reports, shapes, tables
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import (
    Line,
    Message,
    messages,
    read_line,
    split_lines,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.refusals import read_refusal

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
    ledger["missing"] = _missing(ledger, log, chosen.headless)
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
    pair = _pair(table, flags)
    used = devices["used"] if devices else []
    cards = {row["card"] for row in settled}
    return {
        "schema": shapes.SCHEMA,
        "status": "incomplete",
        "reason": None,
        "source": _source({}, None),
        "engine": {"version": None, "version_from": None},
        "ready": ready,
        "essential": (
            ready
            and pair["weights_mib"] is not None
            and pair["kv_mib"] is not None
            and bool(used)
            and cards.issuperset(used)
        ),
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
        "pair": pair,
        "capacity": tables.read_capacity(table, log) or _NO_CAPACITY.copy(),
        "settled": settled,
        "slab": reports.read_slab(log),
        "host_pool": reports.read_host_pool(log),
        "lent": reports.read_lent(log),
        "kv": reports.read_kv(log),
        "sampler": reports.read_sampler(log),
        "wire": reports.read_wire(log, bool(table.rows)),
        "chunk": reports.read_chunk(log),
        "warnings": reports.read_warnings(log, tp),
        "checks": [
            *checks.check_budget(table),
            *checks.check_settled(settled),
            *checks.check_flags(table, flags),
        ],
        "fingerprint": "",
    }


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


def _missing(ledger: shapes.Ledger, log: list[Message], headless: bool) -> list[str]:
    """Names of what this kind of boot prints, and this one did not."""
    missing = []
    if headless or not ledger["devices"]["used"]:
        missing.append("device_inventory")
    if ledger["model"]["name"] is None:
        missing.append("model")
    if ledger["sampler"]["rows"] is None:
        missing.append("sampler")
    rows = ledger["budget"]["rows"]
    if not any(message.text == tables.BUDGET_HEADER for message in log):
        missing.append("budget_header")
    missing += [name for name in tables.ROWS if rows[name] is None and name not in tables.OPTIONAL_ROWS]
    missing += [f"{pool}_origin" for pool in ("weights", "kv") if _unsaid(ledger["budget"], pool)]
    if ledger["capacity"]["sequences"] is None:
        missing.append("capacity")
    ranks = range(ledger["tp"] or 1)
    pooled = {row["rank"] for row in ledger["host_pool"]}
    missing += [f"pools.rank{rank}" for rank in ranks if rank not in pooled]
    if _has_experts(ledger, log):
        slabs = {row["rank"] for row in ledger["slab"]}
        missing += [f"slab.rank{rank}" for rank in ranks if rank not in slabs]
    if ledger["chunk"]["prefill_tokens"] is None:
        missing.append("chunk")
    if not any(group["blocks"] is not None for group in ledger["kv"]["groups"]):
        missing.append("kv_plan")
    settled = {row["card"] for row in ledger["settled"]}
    missing += [f"settled.card{card}" for card in ledger["devices"]["used"] if card not in settled]
    if not ledger["devices"]["used"] and not settled:
        missing.append("settled")
    if not ledger["ready"]:
        missing.append("listening")
    return missing


def _unsaid(budget: shapes.Budget, pool: str) -> bool:
    """Whether a pool's row was printed, and its text does not say who sized it."""
    if pool == "weights":
        return budget["rows"]["vram_weights"] is not None and budget["weights"] is None
    return budget["rows"]["vram_kv"] is not None and budget["kv"] is None


def _has_experts(ledger: shapes.Ledger, log: list[Message]) -> bool:
    """A slab is printed only where there are experts to place; a dense model prints nothing of the mover."""
    experts = ledger["budget"]["rows"]["experts"]
    return (
        (experts is not None and experts["mib"] > 0)
        or ledger["flags"].get("placement") == "expert_tiered"
        or any("mover" in message.text for message in log)
    )


def _judge(ledger: shapes.Ledger, log: list[Message], chosen: boots.Boots, boot: int) -> None:
    status, code, text = "complete", "", ""
    refusal = None if ledger["ready"] else read_refusal(log)
    broken = [check for check in ledger["checks"] if not check["holds"]]
    unread = tables.read_budget(log).unread
    printed = [message for message in log if message.text]
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
            "Point to the engine's stderr, or to the receipt of its boot."
            if chosen.lines
            else "The log is empty. Start the service, or point to the receipt of its last boot."
        )
    elif chosen.headless and not any(message.level == "I" for message in printed):
        status, code = "incomplete", "table_hidden"
        text = (
            "The log holds warnings of the engine and no info line, so its log level hides the budget table. "
            "Start it without RADIANCE_LOG, or with RADIANCE_LOG=info."
        )
    elif chosen.headless:
        status, code = "incomplete", "log_cut"
        text = (
            f"The beginning of this boot is missing ({', '.join(ledger['missing'])}). "
            "Read the boot's receipt, or restart the service and read again."
        )
    elif not ledger["ready"]:
        status, code, text = "incomplete", "not_ready", _last_words(log, chosen.lines)
    elif unread:
        status, code = "incomplete", "rows_unreadable"
        quoted = ", ".join(f"{name} {figure!r}" for name, figure in unread.items())
        text = f"Not a size in the engine's form: {quoted}. Start the engine with LC_ALL=C, and read its own log."
    elif ledger["missing"]:
        status, code = "incomplete", "rows_missing"
        text = (
            f"The boot serves, and did not print, or not in a form known here: {', '.join(ledger['missing'])}. "
            "Read the boot's receipt if the log may have been cut."
        )
    elif broken:
        status, code = "incomplete", "sums_off"
        one = broken[0]
        text = (
            f"The figures contradict each other: the sum {one['name']} is off by {one['difference_mib']:,.2f} MiB, "
            f"with a tolerance of {one['tolerance_mib']:,.2f} MiB. Read again from the boot's receipt."
        )
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
