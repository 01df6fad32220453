# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The KV plan: rank 0's groups, per card, and the linear checkpoints that the budget counted.

The report counts its own groups and layers, and closes with where the pool lies. So a plan that lost a row, or its end
to the length of a message, is known as one; it then gives no group at all.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import shapes
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import Message, read_size
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import SIZE_PATTERN, SizeDict

_S = f"({SIZE_PATTERN})"
_N = r"(\d{1,15})"

_HEADER = "kv: KV layer bundles "
_COUNTED = re.compile(rf"^\s*radiance\s+per state kind, own pool ->\s+{_N} groups,\s+{_N} slots\b")
_PAGED = re.compile(
    rf"^    (\S+)\s+(full|window)\s+{_N} layers\s+block\s+{_N} tok\s+page\s+{_S}\s+"
    rf"{_N} blocks =\s+{_S}\s+\({_N} tokens\)"
)
_STATEFUL = re.compile(rf"^    (\S+)\s+(linear|conv)\s+{_N} layers\s+state\s+{_S}\s+{_N} slots =\s+{_S}(?!\S)")
_POOL = re.compile(rf"^\s*pool at \S+, {_S}; groups at ")
_CHECKPOINTS = re.compile(rf"^\s*checkpoints\s+\S+\s+{_N} slots x {_S} = {_S}(?!\S)(.*)$")
_BACKED = re.compile(rf"^checkpoint slots: {_N} of {_N} backed \({_S} each\), {_N} withdrawn\b")
_CACHED = re.compile(rf"^prefix cache: .*\({SIZE_PATTERN} x {_N} slots\)")


class KvPlan(t.NamedTuple):
    """``kv`` as the ledger has it, the ``pool`` that was laid out, and whether the checkpoints are a part of it."""

    kv: shapes.Kv
    pool: SizeDict | None
    checkpoints_in_pool: bool


def read_kv(log: t.Sequence[Message]) -> KvPlan:
    """The plan of a boot. Without groups where the rows are not those that the report counts."""
    rows = [row[:400] for message in log if message.text.startswith(_HEADER) for row in message.rows]
    pools = {found.group(1) for found in map(_POOL.match, rows) if found}
    counted = {(int(found.group(1)), int(found.group(2))) for found in map(_COUNTED.match, rows) if found}
    groups: dict[str, list[shapes.KvGroup]] = {}
    for group in filter(None, map(_group, rows)):
        if group not in groups.setdefault(group["name"], []):
            groups[group["name"]].append(group)
    read = [group for named in groups.values() for group in named]
    whole = len(pools) == 1 and counted == {(len(read), sum(group["layers"] for group in read))}
    checkpoints, in_pool = _checkpoints(rows, log)
    return KvPlan(
        {"groups": read if whole else [], "checkpoints": checkpoints},
        _size(pools.pop()) if len(pools) == 1 else None,
        in_pool,
    )


def _group(row: str) -> shapes.KvGroup | None:
    paged = _PAGED.match(row)
    if paged:
        name, kind, layers, block, page_text, blocks, size_text, tokens = paged.groups()
        page, size = _size(page_text), _size(size_text)
        if page is None or size is None or int(tokens) != int(blocks) * int(block):
            return None
        return {
            "name": name,
            "kind": kind,
            "layers": int(layers),
            "block_tokens": int(block),
            "page": page,
            "blocks": int(blocks),
            "tokens": int(tokens),
            "state": None,
            "slots": None,
            "size": size,
        }
    stateful = _STATEFUL.match(row)
    if not stateful:
        return None
    name, kind, layers, state_text, slots, size_text = stateful.groups()
    state, size = _size(state_text), _size(size_text)
    if state is None or size is None:
        return None
    return {
        "name": name,
        "kind": kind,
        "layers": int(layers),
        "block_tokens": None,
        "page": None,
        "blocks": None,
        "tokens": None,
        "state": state,
        "slots": int(slots),
        "size": size,
    }


def _checkpoints(rows: t.Iterable[str], log: t.Iterable[Message]) -> tuple[shapes.Checkpoints, bool]:
    """The checkpoints, and whether the pool holds them; a later release may keep them elsewhere, and says so."""
    planned = {found.groups() for found in map(_CHECKPOINTS.match, rows) if found}
    withdrawn = {found.groups() for found in (_BACKED.match(message.text) for message in log) if found}
    if len(planned) != 1:
        return {"slots": None, "each": None, "size": None, "backed": None}, False
    ((slots, each, size, note),) = planned
    backed: int | None = None
    if len(withdrawn) == 1:
        ((kept, of, stride, gone),) = withdrawn
        if (of, stride) == (slots, each) and int(kept) + int(gone) == int(slots):
            backed = int(kept)
    checkpoints: shapes.Checkpoints = {
        "slots": int(slots),
        "each": _size(each),
        "size": _size(size),
        "backed": backed,
    }
    return checkpoints, not note.strip() or "address space" in note


def missing(log: t.Sequence[Message], kv: shapes.Kv, flags: t.Mapping[str, str]) -> list[str]:
    """What the plan owes: groups with blocks, and checkpoints where there is a state or a line speaks of them."""
    names = []
    if not any(group["blocks"] is not None for group in kv["groups"]):
        names.append("kv_plan")
    checkpoints = kv["checkpoints"]
    cached = {int(found.group(1)) for found in (_CACHED.match(message.text) for message in log) if found}
    kept = any(group["slots"] is not None for group in kv["groups"]) and flags.get("checkpoint-slots") != "0"
    if (kept and checkpoints["slots"] is None) or cached - {checkpoints["slots"] or 0}:
        names.append("checkpoints")
    if checkpoints["backed"] is None and any(message.text.startswith("checkpoint slots: ") for message in log):
        names.append("checkpoints_backed")
    return names


def _size(text: str) -> SizeDict | None:
    size = read_size(text)
    return None if size is None else size.as_dict()
