# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request as it was asked, read strictly: whole numbers in plain digits, known names, reasons where they are due.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.reading import (
    choice_of,
    count_of,
    known,
    list_of,
    plain_number,
    reason_missing,
    reason_of,
    text_of,
    unreadable,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import KNOWN_DTYPES, SHAPE_NAMES, version_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.wishes import (
    LiveSessions,
    Reserved,
    read_live_sessions,
    read_reserved,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import whole_number

HARD_GATES = (
    "dtype_known",
    "engine_takes_pair",
    "pair_within_ceiling",
    "one_request_fits",
    "host_pool_holds_the_rest",
)
SOFT_GATES = (
    "pool_meets_contract",
    "pool_holds_live_sessions",
    "rows_within_exact_wire",
    "chunk_within_interval",
    "headroom_kept",
)

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
    "reserved_for_others_mib",
    "live_sessions",
    "tp",
    "engine_version",
    "image_digest",
    "host_pool_mib",
    "kv_model",
    "arms",
    "stack",
    "ran_before",
    "on_gate",
)
_RUNNING_NAMES = ("weights_mib", "kv_mib", *SHAPE_NAMES)


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
    """pair_plan's options but the ledger, read. ``pair`` is ``fill``, ``keep`` or ``stated``.

    ``ran_before`` says where it is known from that this very pair and shape ran here, where they did.
    """

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
    reserved: tuple[Reserved, ...]
    live: LiveSessions | None
    tp: int | None
    engine_version: str | None
    image_digest: str | None
    host_pool_mib: int | None
    kv_model: KvModel
    arms: tuple[Arm, ...]
    stack: str | None
    ran_before: str | None
    on_gate: str


def read_request(raw: t.Mapping[str, t.Any]) -> Request:
    """Read a request; a key with the value None counts as not given.

    Raises RadianceError with the text quoted: ``not_a_whole_number``, ``not_a_number``, ``dtype_unknown`` (no
    text; refuse_dtype has the rest), ``request_unreadable`` (unknown names, wrong kinds), ``reason_missing``,
    ``gate_not_acceptable``.
    """
    given = known(raw, _NAMES, "the request")
    pair, weights_mib, kv_mib = _pair(given.get("pair", "fill"))
    reserve_mib = whole_number(given.get("reserve_mib", 0), "reserve_mib")
    reserve_reason = reason_of(given, "reserve_reason")
    if reserve_mib and not reserve_reason:
        raise reason_missing(f"reserve_mib is {reserve_mib}", "reserve_reason")
    backing = choice_of(given, "backing", ("full", "one_request"), "full")
    backing_reason = reason_of(given, "backing_reason")
    if backing == "one_request" and not backing_reason:
        raise reason_missing("backing is one_request", "backing_reason")
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
        reserved=read_reserved(given.get("reserved_for_others_mib", [])),
        live=read_live_sessions(given.get("live_sessions", {})),
        tp=_tp(given),
        engine_version=_version(given),
        image_digest=text_of(given, "image_digest"),
        host_pool_mib=None if host_pool is None else whole_number(host_pool, "host_pool_mib"),
        kv_model=_kv_model(given.get("kv_model", {})),
        arms=tuple(_arm(arm, index) for index, arm in enumerate(list_of(given.get("arms", []), "arms"))),
        stack=text_of(given, "stack"),
        ran_before=text_of(given, "ran_before"),
        on_gate=choice_of(given, "on_gate", ("fail", "report"), "fail"),
    )


def refuse_dtype(request: Request, runs: str) -> None:
    """Raises RadianceError ``dtype_unknown`` for a cache dtype that no known engine takes and that never ran here."""
    asked = request.shape.get("kv_cache_dtype", runs)
    if asked not in KNOWN_DTYPES and asked != runs and request.ran_before is None:
        raise _dtype_unknown(asked)


def _dtype_unknown(asked: object) -> RadianceError:
    return RadianceError(
        f"shape.kv_cache_dtype is {asked!r}; the engine takes bf16 or fp8, one dtype for the whole cache.",
        code="dtype_unknown",
    )


def _version(given: t.Mapping[str, t.Any]) -> str | None:
    version = text_of(given, "engine_version")
    if version is not None and version_of(version) is None:
        raise unreadable(f"engine_version is {version!r}; it takes a release such as 1.0.13.")
    return version


def _tp(given: t.Mapping[str, t.Any]) -> int | None:
    if given.get("tp") is None:
        return None
    ranks = whole_number(given["tp"], "tp")
    if ranks < 1:
        raise RadianceError("tp is 0; the engine runs at least one rank.", code="not_a_whole_number")
    return ranks


def _values(raw: object, names: t.Sequence[str], where: str) -> dict[str, int | str]:
    values: dict[str, int | str] = {}
    for name, value in known(raw, names, where).items():
        if name != "kv_cache_dtype":
            values[name] = count_of(value, name, where)
        elif where == "shape" and not isinstance(value, str):
            raise _dtype_unknown(value)
        else:
            values[name] = str(value)
    return values


def _pair(raw: object) -> tuple[str, int | None, int | None]:
    if isinstance(raw, str):
        if raw not in ("fill", "keep"):
            raise unreadable(f"pair is {raw!r}; it takes fill, keep, or weights_mib and kv_mib.")
        return raw, None, None
    given = known(raw, ("weights_mib", "kv_mib"), "pair")
    stated = {name: count_of(value, name, "pair") for name, value in given.items()}
    if not stated:
        raise unreadable("pair is empty; it takes fill, keep, or weights_mib and kv_mib.")
    return "stated", stated.get("weights_mib"), stated.get("kv_mib")


def _accept(raw: object) -> dict[str, str]:
    accepted = {}
    for entry in list_of(raw, "accept"):
        given = known(entry, ("gate", "reason"), "accept")
        gate, reason = given.get("gate"), reason_of(given, "reason")
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
            raise reason_missing(f"accept names {gate}", "its reason")
        accepted[str(gate)] = reason
    return accepted


def _kv_model(raw: object) -> KvModel:
    given = known(raw, KvModel._fields, "kv_model")
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
    given = known(raw, Arm._fields, where)
    missing = [] if "weights_mib" in given else ["weights_mib"]
    if "prefill_tps" not in given and "decode_tps" not in given:
        missing.append("prefill_tps, nor decode_tps")
    if missing:
        raise unreadable(f"{where} has no {missing[0]}; an arm is at least a slab and a rate seen at it.")
    prefill, decode, prompt = given.get("prefill_tps"), given.get("decode_tps"), given.get("prompt_tokens")
    return Arm(
        weights_mib=count_of(given["weights_mib"], "weights_mib", where),
        prefill_tps=None if prefill is None else plain_number(prefill, f"{where}.prefill_tps"),
        decode_tps=None if decode is None else plain_number(decode, f"{where}.decode_tps"),
        prompt_tokens=None if prompt is None else whole_number(prompt, f"{where}.prompt_tokens"),
        **{
            name: None if given.get(name) is None else str(given[name])
            for name in ("kv_cache_dtype", "stack", "at", "engine_version", "image_digest")
        },
    )
