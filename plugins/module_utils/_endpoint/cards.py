# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the cards hold while a probe runs, by the driver's own files: VRAM, and GTT, which is host memory.

A prompt that does not fit the card may move memory to the host without a word: every answer is right, and decode is
slow from then on. Only the growth of GTT shows it.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import glob
import os
import re
import threading
import typing as t

DRM = "/sys/class/drm"
_MIB = 1024 * 1024
# Queues and small staging buffers come and go in GTT; a spill moves gigabytes.
SPILL_MIB = 256
# Graphics within a processor have little memory of their own and use GTT for all that they show.
_INTEGRATED_PART = 0.25
_INTERVAL_SECONDS = 0.25
_FILES = ("vram_total", "vram_used", "gtt_used")


class Held(t.NamedTuple):
    """What one card holds, in MiB."""

    vram_total: int
    vram_used: int
    gtt_used: int


def read_cards(folder: str) -> dict[str, Held]:
    """Each card that shows all of it, by its name; empty where none does."""
    found = {}
    for path in glob.glob(os.path.join(folder, "card[0-9]*")):
        name = os.path.basename(path)
        sizes = [_mib(os.path.join(path, "device", f"mem_info_{file}")) for file in _FILES]
        known = [size for size in sizes if size is not None]
        if re.fullmatch(r"card[0-9]+", name) and len(known) == len(_FILES):
            found[name] = Held(*known)
    return found


def _mib(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read(64)) // _MIB
    except (OSError, ValueError):
        return None


def memory_of(
    before: t.Mapping[str, Held], most: t.Mapping[str, Held], after: t.Mapping[str, Held]
) -> dict[str, t.Any]:
    """``{grown_mib, cards: [{card, counted, vram_mib, gtt_mib}]}``, the latter two ``{before, most, after}``. Pure.

    ``grown_mib`` is the most that GTT of one counted card grew: the cards count that are no integrated graphics.
    """
    largest = max((held.vram_total for held in before.values()), default=0)
    rows, grown = [], 0
    for card in sorted(before, key=lambda name: int(name[4:])):
        first, peak, last = before[card], most.get(card, before[card]), after.get(card)
        counted = first.vram_total >= _INTEGRATED_PART * largest
        if counted:
            grown = max(grown, peak.gtt_used - first.gtt_used)
        rows.append(
            {
                "card": card,
                "counted": counted,
                "vram_mib": {
                    "before": first.vram_used,
                    "most": peak.vram_used,
                    "after": None if last is None else last.vram_used,
                },
                "gtt_mib": {
                    "before": first.gtt_used,
                    "most": peak.gtt_used,
                    "after": None if last is None else last.gtt_used,
                },
            }
        )
    return {"grown_mib": grown, "cards": rows}


class CardWatch:
    """Reads the cards for the length of a ``with`` block, and once more when ``memory`` is asked for."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._before = read_cards(folder)
        self._most = dict(self._before)

    def __enter__(self) -> CardWatch:
        if self._before:
            self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._end.set()
        if self._before:
            self._thread.join()
            self._read()

    def memory(self) -> dict[str, t.Any] | None:
        """What ``memory_of`` says until now; None where the host shows no card."""
        return memory_of(self._before, self._most, self._read()) if self._before else None

    def _run(self) -> None:
        while not self._end.wait(_INTERVAL_SECONDS):
            self._read()

    def _read(self) -> dict[str, Held]:
        now = read_cards(self._folder)
        for card, held in now.items():
            most = self._most.get(card, held)
            self._most[card] = Held(*(max(pair) for pair in zip(most, held)))
        return now
