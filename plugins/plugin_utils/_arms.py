# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arms: measured points of the record. What a probe measured becomes one, and a plan takes them."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import Arm
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.running import read_running

Json = dict[str, t.Any]
Entry = t.Mapping[str, t.Any]

# What pair_plan takes of an arm, and how the record names it.
_OF_PLAN = {**{name: name for name in Arm._fields}, "at": "measured_at"}


def measured_arms(
    probes: t.Mapping[str, t.Any],
    ledger: t.Mapping[str, t.Any] | None,
    service: t.Mapping[str, t.Any],
    host: str,
    attempt: str | None = None,
) -> dict[str, t.Any]:
    """``{entries, says}``: the arm of the record for what the rate probe measured, or why there is none.

    ``ledger`` is the boot that was probed, with the engine's version where its endpoint told it. Only rates whose
    verdict is passed become an arm, and only where that boot tells what they were measured on.
    """
    rates = probes.get("rates") or {}
    if rates.get("verdict") != "passed":
        return {"entries": [], "says": ""}
    try:
        running = read_running(ledger or {}, {})
    except RadianceError as error:
        return {"entries": [], "says": f"The rates are not kept as an arm: {error.text}"}
    shape = running.effective(running.shape)
    fields = {name: rates.get(name) for name in ("prefill_tps", "decode_tps", "prefill_spread", "decode_spread")}
    entry = _records.entry(
        "arm",
        host,
        str(service["name"]),
        attempt,
        **fields,
        weights_mib=round(running.weights.mib),
        weights_plus_minus_mib=running.weights.plus_minus_mib,
        prompt_tokens=rates.get("prompt_tokens"),
        generated_tokens=rates.get("generated_tokens"),
        draft_acceptance=rates.get("draft_acceptance"),
        kv_cache_dtype=shape.kv_cache_dtype,
        num_speculative_tokens=shape.num_speculative_tokens,
        stack=service.get("stack") or None,
        engine_version=((ledger or {}).get("engine") or {}).get("version"),
        image_digest=((ledger or {}).get("source") or {}).get("image_digest"),
        source="probe",
        measured_at=_records.utc_now(),
    )
    return {"entries": [entry], "says": ""}


def known_arms(service: t.Mapping[str, t.Any], record: t.Iterable[Entry]) -> list[Json]:
    """The arms of a service as ``pair_plan`` takes them: declared ones, then those on record, the oldest first."""
    arms = [dict(arm) for arm in service.get("arms") or []]
    for entry in on_record(record):
        own = {name: entry[key] for name, key in _OF_PLAN.items()}
        arms.append({name: value for name, value in own.items() if value is not None})
    return arms


def known_depths(service: t.Mapping[str, t.Any], record: t.Iterable[Entry]) -> list[int | None]:
    """The speculation depth of each of ``known_arms``, which a plan does not take; None where it is not told."""
    return [*(None for _arm in service.get("arms") or []), *(e["num_speculative_tokens"] for e in on_record(record))]


def on_record(record: t.Iterable[Entry]) -> list[Entry]:
    """The arms of a record by the time of their measurement; those of an unknown one first."""
    arms = [entry for entry in record if entry["kind"] == "arm"]
    return sorted(arms, key=lambda entry: (str(entry["measured_at"] or ""), str(entry["id"])))
