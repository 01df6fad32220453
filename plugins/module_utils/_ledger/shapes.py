# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger's shape (schemas/ledger.schema.json says the same).

Every key is always there. What a boot did not print is null, and a list of which nothing was printed is empty.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import SizeDict

SCHEMA = "kvfleet.radiance/ledger/1"


class Reason(t.TypedDict):
    """Why a ledger is not complete: a stable word, and a sentence with numbers and a way out."""

    code: str
    text: str


class Source(t.TypedDict):
    """Where the text came from. ``boot`` is the index of the boot judged, from 0."""

    kind: str | None
    name: str | None
    log_driver: str | None
    container_id: str | None
    image: str | None
    image_digest: str | None
    started_at: str | None
    boots_seen: int
    boot: int | None


class Engine(t.TypedDict):
    version: str | None
    version_from: str | None


class Devices(t.TypedDict):
    used: list[int]
    ignored: list[int]


class Model(t.TypedDict):
    name: str | None
    arch: str | None
    quant: str | None
    layers: int | None
    trained_context: int | None


class Budget(t.TypedDict):
    """``weights`` and ``kv`` say ``stated``, ``derived``, or null; ``rows`` has a size or null under each name."""

    weights: str | None
    kv: str | None
    rows: dict[str, SizeDict | None]


class Pair(t.TypedDict):
    weights_mib: float | None
    kv_mib: float | None
    exact: bool


class Capacity(t.TypedDict):
    """``tokens`` is per sequence."""

    sequences: int | None
    tokens: int | None
    full: bool | None
    backing_percent: float | None
    full_length_sessions: float | None


class Settled(t.TypedDict):
    card: int
    free: SizeDict
    floor: SizeDict
    headroom: SizeDict | None
    static_region: SizeDict | None
    line: str


class Slab(t.TypedDict):
    rank: int
    slots: int
    shadow_slots: int
    pool_slots: int
    static: SizeDict


class HostPool(t.TypedDict):
    rank: int
    budget: SizeDict
    used: SizeDict
    free: SizeDict


# "from" is a word of Python, so this one cannot be a class.
Lent = t.TypedDict("Lent", {"from": str, "slots": int, "size": SizeDict})


class KvGroup(t.TypedDict):
    name: str
    kind: str
    layers: int
    block_tokens: int | None
    page: SizeDict | None
    blocks: int | None
    tokens: int | None
    state: SizeDict | None
    slots: int | None
    size: SizeDict


class Checkpoints(t.TypedDict):
    """``backed``: how many have memory, where the boot says that it withdrew some."""

    slots: int | None
    each: SizeDict | None
    size: SizeDict | None
    backed: int | None


class Kv(t.TypedDict):
    groups: list[KvGroup]
    checkpoints: Checkpoints


class Sampler(t.TypedDict):
    rows: int | None


class Wire(t.TypedDict):
    mode: str | None
    exact_rows: int | None


class Chunk(t.TypedDict):
    prefill_tokens: int | None
    bound_by: str | None


class Warning_(t.TypedDict):
    level: str
    rank: int | None
    text: str


class Check(t.TypedDict):
    name: str
    holds: bool
    difference_mib: float
    tolerance_mib: float


class Ledger(t.TypedDict):
    schema: str
    status: str
    reason: Reason | None
    source: Source
    engine: Engine
    ready: bool
    essential: bool
    missing: list[str]
    flags: dict[str, str]
    tp: int | None
    devices: Devices
    model: Model
    budget: Budget
    pair: Pair
    capacity: Capacity
    settled: list[Settled]
    slab: list[Slab]
    host_pool: list[HostPool]
    lent: list[Lent]
    kv: Kv
    sampler: Sampler
    wire: Wire
    chunk: Chunk
    warnings: list[Warning_]
    checks: list[Check]
    fingerprint: str
