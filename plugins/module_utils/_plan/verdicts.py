# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts: what a ledger or a probe said of each prediction.

``held`` and ``killed`` are measured; ``open`` is not measured yet; ``void`` is a prediction for another stack than the
one that was measured. A killed prediction is never dropped.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.evidence import require_readable
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import (
    Json,
    number,
    rounded,
    span,
    whole_or_float,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import size_from_dict

# A rate speaks of a prediction only where its prompts were about as long.
_PROMPT_TOLERANCE = 0.1
_EPSILON = 1e-6


class Measured(t.NamedTuple):
    """A printed or probed number with its rounding."""

    value: float
    plus_minus: float = 0.0
    text: str = ""


def verdicts(predictions: t.Sequence[Json], ledger: Json | None = None, probes: Json | None = None) -> list[Json]:
    """``[{id, verdict, measured, plus_minus, says}]``, one for each prediction, in their order.

    ``plus_minus`` is by how much the print rounds what was measured, 0 where it does not.

    ``ledger`` empty or None: no boot was read, so what a ledger would tell stays open. ``probes`` is
    ``{calibration, boundary, rates}`` or empty. Raises RadianceError ``ledger_unreadable``.
    """
    if ledger:
        require_readable(ledger)
    return [_verdict(prediction, ledger or {}, probes or {}) for prediction in predictions]


def _verdict(prediction: Json, ledger: Json, probes: Json) -> Json:
    other = _other_stack(prediction, ledger)
    if other:
        return _result(prediction, "void", None, f"The stack changed: {other}.")
    if prediction["quantity"] == "prefill_tps":
        return _prefill(prediction, _probe(probes, "rates"))
    measured = _printed(prediction, ledger)
    if measured is None:
        return _unprinted(prediction, ledger)
    boundary = _probe(probes, "boundary")
    if prediction["quantity"] == "sequences_backed" and boundary.get("verdict") == "failed":
        retrieved = boundary.get("retrieved")
        says = (
            f"The ledger says {number(measured.value)}, and the boundary probe failed: "
            f"{boundary.get('says') or 'no reason'}"
        )
        return _result(prediction, "killed", retrieved if _is_number(retrieved) else None, says)
    tokens, printed = prediction.get("tokens"), (ledger.get("capacity") or {}).get("tokens")
    if tokens and printed and tokens != printed:
        says = f"The ledger says {measured.text or number(measured.value)}; predicted at {tokens:,} tokens."
        return _result(prediction, "killed", measured.value, says, measured.plus_minus)
    low, high = float(prediction["low"]) - _EPSILON, float(prediction["high"]) + _EPSILON
    holds = measured.value + measured.plus_minus >= low and measured.value - measured.plus_minus <= high
    says = f"The ledger says {measured.text or number(measured.value)}; predicted {_range(prediction)}."
    return _result(prediction, "held" if holds else "killed", measured.value, says, measured.plus_minus)


def _probe(probes: Json, name: str) -> Json:
    """What one probe returned; empty where it did not run, or returned nothing that can be read."""
    found = probes.get(name)
    return dict(found) if isinstance(found, t.Mapping) else {}


def _is_number(value: t.Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")


def _result(prediction: Json, verdict: str, measured: float | None, says: str, plus_minus: float = 0.0) -> Json:
    value = measured if measured is None or isinstance(measured, int) else rounded(measured)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return {
        "id": prediction["id"],
        "verdict": verdict,
        "measured": value,
        "plus_minus": whole_or_float(plus_minus),
        "says": says,
    }


def _range(prediction: Json) -> str:
    low, high = (number(float(prediction[end])) for end in ("low", "high"))
    return f"{span(low, high)} {prediction['unit']}"


def _other_stack(prediction: Json, ledger: Json) -> str | None:
    for made_for in str(prediction.get("stack") or "").split():
        if made_for.startswith("sha256:"):
            name, now = "image", (ledger.get("source") or {}).get("image_digest")
        else:
            name, now = "engine", (ledger.get("engine") or {}).get("version")
        if now and now != made_for:
            return f"predicted for {name} {made_for}, and {now} was measured"
    return None


def _unprinted(prediction: Json, ledger: Json) -> Json:
    status = ledger.get("status")
    if not status:
        return _result(prediction, "open", None, "No boot has been read yet.")
    if status == "complete":
        return _result(prediction, "open", None, "This boot did not print it.")
    reason = (ledger.get("reason") or {}).get("text") or "no reason is known"
    return _result(prediction, "killed", None, f"The boot is {status} and did not print it: {reason}")


def _prefill(prediction: Json, rates: Json) -> Json:
    measured = rates.get("prefill_tps")
    if not rates or rates.get("skipped"):
        return _result(prediction, "open", None, "Not measured yet.")
    if rates.get("verdict") != "passed" or measured is None or not _is_number(measured):
        return _result(prediction, "open", None, f"Not measured: {rates.get('says') or 'the rate probe did not pass'}")
    made_for, prompts = prediction.get("prompt_tokens"), rates.get("prompt_tokens")
    if made_for and prompts and _is_number(prompts) and abs(prompts - made_for) > _PROMPT_TOLERANCE * made_for:
        says = f"Measured {number(measured)} t/s at prompts of {prompts:,} tokens; predicted for {made_for:,}."
        return _result(prediction, "open", measured, says)
    holds = prediction["low"] - _EPSILON <= measured <= prediction["high"] + _EPSILON
    says = f"The rate probe says {number(measured)} t/s; predicted {_range(prediction)}."
    return _result(prediction, "held" if holds else "killed", measured, says)


def _printed(prediction: Json, ledger: Json) -> Measured | None:
    """The number that the boot printed for a prediction, or None."""
    quantity = prediction["quantity"]
    if quantity in ("weights_mib", "kv_mib"):
        return _pool(ledger, quantity)
    if quantity == "sequences_backed":
        return _backed(ledger)
    if quantity == "unclaimed_mib":
        return _size(((ledger.get("budget") or {}).get("rows") or {}).get("unclaimed"))
    if quantity == "sampler_rows":
        return _count((ledger.get("sampler") or {}).get("rows"))
    if quantity == "lendable_slots":
        return _lendable(prediction, ledger)
    if quantity == "settled_free_mib":
        return _size(_row(ledger.get("settled"), "card", prediction["card"]).get("free"))
    if quantity in ("slab_slots", "pool_slots"):
        row = _row(ledger.get("slab"), "rank", prediction["rank"])
        return _count(row.get("slots" if quantity == "slab_slots" else "pool_slots"))
    return None


def _pool(ledger: Json, quantity: str) -> Measured | None:
    pair = ledger.get("pair") or {}
    if pair.get("exact") and pair.get(quantity) is not None:
        return Measured(float(pair[quantity]))
    rows = (ledger.get("budget") or {}).get("rows") or {}
    return _size(rows.get("vram_weights" if quantity == "weights_mib" else "vram_kv"))


def _backed(ledger: Json) -> Measured | None:
    capacity = ledger.get("capacity") or {}
    if capacity.get("full") and capacity.get("sequences") is not None:
        tokens = capacity.get("tokens")
        at = f" all at {tokens:,} tokens" if tokens else ""
        return Measured(float(capacity["sequences"]), 0.0, f"it backs {capacity['sequences']} sequences{at} at once")
    sessions = capacity.get("full_length_sessions")
    return None if sessions is None else Measured(float(sessions), 0.05, f"it backs {sessions} full-length sessions")


def _lendable(prediction: Json, ledger: Json) -> Measured | None:
    """The rank whose count lies furthest from the prediction: all ranks have to hold it."""
    counts = [
        int(row["slots"])
        for row in ledger.get("lent") or []
        if row.get("from") == "kv_cache" and row.get("slots") is not None
    ]
    if not counts:
        return None
    middle = (float(prediction["low"]) + float(prediction["high"])) / 2
    return _count(max(counts, key=lambda count: abs(count - middle)))


def _row(rows: t.Any, key: str, index: object) -> Json:
    return next((dict(row) for row in rows or [] if row.get(key) == index), {})


def _size(value: t.Any) -> Measured | None:
    if value is None:
        return None
    size = size_from_dict(value)
    return Measured(size.mib, size.plus_minus_mib, size.text)


def _count(value: t.Any) -> Measured | None:
    return None if value is None else Measured(float(value))
