# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of a boot beside the budget table. Each function reads one kind of line from a boot's messages.

A line in a form that is not known here gives nothing: its row then is missing from the ledger, never guessed. What is
printed twice with different figures gives nothing either.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import shapes
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import Message, read_size
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import SIZE_PATTERN, SizeDict

_S = f"({SIZE_PATTERN})"
_N = r"(\d{1,15})"

_INVENTORY = re.compile(r"^device: (?:AQL|host) backend, (\d{1,4}) device\(s\) \[(.*)\]")
_USING = re.compile(r"^device: using (\d{1,4}) of (\d{1,4}) \[(.*?)\], ignoring \[(.*?)\]")
_DEVICE = re.compile(r"(?:^|[ ,])(\d{1,4})(?::[^ ,]+)?(?=$|[ ,])")
_MODEL = re.compile(rf"^model: (.+?)  arch=(\S+)  quant=(\S+)  {_N} layers  {_N} ctx")
_SETTLED = re.compile(rf"^card (\d{{1,4}}) settled at {_S} free,? against (.*)$")
_FLOOR_STATIC = re.compile(rf"^{_S} \(the {_S} --gpu-headroom-mib and {_S} kept for the static region\)")
_FLOOR_HEADROOM = re.compile(rf"^the {_S} --gpu-headroom-mib\b")
_FLOOR_OTHER = re.compile(rf"^(?:the )?{_S}(?![^\s,.;)])")
_SLAB = re.compile(rf"^mover: {_N} slab slots \({_N} shadow\), {_N} pinned pool slots, {_S} static vram")
_LENT = re.compile(rf"^mover: {_N} slots can be lent out of the (KV cache|activation arena) \({_S}\)")
_POOL_ROW = re.compile(rf"^\s*(vram_weights|vram_kv|host_pool)\s+{_S} budget,\s+{_S} used,\s+{_S} free")
_SAMPLER = re.compile(rf"^sampler: {_N}-token vocabulary \({_N} this rank\), {_N} rows\b")
_LOSSY = re.compile(r"^tp wire: LOSSY \(--tp-wire wht6\)")
_TORN = re.compile(r"LOSSY|Walsh-Hadamard|--tp-wire(?:-min-kb| wht6)")
_EXACT_ROWS = re.compile(rf"\bSteps of at most {_N} rows are exact")
_CHUNK = re.compile(
    rf"^chunk geometry: .*checkpoint interval {_N}, max_tok {_N} -> prefill chunks of at most {_N}(?!\d)(.*)$"
)
_PASS = re.compile(r"^load: one pass over the container, .* for (\d{1,3}) rank\(s\)")
_LOAD = re.compile(rf"^load: {_S} of {_S} read\b")
# Lines that every rank prints, so that a tag on them, or none, tells how many ranks there are.
_OF_A_RANK = ("sampler: ", "declare: ", "pools:", "load: rank ", "mover: ", "card ")


def read_tp(log: t.Sequence[Message], flags: t.Mapping[str, str]) -> int | None:
    """How many ranks: from ``--tp``, else as the load counts them, else from the tags, which exist only above one."""
    if re.match(r"^[1-9]\d{0,2}$", flags.get("tp", "")):
        return int(flags["tp"])
    tags = [message.rank for message in log if message.rank is not None]
    least = max(max(tags) + 1, 2) if tags else 1
    for message in log:
        loaded = _PASS.match(message.text[:1000])
        if loaded:
            return max(int(loaded.group(1)), least)
    if tags or any(message.level and message.text.startswith(_OF_A_RANK) for message in log):
        return least
    return None


def read_devices(log: t.Sequence[Message], tp: int | None, settled_cards: t.Sequence[int]) -> shapes.Devices | None:
    """Which cards this boot runs on: those that settled when there is one a rank, else the first of the inventory.

    A card that no rank runs on counts as ignored. None when the inventory was not printed, or when what it lists is not
    as many as it says.
    """
    inventory: list[int] | None = None
    using: list[int] = []
    ignored: list[int] = []
    for message in log:
        found = _INVENTORY.match(message.text)
        if found and inventory is None:
            inventory = _devices(found.group(2))
            if len(inventory) != int(found.group(1)):
                return None
        found = _USING.match(message.text)
        if found:
            using, ignored = _devices(found.group(3)), _devices(found.group(4))
            if len(using) != int(found.group(1)) or len(using) + len(ignored) != int(found.group(2)):
                return None
    if inventory is None or (using and sorted(using + ignored) != sorted(inventory)):
        return None
    usable = [card for card in inventory if card not in ignored]
    used = usable[:tp]
    if tp is not None and len(settled_cards) == tp and set(settled_cards) <= set(usable):
        used = sorted(settled_cards)
    return {"used": used, "ignored": [card for card in inventory if card not in used]}


def _devices(text: str) -> list[int]:
    return list(dict.fromkeys(int(number) for number in _DEVICE.findall(text[:400])))


def read_model(log: t.Sequence[Message]) -> shapes.Model | None:
    lines = (_MODEL.match(message.text[:1000]) for message in log)
    found = {line.groups() for line in lines if line}
    if len(found) != 1:
        return None
    ((name, arch, quant, layers, context),) = found
    return {"name": name, "arch": arch, "quant": quant, "layers": int(layers), "trained_context": int(context)}


_Record = t.TypeVar("_Record", bound=t.Mapping[str, t.Any])


