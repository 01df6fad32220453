# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""An arm that an operator measured before, as an item of a file, to the fields of a line of the record."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import KNOWN_DTYPES

Json = dict[str, t.Any]

_NAMES = (
    "weights_mib",
    "prefill_tps",
    "decode_tps",
    "prompt_tokens",
    "generated_tokens",
    "kv_cache_dtype",
    "num_speculative_tokens",
    "draft_acceptance",
    "stack",
    "engine_version",
    "image_digest",
    "at",
)
_LEAST = {"weights_mib": 1, "prompt_tokens": 1, "generated_tokens": 1, "num_speculative_tokens": 0}
_RATES = ("prefill_tps", "decode_tps")
EXAMPLE = "{weights_mib: 25600, prefill_tps: 3584, prompt_tokens: 43500, kv_cache_dtype: fp8}"
_RELEASE = re.compile(r"^[0-9]+(?:\.[0-9]+)+")


def arm_fields(item: t.Any) -> Json:
    """The own fields of an arm of the record. Raises ValueError with a sentence."""
    if not isinstance(item, dict):
        raise ValueError(f"{item!r} is no arm. Write it like {EXAMPLE}.")
    unknown = [name for name in item if name not in _NAMES]
    if unknown:
        raise ValueError(f"{', '.join(unknown)} is not known here. An arm takes {', '.join(_NAMES)}.")
    given: Json = {name: item.get(name) for name in _NAMES}
    if given["weights_mib"] is None or all(given[name] is None for name in _RATES):
        raise ValueError("it needs weights_mib, and prefill_tps or decode_tps: a slab and a rate seen at it.")
    for name, least in _LEAST.items():
        value = given[name]
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise ValueError(f"{name} is {value!r}. Write a whole number from {least} on, without quotes or commas.")
    for name in _RATES:
        given[name] = _number(given[name], name, "tokens a second, above 0")
    given["draft_acceptance"] = _number(given["draft_acceptance"], "draft_acceptance", "a part from 0 to 1", most=1)
    for name in ("kv_cache_dtype", "stack", "engine_version", "image_digest", "at"):
        if given[name] is not None and not (isinstance(given[name], str) and given[name].strip()):
            raise ValueError(f"{name} is {given[name]!r}, which is no text. Put it in quotes.")
    if given["kv_cache_dtype"] not in (None, *KNOWN_DTYPES):
        raise ValueError(
            f"kv_cache_dtype is {given['kv_cache_dtype']!r}; the engine takes {' or '.join(KNOWN_DTYPES)}."
        )
    if given["engine_version"] is not None and not _RELEASE.match(given["engine_version"]):
        raise ValueError(f"engine_version is {given['engine_version']!r}; it takes a release such as 1.0.13.")
    at = given.pop("at")
    if at is not None and not _records.MEASURED_AT.match(at):
        raise ValueError(f"at is {at!r}. Write a day, 2026-10-13, or a UTC time, 2026-10-13T09:30:00Z.")
    return {
        **given,
        "weights_plus_minus_mib": 0,
        "prefill_spread": None,
        "decode_spread": None,
        "source": "import",
        "measured_at": at,
    }


def _number(value: t.Any, name: str, what: str, most: float | None = None) -> float | None:
    """A rate or a part, a whole one as an int, so that 3584 and 3584.0 are one arm."""
    if value is None:
        return None
    good = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not good or (value > most or value < 0 if most is not None else value <= 0):
        raise ValueError(f"{name} is {value!r}. Write {what}, like 109.8, without quotes or commas.")
    return int(value) if float(value).is_integer() else value
