# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's own account while a probe runs: /stats, sampled as the second witness.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import threading
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.client import Client
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.replies import count_of

_INTERVAL_SECONDS = 0.25
_SAMPLE_SECONDS = 5.0


class Sample(t.NamedTuple):
    """One reading of /stats between ``asked_at`` and ``at`` (monotonic seconds); None where it does not say."""

    asked_at: float
    at: float
    in_flight: int | None
    decoding: int | None
    kv_tokens_used: int | None
    kv_tokens_total: int | None
    preempted: int | None
    preemptions: int | None


def read_sample(stats: t.Any, asked_at: float, at: float) -> Sample:
    """Read the JSON of /stats. Pure."""
    stats = stats if isinstance(stats, dict) else {}
    requests = stats.get("requests")
    states = [r.get("state") for r in requests if isinstance(r, dict)] if isinstance(requests, list) else None
    running, waiting = count_of(stats.get("running")), count_of(stats.get("waiting"))
    return Sample(
        asked_at=asked_at,
        at=at,
        in_flight=None if running is None else running + (waiting or 0),
        decoding=None if states is None else states.count("decode"),
        kv_tokens_used=count_of(stats.get("kv_tokens_used")),
        kv_tokens_total=count_of(stats.get("kv_tokens_total")),
        preempted=count_of(stats.get("preempted")),
        preemptions=count_of(stats.get("preemptions")),
    )


class Witness(t.NamedTuple):
    """What the samples say together: the most that was seen; None where no sample says."""

    samples: int
    in_flight: int | None
    decoding: int | None
    kv_tokens_used: int | None
    kv_tokens_total: int | None
    preempted: int | None
    decoding_within: int | None

    def as_dict(self) -> dict[str, t.Any]:
        """The witness as a probe returns it."""
        return {
            "samples": self.samples,
            "decoding": self.decoding,
            "kv_tokens_used": self.kv_tokens_used,
            "kv_tokens_total": self.kv_tokens_total,
            "preempted": self.preempted,
        }


def summarize(samples: t.Sequence[Sample], stretch: tuple[float, float] | None = None) -> Witness:
    """The witness of these samples. ``decoding_within`` regards only samples taken wholly within ``stretch``. Pure.

    A preemption is one that a sample shows, or by which the engine's counter grew between first and last sample.
    """

    def most(values: t.Iterable[int | None]) -> int | None:
        return max((value for value in values if value is not None), default=None)

    counter = [s.preemptions for s in samples if s.preemptions is not None]
    grown = counter[-1] - counter[0] if len(counter) > 1 and counter[-1] >= counter[0] else None
    within = [s for s in samples if stretch and stretch[0] <= s.asked_at and s.at <= stretch[1]]
    return Witness(
        samples=len(samples),
        in_flight=most(s.in_flight for s in samples),
        decoding=most(s.decoding for s in samples),
        kv_tokens_used=most(s.kv_tokens_used for s in samples),
        kv_tokens_total=most(s.kv_tokens_total for s in samples),
        preempted=most([most(s.preempted for s in samples), grown]),
        decoding_within=most(s.decoding for s in within),
    )


class Clock(t.NamedTuple):
    """What the samples say of the wall clock over one run.

    ``ended_early`` is the first moment between two arrivals at which the engine already had nothing in flight, None
    where it had: what arrives after it was held back on its way. ``late_seconds`` is by how much at most a sample was
    late that is answered from memory: a host that is so busy delays tokens as well.
    """

    ended_early: float | None = None
    late_seconds: float = 0.0


CLOCK = Clock()


def read_clock(samples: t.Sequence[Sample], first: float | None, last: float | None) -> Clock:
    """What the samples of a run say, whose tokens arrived from ``first`` to ``last``. Pure."""
    late = max((later.asked_at - s.asked_at - _INTERVAL_SECONDS for s, later in zip(samples, samples[1:])), default=0.0)
    if first is None or last is None:
        return Clock(None, max(0.0, late))
    over = (s.asked_at for s in samples if s.in_flight == 0 and first < s.asked_at and s.at < last)
    return Clock(min(over, default=None), max(0.0, late))


class Watch:
    """Samples /stats for the length of a ``with`` block; ``samples`` is complete after it."""

    def __init__(self, client: Client) -> None:
        self.samples: list[Sample] = []
        self._client = client
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._end.set()
        self._thread.join()
        self._sample()

    def _run(self) -> None:
        while not self._end.wait(_INTERVAL_SECONDS):
            self._sample()

    def _sample(self) -> None:
        asked_at = time.monotonic()
        reply = self._client.get("/stats", timeout=min(self._client.timeout, _SAMPLE_SECONDS))
        stats = reply.json() if reply.ok else None
        if isinstance(stats, dict):
            self.samples.append(read_sample(stats, asked_at, time.monotonic()))
