# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges what a boot printed: whether its ledger is complete, incomplete, refused or absent, and why."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import agreement, boots, reports, shapes, tables
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import Line, Message
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.refusals import read_refusal

_ENGINE_LINE = re.compile(r"(?<=.)[EWI](?:\[\d{1,3}\])? (?:device: (?:AQL|host) backend|VRAM budget, per card:)")
_NAMED = 24


class Status(t.NamedTuple):
    """The ledger's ``status``, and code and text of its reason, which a complete one has not."""

    status: str
    code: str = ""
    text: str = ""


def judge(ledger: shapes.Ledger, log: list[Message], chosen: boots.Boots, boot: int) -> None:
    """Set ``status`` and ``reason`` of a ledger that is read. ``boot`` is the one that was asked for."""
    found = _status(ledger, log, chosen, boot)
    text = found.text
    if found.code in ("not_ready", "log_cut") or found.status == "refused":
        text += _of_how_many(ledger["source"])
    ledger["status"] = found.status
    ledger["reason"] = {"code": found.code, "text": text} if found.code else None
    if found.status not in ("complete", "incomplete"):  # a boot that the engine ended was not to print the rest
        ledger["missing"] = []


def _status(ledger: shapes.Ledger, log: list[Message], chosen: boots.Boots, boot: int) -> Status:
    seen = ledger["source"]["boots_seen"]
    if chosen.lines is None or (not chosen.lines and seen):
        text = f"Boot {boot} was asked for and the log holds {seen:,}. Ask for one of them; -1 is the last."
        return Status("absent", "boot_not_in_log", text)
    refusal = None if ledger["ready"] else read_refusal(log)
    if refusal is not None:
        return Status("refused", refusal["code"], refusal["text"])
    behind = _behind_a_prefix(chosen.lines)
    if chosen.headless:
        return _headless(ledger, log, chosen.lines, behind)
    if not ledger["ready"]:
        return Status("incomplete", "not_ready", _last_words(log, chosen.lines))
    if behind:
        text = f"The log has lost the end of a line, so that two boots are one.{behind}"
        return Status("incomplete", "rows_unreadable", text)
    return _served(ledger, log)


def _headless(ledger: shapes.Ledger, log: list[Message], lines: t.Sequence[Line], behind: str) -> Status:
    """Of a text without the inventory line that a boot begins with."""
    if not lines:
        text = "The log is empty. Start the service, or point to the receipt of its last boot."
        return Status("absent", "log_empty", text)
    if not _of_engine(ledger, log):
        text = (
            "There is no boot of radiance in this text: no device inventory line and no line of its budget. "
            f"Point to the engine's stderr, or to the receipt of its boot.{behind}"
        )
        return Status("absent", "no_boot", text)
    if behind:
        return Status("incomplete", "rows_unreadable", f"The beginning of this boot cannot be read.{behind}")
    if not _of_info(ledger, log):
        text = (
            "The log holds warnings of the engine and no info line, so its log level hides the budget table. "
            "Start it without RADIANCE_LOG, or with RADIANCE_LOG=info."
        )
        return Status("incomplete", "table_hidden", text)
    text = (
        f"The beginning of this boot is missing ({_some(ledger['missing'])}). "
        "Read the boot's receipt, or restart the service and read again."
    )
    return Status("incomplete", "log_cut", text)


def _served(ledger: shapes.Ledger, log: list[Message]) -> Status:
    """Of a whole boot that came to its listening line."""
    unread = tables.read_budget(log).unread
    if unread:
        quoted = ", ".join(f"{name} {figure!r}" for name, figure in unread.items())
        text = f"Not one size in the engine's form: {quoted}. Start the engine with LC_ALL=C, and read its own log."
        return Status("incomplete", "rows_unreadable", text)
    if ledger["missing"]:
        text = (
            f"The boot serves, and did not print, or not in a form known here: {_some(ledger['missing'])}. "
            "Read the boot's receipt if the log may have been cut."
        )
        return Status("incomplete", "rows_missing", text)
    broken = next((check for check in ledger["checks"] if not check["holds"]), None)
    if broken:
        text = (
            f"The figures contradict each other: the sum {broken['name']} is off by {broken['difference_mib']:,.2f} "
            f"MiB, with a tolerance of {broken['tolerance_mib']:,.2f} MiB. Read again from the boot's receipt."
        )
        return Status("incomplete", "sums_off", text)
    quarrels = agreement.quarrels(ledger, log)
    if quarrels:
        text = f"The figures contradict each other: {'; '.join(quarrels)}. Read again from the boot's receipt."
        return Status("incomplete", "sums_off", text)
    return Status("complete")


def _of_engine(ledger: shapes.Ledger, log: list[Message]) -> bool:
    """Whether a text without an inventory line is of this engine all the same: one of its figures is in it."""
    known = ("device: using ", "VRAM budgets total ", "tp wire: LOSSY", "kv group '", "checkpoint slots: ")
    return (
        any(row is not None for row in ledger["budget"]["rows"].values())
        or ledger["model"]["name"] is not None
        or bool(ledger["settled"] or ledger["slab"] or ledger["host_pool"] or ledger["kv"]["groups"])
        or any(message.level in ("W", "E") and message.text.startswith(known) for message in log)
    )


def _of_info(ledger: shapes.Ledger, log: t.Sequence[Message]) -> bool:
    """Whether the log has anything that the engine prints as information, though it may be the rest of a report."""
    rows = ledger["budget"]["rows"].values()
    return any(message.level == "I" and message.text for message in log) or any(row is not None for row in rows)


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
