# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first part of a boot: devices, model, what is declared. And what every part of it needs."""

from __future__ import annotations

import os
from typing import NoReturn

from .log import Log
from .machine import Machine
from .sizes import KIB, MIB, from_mib, humanb


class Refused(Exception):
    """The boot ended with the engine's own E line; the process exits 1."""


class Crashed(Exception):
    """The boot ended in a fatal line; the process exits 70."""


class Part:
    """One part of a boot's log."""

    def __init__(self, machine: Machine, log: Log) -> None:
        self._machine = machine
        self._world = machine.world
        self._log = log

    def _refuse(self, text: str, rank: int | None = None) -> NoReturn:
        self._log.error(text, rank)
        raise Refused(text)

    def _fault(self, name: str, text: str, tagged: bool = False) -> None:
        """Refuse with this text where the fault hits; a tagged refusal is that of the rank which the fault names."""
        hits = self._machine.hits
        if name in hits:
            self._refuse(text, min(hits.whole(name), self._machine.tp - 1) if tagged else None)


class Head(Part):
    """Devices, model, sampler, speculation and the arena's levels."""

    def devices(self) -> None:
        """The inventory; more ranks than devices are refused."""
        gpus = self._world.gpus
        if not gpus or "no_device" in self._machine.hits:
            self._log.info("device: built with HIP but no device is visible -- using the host backend")
            self._refuse("no usable device")
        used = self._world.used_devices()

        def listed(which: list[int]) -> str:
            return " ".join(f"{index}:{gpus[index]}" for index in which)

        everything = list(range(len(gpus)))
        self._log.info(f"device: AQL backend, {len(gpus)} device(s) [{listed(everything)}]")
        ignored = [index for index in everything if index not in used]
        if ignored:
            self._log.warn(
                f"device: using {len(used)} of {len(gpus)} [{listed(used)}], ignoring [{listed(ignored)}]: integrated "
                "graphics beside a discrete card, or a different architecture from the first card used, and a rank "
                "placed on one runs slowly and wrongly. ROCR_VISIBLE_DEVICES chooses the devices explicitly"
            )
        tp = self._machine.tp
        if "too_few_devices" in self._machine.hits:
            used = used[: tp - 1]
        if tp > len(used):
            self._refuse(f"--tp {tp} needs {tp} devices of one architecture; {len(used)} are usable [{listed(used)}]")

    def model(self) -> None:
        """The container and its vocabulary."""
        world, log, model = self._world, self._log, self._machine.flags.text("--model")
        if not os.path.isfile(model):
            self._refuse(f"cannot open {model}")
        self._fault(
            "no_dimensions",
            f"{model} carries no model dimensions (n_layers=0 n_embd=0 n_vocab=0)",
        )
        name = os.path.basename(model)
        name = name[:-4] if name.endswith(".rad") else name
        log.info(
            f"model: {name}  arch={world.arch}  quant={world.quant}  {world.layers} layers  {world.trained_context} ctx"
        )
        template = "" if world.chat_template else ", no chat template"
        log.info(f"vocab: {world.vocabulary} tokens, bos=248044 eos=248046{template}")
        log.info(f"gbnf: vocabulary index built in 44 ms, {humanb(6 * MIB + 312 * KIB)}")
        home = self._machine.flags.text("--kernels") or "/usr/lib/radiance/plugins"
        if "plugin_shadowed" in self._machine.hits:
            first = "/data/plugins/gfx1201.so"
            log.info(f"plugin {home}/gfx1201.so is shadowed by {first}, which comes first on the search path")
        self._fault("plugins_missing", f"the plugins under {home} did not load (above)")
        if world.rules.since(1, 2) and self._machine.tp > 1 and self._machine.flags.text("--p2p") != "off":
            log.info(f"device: the {self._machine.tp} cards reach each other's memory directly (peer to peer)")

    def declare(self) -> None:
        """Speculation, wire, sampler rows and arena levels."""
        machine, log, world = self._machine, self._log, self._world
        drafts = machine.shape.drafts
        if not world.draft_head:
            log.info("speculation: off -- this container carries no draft head")
        elif machine.flags.drafts is None:
            log.info(
                f"speculation: depth {drafts}, this drafter's own operating point (--num-speculative-tokens N "
                "overrides it)"
            )
        if machine.tp > 1 and machine.flags.text("--tp-wire") == "wht6":
            log.warn(
                f"tp wire: LOSSY (--tp-wire wht6) at {machine.flags.number('--tp-wire-min-kb')} KiB a message and "
                "above. A cross-rank all-reduce of that size carries a Walsh-Hadamard-rotated 6-bit payload instead "
                "of bf16, so this process does not compute the same function the exact wire does. Steps of at most "
                f"{machine.exact_rows} rows are exact: single-sequence decode, and a decode step until sequences x "
                "(1 + speculative depth) passes that; prefill and a busy decode step are lossy. --tp-wire-min-kb "
                "moves the floor."
            )
        self._fault(
            "weights_unservable",
            f"3 weight(s) of {machine.flags.text('--model')} are not in a form the engine serves as it stands -- "
            "convert the container again",
        )
        self._plane()
        if "declare_refused" in machine.hits:
            log.bare(f"radiance: {world.arch}: a layer's shape is none that this plug-in serves")
        self._fault("declare_refused", f"{world.arch}: rad_arch_declare returned invalid argument", tagged=True)
        self._fault(
            "no_kernel",
            f"{world.arch}: 1 device band(s) resolved to no kernel -- a request that lands in one of them cannot run:\n"
            f"    moe_down [1, 64) on {world.gpus[0]}",
            tagged=True,
        )
        # The first declare, and one more for every arena level: the sampler line repeats with each.
        levels = machine.arena_levels()
        for _declare in range(1 + len(levels)):
            for rank in machine.ranks:
                log.info(self._sampler(), rank)
        for rank in machine.ranks:
            log.info(f"declare: 2231 ops, 1187 weights, 96 buffers, {len(machine.kv.groups)} KV groups", rank)
        if drafts:
            log.info(
                f"speculation: 'mtp' drafts {drafts} token(s) a step in {drafts} serial pass(es); prompt lookup "
                "fills in for any sequence it declines"
            )
        elif not world.draft_head:
            log.info("speculation: prompt lookup only -- this container declares no draft head")
        if "arena_level_missing" in machine.hits:
            for rank in machine.ranks:
                log.warn(
                    f"activation arena: no level for 512-token steps on rank {rank} -- a buffer has no smaller size"
                )
        arena = machine.split.card.arena
        if levels:
            uses = ", ".join(f"{tokens} tokens use {humanb(size)}" for tokens, size in levels)
            region = levels[-1][1] - from_mib(world.arena_mib_per_token) * levels[-1][0]
            log.info(
                f"activation arena: {uses} of {humanb(arena)} (the fixed region is {humanb(region)}); the rest is "
                "lent to the expert slab while the steps are that small"
            )
        elif not world.arena_levels:
            log.info(
                f"activation arena: not lent -- the '{world.arch}' plugin does not declare at a smaller step size "
                "(RadArchProbe::shape_probe_ok)"
            )

    def _plane(self) -> None:
        """What the architecture itself refuses: a score plane that is too large, experts that ranks cannot split."""
        machine, world = self._machine, self._world
        block, step = world.cache.block_tokens, machine.flags.number("--max-num-batched-tokens")
        refusal = ""
        if machine.tp > world.expert_columns and not world.dense:
            refusal = (
                f"an expert is {world.expert_columns} blocks of 128, which {machine.tp} ranks cannot split; lower the "
                "rank count"
            )
        scores = step * -(-machine.shape.context // block)
        if world.cache.block_key_dim and scores > 512 * MIB:
            refusal = (
                f"the QSA score plane would be {scores * 4 // MIB} MiB -- --max-num-batched-tokens {step} by --max-ctx "
                f"{machine.shape.context} / compress ratio {block}. Lower either."
            )
        if refusal:
            self._log.bare(f"radiance: {world.arch}: {refusal}")
            self._refuse(f"{world.arch}: rad_arch_declare returned invalid argument", 0)

    def _sampler(self) -> str:
        local = self._world.vocabulary // self._machine.tp
        words = -(-self._world.vocabulary // 32)
        return (
            f"sampler: {self._world.vocabulary}-token vocabulary ({local} this rank), {self._machine.rows} rows, "
            f"{words} mask words ({humanb(words * 4)} per row)"
        )
