# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of a boot beside the budget table. Each function reads one kind of line from a boot's messages.

A line in a form that is not known here gives nothing: its row then is missing from the ledger, never guessed.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import shapes
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import Message, read_size
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import SIZE_PATTERN, SizeDict

_S = f"({SIZE_PATTERN})"
_N = r"(\d{1,15})"

_INVENTORY = re.compile(r"^device: (?:AQL|host) backend, \d{1,4} device\(s\) \[(.*)\]")
_USING = re.compile(r"^device: using \d{1,4} of \d{1,4} \[(.*?)\], ignoring \[(.*?)\]")
_DEVICE = re.compile(r"(?:^|[ ,])(\d{1,4})(?::[^ ,]+)?(?=$|[ ,])")
_MODEL = re.compile(rf"^model: (.+?)  arch=(\S+)  quant=(\S+)  {_N} layers  {_N} ctx")
_SETTLED = re.compile(rf"^card (\d{{1,4}}) settled at {_S} free,? against (.*)$")
_FLOOR_STATIC = re.compile(rf"^{_S} \(the {_S} --gpu-headroom-mib and {_S} kept for the static region\)")
_FLOOR_HEADROOM = re.compile(rf"^the {_S} --gpu-headroom-mib\b")
_FLOOR_OTHER = re.compile(rf"^(?:the )?{_S}(?![^\s,.;)])")
_SLAB = re.compile(rf"^mover: {_N} slab slots \({_N} shadow\), {_N} pinned pool slots, {_S} static vram")
_LENT = re.compile(rf"^mover: {_N} slots can be lent out of the (KV cache|activation arena) \({_S}\)")
_POOL_ROW = re.compile(rf"^\s*(vram_weights|vram_kv|host_pool)\s+{_S} budget,\s+{_S} used,\s+{_S} free")
_PAGED = re.compile(
    rf"^\s*(\S+)\s+(\S+)\s+{_N} layers\s+block\s+{_N} tok\s+page\s+{_S}\s+{_N} blocks =\s+{_S}\s+\({_N} tokens\)"
)
_STATEFUL = re.compile(rf"^\s*(\S+)\s+(\S+)\s+{_N} layers\s+state\s+{_S}\s+{_N} slots =\s+{_S}")
_CHECKPOINTS = re.compile(rf"^\s*checkpoints\s+\S+\s+{_N} slots x {_S} = {_S}")
_SAMPLER = re.compile(rf"^sampler: {_N}-token vocabulary \({_N} this rank\), {_N} rows\b")
_LOSSY = re.compile(r"^tp wire: LOSSY \(--tp-wire wht6\)")
_EXACT_ROWS = re.compile(rf"\bSteps of at most {_N} rows are exact")
_CHUNK = re.compile(r"^chunk geometry: .*-> prefill chunks of at most (\d{1,15})(.*)$")
_LOAD = re.compile(rf"^load: {_S} of {_S} read\b")
# Lines that every rank prints, so that a tag on them, or none, tells how many ranks there are.
_OF_A_RANK = ("sampler: ", "declare: ", "pools:", "load: rank ", "mover: ", "card ")


def read_tp(log: t.Sequence[Message], flags: t.Mapping[str, str]) -> int | None:
    """How many ranks: from ``--tp``, else from the tags, which exist only above one rank."""
    if re.match(r"^[1-9]\d{0,2}$", flags.get("tp", "")):
        return int(flags["tp"])
    tags = [message.rank for message in log if message.rank is not None]
    if tags:
        return max(max(tags) + 1, 2)
    if any(message.level and message.text.startswith(_OF_A_RANK) for message in log):
        return 1
    return None


def read_devices(log: t.Sequence[Message], tp: int | None, settled_cards: t.Sequence[int]) -> shapes.Devices | None:
    """Which cards this boot runs on: those that settled when there is one a rank, else the first of the inventory.

    A card that no rank runs on counts as ignored. None when the inventory was not printed.
    """
    inventory: list[int] | None = None
    ignored: list[int] = []
    for message in log:
        found = _INVENTORY.match(message.text)
        if found and inventory is None:
            inventory = _devices(found.group(1))
        found = _USING.match(message.text)
        if found:
            ignored = _devices(found.group(2))
    if inventory is None:
        return None
    usable = [card for card in inventory if card not in ignored]
    used = usable[:tp]
    if tp is not None and len(settled_cards) == tp and set(settled_cards) <= set(inventory):
        used = sorted(settled_cards)
    return {"used": used, "ignored": [card for card in inventory if card not in used]}


def _devices(text: str) -> list[int]:
    return list(dict.fromkeys(int(number) for number in _DEVICE.findall(text[:400])))


def read_model(log: t.Sequence[Message]) -> shapes.Model | None:
    for message in log:
        found = _MODEL.match(message.text[:1000])
        if found:
            name, arch, quant, layers, context = found.groups()
            return {
                "name": name,
                "arch": arch,
                "quant": quant,
                "layers": int(layers),
                "trained_context": int(context),
            }
    return None


def read_settled(log: t.Sequence[Message]) -> list[shapes.Settled]:
    """The settled line of each card, in the order of cards. ``floor`` is what the line says must stay free."""
    by_card: dict[int, shapes.Settled] = {}
    for message in log:
        found = _SETTLED.match(message.text)
        if not found:
            continue
        card, free_text, rest = int(found.group(1)), found.group(2), found.group(3)
        with_static = _FLOOR_STATIC.match(rest)
        headroom_only = _FLOOR_HEADROOM.match(rest)
        other = _FLOOR_OTHER.match(rest)
        if with_static:
            floor_text, headroom_text, static_text = with_static.groups()
        elif headroom_only:
            floor_text = headroom_text = headroom_only.group(1)
            static_text = None
        elif other:
            floor_text, headroom_text, static_text = other.group(1), None, None
        else:
            continue
        free, floor = _size(free_text), _size(floor_text)
        if free is not None and floor is not None:
            by_card[card] = {
                "card": card,
                "free": free,
                "floor": floor,
                "headroom": _size(headroom_text),
                "static_region": _size(static_text),
                "line": message.text,
            }
    return [by_card[card] for card in sorted(by_card)]


