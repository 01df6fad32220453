# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Arms that an operator measured before: a file of them, read strictly, to lines of the record."""

from __future__ import annotations

import json
import pathlib
import re
import typing as t

import yaml
from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
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
_EXAMPLE = "{weights_mib: 25600, prefill_tps: 3584, prompt_tokens: 43500, kv_cache_dtype: fp8}"
_RELEASE = re.compile(r"^[0-9]+(?:\.[0-9]+)+")
_LARGEST_BYTES = 1 << 20


class _Twice(ValueError):
    """A key that an item has twice."""


class _Loader(yaml.SafeLoader):
    """YAML in which only plain decimal numbers are numbers: 06144, 6_144, 1e3, 1:30 and yes stay the text they are."""

    yaml_implicit_resolvers: dict[str, t.Any] = {}


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Json:
    loader.flatten_mapping(node)
    return _once(
        [(loader.construct_object(key), loader.construct_object(value, deep=True)) for key, value in node.value]
    )


def _once(pairs: t.Sequence[tuple[t.Any, t.Any]]) -> Json:
    names = [str(name) for name, _value in pairs]
    for name in names:
        if names.count(name) > 1:
            raise _Twice(f"{name} is there twice")
    return {str(name): value for name, value in pairs}


_INT, _FLOAT = re.compile(r"-?(?:0|[1-9][0-9]{0,11})"), re.compile(r"-?(?:0|[1-9][0-9]{0,11})\.[0-9]{1,12}")
_DIGITS = list("-0123456789")
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(f"^{_INT.pattern}$"), _DIGITS)
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(f"^{_FLOAT.pattern}$"), _DIGITS)
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|)$"), ["~", "n", ""])
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _plain(pattern: re.Pattern[str], read: t.Callable[[str], float]) -> t.Callable[[str], float | str]:
    return lambda text: read(text) if pattern.fullmatch(text) else text


def import_arms(path: str, service: str, host: str) -> list[Json]:
    """The lines of the record for the arms in the file ``path``, YAML or JSON: a list of items.

    Raises RadianceError ``import_unreadable``, naming the file, the item by its number from 1, and what is wrong.
    """
    items = _items(path)
    entries = []
    for number, item in enumerate(items, start=1):
        try:
            entries.append(_records.entry("arm", host, service, None, **_fields(item)))
        except (ValueError, RadianceError) as error:
            raise RadianceError(
                f"import={path}: arm {number} of {len(items)}: {error} Nothing was added.", code="import_unreadable"
            ) from None
    return entries


def import_or_objection(path: str, service: str, host: str) -> Json:
    """``{entries}`` of ``import_arms``, or ``{objection}``, why the file is not taken."""
    try:
        return {"entries": import_arms(path, service, host)}
    except RadianceError as error:
        return {"objection": error.text}


def _items(path: str) -> list[t.Any]:
    file = pathlib.Path(path).expanduser()
    try:
        with file.open("rb") as handle:
            raw = handle.read(_LARGEST_BYTES + 1)
        content = _parse(raw.decode("utf-8")) if len(raw) <= _LARGEST_BYTES else None
    except OSError as error:
        wrong = f"cannot be read: {error.strerror}"
    except yaml.MarkedYAMLError as error:
        where = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
        wrong = f"is neither YAML nor JSON: {error.problem}{where}"
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        wrong = f"is no list of arms: {' '.join(str(error).split())}"
    else:
        if isinstance(content, list) and content:
            return content
        wrong = f"is no list of arms. Write one arm an item, like - {_EXAMPLE}"
        if len(raw) > _LARGEST_BYTES:
            wrong = f"is larger than {_LARGEST_BYTES:,} bytes"
    raise RadianceError(f"import={path}: {file.absolute()} {wrong}.", code="import_unreadable")


def _parse(text: str) -> t.Any:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(
                text,
                object_pairs_hook=_once,
                parse_int=_plain(_INT, int),
                parse_float=_plain(_FLOAT, float),
                parse_constant=str,
            )
        except json.JSONDecodeError:
            # A list of YAML's own may begin like that too.
            pass
    return yaml.load(text, Loader=_Loader)


def _fields(item: t.Any) -> Json:
    """The own fields of an arm of the record. Raises ValueError with a sentence."""
    if not isinstance(item, dict):
        raise ValueError(f"{item!r} is no arm. Write it like {_EXAMPLE}.")
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
