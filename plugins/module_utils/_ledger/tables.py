# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VRAM budget table: its rows, who sized each pool, and what the pool backs."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import Message, read_size
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.shapes import Capacity
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import SIZE_PATTERN, Size

BUDGET_HEADER = "VRAM budget, per card:"

# As printed: our name. The headroom has another name where the memory is the host's (integrated graphics).
ROW_NAMES: t.Mapping[str, str] = {
    "card total": "card_total",
    "already held": "already_held",
    "activation arena": "activation_arena",
    "step staging": "step_staging",
    "--gpu-headroom-mib": "headroom",
    "left to the host": "headroom",
    "claimable": "claimable",
    "static weights": "static_weights",
    "elastic": "elastic",
    "experts": "experts",
    "kv cache": "kv_cache",
    "unusable": "unusable",
    "prefill staging": "prefill_staging",
    "vram_weights": "vram_weights",
    "vram_kv": "vram_kv",
    "unclaimed": "unclaimed",
}
ROWS: tuple[str, ...] = tuple(dict.fromkeys(ROW_NAMES.values()))
# These two are printed only where they are more than nothing.
OPTIONAL_ROWS = ("unusable", "prefill_staging")

_SIZE_AND_TEXT = re.compile(r"^(" + SIZE_PATTERN + r")(?:\s+(.*))?$")
_TABLE_ROW = re.compile(r"^\s*(\S(?:.*?\S)?)\s+(" + SIZE_PATTERN + r")(?:\s+(.*))?$")
_BACKS = re.compile(r"\bbacks (\d{1,9}) sequences all at (\d{1,12}) tokens at once")
_BACKING = re.compile(
    r"(\d{1,6}(?:\.\d{1,3})?)% backing of the (\d{1,9}) x (\d{1,12}) worst case: (\d{1,9}(?:\.\d{1,3})?) full-length"
)
_POOL_BACKS = re.compile(
    r"^kv: the pool backs (\d{1,6}(?:\.\d{1,3})?)% of the worst case "
    r"\((\d{1,9}) sequences all at (\d{1,12}) tokens\), (\d{1,9}(?:\.\d{1,3})?) full-length sessions"
)


class BudgetTable(t.NamedTuple):
    """``rows``: sizes by our name. ``texts``: what stands behind each. ``unread``: rows whose figure is no size of
    the engine's, or two, quoted."""

    rows: dict[str, Size]
    texts: dict[str, str]
    unread: dict[str, str]

    @property
    def integrated(self) -> bool:
        """Whether the card's memory is the host's: the headroom then is what is left to the host."""
        return self.texts.get("headroom", "").startswith("integrated graphics")

    def stated_by(self, row: str) -> str | None:
        """``stated`` or ``derived`` for the rows ``vram_weights`` and ``vram_kv``, None where the text says neither."""
        text = self.texts.get(row, "")
        if text.startswith("stated by --"):
            return "stated"
        if text.startswith(("static + experts", "the cache's share")):
            return "derived"
        return None


def read_budget(log: t.Sequence[Message]) -> BudgetTable:
    """The budget table of one boot; without its header, rows that come before any other report are taken as its own.

    A row that stands there twice with two figures is neither.
    """
    headed = [message for message in log if message.text == BUDGET_HEADER] or log[:1]
    table = BudgetTable({}, {}, {})
    last = ""
    for line in (row for message in headed for row in message.rows):
        name = _row_name(line)
        if name is None:
            if last and line.startswith("        "):
                table.texts[last] = f"{table.texts[last]} {line.strip()}"
            continue
        rest = line.strip()[len(name) :].strip()
        key = ROW_NAMES[name]
        found = _SIZE_AND_TEXT.match(rest)
        size = read_size(found.group(1)) if found else None
        last = ""
        if size is None or found is None:
            table.unread.setdefault(key, rest.split("   ")[0][:40])
        elif key not in table.rows:
            table.rows[key] = size
            table.texts[key] = found.group(2) or ""
            last = key
        elif table.rows[key].text != size.text or not table.texts[key].startswith(found.group(2) or ""):
            rest = found.group(2) or ""
            other = size.text if table.rows[key].text != size.text else f"{size.text} {rest}"[:40]
            table.unread.setdefault(key, f"{table.rows[key].text} and {other}")
    for key in table.unread:
        table.rows.pop(key, None)
    return table


def _row_name(line: str) -> str | None:
    stripped = line.lstrip()
    if len(line) - len(stripped) > 8:  # the running text behind a row, not a row
        return None
    for name in ROW_NAMES:
        if stripped.startswith(name + " "):
            return name
    return None


def read_table(lines: t.Iterable[str]) -> dict[str, tuple[Size, str]]:
    """Rows ``name  size  text`` of any of the engine's tables, by the printed name."""
    rows: dict[str, tuple[Size, str]] = {}
    for line in lines:
        found = _TABLE_ROW.match(line[:400])
        size = read_size(found.group(2)) if found else None
        if found and size:
            rows.setdefault(found.group(1), (size, found.group(3) or ""))
    return rows


def read_capacity(table: BudgetTable) -> Capacity | None:
    """What the pool backs, as the table's cache row says it."""
    text = table.texts.get("kv_cache", "")
    full = _BACKS.search(text)
    if full:
        return {
            "sequences": int(full.group(1)),
            "tokens": int(full.group(2)),
            "full": True,
            "backing_percent": None,
            "full_length_sessions": None,
        }
    part = _BACKING.search(text)
    if part:
        percent, sequences, tokens, sessions = part.groups()
        return _part(percent, sequences, tokens, sessions)
    return None


def read_sentence(log: t.Sequence[Message]) -> Capacity | None:
    """What the sentence before the table of a derived pool says of it."""
    for message in log:
        derived = _POOL_BACKS.match(message.text)
        if derived:
            percent, sequences, tokens, sessions = derived.groups()
            return _part(percent, sequences, tokens, sessions)
    return None


def _part(percent: str, sequences: str, tokens: str, sessions: str) -> Capacity:
    return {
        "sequences": int(sequences),
        "tokens": int(tokens),
        "full": False,
        "backing_percent": float(percent),
        "full_length_sessions": float(sessions),
    }
