# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a serving stand-in counts from its start on."""

from __future__ import annotations

from .sequence import Sequence

_NAMES = (
    "requests", "steps", "prefill_steps", "decode_steps", "prompt_tokens", "cached_tokens", "generated", "drafted",
    "accepted", "preemptions", "checkpoints", "refused",
)  # fmt: skip
_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Histogram:
    """Seconds by bounds, in the text form of Prometheus."""

    def __init__(self) -> None:
        self._counts = [0] * len(_BOUNDS)
        self._sum = 0.0
        self._count = 0

    def observe(self, seconds: float) -> None:
        """Count one value."""
        self._sum += seconds
        self._count += 1
        for index, bound in enumerate(_BOUNDS):
            self._counts[index] += seconds <= bound

    def rows(self, name: str, labels: str) -> list[str]:
        """The lines of /metrics; ``labels`` stand between the braces."""
        rows = [f'{name}_bucket{{{labels},le="{bound}"}} {count}' for bound, count in zip(_BOUNDS, self._counts)]
        rows.append(f'{name}_bucket{{{labels},le="+Inf"}} {self._count}')
        return [*rows, f"{name}_sum{{{labels}}} {self._sum:.6f}", f"{name}_count{{{labels}}} {self._count}"]


class Counters:
    """Totals by name, ended requests by their reason, and how long they took."""

    def __init__(self) -> None:
        self.totals: dict[str, float] = dict.fromkeys(_NAMES, 0)
        self.reasons: dict[str, int] = {"stop": 0, "length": 0, "abort": 0, "error": 0}
        self.responses: dict[str, int] = {"2xx": 0, "4xx": 0, "5xx": 0}
        self.first_token = Histogram()
        self.whole_request = Histogram()

    def ended(self, item: Sequence) -> None:
        """A sequence is over, however it ended."""
        reason = "error" if item.error else "abort" if item.cancelled else item.finish_reason
        self.reasons[reason] += 1
        if item.first is not None and item.last is not None:
            self.first_token.observe(max(0.0, item.first - item.submitted))
            self.whole_request.observe(max(0.0, item.last - item.submitted))

    def answered(self, status: int) -> None:
        """One HTTP answer."""
        self.responses[f"{status // 100}xx"] += 1
