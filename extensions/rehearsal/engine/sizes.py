# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sizes in bytes, and the one form in which the engine prints them."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
ALIGN_UNIT = 4 * KIB
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def humanb(size: int) -> str:
    """Bytes as the engine prints them: two decimals in binary units, the unit chosen before rounding."""
    value = float(size)
    unit = 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    return f"{size} B" if unit == 0 else f"{value:.2f} {_UNITS[unit]}"


def from_mib(mib: float) -> int:
    """MiB, as a world file states them, in whole bytes."""
    return round(mib * MIB)


def align(size: int, unit: int) -> int:
    """The next multiple of a unit."""
    return -(-size // unit) * unit
