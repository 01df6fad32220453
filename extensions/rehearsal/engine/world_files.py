# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""World files: the one beside a model, and the named ones that it may build on."""

from __future__ import annotations

import json
import pathlib
from dataclasses import asdict, fields
from typing import Any

from . import releases
from .kv_arithmetic import Dimensions
from .world import World, WorldError, beside

# What this copy of the engine is, whatever world it finds beside a model: another release, for one.
OWN = pathlib.Path(__file__).resolve().parent.parent / "own.world.json"
NAMED = pathlib.Path(__file__).resolve().parent.parent / "worlds"
_MAY_BE_EMPTY = ("gpus", "card_totals_mib", "cards_held_mib")
_NOT_ZERO = (
    "load_speedup", "serve_speedup", "layers", "embedding", "vocabulary", "trained_context",
    "expert_columns", "decode_step_ms", "bf16_decode_factor",
    "block_tokens", "state_chunk", "full_layers", "kv_heads", "head_dim", "granule_mib",
)  # fmt: skip


def names() -> list[str]:
    """The named worlds."""
    return sorted(path.stem for path in NAMED.glob("*.json"))


def named(name: str) -> World:
    """A named world; WorldError names those that there are."""
    if name not in names():
        raise WorldError(f"there is no world {name!r}; there are {', '.join(names())}")
    return read(NAMED / f"{name}.json")


def read_world(model: str) -> World:
    """The world beside a model; without the file, the default world. Over it goes what this engine has of its own."""
    path = beside(model, "world")
    given = _given(path) if path.exists() else {}
    if OWN.exists():
        path, given = OWN, {**given, **_given(OWN)}
    return _built(path, given)


def read(path: pathlib.Path) -> World:
    """One world file: fields over the defaults, or over those of the ``world`` that it names."""
    return _built(path, _given(path))


def _given(path: pathlib.Path) -> dict[str, Any]:
    try:
        given: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WorldError(f"{path}: {error}") from error
    if not isinstance(given, dict):
        raise WorldError(f"{path}: a world is an object of fields, not {type(given).__name__}")
    return given


def _built(path: pathlib.Path, given: dict[str, Any]) -> World:
    try:
        return build(given)
    except WorldError as error:
        raise WorldError(f"{path}: {error}") from error


def build(given: dict[str, Any]) -> World:
    """A world of these fields; WorldError names the field that is wrong."""
    rest = dict(given)
    base = named(str(rest.pop("world"))) if "world" in rest else World()
    standing = {item.name: getattr(base, item.name) for item in fields(World)}
    for name, value in rest.items():
        if name == "cache":
            standing[name] = _dimensions(base.cache, value)
            continue
        _check(name, value, asdict(World()))
        standing[name] = value
    if standing["release"] not in releases.KNOWN:
        raise WorldError(f"release is {standing['release']!r}, but there are {', '.join(releases.KNOWN)}")
    return World(**standing)


def _dimensions(base: Dimensions, given: Any) -> Dimensions:
    if not isinstance(given, dict):
        raise WorldError(f"cache is an object of dimensions, not {given!r}")
    for name, value in given.items():
        _check(name, value, asdict(Dimensions()))
        if not isinstance(value, int):
            raise WorldError(f"{name} is {value!r}, but the default is {asdict(Dimensions())[name]!r}")
    return Dimensions(**{**asdict(base), **given})


def _check(name: str, value: Any, known: dict[str, Any]) -> None:
    if name not in known:
        raise WorldError(f"there is no field {name!r}; known are {', '.join(known)}")
    if not _same_kind(known[name], value) or (value == [] and name not in _MAY_BE_EMPTY):
        raise WorldError(f"{name} is {value!r}, but the default is {known[name]!r}")
    if isinstance(value, list) and not all(_is_item(name, item) for item in value):
        raise WorldError(f"{name} has an item that is none, as in {known[name]!r}: {value!r}")
    if (name in _NOT_ZERO and not value) or (name == "slot_pages" and (len(value) != 2 or not all(value))):
        raise WorldError(f"{name} is {value!r}, and that leaves nothing")


def _is_item(name: str, item: Any) -> bool:
    """Whether this may stand in the list of a field: a text, a pair of numbers, or a number."""
    if name == "gpus":
        return isinstance(item, str)
    if name == "prefill_law":
        return isinstance(item, list) and len(item) == 2 and all(_same_kind(0.0, part) for part in item)
    return _same_kind(0 if name == "slot_pages" else 0.0, item) and (name != "slot_pages" or isinstance(item, int))


def _same_kind(default: Any, value: Any) -> bool:
    if isinstance(default, (list, tuple)):
        return isinstance(value, list)
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, (int, float)):
        return isinstance(value, (int, float)) and value >= 0
    return isinstance(value, type(default))
