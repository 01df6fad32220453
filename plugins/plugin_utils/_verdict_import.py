# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A prediction that an operator judged before, as an item of a file, to the fields of a line of the record."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _import_item

Json = dict[str, t.Any]

_NAMES = ("quantity", "predicted", "measured", "unit", "verdict", "says", "at")
_EXAMPLE = "{quantity: prefill_tps, predicted: {low: 4200, high: 4500}, measured: 4379, unit: t/s, verdict: held}"
_QUANTITY = re.compile(r"[a-z][a-z0-9_.]{0,79}")
_JUDGED = tuple(word for word in _records.VERDICTS if word != "open")


def verdict_fields(item: t.Any) -> Json:
    """The own fields of a past_verdict of the record. Raises ValueError with a sentence."""
    given = _import_item.known(item, "a verdict", _NAMES, _EXAMPLE)
    quantity, verdict, measured, at = (given[name] for name in ("quantity", "verdict", "measured", "at"))
    if not isinstance(quantity, str) or not _QUANTITY.fullmatch(quantity):
        raise ValueError(f"quantity is {quantity!r}. Write what was predicted, like prefill_tps or settled_free_mib.")
    if verdict not in _JUDGED:
        raise ValueError(f"verdict is {verdict!r}. It is one of {', '.join(_JUDGED)}.")
    low, high = _interval(given["predicted"])
    if measured is not None or verdict != "void":
        measured = _number(measured, "measured")
    _import_item.require_text(given, "unit", "says")
    if verdict == "held" and low < high and not low <= measured <= high:
        raise ValueError(f"measured {measured} is not from {low} to {high}, and the verdict is held.")
    _import_item.require_time(at)
    return {
        "quantity": quantity,
        "low": low,
        "high": high,
        "unit": given["unit"],
        "measured": measured,
        "verdict": verdict,
        "says": given["says"] or "",
        "judged_at": at,
    }


def _interval(predicted: t.Any) -> tuple[float, float]:
    """What was predicted: a number, or from low to high."""
    if not isinstance(predicted, dict):
        value = _number(predicted, "predicted")
        return value, value
    if set(predicted) != {"low", "high"}:
        raise ValueError(f"predicted has {', '.join(predicted) or 'nothing'}. Write a number, or {{low: 1, high: 2}}.")
    low, high = _number(predicted["low"], "low"), _number(predicted["high"], "high")
    if low > high:
        raise ValueError(f"predicted has low {low} above high {high}.")
    return low, high


def _number(value: t.Any, name: str) -> float:
    if not _import_item.is_number(value):
        raise ValueError(f"{name} is {value!r}. Write a number, like 4379 or 109.8, without quotes or commas.")
    return _import_item.as_number(value)
