# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""An arm that an operator measured before, as an item of a file, to the fields of a line of the record."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import KNOWN_DTYPES
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _import_item

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
    given = _import_item.known(item, "an arm", _NAMES, EXAMPLE)
    if given["weights_mib"] is None or all(given[name] is None for name in _RATES):
        raise ValueError("it needs weights_mib, and prefill_tps or decode_tps: a slab and a rate seen at it.")
    for name, least in _LEAST.items():
        value = given[name]
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise ValueError(f"{name} is {value!r}. Write a whole number from {least} on, without quotes or commas.")
    for name in _RATES:
        given[name] = _number(given[name], name, "tokens a second, above 0")
    given["draft_acceptance"] = _number(given["draft_acceptance"], "draft_acceptance", "a part from 0 to 1", most=1)
    _import_item.require_text(given, "kv_cache_dtype", "stack", "engine_version", "image_digest", "at")
    if given["kv_cache_dtype"] not in (None, *KNOWN_DTYPES):
        raise ValueError(
            f"kv_cache_dtype is {given['kv_cache_dtype']!r}; the engine takes {' or '.join(KNOWN_DTYPES)}."
        )
    if given["engine_version"] is not None and not _RELEASE.match(given["engine_version"]):
        raise ValueError(f"engine_version is {given['engine_version']!r}; it takes a release such as 1.0.13.")
    at = given.pop("at")
    _import_item.require_time(at)
    return {
        **given,
        "weights_plus_minus_mib": 0,
        "prefill_spread": None,
        "decode_spread": None,
        "source": "import",
        "measured_at": at,
    }


def _number(value: t.Any, name: str, what: str, most: float | None = None) -> float | None:
    """A rate or a part, above 0, or from 0 to ``most``."""
    if value is None:
        return None
    if not _import_item.is_number(value) or (value > most or value < 0 if most is not None else value <= 0):
        raise ValueError(f"{name} is {value!r}. Write {what}, like 109.8, without quotes or commas.")
    return _import_item.as_number(value)