def read_slab(log: t.Sequence[Message]) -> list[shapes.Slab]:
    by_rank: dict[int, shapes.Slab] = {}
    for message in log:
        found = _SLAB.match(message.text)
        static = _size(found.group(4)) if found else None
        if found and static is not None:
            rank = message.rank or 0
            by_rank[rank] = {
                "rank": rank,
                "slots": int(found.group(1)),
                "shadow_slots": int(found.group(2)),
                "pool_slots": int(found.group(3)),
                "static": static,
            }
    return [by_rank[rank] for rank in sorted(by_rank)]


def read_host_pool(log: t.Sequence[Message]) -> list[shapes.HostPool]:
    by_rank: dict[int, shapes.HostPool] = {}
    for message in log:
        if message.text != "pools:":
            continue
        for row in message.rows:
            found = _POOL_ROW.match(row)
            if not found or found.group(1) != "host_pool":
                continue
            budget, used, free = (_size(found.group(number)) for number in (2, 3, 4))
            if budget is not None and used is not None and free is not None:
                rank = message.rank or 0
                by_rank[rank] = {"rank": rank, "budget": budget, "used": used, "free": free}
    return [by_rank[rank] for rank in sorted(by_rank)]


def read_lent(log: t.Sequence[Message]) -> list[shapes.Lent]:
    """What can be lent to the slab, one record a line: ranks print them untagged, so which is whose is not known."""
    lent: list[shapes.Lent] = []
    for message in log:
        found = _LENT.match(message.text)
        size = _size(found.group(3)) if found else None
        if found and size is not None:
            source = "kv_cache" if found.group(2) == "KV cache" else "activation_arena"
            lent.append({"from": source, "slots": int(found.group(1)), "size": size})
    return lent


def read_kv(log: t.Sequence[Message]) -> shapes.Kv:
    """The KV plan: rank 0's groups, per card, and the linear checkpoints that the budget counted."""
    groups: dict[str, shapes.KvGroup] = {}
    checkpoints: shapes.Checkpoints = {"slots": None, "each": None, "size": None}
    for message in log:
        if not message.text.startswith("kv: KV layer bundles "):
            continue
        for row in message.rows:
            group = _kv_group(row)
            if group is not None and group["name"] != "(none)":
                groups.setdefault(group["name"], group)
            found = _CHECKPOINTS.match(row)
            if found and checkpoints["slots"] is None:
                checkpoints = {
                    "slots": int(found.group(1)),
                    "each": _size(found.group(2)),
                    "size": _size(found.group(3)),
                }
    return {"groups": list(groups.values()), "checkpoints": checkpoints}


def _kv_group(row: str) -> shapes.KvGroup | None:
    paged = _PAGED.match(row[:400])
    if paged:
        name, kind, layers, block, page_text, blocks, size_text, tokens = paged.groups()
        page, size = _size(page_text), _size(size_text)
        if page is not None and size is not None:
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
    stateful = _STATEFUL.match(row[:400])
    if stateful:
        name, kind, layers, state_text, slots, size_text = stateful.groups()
        state, size = _size(state_text), _size(size_text)
        if state is not None and size is not None:
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
    return None


def read_sampler(log: t.Sequence[Message]) -> shapes.Sampler:
    """Sampler rows: sequences x (1 + speculation depth). The line comes again for each rank and each sizing."""
    for message in log:
        found = _SAMPLER.match(message.text)
        if found:
            return {"rows": int(found.group(3))}
    return {"rows": None}


def read_wire(log: t.Sequence[Message], budgeted: bool) -> shapes.Wire:
    """The wire between ranks. A lossy one announces itself before the budget; ``budgeted``: the boot came that far."""
    for message in log:
        if _LOSSY.match(message.text):
            found = _EXACT_ROWS.search(message.text)
            return {"mode": "wht6", "exact_rows": int(found.group(1)) if found else None}
    return {"mode": "exact" if budgeted else None, "exact_rows": None}


def read_chunk(log: t.Sequence[Message]) -> shapes.Chunk:
    for message in log:
        found = _CHUNK.match(message.text)
        if found:
            bound_by = "checkpoint_interval" if "the checkpoint interval" in found.group(2) else "budget"
            return {"prefill_tokens": int(found.group(1)), "bound_by": bound_by}
    return {"prefill_tokens": None, "bound_by": None}


def read_warnings(log: t.Sequence[Message], tp: int | None) -> list[shapes.Warning_]:
    """Every W and E line of the boot. At one rank an untagged line is rank 0's; above, it is nobody's in particular."""
    untagged = 0 if tp == 1 else None
    return [
        {"level": m.level, "rank": untagged if m.rank is None else m.rank, "text": m.text}
        for m in log
        if m.level in ("W", "E")
    ]


def load_percent(log: t.Sequence[Message]) -> int | None:
    """How much of the model has been read so far, in whole percent, or None before the first progress line."""
    percent = None
    for message in log:
        found = _LOAD.match(message.text)
        done, whole = (read_size(found.group(1)), read_size(found.group(2))) if found else (None, None)
        if done is not None and whole is not None and whole.mib > 0:
            percent = min(100, int(100 * done.mib / whole.mib))
    return percent


def _size(text: str | None) -> SizeDict | None:
    size = read_size(text) if text is not None else None
    return None if size is None else size.as_dict()
