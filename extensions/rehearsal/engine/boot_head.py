# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first part of a boot: devices, model, what is declared. And what every part of it needs."""

from __future__ import annotations

import os
from typing import NoReturn

from .kv_arithmetic import BLOCK_TOKENS
from .log import Log
from .machine import Machine
from .sizes import KIB, MIB, from_mib, humanb


class Refused(Exception):
    """The boot ended with the engine's own E line; the process exits 1."""


class Part:
    """One part of a boot's log."""

    def __init__(self, machine: Machine, log: Log) -> None:
        self._machine = machine
        self._world = machine.world
        self._log = log

    def _refuse(self, text: str, rank: int | None = None) -> NoReturn:
        self._log.error(text, rank)
        raise Refused(text)


class Head(Part):
    """Devices, model, sampler, speculation and the arena's levels."""

    def devices(self) -> None:
        """The inventory; more ranks than devices are refused."""
        gpus, used = self._world.gpus, self._world.used_devices()

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
        if tp > len(used):
            self._refuse(f"--tp {tp} needs {tp} devices of one architecture; {len(used)} are usable [{listed(used)}]")

    def model(self) -> None:
        """The container and its vocabulary."""
        world, log, model = self._world, self._log, self._machine.flags.text("--model")
        if not os.path.isfile(model):
            self._refuse(f"cannot open {model}")
        name = os.path.basename(model)
        name = name[:-4] if name.endswith(".rad") else name
        log.info(
            f"model: {name}  arch={world.arch}  quant={world.quant}  {world.layers} layers  {world.trained_context} ctx"
        )
        log.info(f"vocab: {world.vocabulary} tokens, bos=248044 eos=248046")
        log.info(f"gbnf: vocabulary index built in 44 ms, {humanb(6 * MIB + 312 * KIB)}")

    def declare(self) -> None:
        """Speculation, wire, sampler rows and arena levels."""
        machine, log, world = self._machine, self._log, self._world
        drafts = machine.shape.drafts
        if machine.flags.drafts is None:
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
        scores = machine.flags.number("--max-num-batched-tokens") * -(-machine.shape.context // BLOCK_TOKENS)
        if scores > 512 * MIB:
            log.bare(
                f"radiance: {world.arch}: the QSA score plane would be {scores * 4 // MIB} MiB -- "
                f"--max-num-batched-tokens {machine.flags.number('--max-num-batched-tokens')} by --max-ctx "
                f"{machine.shape.context} / compress ratio {BLOCK_TOKENS}. Lower either."
            )
            self._refuse(f"{world.arch}: rad_arch_declare returned invalid argument", 0)
        # The first declare, and one more for every arena level: the sampler line repeats with each.
        levels = machine.arena_levels()
        for _declare in range(1 + len(levels)):
            for rank in range(machine.tp):
                log.info(self._sampler(), rank)
        for rank in range(machine.tp):
            log.info("declare: 2231 ops, 1187 weights, 96 buffers, 5 KV groups", rank)
        if drafts:
            log.info(
                f"speculation: 'mtp' drafts {drafts} token(s) a step in {drafts} serial pass(es); prompt lookup "
                "fills in for any sequence it declines"
            )
        arena = machine.split.card.arena
        if levels:
            uses = ", ".join(f"{tokens} tokens use {humanb(size)}" for tokens, size in levels)
            region = levels[-1][1] - from_mib(world.arena_mib_per_token) * levels[-1][0]
            log.info(
                f"activation arena: {uses} of {humanb(arena)} (the fixed region is {humanb(region)}); the rest is "
                "lent to the expert slab while the steps are that small"
            )

    def _sampler(self) -> str:
        local = self._world.vocabulary // self._machine.tp
        words = -(-self._world.vocabulary // 32)
        return (
            f"sampler: {self._world.vocabulary}-token vocabulary ({local} this rank), {self._machine.rows} rows, "
            f"{words} mask words ({humanb(words * 4)} per row)"
        )