def _each_once(records: t.Iterable[tuple[int, _Record]]) -> list[_Record]:
    """The record of each key, in the order of the keys; a key with records that differ has none."""
    by_key: dict[int, _Record | None] = {}
    for key, record in records:
        by_key[key] = record if by_key.get(key, record) == record else None
    found = [by_key[key] for key in sorted(by_key)]
    return [record for record in found if record is not None]


def _rank(message: Message, tp: int | None) -> int | None:
    """Whose line this is: its tag says it, and at one rank there is no tag. None for nobody's of this boot."""
    rank = (0 if tp == 1 else None) if message.rank is None else message.rank
    return rank if rank is not None and tp is not None and rank < tp else None


def read_settled(log: t.Sequence[Message]) -> list[shapes.Settled]:
    """The settled line of each card, in the order of cards. ``floor`` is what the line says must stay free."""
    found = (_settled(message) for message in log)
    return _each_once((row["card"], row) for row in found if row is not None)


def _settled(message: Message) -> shapes.Settled | None:
    found = _SETTLED.match(message.text)
    if not found:
        return None
    card, free_text, rest = int(found.group(1)), found.group(2), found.group(3)
    with_static = _FLOOR_STATIC.match(rest)
    headroom_only = _FLOOR_HEADROOM.match(rest)
    other = _FLOOR_OTHER.match(rest)
    static_text: str | None = None
    headroom_text: str | None = None
    if with_static:
        floor_text, headroom_text, static_text = with_static.groups()
    elif headroom_only:
        floor_text = headroom_text = headroom_only.group(1)
    elif other:
        floor_text = other.group(1)
    else:
        return None
    free, floor = _size(free_text), _size(floor_text)
    if free is None or floor is None:
        return None
    return {
        "card": card,
        "free": free,
        "floor": floor,
        "headroom": _size(headroom_text),
        "static_region": _size(static_text),
        "line": message.text,
    }


def read_slab(log: t.Sequence[Message], tp: int | None) -> list[shapes.Slab]:
    found: list[tuple[int, shapes.Slab]] = []
    for message in log:
        line, rank = _SLAB.match(message.text), _rank(message, tp)
        static = _size(line.group(4)) if line else None
        if line and rank is not None and static is not None:
            slots, shadow, pool = (int(line.group(number)) for number in (1, 2, 3))
            row: shapes.Slab = {
                "rank": rank,
                "slots": slots,
                "shadow_slots": shadow,
                "pool_slots": pool,
                "static": static,
            }
            found.append((rank, row))
    return _each_once(found)


class PoolRow(t.NamedTuple):
    """One row of a rank's ``pools:`` report."""

    rank: int
    name: str
    budget: SizeDict
    used: SizeDict
    free: SizeDict


def read_pools(log: t.Sequence[Message], tp: int | None) -> list[PoolRow]:
    """Every row of every rank's pools."""
    rows = []
    for message in log:
        rank = _rank(message, tp) if message.text == "pools:" else None
        for row in message.rows if rank is not None else ():
            found = _POOL_ROW.match(row)
            sizes = [_size(found.group(number)) for number in (2, 3, 4)] if found else []
            budget, used, free = sizes or (None, None, None)
            if found and rank is not None and budget is not None and used is not None and free is not None:
                rows.append(PoolRow(rank, found.group(1), budget, used, free))
    return rows


def read_host_pool(pools: t.Iterable[PoolRow]) -> list[shapes.HostPool]:
    found: list[tuple[int, shapes.HostPool]] = []
    for row in pools:
        if row.name == "host_pool":
            found.append((row.rank, {"rank": row.rank, "budget": row.budget, "used": row.used, "free": row.free}))
    return _each_once(found)


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


def read_sampler(log: t.Sequence[Message]) -> shapes.Sampler:
    """Sampler rows: sequences x (1 + speculation depth). The line comes again for each rank and each sizing."""
    found = (_SAMPLER.match(message.text) for message in log)
    rows = {int(line.group(3)) for line in found if line}
    return {"rows": rows.pop() if len(rows) == 1 else None}


def read_wire(log: t.Sequence[Message], budgeted: bool) -> shapes.Wire:
    """The wire between ranks. A lossy one announces itself before the budget; ``budgeted``: the boot came that far.

    No announcement is an exact wire, unless a piece of one is there.
    """
    lossy = {_exact_rows(message.text) for message in log if _LOSSY.match(message.text)}
    if lossy:
        return {"mode": "wht6", "exact_rows": lossy.pop()} if len(lossy) == 1 else {"mode": None, "exact_rows": None}
    torn = any(_TORN.search(text) for message in log for text in (message.text, *message.rows))
    return {"mode": "exact" if budgeted and not torn else None, "exact_rows": None}


def _exact_rows(text: str) -> int | None:
    found = _EXACT_ROWS.search(text)
    return int(found.group(1)) if found else None


def read_chunk(log: t.Sequence[Message]) -> shapes.Chunk:
    """The longest prefill chunk: the step's budget, or the checkpoint interval where that is the smaller one."""
    found = {_chunk(message.text) for message in log if message.text.startswith("chunk geometry: ")}
    read = found.pop() if len(found) == 1 else None
    return {"prefill_tokens": read and read[0], "bound_by": read and read[1]}


def _chunk(text: str) -> tuple[int, str] | None:
    """Tokens and what bounds them, where the line agrees with its own interval and budget."""
    line = _CHUNK.match(text[:1000])
    if not line:
        return None
    interval, budget, tokens = (int(line.group(number)) for number in (1, 2, 3))
    shorter = 0 < interval < budget
    if tokens != (interval if shorter else budget) or ("the checkpoint interval" in line.group(4)) != shorter:
        return None
    return tokens, "checkpoint_interval" if shorter else "budget"


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
