# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a ledger must be before anything is planned from it: complete, and of the kinds that a ledger is made of.

A ledger may have been kept in a file, edited, or made by another program. What the planner reads of it is checked here
once: a section that is not there is a row that was not printed, and a value of another kind, below zero, not a number
or without end is refused with its place, not computed with.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.shapes import SCHEMA
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Ledger, counted

# The bound of every number in a request, see _sizes.
_LARGEST = 10**12 - 1


def _text(value: object) -> str:
    return "" if isinstance(value, str) else "no text"


def _truth(value: object) -> str:
    return "" if isinstance(value, bool) else "neither true nor false"


def _count(value: object) -> str:
    counts = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST
    return "" if counts else "no count of 0 or more"


def _number(value: object) -> str:
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= _LARGEST
    return "" if numeric else "no number of 0 or more"


# A ``!`` after a name: every such record has it. Anything else may be absent or null.
_SIZE = {"mib!": _number, "plus_minus_mib!": _number, "text!": _text}
_ROWS = ("card_total", "activation_arena", "claimable", "prefill_staging", "vram_weights", "vram_kv", "unclaimed")
_GROUP = {
    "name!": _text,
    "kind!": _text,
    "layers": _count,
    "block_tokens": _count,
    "page": _SIZE,
    "blocks": _count,
    "state": _SIZE,
    "slots": _count,
}
_LEDGER: t.Mapping[str, t.Any] = {
    "source": {"image_digest": _text},
    "engine": {"version": _text},
    "tp": _count,
    "devices": {"used": [_count]},
    "model": {"arch": _text, "trained_context": _count},
    "budget": {"weights": _text, "kv": _text, "rows": {name: _SIZE for name in _ROWS}},
    "pair": {"weights_mib": _number, "kv_mib": _number, "exact": _truth},
    "capacity": {"sequences": _count, "tokens": _count, "full": _truth, "full_length_sessions": _number},
    "settled": [{"card!": _count, "free!": _SIZE, "floor!": _SIZE, "static_region": _SIZE, "line!": _text}],
    "slab": [{"rank!": _count, "slots": _count, "shadow_slots": _count, "pool_slots": _count, "static": _SIZE}],
    "host_pool": [{"rank!": _count, "budget": _SIZE, "used!": _SIZE, "free!": _SIZE}],
    "lent": [{"from!": _text, "slots": _count, "size": _SIZE}],
    "kv": {"groups": [_GROUP], "checkpoints": {"slots": _count, "each": _SIZE, "backed": _count}},
    "sampler": {"rows": _count},
    "wire": {"mode": _text, "exact_rows": _count},
    "chunk": {"prefill_tokens": _count, "bound_by": _text},
    "warnings": [{"text": _text}],
    "fingerprint": _text,
}


def require_complete(ledger: Ledger) -> None:
    """Raises RadianceError ``ledger_unknown``, ``ledger_not_complete``, ``ledger_unreadable``, ``no_settled_line``."""
    if not isinstance(ledger, t.Mapping) or ledger.get("schema") != SCHEMA:
        raise RadianceError(
            f"The ledger's schema is not {SCHEMA}. Give what boot_ledger_info returns as ledger.",
            code="ledger_unknown",
        )
    if ledger.get("status") != "complete":
        reason = ledger.get("reason")
        text = reason.get("text") if isinstance(reason, t.Mapping) else None
        because = f": {text}" if text else "."
        raise RadianceError(
            f"The ledger is {ledger.get('status')}, and a plan needs a complete one{because}",
            code="ledger_not_complete",
        )
    require_readable(ledger)
    _hold_groups(ledger)
    used = (ledger.get("devices") or {}).get("used") or []
    cards = [row["card"] for row in ledger.get("settled") or []]
    silent = [card for card in used if card not in cards]
    if not cards or silent:
        of = f" for {', '.join(f'card {card}' for card in silent)}" if cards else ""
        raise RadianceError(
            f"The ledger has no settled line{of}, so there is nothing to compute a ceiling from. "
            "Read the ledger of a boot that reached its listening line.",
            code="no_settled_line",
        )


def require_readable(ledger: Ledger) -> None:
    """Raises RadianceError ``ledger_unreadable`` where what the planner reads of a ledger is not of its kind."""
    _hold("", _LEDGER, ledger)
    for name, text in (ledger.get("flags") or {}).items() if _is_flags(ledger.get("flags")) else ():
        if not isinstance(text, str):
            raise _unreadable(f"flags.{name}", text, "no text, as a command line has it")
    for section, key in (("settled", "card"), ("slab", "rank"), ("host_pool", "rank")):
        _hold_apart(section, [row[key] for row in ledger.get(section) or []])


def _hold_groups(ledger: Ledger) -> None:
    """Each KV group that has layers has pages or states."""
    for index, group in enumerate((ledger.get("kv") or {}).get("groups") or []):
        where = f"kv.groups[{index}]"
        if not group.get("layers"):
            continue
        if group.get("page") is not None:
            if not group.get("block_tokens"):
                raise _unreadable(f"{where}.block_tokens", group.get("block_tokens"), "no block of a token or more")
        elif group.get("state") is None or group.get("slots") is None:
            raise _unreadable(where, dict(group), "neither a group with pages nor one with states")


def _is_flags(flags: object) -> bool:
    if flags is not None and not isinstance(flags, t.Mapping):
        raise _unreadable("flags", flags, "no dictionary of options")
    return bool(flags)


def _hold_apart(where: str, names: t.Sequence[object]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise _unreadable(where, name, f"there {counted(names.count(name), 'time')}")


def _hold(where: str, kind: t.Any, value: t.Any) -> None:
    """Hold ``value`` to its kind: a dictionary of kinds, a list of one kind, or a function that says what is wrong."""
    if isinstance(kind, t.Mapping):
        if not isinstance(value, t.Mapping):
            raise _unreadable(where, value, "no dictionary")
        for name, inner in kind.items():
            key = name.rstrip("!")
            place = f"{where}.{key}" if where else key
            if value.get(key) is not None:
                _hold(place, inner, value[key])
            elif key != name:
                raise _unreadable(place, None, "missing")
    elif isinstance(kind, list):
        if not isinstance(value, (list, tuple)):
            raise _unreadable(where, value, "no list")
        for index, item in enumerate(value):
            _hold(f"{where}[{index}]", kind[0], item)
    else:
        wrong = kind(value)
        if wrong:
            raise _unreadable(where, value, wrong)


def _unreadable(where: str, value: object, wrong: str) -> RadianceError:
    said = repr(value)
    said = said if len(said) <= 60 else said[:60] + " …"
    if isinstance(value, int) and abs(value) > _LARGEST:
        said = "a number of more than 12 digits"
    is_wrong = wrong if wrong == "missing" else f"{said}, which is {wrong}"
    return RadianceError(
        f"The ledger's {where} is {is_wrong}. Give what boot_ledger_info returns as ledger, as it is.",
        code="ledger_unreadable",
    )
