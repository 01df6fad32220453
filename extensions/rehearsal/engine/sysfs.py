# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files in the shape of the driver's sysfs, beside the model: what each card holds, also after a process has ended.

``NAME.cards/card0/device/mem_info_vram_used`` and so on, in bytes. A process adds what it takes to the files. A child
of it waits for its end, however that comes, and takes it off again; memory that is held for a while is taken off late.
``NAME.cards/holder`` has the number of that child, and is locked by it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import signal
import time
from collections.abc import Iterator

from .machine import Machine
from .sizes import MIB, from_mib
from .world import World

_GTT_TOTAL = 65536 * MIB
_GTT_IDLE = 24 * MIB
# Of memory that is held after the end, this part goes at once.
_GONE_AT_ONCE = 0.6


class Cards:
    """The files of one model's cards."""

    def __init__(self, model: str, world: World) -> None:
        path = pathlib.Path(model)
        self._folder = path.with_name(f"{path.stem}.cards")
        self._devices = range(len(world.gpus))
        self._holder = self._folder / "holder"
        self._pipe: int | None = None
        self._used: list[int] = []
        stale = not self._is_held()
        for card in self._devices:
            total, held = from_mib(world.card_total(card)), from_mib(world.card_held(card))
            first = {"vram_total": total, "vram_used": held, "gtt_total": _GTT_TOTAL, "gtt_used": _GTT_IDLE}
            for name, size in first.items():
                file = self._file(card, name)
                if stale or not file.exists():
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(f"{size}\n")

    def _is_held(self) -> bool:
        """Whether a child still waits; without one, nothing would ever take off what the files say."""
        try:
            with open(self._holder, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def held_mib(self) -> list[float]:
        """What each card holds now."""
        return [self._read(card, "vram_used") / MIB for card in self._devices]

    def take(self, machine: Machine) -> None:
        """This process holds its memory from now on, until it ends and, under a fault, for a while longer."""
        self._used = machine.devices
        taken = {}
        for rank, card in enumerate(machine.devices):
            total, held = from_mib(machine.world.card_total(card)), from_mib(machine.world.card_held(card))
            taken[card] = max(0, total - held - machine.settled(rank))
        seconds = machine.hits.number("hold_memory") if "hold_memory" in machine.hits else 0.0
        reader, writer = os.pipe()
        # Locked as long as the child has it open, whatever becomes of the child.
        holder = os.open(self._holder, os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(holder, fcntl.LOCK_SH)
        child = os.fork()
        if child == 0:
            os.close(writer)
            self._watch(reader, taken, seconds)
        os.close(reader)
        os.ftruncate(holder, 0)
        os.write(holder, f"{child}\n".encode())
        os.close(holder)
        self._pipe = writer
        self._add({card: ("vram_used", size) for card, size in taken.items()})

    def spill(self, mib: int) -> None:
        """So much of each used card moves into host memory."""
        moved = {card: mib * MIB for card in self._used}
        self._add({card: ("gtt_used", size) for card, size in moved.items()})
        if self._pipe is not None:
            os.write(self._pipe, json.dumps(moved).encode() + b"\n")

    def _watch(self, reader: int, taken: dict[int, int], seconds: float) -> None:
        """The child: wait for the end of its parent, take off what it held, and end."""
        try:
            # What stops a whole service is not to stop this.
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nothing, stream)
            os.close(nothing)
            told = b""
            while part := os.read(reader, 4096):
                told += part
            for line in told.splitlines():
                self._add({int(card): ("gtt_used", -size) for card, size in json.loads(line).items()})
            if seconds:
                early = {card: int(size * _GONE_AT_ONCE) for card, size in taken.items()}
                self._add({card: ("vram_used", -size) for card, size in early.items()})
                time.sleep(seconds)
                taken = {card: size - early[card] for card, size in taken.items()}
            self._add({card: ("vram_used", -size) for card, size in taken.items()})
        finally:
            os._exit(0)

    def _add(self, more: dict[int, tuple[str, int]]) -> None:
        with self._locked():
            for card, (name, size) in more.items():
                now = max(0, self._read(card, name) + size)
                part = self._file(card, f"{name}.part")
                part.write_text(f"{now}\n")
                os.replace(part, self._file(card, name))

    def _read(self, card: int, name: str) -> int:
        return int(self._file(card, name).read_text())

    def _file(self, card: int, name: str) -> pathlib.Path:
        return self._folder / f"card{card}" / "device" / f"mem_info_{name}"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self._folder / "lock", "w", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
