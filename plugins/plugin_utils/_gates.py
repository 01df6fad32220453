# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates of an env: what its pair and shape may be, by the plan that made them.

They are worked out here alone. Before a restart the rendered env is held to them in Python, and the same list is
rendered as bats for whoever edits the env afterwards. A bound is a whole number of the unit that the keys have, and
stands beside the ledger line that it came from, or beside its label: a personal reserve, or a gate that was accepted.
"""

from __future__ import annotations

import math
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _env_file
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import KNOWN_DTYPES
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _env_text, _files, _gate, _words
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._gate import Gate

_NUMBERS = tuple(key for key in _words.ENV_OF.values() if key != "KV_CACHE_DTYPE")
# The gates of a plan that an env alone can be held to.
TESTED = (
    "dtype_known",
    "pair_within_ceiling",
    "pool_meets_contract",
    "pool_holds_live_sessions",
    "rows_within_exact_wire",
)
# As the engine prints it: tp wire: LOSSY … Steps of at most 25 rows are exact: …
_EXACT_ROWS = re.compile(r"\bat most ([0-9,]+) rows are exact")
_ATOLL = (
    "The engine reads 6 of 6,144, 8 of 8k, and 0 of 0x1800, of auto and of nothing, and takes 0 for its own choice; "
    "and a shell reads 06144 as octal."
)


def gates(
    text: str,
    plan: t.Mapping[str, t.Any] | None = None,
    service: t.Mapping[str, t.Any] | None = None,
    switched: t.Mapping[str, t.Any] | None = None,
) -> list[Gate]:
    """The gates of an env with this ``text``, by the ``plan`` that made its pair (None: none that is known).

    A key that the env leaves to the engine has none. ``service`` tells what the env calls its keys. ``switched``: the
    line of the record that put the pair there, once it runs; its boot may have settled closer than the one before.
    """
    stated = {key for key, value in _stated(text, service).items() if value}
    found = [
        Gate(
            "whole_numbers",
            tuple(key for key in _NUMBERS if key in stated),
            "number",
            None,
            "the pair and the shape are whole numbers in plain digits",
            (_ATOLL,),
        ),
        _dtype(_stated(text, service).get("KV_CACHE_DTYPE"), plan),
    ]
    if plan is not None:
        found += [
            gate
            for gate in (_shape(plan, stated), _ceiling(plan, switched), *_pool(plan), _rows(plan))
            if gate is not None
        ]
    return [gate for gate in found if gate.keys and stated.issuperset(gate.keys)]


def file_gates(
    text: str,
    to: t.Mapping[str, t.Any],
    plan: t.Mapping[str, t.Any] | None = None,
    service: t.Mapping[str, t.Any] | None = None,
) -> list[str]:
    """What is wrong with a rendered env: sentences, none when all its gates hold.

    It must read strictly, hold exactly the pair and shape asked for, and keep to the gates of the plan.
    """
    out = [f"line {error.line}: {error.text}" for error in _env_file.read_env(text).errors]
    values, keys = _stated(text, service), _files.env_keys(service) if service else {}
    # An env that was adopted may leave a part of the shape to the engine; a plan that asks for it was refused before.
    unstated = (None, "") if f"BEGIN {_files.MARKER}" in text else ()
    for name, key in _words.ENV_OF.items():
        if to.get(name) is not None and values[key] != str(to[name]) and values[key] not in unstated:
            out.append(f"{keys.get(key, key)} is {values[key]!r} in the rendered env, and the plan has {to[name]!r}.")
    if _files.MARKER not in text:
        out.append("the marker of a managed file is not in the rendered env.")
    return out or [said for gate in gates(text, plan, service) for said in _gate.failure(gate, values)]


def bats_gates(
    text: str,
    plan: t.Mapping[str, t.Any] | None = None,
    service: t.Mapping[str, t.Any] | None = None,
    switched: t.Mapping[str, t.Any] | None = None,
) -> list[dict[str, t.Any]]:
    """The gates as tests: ``{name, says, label, because, code}``, ``code`` being lines of shell that fail with it."""
    keys = _files.env_keys(service) if service else {}
    return [
        {
            **gate._asdict(),
            # Comments in the file, which end with their line.
            "because": [_words.one_line(line) for line in gate.because],
            "code": _gate.code(gate, [keys.get(key, key) for key in gate.keys]),
        }
        for gate in gates(text, plan, service, switched)
    ]


def _stated(text: str, service: t.Mapping[str, t.Any] | None) -> dict[str, str | None]:
    """What an env states of pair and shape, by our keys."""
    values, keys = _env_file.read_env(text).values, _files.env_keys(service) if service else {}
    return {key: values.get(keys.get(key, key)) for key in _words.ENV_OF.values()}


# ---------------------------------------------------------------------------------------------- the gates, one by one


def _dtype(dtype: str | None, plan: t.Mapping[str, t.Any] | None) -> Gate:
    known = (*KNOWN_DTYPES, *([dtype] if dtype and dtype not in KNOWN_DTYPES else []))
    gate = _of_plan(plan or {"gates": []}, "dtype_known")
    source = gate["from"] if gate else "the engine's option: --kv-cache-dtype takes bf16 or fp8"
    says = f"the KV dtype is {' or '.join(known)}"
    return Gate("dtype_known", ("KV_CACHE_DTYPE",), "dtype", known, says, (source,))


def _shape(plan: t.Mapping[str, t.Any], stated: t.Collection[str]) -> Gate | None:
    """The bounds of the pool and of the ceiling are those of one shape: beside a larger one they would say nothing."""
    contract, to = plan.get("contract"), plan["to"]
    if not contract or contract["needed_mib"] is None or to.get("kv_mib") is None:
        return None
    keys = ("MAX_NUM_SEQS", "MAX_MODEL_LEN", "KV_CACHE_DTYPE", "NUM_SPECULATIVE_TOKENS")
    planned = {key: to.get(name) for name, key in _words.ENV_OF.items() if key in keys and key in stated}
    bounds = {key: bound for key, bound in planned.items() if bound is not None}
    says = f"the shape is at most {_words.shape(to)}, which the pool was planned for"
    because = tuple(_env_text.contract_words(plan)[:1])
    return Gate("shape_within_plan", tuple(bounds), "shape", tuple(bounds.values()), says, because)


def _ceiling(plan: t.Mapping[str, t.Any], switched: t.Mapping[str, t.Any] | None) -> Gate | None:
    ceiling, to = plan.get("ceiling"), plan["to"]
    if not ceiling or to.get("weights_mib") is None or to.get("kv_mib") is None:
        return None
    reserves = ceiling["reserve_mib"] + ceiling.get("others_mib", 0)
    limit, pair = ceiling["mib"] - reserves, to["weights_mib"] + to["kv_mib"]
    says = f"the pair is at most {math.floor(limit):,} MiB, the ceiling"
    label = ""
    if reserves:
        says += f" of {math.floor(ceiling['mib']):,} less a personal reserve of {reserves:,}"
        label = "personal reserve"
    because = [*_env_text.ceiling_words(plan), *(f"Ledger: {line}" for line in ceiling["lines"][:1])]
    kept = all(plan["from"].get(name) == to[name] for name in ("weights_mib", "kv_mib"))
    if kept and limit < pair <= limit + ceiling["plus_minus_mib"]:
        # It was planned from another print of the same memory.
        says, limit = f"the pair is at most {pair:,} MiB: what ran is the ceiling, to its rounding", pair
    proved, line = _proved(switched, pair)
    # A pair that settled above its floor runs, whatever is reserved beside it.
    proved = max(proved - reserves, pair)
    if proved < math.floor(limit):
        less = f" less a personal reserve of {reserves:,}" if reserves else ""
        says = f"the pair is at most {math.floor(proved):,} MiB, the ceiling of the boot that proved it{less}"
        because, limit = [*because, f"Proved: {line}"], proved
    keys = ("VRAM_WEIGHTS_MIB", "VRAM_KV_MIB")
    return _held(plan, Gate("pair_within_ceiling", keys, "pair", math.floor(limit), says, tuple(because), label), pair)


def _proved(switched: t.Mapping[str, t.Any] | None, pair: float) -> tuple[float, str]:
    """The ceiling in MiB, without reserves, of the boot of this pair, and the settled line that it comes from."""
    settled = ((switched or {}).get("ledger") or {}).get("settled") or []
    by_card = [(pair + card["free"]["mib"] - card["floor"]["mib"], str(card["line"])) for card in settled]
    return min(by_card, default=(math.inf, ""))


def _pool(plan: t.Mapping[str, t.Any]) -> list[Gate | None]:
    contract, pool = plan.get("contract"), plan["to"].get("kv_mib")
    if not contract or pool is None or contract["needed_mib"] is None:
        return []
    because = tuple(_env_text.contract_words(plan))
    needed = math.ceil(contract["needed_mib"])
    one = contract.get("backing") == "one_request"
    says = f"the pool has at least {needed:,} MiB, " + (
        "one request, less than the contract" if one else "the contract"
    )
    gate = Gate("pool_meets_contract", ("VRAM_KV_MIB",), "pool", needed, says, because, "accepted" if one else "")
    live = contract.get("live_sessions")
    if not live:
        return [_held(plan, gate, pool)]
    needed = math.ceil(live["needed_mib"])
    says = f"the pool has at least {needed:,} MiB, which {live['sessions']:,} live sessions need"
    also = gate._replace(name="pool_holds_live_sessions", bound=needed, says=says, label="")
    return [_held(plan, gate, pool), _held(plan, also, pool)]


def _rows(plan: t.Mapping[str, t.Any]) -> Gate | None:
    found, to = _of_plan(plan, "rows_within_exact_wire"), plan["to"]
    exact = _EXACT_ROWS.search(found["from"]) if found else None
    if found is None or exact is None or to.get("max_num_seqs") is None:
        return None
    # A depth without a draft head counts nowhere: what the plan predicts tells which rows there are.
    rows = next((item["low"] for item in plan["predictions"] if item["quantity"] == "sampler_rows"), None)
    depth = to.get("num_speculative_tokens") or 0
    with_depth = to["max_num_seqs"] * (depth + 1) == rows
    if rows is None or not (with_depth or to["max_num_seqs"] == rows):
        return None
    bound = int(exact[1].replace(",", ""))
    keys = ("MAX_NUM_SEQS", "NUM_SPECULATIVE_TOKENS") if with_depth else ("MAX_NUM_SEQS",)
    says = f"a full decode step has at most {bound:,} rows, which are exact on this wire"
    measure = "rows" if with_depth else "sequences"
    return _held(plan, Gate(found["name"], keys, measure, bound, says, (f"Ledger: {found['from']}",)), rows)


def _held(plan: t.Mapping[str, t.Any], gate: Gate, value: float) -> Gate:
    """The gate, or where the plan itself goes past it with open eyes, one that takes no more than that."""
    upper = _gate.MEASURES[gate.measure].upper
    found = _of_plan(plan, gate.name)
    if (value <= gate.bound if upper else value >= gate.bound) or (found is not None and found["holds"]):
        return gate
    bound = math.ceil(value) if upper else math.floor(value)
    why = (found or {}).get("accepted") or "what ran before it was no better"
    unit = _gate.MEASURES[gate.measure].unit
    says = f"{gate.says}, or the {bound:,} {unit} that were accepted"
    return gate._replace(bound=bound, says=says, because=(*gate.because, f"Accepted: {why}"), label="accepted")


def _of_plan(plan: t.Mapping[str, t.Any], name: str) -> t.Mapping[str, t.Any] | None:
    """A gate of the plan by its name."""
    return next((gate for gate in plan["gates"] if gate["name"] == name), None)
