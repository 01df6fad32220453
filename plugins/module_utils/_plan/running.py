# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs: the pair and the shape in force, from the ledger and, for what it does not tell, from ``running``.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.architecture import kv_groups, pages_agree
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import (
    DEFAULT_DTYPE,
    HOST_CHECKPOINTS_FROM,
    KNOWN_DTYPES,
    SHAPE_NAMES,
    Shape,
    at_least,
    version_of,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Ledger, digits, mib
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import Size, size_from_dict

_AT_LEAST_ONE = ("max_num_seqs", "max_model_len")
_ROW_OF = {"weights_mib": "vram_weights", "kv_mib": "vram_kv"}


class Running(t.NamedTuple):
    """The shape, and both pools with their rounding (0 where the flags or ``running`` tell them exactly).

    ``drafts`` is the most that the model drafts, where this boot's sampler shows that it is less than was asked for (a
    container without a draft head takes any depth and drafts nothing); None where the depth is what was asked.
    """

    shape: Shape
    weights: Size
    kv: Size
    drafts: int | None = None

    @property
    def sum_mib(self) -> float:
        """The pair sum, MiB a card."""
        return self.weights.mib + self.kv.mib

    def effective(self, shape: Shape) -> Shape:
        """``shape`` at the speculation depth that the model comes to, which is what its cache and its rows follow."""
        if self.drafts is None:
            return shape
        return shape._replace(num_speculative_tokens=min(self.drafts, shape.num_speculative_tokens))

    @property
    def exact(self) -> bool:
        """Whether both pools are whole numbers without a rounding."""
        return self.weights.plus_minus_mib == 0 and self.kv.plus_minus_mib == 0


def read_running(ledger: Ledger, stated: t.Mapping[str, int | str]) -> Running:
    """What runs, the ledger first.

    Raises RadianceError ``running_drift`` where ``stated`` contradicts what the boot says, and ``running_unknown``,
    naming what neither of them tells.
    """
    missing: list[str] = []
    weights = _pool(ledger, stated, "weights_mib", missing)
    kv = _pool(ledger, stated, "kv_mib", missing)
    told = _told(ledger)
    values: dict[str, t.Any] = {}
    for name in SHAPE_NAMES:
        if name == "num_speculative_tokens" and name not in told:
            _tell_depth(ledger, told, stated)
        if name in told and name in stated and told[name][0] != stated[name]:
            raise _drift(name, str(stated[name]), f"{told[name][0]} ({told[name][1]})")
        if name in told:
            values[name] = told[name][0]
        elif name in stated:
            values[name] = stated[name]
    if "kv_cache_dtype" not in values:
        dtype = _dtype_from_pages(ledger, values) or _default_dtype(ledger)
        if dtype is not None:
            values["kv_cache_dtype"] = dtype
    missing += [name for name in SHAPE_NAMES if name not in values]
    if missing or weights is None or kv is None:
        example = f"running: {{{missing[0]}: ...}}" if missing else "running"
        raise RadianceError(
            f"Neither the ledger nor the option running tells {', '.join(missing)} of what runs. State it: {example}.",
            code="running_unknown",
        )
    shape = Shape(**values)
    return Running(shape, weights, kv, _fewer_drafts(ledger, shape))


def was_stated(ledger: Ledger) -> bool:
    """Whether the boot was given a pool outright, by either of the pair's flags."""
    budget = ledger.get("budget") or {}
    return budget.get("weights") == "stated" or budget.get("kv") == "stated"


def _drift(name: str, stated: str, printed: str) -> RadianceError:
    return RadianceError(
        f"running.{name} is stated as {stated}, and this boot says {printed}. "
        "Read the ledger of the process that runs now, or correct what is declared.",
        code="running_drift",
    )


def _pool(ledger: Ledger, stated: t.Mapping[str, int | str], name: str, missing: list[str]) -> Size | None:
    """One pool: exact from the flags, else from ``stated`` where the printed interval holds it, else as printed."""
    pair = ledger.get("pair") or {}
    printed = ((ledger.get("budget") or {}).get("rows") or {}).get(_ROW_OF[name])
    asked = stated.get(name)
    if pair.get("exact") and pair.get(name) is not None:
        size = Size(float(pair[name]), 0.0, f"{int(pair[name])}.00 MiB")
    elif printed is not None:
        size = size_from_dict(printed)
    else:
        missing.append(name)
        return None
    if asked is None:
        return size
    if not size.low_mib <= float(asked) <= size.high_mib:
        raise _drift(name, mib(float(asked)), size.text if size.plus_minus_mib else mib(size.mib))
    return Size(float(asked), 0.0, f"{asked}.00 MiB")


def _told(ledger: Ledger) -> dict[str, tuple[t.Any, str]]:
    """What the boot tells of its shape, each with where: the command line first, then the printed rows."""
    flags = ledger.get("flags") or {}
    told: dict[str, tuple[t.Any, str]] = {}
    for name in SHAPE_NAMES:
        flag = name.replace("_", "-")
        text = flags.get(flag)
        if text is None or (name in _AT_LEAST_ONE and text == "0"):
            continue
        if name == "kv_cache_dtype":
            told[name] = (text, f"--{flag} {text}")
        elif digits(text) is not None:
            told[name] = (digits(text), f"--{flag} {text}")
    capacity = ledger.get("capacity") or {}
    for name, key in (("max_num_seqs", "sequences"), ("max_model_len", "tokens")):
        if name not in told and capacity.get(key):
            told[name] = (int(capacity[key]), f"its capacity line: {capacity[key]}")
    trained = (ledger.get("model") or {}).get("trained_context")
    if "max_model_len" not in told and flags.get("max-model-len") == "0" and trained:
        told["max_model_len"] = (int(trained), f"--max-model-len 0, the trained context of {trained}")
    return told


def _tell_depth(ledger: Ledger, told: dict[str, tuple[t.Any, str]], stated: t.Mapping[str, int | str]) -> None:
    """The depth from the sampler: rows = sequences x (depth + 1)."""
    rows = (ledger.get("sampler") or {}).get("rows")
    sequences = told["max_num_seqs"][0] if "max_num_seqs" in told else stated.get("max_num_seqs")
    if rows and sequences and int(rows) % int(sequences) == 0:
        told["num_speculative_tokens"] = (int(rows) // int(sequences) - 1, f"{rows} sampler rows")


def _fewer_drafts(ledger: Ledger, shape: Shape) -> int | None:
    """The depth by the sampler's rows where it is less than ``shape`` asks for, else None."""
    rows = (ledger.get("sampler") or {}).get("rows")
    if not rows or int(rows) % shape.max_num_seqs:
        return None
    depth = int(rows) // shape.max_num_seqs - 1
    return depth if depth < shape.num_speculative_tokens else None


def _default_dtype(ledger: Ledger) -> str | None:
    """The dtype of an engine whose command line names none, for the releases of which that is known (1.0.x)."""
    version = (ledger.get("engine") or {}).get("version")
    known = version_of(version) is not None and not at_least(version, HOST_CHECKPOINTS_FROM)
    return DEFAULT_DTYPE if known and ledger.get("flags") and "kv-cache-dtype" not in ledger["flags"] else None


def _dtype_from_pages(ledger: Ledger, values: t.Mapping[str, t.Any]) -> str | None:
    """The dtype whose page sizes are the printed ones, where the architecture is known and only one dtype matches."""
    if any(name not in values for name in SHAPE_NAMES if name != "kv_cache_dtype"):
        return None
    arch, tp = (ledger.get("model") or {}).get("arch"), int(ledger.get("tp") or 0)
    printed = (ledger.get("kv") or {}).get("groups") or []
    groups_of = {dtype: kv_groups(arch, tp, Shape(**{**values, "kv_cache_dtype": dtype})) for dtype in KNOWN_DTYPES}
    matches = [dtype for dtype, groups in groups_of.items() if groups and pages_agree(groups, printed)]
    return matches[0] if len(matches) == 1 else None
