# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request as it was asked, read strictly: whole numbers in plain digits, known names, reasons where they are due.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import KNOWN_DTYPES, SHAPE_NAMES, version_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import whole_number

HARD_GATES = (
    "dtype_known",
    "engine_takes_pair",
    "pair_within_ceiling",
    "one_request_fits",
    "host_pool_holds_the_rest",
)
SOFT_GATES = ("pool_meets_contract", "rows_within_exact_wire", "chunk_within_interval", "headroom_kept")

_NAMES = (
    "running",
    "shape",
    "pair",
    "min_gain_mib",
    "shape_margin_mib",
    "backing",
    "backing_reason",
    "accept",
    "reserve_mib",
    "reserve_reason",
    "engine_version",
    "image_digest",
    "host_pool_mib",
    "kv_model",
    "arms",
    "stack",
    "on_gate",
)
_RUNNING_NAMES = ("weights_mib", "kv_mib", *SHAPE_NAMES)
_AT_LEAST_ONE = ("weights_mib", "kv_mib", "max_num_seqs", "max_model_len")
_PLAIN_DECIMAL = re.compile(r"^(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$")


class KvModel(t.NamedTuple):
    """Figures that replace the derived ones; None leaves the derived figure. ``checkpoint_mib`` is for all slots."""

    rate_bytes_per_token: int | None
    state_mib_per_sequence: float | None
    checkpoint_mib: float | None


NO_KV_MODEL = KvModel(None, None, None)


class Arm(t.NamedTuple):
    """One measured point: tokens/s at a slab size, with the conditions that it was measured under.

    One of the two rates is there. ``engine_version`` and ``image_digest`` are as the boot told them.
    """

    weights_mib: int
    prefill_tps: float | None
    decode_tps: float | None
    prompt_tokens: int | None
    kv_cache_dtype: str | None
    stack: str | None
    at: str | None
    engine_version: str | None = None
    image_digest: str | None = None


class Request(t.NamedTuple):
    """pair_plan's options but the ledger, read. ``pair`` is ``fill``, ``keep`` or ``stated``."""

    running: t.Mapping[str, int | str]
    shape: t.Mapping[str, int | str]
    pair: str
    weights_mib: int | None
    kv_mib: int | None
    min_gain_mib: int
    shape_margin_mib: int
    backing: str
    backing_reason: str | None
    accept: t.Mapping[str, str]
    reserve_mib: int
    reserve_reason: str | None
    engine_version: str | None
    image_digest: str | None
    host_pool_mib: int | None
    kv_model: KvModel
    arms: tuple[Arm, ...]
    stack: str | None
    on_gate: str


def read_request(raw: t.Mapping[str, t.Any]) -> Request:
    """Read a request; a key with the value None counts as not given.

    Raises RadianceError with the text quoted: ``not_a_whole_number``, ``not_a_number``, ``dtype_unknown``,
    ``request_unreadable`` (unknown names, wrong kinds), ``reason_missing``, ``gate_not_acceptable``.
    """
    given = _known(raw, _NAMES, "the request")
    pair, weights_mib, kv_mib = _pair(given.get("pair", "fill"))
    reserve_mib = whole_number(given.get("reserve_mib", 0), "reserve_mib")
    reserve_reason = _text(given, "reserve_reason")
    if reserve_mib and not reserve_reason:
        raise _reason_missing(f"reserve_mib is {reserve_mib}", "reserve_reason")
    backing = _choice(given, "backing", ("full", "one_request"), "full")
    backing_reason = _text(given, "backing_reason")
    if backing == "one_request" and not backing_reason:
        raise _reason_missing("backing is one_request", "backing_reason")
    host_pool = given.get("host_pool_mib")
    return Request(
        running=_values(given.get("running", {}), _RUNNING_NAMES, "running"),
        shape=_values(given.get("shape", {}), SHAPE_NAMES, "shape"),
        pair=pair,
        weights_mib=weights_mib,
        kv_mib=kv_mib,
        min_gain_mib=whole_number(given.get("min_gain_mib", 256), "min_gain_mib"),
        shape_margin_mib=whole_number(given.get("shape_margin_mib", 64), "shape_margin_mib"),
        backing=backing,
        backing_reason=backing_reason,
        accept=_accept(given.get("accept", [])),
        reserve_mib=reserve_mib,
        reserve_reason=reserve_reason if reserve_mib else None,
        engine_version=_version(given),
        image_digest=_text(given, "image_digest"),
        host_pool_mib=None if host_pool is None else whole_number(host_pool, "host_pool_mib"),
        kv_model=_kv_model(given.get("kv_model", {})),
        arms=tuple(_arm(arm, index) for index, arm in enumerate(_list(given.get("arms", []), "arms"))),
        stack=_text(given, "stack"),
        on_gate=_choice(given, "on_gate", ("fail", "report"), "fail"),
    )


