# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes that keep the rounding of their print, and numbers that are only ever plain decimal digits.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

MIB_PER_UNIT: t.Mapping[str, float] = {
    "B": 1 / (1024 * 1024),
    "KiB": 1 / 1024,
    "MiB": 1.0,
    "GiB": 1024.0,
    "TiB": 1024.0 * 1024.0,
}

# The engine prints bytes as a whole number and every other unit with two decimals, a decimal point,
# and no thousands separator. Anything else is another program's text, or another locale's.
SIZE_PATTERN = r"(?:(?:0|[1-9][0-9]*) B|(?:0|[1-9][0-9]*)\.[0-9]{2} [KMGT]iB)"
_SIZE = re.compile(r"^(" + SIZE_PATTERN + r")$")
# No card has that many MiB and no window that many tokens; beyond it, floats and Python's own int() give up.
_PLAIN_INTEGER = re.compile(r"(?:0|[1-9][0-9]{0,11})")
_LARGEST = 10**12 - 1


class SizeDict(t.TypedDict):
    """A printed size as a ledger carries it."""

    mib: float
    plus_minus_mib: float
    text: str


class Size(t.NamedTuple):
    """A printed size: ``mib`` as printed, ``plus_minus_mib`` half a unit of its last digit, ``text`` as printed."""

    mib: float
    plus_minus_mib: float
    text: str

    @property
    def low_mib(self) -> float:
        """The smallest size that prints as this text."""
        return self.mib - self.plus_minus_mib

    @property
    def high_mib(self) -> float:
        """The largest size that prints as this text."""
        return self.mib + self.plus_minus_mib

    def prints(self, mib: float) -> bool:
        """Whether a size of ``mib`` prints as this text, but for what binary floating point adds."""
        return self.low_mib - 1e-9 <= mib <= self.high_mib + 1e-9

    def as_dict(self) -> SizeDict:
        """The size as a ledger carries it."""
        return {"mib": self.mib, "plus_minus_mib": self.plus_minus_mib, "text": self.text}


def parse_size(text: str) -> Size:
    """Read a size as the engine prints it (``31.86 GiB``, ``477.30 MiB``, ``0 B``).

    Raises RadianceError ``size_unreadable`` for any other form, with the text quoted.
    """
    if not _SIZE.match(text):
        raise RadianceError(
            f"{text!r} is not a size as the engine prints it (two decimals and KiB, MiB, GiB or TiB, or whole B).",
            code="size_unreadable",
        )
    number, unit = text.split(" ")
    per_unit = MIB_PER_UNIT[unit]
    plus_minus = 0.0 if unit == "B" else 0.005 * per_unit
    return Size(float(number) * per_unit, plus_minus, text)


def size_from_dict(value: t.Mapping[str, t.Any]) -> Size:
    """The Size behind a ledger's ``{mib, plus_minus_mib, text}``."""
    return Size(float(value["mib"]), float(value["plus_minus_mib"]), str(value["text"]))


def whole_number(value: object, name: str) -> int:
    """A count or a number of MiB from a request: an int, or text of plain decimal digits.

    Raises RadianceError ``not_a_whole_number`` for every other form (``06144``, ``6_144``, ``1e3``, ``6,144``,
    ``8k``, true, 6144.0, an empty text), with the text quoted.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST:
        return value
    if isinstance(value, str) and _PLAIN_INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, int) and value > _LARGEST:
        value = "a number of more than 12 digits"
    plain = re.sub(r"[,_ ']", "", value).lstrip("0") if isinstance(value, str) else ""
    like = plain if _PLAIN_INTEGER.fullmatch(plain) else "6144"
    raise RadianceError(
        f"{name} is {value!r}, which is not a whole number in plain decimal digits. Write it like {like}.",
        code="not_a_whole_number",
    )
