# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract: what the pool must hold so that every sequence can reach the full context at once.

``needed = sequences x ceil(context / block) x bytes a block + sequences x state + checkpoints``, a rank and card, as
the engine counts it. A pool that holds ``filled`` (one checkpoint stride of alignment and 4 KiB a paged group more)
lets the boot say that it backs all sequences at once.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.architecture import (
    DEFAULT_CHECKPOINT_SLOTS,
    ArchitectureGroup,
    checkpoint_stride_bytes,
    kv_groups,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import KvModel
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import HOST_CHECKPOINTS_FROM, Shape, at_least
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Json, Ledger, rounded
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import size_from_dict

MIB = 1024 * 1024
_ALIGN = 4096


class PagedGroup(t.NamedTuple):
    """A group that grows with the context: ``page_bytes`` for each block of ``block_tokens``."""

    block_tokens: int
    page_bytes: float


class StateGroup(t.NamedTuple):
    """A group of fixed size: ``state_bytes`` for each of ``copies`` (a sequence)."""

    state_bytes: float
    copies: float


class Figures(t.NamedTuple):
    """The KV figures of one rank, where they are from, and the lines that say so."""

    paged: tuple[PagedGroup, ...]
    states: tuple[StateGroup, ...]
    checkpoint_slots: int
    checkpoint_bytes: float
    stride_bytes: float
    figures_from: str
    lines: tuple[str, ...]

    @property
    def rate_bytes_per_token(self) -> float:
        """Bytes a token and rank."""
        return sum(group.page_bytes / group.block_tokens for group in self.paged)

    @property
    def state_bytes_per_sequence(self) -> float:
        """Bytes a sequence and rank, whatever its length."""
        return sum(group.state_bytes * group.copies for group in self.states)

    def tokens_mib(self, sequences: int, context: int) -> float:
        """``sequences`` contexts of ``context`` tokens, in whole blocks."""
        a_sequence = sum(math.ceil(context / group.block_tokens) * group.page_bytes for group in self.paged)
        return sequences * a_sequence / MIB

    def state_mib(self, sequences: int) -> float:
        """The state of ``sequences``, each group aligned to 4 KiB."""
        return sum(_aligned(group.state_bytes * group.copies * sequences) for group in self.states) / MIB

    @property
    def checkpoint_mib(self) -> float:
        """All checkpoint slots."""
        return self.checkpoint_bytes / MIB

    @property
    def alignment_mib(self) -> float:
        """What the engine's layout adds to the contract: one stride, and 4 KiB a paged group."""
        return (self.stride_bytes + _ALIGN * len(self.paged)) / MIB

    def needed_mib(self, shape: Shape, backing: str = "full") -> float:
        """The contract of a shape; with ``one_request``, tokens for a single full context."""
        sequences = shape.max_num_seqs if backing == "full" else 1
        return (
            self.tokens_mib(sequences, shape.max_model_len) + self.state_mib(shape.max_num_seqs) + self.checkpoint_mib
        )

    def filled_mib(self, shape: Shape, backing: str = "full") -> float:
        """The pool at which the engine's own count says that all of the contract is backed."""
        return self.needed_mib(shape, backing) + self.alignment_mib

    def backed_sequences(self, pool_mib: float, shape: Shape) -> float:
        """How many full contexts the pool backs at once, as the engine's backing figure counts them."""
        fixed = self.filled_mib(shape) - self.tokens_mib(shape.max_num_seqs, shape.max_model_len)
        return max(0.0, (pool_mib - fixed) / self.tokens_mib(1, shape.max_model_len))

    def as_dict(self, shape: Shape, pool_mib: float | None, backing: str) -> Json:
        """The plan's ``contract``, MiB a rank."""
        needed = self.needed_mib(shape, backing)
        sequences = shape.max_num_seqs if backing == "full" else 1
        return {
            "needed_mib": rounded(needed),
            "pool_mib": None if pool_mib is None else rounded(pool_mib),
            "spare_mib": None if pool_mib is None else rounded(pool_mib - needed),
            "tokens_mib": rounded(self.tokens_mib(sequences, shape.max_model_len)),
            "state_mib": rounded(self.state_mib(shape.max_num_seqs)),
            "checkpoint_mib": rounded(self.checkpoint_mib),
            "rate_bytes_per_token": rounded(self.rate_bytes_per_token),
            "state_mib_per_sequence": rounded(self.state_bytes_per_sequence / MIB),
            "figures_from": self.figures_from,
        }


def largest_context(figures: Figures, pool_mib: float, shape: Shape) -> int:
    """The longest context that the pool backs for all of the shape's sequences at once; 0 where none."""
    return _largest(lambda context: figures.needed_mib(shape._replace(max_model_len=context)) <= pool_mib)


def most_sequences(figures: Figures, pool_mib: float, shape: Shape) -> int:
    """The most sequences that the pool backs at the shape's full context at once; 0 where none."""
    return _largest(lambda sequences: figures.needed_mib(shape._replace(max_num_seqs=sequences)) <= pool_mib)


def kv_figures(
    ledger: Ledger, running: Shape, wanted: Shape, kv_model: KvModel, deployed: str | None
) -> tuple[Figures, list[str]]:
    """The figures for ``wanted``, and warnings.

    From the boot's own KV plan while dtype and depth stay as it runs; from the architecture's dimensions when they
    change; each figure of ``kv_model`` replaces the derived one. ``deployed`` is the engine version that will be
    deployed where it is not what runs. Raises RadianceError ``kv_figures_unknown``.
    """
    same = wanted.same_cache(running)
    printed = _printed_groups(ledger)
    arch, tp = (ledger.get("model") or {}).get("arch"), int(ledger.get("tp") or 1)
    dimensions = kv_groups(arch, tp, running)
    trusted = dimensions is not None and _agrees(printed, dimensions)
    warnings: list[str] = []
    base: Figures | None = None
    if same and printed:
        base = _from_ledger(printed, running, dimensions if trusted else None)
    elif trusted:
        groups = kv_groups(arch, tp, wanted)
        base = None if groups is None else _from_architecture(groups, f"the dimensions of {arch} at tp {tp}")
        if base is not None and printed and wanted.num_speculative_tokens == running.num_speculative_tokens:
            # States and checkpoints do not depend on the dtype: the boot's own are the better evidence.
            base = base._replace(states=_from_ledger(printed, running, dimensions).states, stride_bytes=0.0)
    if base is not None:
        base = _with_checkpoints(base, ledger, deployed, kv_model.checkpoint_mib is not None, warnings)
    return _with_model(base, kv_model, ledger, wanted), warnings


def _aligned(size: float) -> float:
    return math.ceil(size / _ALIGN - 1e-6) * _ALIGN


def _largest(fits: t.Callable[[int], bool]) -> int:
    if not fits(1):
        return 0
    high = 2
    while fits(high) and high < 2**40:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _printed_groups(ledger: Ledger) -> list[t.Mapping[str, t.Any]]:
    groups = (ledger.get("kv") or {}).get("groups") or []
    return [group for group in groups if group.get("layers")]


def _agrees(printed: t.Sequence[t.Mapping[str, t.Any]], dimensions: t.Sequence[ArchitectureGroup]) -> bool:
    """Whether the known dimensions give what this boot printed: every page, and the state of all groups together.

    A page is a rate and must be met. States are compared in sum and to 1 %, so that a small group of another layer
    count does not void the dimensions.
    """
    pages = {group.name: group.page_bytes / MIB for group in dimensions if group.page_bytes}
    paged = {group["name"]: size_from_dict(group["page"]) for group in printed if group.get("page") is not None}
    states = [size_from_dict(group["state"]).mib for group in printed if group.get("state") is not None]
    known_state = sum(group.state_bytes for group in dimensions) / MIB
    if paged and set(paged) != set(pages):
        return False
    if any(not size.low_mib - 1e-9 <= pages[name] <= size.high_mib + 1e-9 for name, size in paged.items()):
        return False
    return not states or abs(sum(states) - known_state) <= 0.01 * known_state


def _from_ledger(
    printed: t.Sequence[t.Mapping[str, t.Any]], running: Shape, exact: t.Sequence[ArchitectureGroup] | None
) -> Figures:
    """The printed groups; where the architecture's whole bytes print as the same text, they replace it."""
    bytes_of = {group.name: group.page_bytes or group.state_bytes for group in exact or ()}
    paged, states, lines = [], [], []
    for group in printed:
        size = size_from_dict(group["page"] if group.get("page") is not None else group["state"])
        value = float(bytes_of.get(group["name"], 0))
        if not size.low_mib - 1e-9 <= value / MIB <= size.high_mib + 1e-9:
            value = float(round(size.mib * MIB))
        if group.get("page") is not None:
            paged.append(PagedGroup(int(group["block_tokens"]), value))
            lines.append(
                f"{group['name']} {group['kind']} {group['layers']} layers block {group['block_tokens']} tok "
                f"page {size.text}"
            )
        else:
            states.append(StateGroup(value, int(group["slots"]) / running.max_num_seqs))
            lines.append(
                f"{group['name']} {group['kind']} {group['layers']} layers state {size.text} {group['slots']} slots"
            )
    return Figures(tuple(paged), tuple(states), 0, 0.0, 0.0, "ledger", tuple(lines))


def _from_architecture(groups: t.Sequence[ArchitectureGroup], line: str) -> Figures:
    return Figures(
        tuple(PagedGroup(group.block_tokens, float(group.page_bytes)) for group in groups if group.page_bytes),
        tuple(StateGroup(float(group.state_bytes), group.copies) for group in groups if group.state_bytes),
        DEFAULT_CHECKPOINT_SLOTS,
        0.0,
        float(checkpoint_stride_bytes(groups)),
        "architecture",
        (line,),
    )


def _with_checkpoints(
    base: Figures, ledger: Ledger, deployed: str | None, stated: bool, warnings: list[str]
) -> Figures:
    """Checkpoint slots and stride: printed ones first; none where a release from 1.1 keeps them in host memory."""
    printed = (ledger.get("kv") or {}).get("checkpoints")
    version = deployed or (ledger.get("engine") or {}).get("version")
    if at_least(version, HOST_CHECKPOINTS_FROM) and (deployed is not None or printed is None):
        if not stated:
            warnings.append(
                f"Engine {version} keeps checkpoints in pinned host memory and the boot does not say otherwise: "
                "the contract counts 0 MiB for them."
            )
        return base._replace(checkpoint_slots=0, checkpoint_bytes=0.0, stride_bytes=0.0)
    if printed is not None:
        slots, each = int(printed["slots"]), size_from_dict(printed["each"])
        stride = base.stride_bytes or float(round(each.mib * MIB))
        line = f"checkpoints linear {slots} slots x {each.text}"
        return base._replace(
            checkpoint_slots=slots,
            checkpoint_bytes=slots * stride,
            stride_bytes=stride if slots else 0.0,
            lines=(*base.lines, line),
        )
    if not base.states:
        return base._replace(checkpoint_slots=0, checkpoint_bytes=0.0, stride_bytes=0.0)
    snapshot = sum(group.state_bytes for group in base.states)
    stride = float(math.ceil(snapshot / (2 * MIB)) * 2 * MIB)
    if not stated:
        warnings.append(
            f"The boot does not print its checkpoint slots: the contract counts the engine's default of "
            f"{DEFAULT_CHECKPOINT_SLOTS} of {stride / MIB:.2f} MiB."
        )
    return base._replace(
        checkpoint_slots=DEFAULT_CHECKPOINT_SLOTS,
        checkpoint_bytes=DEFAULT_CHECKPOINT_SLOTS * stride,
        stride_bytes=stride,
    )


def _with_model(base: Figures | None, model: KvModel, ledger: Ledger, wanted: Shape) -> Figures:
    if base is None and None in model:
        arch = (ledger.get("model") or {}).get("arch")
        raise RadianceError(
            f"The KV figures of {wanted.kv_cache_dtype} at speculation depth {wanted.num_speculative_tokens} "
            "are not known "
            f"for the architecture {arch or '(not printed)'}: this boot's own KV plan is for the shape that "
            "runs. State them under "
            "kv_model: rate_bytes_per_token, state_mib_per_sequence and checkpoint_mib.",
            code="kv_figures_unknown",
        )
    figures = base or Figures((), (), 0, 0.0, 0.0, "kv_model", ())
    stated = []
    if model.rate_bytes_per_token is not None:
        block = figures.paged[0].block_tokens if figures.paged else 1
        figures = figures._replace(paged=(PagedGroup(block, float(model.rate_bytes_per_token * block)),))
        stated.append(f"rate_bytes_per_token {model.rate_bytes_per_token}")
    if model.state_mib_per_sequence is not None:
        figures = figures._replace(states=(StateGroup(model.state_mib_per_sequence * MIB, 1),))
        stated.append(f"state_mib_per_sequence {model.state_mib_per_sequence:g}")
    if model.checkpoint_mib is not None:
        # The stride that aligns the pool is the boot's where it is known, else an even share of what is stated.
        stride = figures.stride_bytes or model.checkpoint_mib * MIB / DEFAULT_CHECKPOINT_SLOTS
        figures = figures._replace(
            checkpoint_bytes=model.checkpoint_mib * MIB, stride_bytes=stride if model.checkpoint_mib else 0.0
        )
        stated.append(f"checkpoint_mib {model.checkpoint_mib:g}")
    if stated:
        figures = figures._replace(figures_from="kv_model", lines=("stated in kv_model: " + ", ".join(stated),))
    return figures
