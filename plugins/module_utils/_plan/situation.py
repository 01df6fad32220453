# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a gate is judged by, and what it finds.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.ceiling import Ceiling
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.contract import Figures
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.running import Running
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import Shape
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Ledger


class Situation(t.NamedTuple):
    """All that a gate is judged by: what runs, and one candidate (pair None where the engine splits the card)."""

    ledger: Ledger
    request: Request
    running: Running
    running_figures: Figures | None
    ceiling: Ceiling
    shape: Shape
    pair: tuple[float, float] | None
    figures: Figures
    version: str | None
    stack_changes: bool = False
    digest: str | None = None

    @property
    def filled_mib(self) -> float:
        """The pool of a fill: what the contract asks for, and the live sessions where some are asked for."""
        return self.figures.filled_mib(self.shape, self.request.backing, self.request.live)

    @property
    def margin_mib(self) -> int:
        """What a grown shape's arena and staging, or another stack, may want beyond today's; 0 where neither is."""
        grows = self.stack_changes or self.shape.grows_from(self.running.shape)
        return self.request.shape_margin_mib if grows else 0

    @property
    def fill_margin_mib(self) -> int:
        """What a fill leaves free: as above, and for a shape that only shrinks as well."""
        return self.request.shape_margin_mib if self.stack_changes or self.shape != self.running.shape else 0

    @property
    def exact_sequences(self) -> int | None:
        """The most sequences of this depth whose full step is exact on a lossy wire; None where that bounds nothing.

        What runs past it already is not bounded by it either.
        """
        wire, effective = self.ledger.get("wire") or {}, self.running.effective
        rows = wire.get("exact_rows")
        if rows is None or wire.get("mode") in (None, "exact") or effective(self.running.shape).sampler_rows > rows:
            return None
        return int(rows) // (effective(self.shape).num_speculative_tokens + 1) or None

    @property
    def room_for_another_shape_mib(self) -> float:
        """The pool of the same request for another shape, by which its ways out are told.

        A pool that takes the rest leaves a changed shape its margin.
        """
        if self.pair is None:
            return 0.0
        takes_the_rest = self.request.pair == "stated" and self.request.kv_mib is None
        limit = self.ceiling.sure_limit_mib(self.request.shape_margin_mib)
        return limit - self.pair[0] if takes_the_rest else self.pair[1]


class Finding(t.NamedTuple):
    """A gate judged. ``worse`` tells whether the request worsens what runs (a hard gate always counts as worse)."""

    name: str
    holds: bool
    says: str
    source: str
    hard: bool
    worse: bool = True
