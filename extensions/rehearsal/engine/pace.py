# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a step takes, and the clock that runs from step to step.

The thread sleeps until that clock, so that rates are right in sum even where one step is shorter than a sleep can be.
"""

from __future__ import annotations

import time

from .machine import Machine
from .sizes import MIB

_SHORTEST_SLEEP = 0.001
_MOST_LAG = 0.25
# A card that spills into host memory runs at this part of its rates.
_SPILLED = 0.4


class Pace:
    """The rates of one machine; ``clock`` is the time of the last step's end."""

    def __init__(self, machine: Machine) -> None:
        world = machine.world
        self._more = world.decode_more_sequences
        self.prefill_tps = world.prefill_tps(machine.split.weights_pool / MIB) * world.serve_speedup
        step = (world.decode_step_ms + world.decode_draft_ms * machine.shape.drafts) / 1000
        slower = world.bf16_decode_factor if machine.shape.dtype == "bf16" else 1.0
        self._decode_seconds = step / slower / world.serve_speedup
        self.clock = time.monotonic()

    def spill(self) -> None:
        """Everything is slower from now on."""
        self.prefill_tps *= _SPILLED
        self._decode_seconds /= _SPILLED

    def wake(self) -> None:
        """Work begins after a pause."""
        self.clock = time.monotonic()

    def seconds(self, tokens: int, decoding: int) -> float:
        """One step that prefills this many tokens and decodes this many sequences."""
        seconds = tokens / self.prefill_tps
        if decoding:
            seconds += self._decode_seconds * (1 + self._more * (decoding - 1))
        return seconds

    def wait(self, seconds: float) -> None:
        """Until a step of this length is over."""
        now = time.monotonic()
        self.clock = max(self.clock, now - _MOST_LAG) + seconds
        if self.clock - now > _SHORTEST_SLEEP:
            time.sleep(self.clock - now)
