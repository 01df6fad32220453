# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rates the arms of a service let expect of the boot that runs: how long its probes take, and what is too fast."""

from __future__ import annotations

import statistics
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.law import comparable, prompt_sizes, slab_law
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import Arm, read_request
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.running import read_running
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._arms import known_arms, known_depths

Measured = t.Sequence[tuple[Arm, t.Optional[int]]]


class _Runs(t.NamedTuple):
    """The slab in MiB, the cache dtype and the speculation depth of the boot that runs, as far as it tells them."""

    slab: float | None
    dtype: str | None
    depth: int | None


def expected_rates(
    service: t.Mapping[str, t.Any],
    record: t.Sequence[t.Mapping[str, t.Any]],
    ledger: t.Mapping[str, t.Any] | None,
    prompt_tokens: t.Any = None,
) -> dict[str, t.Any]:
    """``{prefill_tps, decode_tps, most_prefill_tps, most_decode_tps}`` in tokens/s; None where no arm tells.

    Only arms count that can be compared with what runs (``law.comparable``), and for decode those of its depth.
    ``prefill_tps`` is what the slab law says of the slab that runs; where no arms bracket it, the rate of the nearest
    one, and where the slab is not known, the median: good enough for how long something takes, and for nothing else.
    ``decode_tps`` is the median. The ``most`` are the fastest that was measured, of prefill at prompts of
    ``prompt_tokens``, or of an unknown size. They are of the dtype that runs, and where that is not known, there are
    none: nothing is too fast then.
    """
    runs = _runs(ledger or {})
    measured = _comparable(service, record, ledger or {}, runs)
    bounding = [(arm, depth) for arm, depth in measured if arm.kv_cache_dtype in (None, runs.dtype)]
    decode = _decode(measured, runs.depth)
    return {
        "prefill_tps": _prefill([arm for arm, _depth in measured], runs),
        "decode_tps": statistics.median(decode) if decode else None,
        "most_prefill_tps": _fastest_prefill([arm for arm, _depth in bounding], prompt_tokens),
        "most_decode_tps": max(_decode(bounding, runs.depth), default=None),
    }


def _runs(ledger: t.Mapping[str, t.Any]) -> _Runs:
    try:
        running = read_running(ledger, {})
    except RadianceError:
        return _Runs(None, (ledger.get("flags") or {}).get("kv-cache-dtype"), None)
    shape = running.effective(running.shape)
    return _Runs(running.weights.mib, shape.kv_cache_dtype, shape.num_speculative_tokens)


def _comparable(
    service: t.Mapping[str, t.Any],
    record: t.Sequence[t.Mapping[str, t.Any]],
    ledger: t.Mapping[str, t.Any],
    runs: _Runs,
) -> Measured:
    """Each arm with its depth; where the dtype that runs is not known, of every dtype."""
    stack = service.get("stack") or None
    version = (ledger.get("engine") or {}).get("version")
    digest = (ledger.get("source") or {}).get("image_digest")
    arms = read_request({"arms": known_arms(service, record)}).arms
    return [
        (arm, depth)
        for arm, depth in zip(arms, known_depths(service, record))
        if comparable(arm, runs.dtype or arm.kv_cache_dtype or "", stack, version, digest)
    ]


def _decode(measured: Measured, depth: int | None) -> list[float]:
    return [
        arm.decode_tps
        for arm, own in measured
        if arm.decode_tps is not None and (depth is None or own is None or own == depth)
    ]


def _prefill(arms: t.Sequence[Arm], runs: _Runs) -> float | None:
    rates = [(arm.weights_mib, arm.prefill_tps) for arm in arms if arm.prefill_tps is not None]
    if not rates:
        return None
    slab = runs.slab
    if slab is None:
        return statistics.median(rate for _slab, rate in rates)
    law = slab_law(arms, slab, runs.dtype or "")
    return law.tps or min(rates, key=lambda arm: abs(arm[0] - slab))[1]


def _fastest_prefill(arms: t.Sequence[Arm], prompt_tokens: t.Any) -> float | None:
    if prompt_tokens is None:
        return None
    asked = int(prompt_tokens)
    sizes = prompt_sizes([asked, *(arm.prompt_tokens for arm in arms)])
    rates = [
        arm.prefill_tps
        for arm in arms
        if arm.prefill_tps is not None and (not arm.prompt_tokens or sizes[arm.prompt_tokens] == sizes[asked])
    ]
    return max(rates, default=None)
