# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the contract's figures come from: the boot's own KV plan, an architecture's dimensions, or ``kv_model``.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import printed_kv
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.architecture import (
    DEFAULT_CHECKPOINT_SLOTS,
    MIB,
    ArchitectureGroup,
    checkpoint_stride_bytes,
    kv_groups,
    pages_agree,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.contract import Figures, PagedGroup, StateGroup
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import KvModel
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import HOST_CHECKPOINTS_FROM, Shape, at_least
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Ledger, digits
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import Size, size_from_dict


def kv_figures(
    ledger: Ledger, running: Shape, wanted: Shape, kv_model: KvModel, deployed: str | None, pool: Size
) -> tuple[Figures, list[str]]:
    """The figures for ``wanted``, and warnings.

    From the boot's own KV plan while dtype and depth stay as it runs; from the architecture's dimensions when they
    change; each figure of ``kv_model`` replaces the derived one. ``pool`` is the KV pool that runs. ``deployed`` is the
    engine version that will be deployed where it is not what runs. Raises RadianceError ``kv_figures_unknown``.
    """
    same = wanted.same_cache(running)
    printed = _printed_groups(ledger)
    arch, tp = (ledger.get("model") or {}).get("arch"), int(ledger.get("tp") or 1)
    dimensions = kv_groups(arch, tp, running)
    trusted = dimensions is not None and _agrees(printed, dimensions)
    warnings: list[str] = []
    base: Figures | None = None
    if same and printed:
        base = _from_ledger(ledger, running, pool, dimensions if trusted else None)
    elif trusted:
        groups = kv_groups(arch, tp, wanted)
        base = None if groups is None else _from_architecture(groups, f"the dimensions of {arch} at tp {tp}")
        if base is not None and printed and wanted.num_speculative_tokens == running.num_speculative_tokens:
            # States and checkpoints do not depend on the dtype: the boot's own are the better evidence.
            base = base._replace(states=_from_ledger(ledger, running, pool, dimensions).states, stride_bytes=0.0)
    if base is not None:
        base = _with_checkpoints(base, ledger, deployed, kv_model.checkpoint_mib is not None, warnings, pool)
    return _with_model(base, kv_model, ledger, wanted), warnings


def figures_at(
    tp: int, ledger: Ledger, running: Shape, wanted: Shape, kv_model: KvModel, deployed: str | None
) -> Figures | None:
    """The figures for ``wanted`` at another tp than the ledger's; None where neither dimensions nor kv_model tell them.

    The dimensions count where they give what this boot printed at its own tp. ``kv_model`` is taken to be stated for
    the tp that is asked for.
    """
    arch = (ledger.get("model") or {}).get("arch")
    runs = kv_groups(arch, int(ledger.get("tp") or 1), running)
    groups = kv_groups(arch, tp, wanted)
    base: Figures | None = None
    if runs is not None and groups is not None and _agrees(_printed_groups(ledger), runs):
        base = _from_architecture(groups, f"the dimensions of {arch} at tp {tp}")
        printed = (ledger.get("kv") or {}).get("checkpoints") or {}
        version = deployed or (ledger.get("engine") or {}).get("version")
        slots = 0 if at_least(version, HOST_CHECKPOINTS_FROM) else int(printed.get("slots") or DEFAULT_CHECKPOINT_SLOTS)
        stride = base.stride_bytes if slots else 0.0
        base = base._replace(checkpoint_slots=slots, checkpoint_bytes=slots * stride, stride_bytes=stride)
    if base is None and None in kv_model:
        return None
    return _with_model(base, kv_model, ledger, wanted)


def _printed_groups(ledger: Ledger) -> list[t.Mapping[str, t.Any]]:
    groups = (ledger.get("kv") or {}).get("groups") or []
    return [group for group in groups if group.get("layers")]


def _agrees(printed: t.Sequence[t.Mapping[str, t.Any]], dimensions: t.Sequence[ArchitectureGroup]) -> bool:
    """Whether the known dimensions give what this boot printed: every page, and the state of all groups together.

    States are compared in sum and to 1 %, so that a small group of another layer count does not void the dimensions.
    """
    if any(group.get("page") is not None for group in printed) and not pages_agree(dimensions, printed):
        return False
    states = [size_from_dict(group["state"]).mib for group in printed if group.get("state") is not None]
    known_state = sum(group.state_bytes for group in dimensions) / MIB
    return not states or abs(sum(states) - known_state) <= 0.01 * known_state


def _from_ledger(ledger: Ledger, running: Shape, pool: Size, exact: t.Sequence[ArchitectureGroup] | None) -> Figures:
    """The printed groups; where the architecture's whole bytes print as the same text, they replace it."""
    printed = _printed_groups(ledger)
    known = {group.name: group.page_bytes or group.state_bytes for group in exact or ()}
    paged = [group for group in printed if group.get("page") is not None]
    stateful = [group for group in printed if group.get("page") is None]
    pages: list[int] = []
    if paged:
        in_pool = printed_kv.checkpoints_in_pool(ledger, printed, pool)
        pages = printed_kv.pages(paged, printed_kv.fixed_costs(ledger, stateful, len(paged), in_pool), pool)
    states = [printed_kv.state(group) for group in stateful]
    for groups, sizes, key in ((paged, pages, "page"), (stateful, states, "state")):
        for index, group in enumerate(groups):
            told = known.get(str(group["name"]), 0)
            if told and size_from_dict(group[key]).prints(told / MIB):
                sizes[index] = told
    lines = []
    for group in printed:
        name, size = str(group["name"]), size_from_dict(group.get("page") or group["state"])
        if group.get("page") is not None:
            said = f"block {group['block_tokens']} tok page {size.text}"
        else:
            said = f"state {size.text} {group['slots']} slots"
        lines.append(f"{name} {group['kind']} {group['layers']} layers {said}")
    return Figures(
        tuple(PagedGroup(int(group["block_tokens"]), float(page)) for group, page in zip(paged, pages)),
        tuple(
            StateGroup(float(state), int(group["slots"]) / running.max_num_seqs)
            for group, state in zip(stateful, states)
        ),
        0,
        0.0,
        0.0,
        "ledger",
        tuple(lines),
    )


def _from_architecture(groups: t.Sequence[ArchitectureGroup], line: str) -> Figures:
    return Figures(
        tuple(PagedGroup(group.block_tokens, float(group.page_bytes)) for group in groups if group.page_bytes),
        tuple(StateGroup(float(group.state_bytes), group.copies) for group in groups if group.state_bytes),
        DEFAULT_CHECKPOINT_SLOTS,
        0.0,
        checkpoint_stride_bytes(sum(group.state_bytes for group in groups)),
        "architecture",
        (line,),
    )


def _with_checkpoints(
    base: Figures, ledger: Ledger, deployed: str | None, stated: bool, warnings: list[str], pool: Size
) -> Figures:
    """Checkpoint slots and stride: printed ones first; none where a release from 1.1 keeps them in host memory.

    The engine prints no row where ``--checkpoint-slots`` is 0, so what is not printed is asked of the command line.
    """
    printed = (ledger.get("kv") or {}).get("checkpoints") or {}
    silent = printed.get("slots") is None or printed.get("each") is None
    version = deployed or (ledger.get("engine") or {}).get("version")
    none = base._replace(checkpoint_slots=0, checkpoint_bytes=0.0, stride_bytes=0.0)
    if at_least(version, HOST_CHECKPOINTS_FROM) and (deployed is not None or silent):
        if not stated:
            warnings.append(
                f"Engine {version} keeps checkpoints in pinned host memory and the boot does not say otherwise: "
                "the contract counts 0 MiB for them."
            )
        return none
    if (
        not silent
        and deployed is None
        and printed_kv.checkpoints_in_pool(ledger, _printed_groups(ledger), pool) is False
    ):
        if not stated:
            warnings.append(
                "The blocks of this boot leave no room in the pool for the checkpoints that it prints: they are in "
                "host memory, and the contract counts 0 MiB for them."
            )
        return none
    if not silent:
        slots, each = int(printed["slots"]), size_from_dict(printed["each"])
        stride = base.stride_bytes or float(printed_kv.stride(each))
        lines = (*base.lines, f"checkpoints linear {slots} slots x {each.text}")
        return base._replace(
            checkpoint_slots=slots, checkpoint_bytes=slots * stride, stride_bytes=stride if slots else 0.0, lines=lines
        )
    stated_slots = digits((ledger.get("flags") or {}).get("checkpoint-slots"))
    slots = DEFAULT_CHECKPOINT_SLOTS if stated_slots is None else stated_slots
    if not base.states or not slots:
        return none
    stride = checkpoint_stride_bytes(sum(group.state_bytes for group in base.states))
    if not stated:
        whence = f"--checkpoint-slots {slots}" if stated_slots is not None else f"the engine's default of {slots}"
        warnings.append(
            f"The boot does not print its checkpoint slots: the contract counts {whence} of {stride / MIB:.2f} MiB."
        )
    return base._replace(checkpoint_slots=slots, checkpoint_bytes=slots * stride, stride_bytes=stride)


def _with_model(base: Figures | None, model: KvModel, ledger: Ledger, wanted: Shape) -> Figures:
    if base is None and None in model:
        arch = (ledger.get("model") or {}).get("arch")
        raise RadianceError(
            f"The KV figures of {wanted.kv_cache_dtype} at speculation depth {wanted.num_speculative_tokens} are not "
            f"known for the architecture {arch or '(not printed)'}: this boot's own KV plan is for the shape that "
            f"runs. One boot with --kv-cache-dtype {wanted.kv_cache_dtype} and --num-speculative-tokens "
            f"{wanted.num_speculative_tokens} would tell: its KV plan prints the page, state and checkpoint sizes, and "
            "the next plan reads them. Or state them under kv_model: rate_bytes_per_token, state_mib_per_sequence and "
            "checkpoint_mib.",
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
