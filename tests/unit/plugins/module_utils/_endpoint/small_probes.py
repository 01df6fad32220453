# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probes run against a small endpoint, for their tests."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import boundary, calibration, rates
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import read
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_endpoint import Small


def run(small: Small, probe: t.Any, key: str | None = None, **options: t.Any) -> tuple[dict[str, t.Any], list[t.Any]]:
    """Run a probe against ``small``: its result, and the requests that arrived."""
    with small.serving() as server:
        params = {"endpoint": server.url, "model": None, "timeout": 10, **options}
        result = probe(read(params, key))
        return result, list(server.requests)


def calibrate(small: Small, **options: t.Any) -> dict[str, t.Any]:
    found: dict[str, t.Any] = run(small, calibration.probe, **options)[0]["calibration"]
    return found


def bound(small: Small, **options: t.Any) -> dict[str, t.Any]:
    found: dict[str, t.Any] = run(small, boundary.probe, **{"chars_per_token": 2.5, **options})[0]["boundary"]
    return found


def rate(small: Small, **options: t.Any) -> dict[str, t.Any]:
    asked = {"chars_per_token": 2.5, "prompt_tokens": 4000, "generate_tokens": 200, **options}
    found: dict[str, t.Any] = run(small, rates.probe, **asked)[0]["rates"]
    return found


def measured(make: t.Callable[[], Small], **options: t.Any) -> tuple[Small, dict[str, t.Any]]:
    """An endpoint and its rates, anew where a busy host held the tokens back: then a run may be inconclusive."""
    for _attempt in range(5):
        small = make()
        found = rate(small, **options)
        if found["verdict"] != "inconclusive":
            break
    return small, found


def honest(prompt: int, made: int, prefill: float, decode: float) -> dict[str, t.Any]:
    return {"prompt_n": prompt, "cache_n": 0, "prompt_ms": prefill * 1000, "predicted_per_second": (made - 1) / decode}
