# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the planner writes numbers for a person, and the one rounding that a plan's own numbers get.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re
import typing as t

# A count of at most 12 digits: what is longer, no engine has taken for what it says.
_DIGITS = re.compile(r"(?:0|[1-9][0-9]{0,11})")

UNKNOWN = "–"

Json = dict[str, t.Any]
Ledger = t.Mapping[str, t.Any]


def number(value: float) -> str:
    """``30969.05`` as ``30,969.05``, ``5120.0`` as ``5,120``: thousands commas, two decimals or none."""
    return f"{value:,.2f}".removesuffix(".00")


def pair_text(to: t.Mapping[str, t.Any] | None) -> str:
    """The pair of a plan's ``to`` or of a command line, slab first: ``24,000 + 5,120``.

    What a command line has otherwise than in digits is told as it is; a half that the engine chooses, or that nobody
    knows, is a dash.
    """
    halves = [(to or {}).get(name) for name in ("weights_mib", "kv_mib")]
    return " + ".join(UNKNOWN if half is None else half if isinstance(half, str) else number(half) for half in halves)


def span(low: str, high: str, joiner: str = " to ") -> str:
    """``210.12 to 220.36``, and one number where both ends read alike."""
    return low if low == high else low + joiner + high


def mib(value: float) -> str:
    """A size for a person: ``30,969.05 MiB``."""
    return number(value) + " MiB"


def rounded(value: float) -> float:
    """What a plan carries: three decimals, enough for half a unit of the engine's finest print (0.005 MiB)."""
    return round(value + 0.0, 3)


def whole_or_float(value: float) -> float:
    """An int where the value is whole, so that a plan shows ``25600`` and not ``25600.0``."""
    return int(value) if float(value).is_integer() else rounded(value)


def digits(text: str | None) -> int | None:
    """What a flag of a command line counts; None where it is no plain count, or there is none."""
    return int(text) if text is not None and _DIGITS.fullmatch(text) else None


def counted(count: int, noun: str) -> str:
    """``1 sequence``, ``3 sequences``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
