# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rates the arms of a service let expect of the boot that runs: for how long its probes will take."""

from __future__ import annotations

import statistics
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.law import comparable, slab_law
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import Arm, read_request
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.running import read_running
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._arms import known_arms


def expected_rates(
    service: t.Mapping[str, t.Any],
    record: t.Iterable[t.Mapping[str, t.Any]],
    ledger: t.Mapping[str, t.Any] | None,
) -> dict[str, t.Any]:
    """``{prefill_tps, decode_tps, most_decode_tps}`` in tokens/s; None where no arm of this stack and dtype tells.

    Prefill is what the slab law says of the slab that runs; where no arms bracket it, the rate of the nearest one,
    and where the slab is not known, the median: good enough for how long something takes, and for nothing else. Decode
    is the median, and ``most_decode_tps`` the fastest, of the arms of the speculation depth that runs.
    """
    told = ledger or {}
    try:
        running = read_running(told, {})
    except RadianceError:
        slab, depth, dtype = None, None, ""
    else:
        shape = running.effective(running.shape)
        slab, depth, dtype = running.weights.mib, shape.num_speculative_tokens, shape.kv_cache_dtype
    stack = service.get("stack") or None
    version = (told.get("engine") or {}).get("version")
    digest = (told.get("source") or {}).get("image_digest")
    arms = [
        arm
        for arm in read_request({"arms": known_arms(service, record)}).arms
        if comparable(arm, dtype or arm.kv_cache_dtype or "", stack, version, digest)
    ]
    decode = [arm.decode_tps for arm in arms if arm.decode_tps is not None and _same_depth(arm, depth)]
    return {
        "prefill_tps": _prefill(arms, slab, dtype),
        "decode_tps": statistics.median(decode) if decode else None,
        "most_decode_tps": max(decode, default=None),
    }


def _same_depth(arm: Arm, depth: int | None) -> bool:
    own = getattr(arm, "num_speculative_tokens", None)
    return depth is None or own is None or own == depth


def _prefill(arms: t.Sequence[Arm], slab: float | None, dtype: str) -> float | None:
    rates = [(arm.weights_mib, arm.prefill_tps) for arm in arms if arm.prefill_tps is not None]
    if not rates:
        return None
    if slab is None:
        return statistics.median(rate for _slab, rate in rates)
    law = slab_law(arms, slab, dtype)
    return law.tps or min(rates, key=lambda arm: abs(arm[0] - slab))[1]