def plain_number(value: object, name: str) -> float:
    """A measured figure: a number, or text of plain decimal digits with an optional decimal point."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    if isinstance(value, str) and _PLAIN_DECIMAL.match(value):
        return float(value)
    raise RadianceError(
        f"{name} is {value!r}, which is not a number in plain decimal digits. Write it like 3397 or 109.8.",
        code="not_a_number",
    )


def _unreadable(text: str) -> RadianceError:
    return RadianceError(text, code="request_unreadable")


def _reason_missing(what: str, option: str) -> RadianceError:
    return RadianceError(f"{what}, and {option} is empty: say why in {option}.", code="reason_missing")


def _known(raw: object, names: t.Sequence[str], where: str) -> dict[str, t.Any]:
    if not isinstance(raw, t.Mapping):
        raise _unreadable(f"{where} is {raw!r}; it takes a dictionary of {', '.join(names)}.")
    for name in raw:
        if name not in names:
            raise _unreadable(f"{where} names {name!r}; it takes {', '.join(names)}.")
    return {str(name): value for name, value in raw.items() if value is not None}


def _list(raw: object, name: str) -> list[t.Any]:
    if not isinstance(raw, (list, tuple)):
        raise _unreadable(f"{name} is {raw!r}; it takes a list.")
    return list(raw)


def _text(given: t.Mapping[str, t.Any], name: str) -> str | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise _unreadable(f"{name} is {value!r}, which is not text. Put it in quotes.")
    return value.strip() or None


def _version(given: t.Mapping[str, t.Any]) -> str | None:
    version = _text(given, "engine_version")
    if version is not None and version_of(version) is None:
        raise _unreadable(f"engine_version is {version!r}; it takes a release such as 1.0.13.")
    return version


def _choice(given: t.Mapping[str, t.Any], name: str, choices: t.Sequence[str], default: str) -> str:
    value = given.get(name, default)
    if value not in choices:
        raise _unreadable(f"{name} is {value!r}; it takes {' or '.join(choices)}.")
    return str(value)


def _count(value: object, name: str, where: str) -> int:
    count = whole_number(value, f"{where}.{name}")
    if count == 0 and name in _AT_LEAST_ONE:
        raise RadianceError(
            f"{where}.{name} is {value!r}: at 0 the engine derives it instead. Write a number of at least 1.",
            code="not_a_whole_number",
        )
    return count


def _values(raw: object, names: t.Sequence[str], where: str) -> dict[str, int | str]:
    values: dict[str, int | str] = {}
    for name, value in _known(raw, names, where).items():
        if name != "kv_cache_dtype":
            values[name] = _count(value, name, where)
        elif where == "shape" and value not in KNOWN_DTYPES:
            raise RadianceError(
                f"shape.kv_cache_dtype is {value!r}; the engine takes bf16 or fp8, one dtype for the whole cache.",
                code="dtype_unknown",
            )
        else:
            values[name] = str(value)
    return values


def _pair(raw: object) -> tuple[str, int | None, int | None]:
    if isinstance(raw, str):
        if raw not in ("fill", "keep"):
            raise _unreadable(f"pair is {raw!r}; it takes fill, keep, or weights_mib and kv_mib.")
        return raw, None, None
    given = _known(raw, ("weights_mib", "kv_mib"), "pair")
    stated = {name: _count(value, name, "pair") for name, value in given.items()}
    if not stated:
        raise _unreadable("pair is empty; it takes fill, keep, or weights_mib and kv_mib.")
    return "stated", stated.get("weights_mib"), stated.get("kv_mib")


def _accept(raw: object) -> dict[str, str]:
    accepted = {}
    for entry in _list(raw, "accept"):
        given = _known(entry, ("gate", "reason"), "accept")
        gate, reason = given.get("gate"), _text(given, "reason")
        if gate in HARD_GATES:
            raise RadianceError(
                f"accept names {gate!r}, a hard gate: no reason makes the engine take it. "
                f"Acceptable are {', '.join(SOFT_GATES)}.",
                code="gate_not_acceptable",
            )
        if gate not in SOFT_GATES:
            raise RadianceError(
                f"accept names {gate!r}, which is no gate. Acceptable are {', '.join(SOFT_GATES)}.",
                code="gate_not_acceptable",
            )
        if not reason:
            raise _reason_missing(f"accept names {gate}", "its reason")
        accepted[str(gate)] = reason
    return accepted


def _kv_model(raw: object) -> KvModel:
    given = _known(raw, KvModel._fields, "kv_model")
    rate = given.get("rate_bytes_per_token")
    state, checkpoint = given.get("state_mib_per_sequence"), given.get("checkpoint_mib")
    rate_value = None if rate is None else whole_number(rate, "kv_model.rate_bytes_per_token")
    if rate_value == 0:
        raise RadianceError(
            "kv_model.rate_bytes_per_token is 0: no token is free. Give its bytes.", code="not_a_number"
        )
    return KvModel(
        rate_bytes_per_token=rate_value,
        state_mib_per_sequence=None if state is None else plain_number(state, "kv_model.state_mib_per_sequence"),
        checkpoint_mib=None if checkpoint is None else plain_number(checkpoint, "kv_model.checkpoint_mib"),
    )


def _arm(raw: object, index: int) -> Arm:
    where = f"arms[{index}]"
    given = _known(raw, Arm._fields, where)
    missing = [] if "weights_mib" in given else ["weights_mib"]
    if "prefill_tps" not in given and "decode_tps" not in given:
        missing.append("prefill_tps, nor decode_tps")
    if missing:
        raise _unreadable(f"{where} has no {missing[0]}; an arm is at least a slab and a rate seen at it.")
    prefill, decode, prompt = given.get("prefill_tps"), given.get("decode_tps"), given.get("prompt_tokens")
    return Arm(
        weights_mib=_count(given["weights_mib"], "weights_mib", where),
        prefill_tps=None if prefill is None else plain_number(prefill, f"{where}.prefill_tps"),
        decode_tps=None if decode is None else plain_number(decode, f"{where}.decode_tps"),
        prompt_tokens=None if prompt is None else whole_number(prompt, f"{where}.prompt_tokens"),
        **{
            name: None if given.get(name) is None else str(given[name])
            for name in ("kv_cache_dtype", "stack", "at", "engine_version", "image_digest")
        },
    )
