# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts that a boot prints, or states, in more than one place and that must agree."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import shapes, tables
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import Message

_COUNT = re.compile(r"^[1-9][0-9]{0,11}$")
# The table's backing and the KV plan's tokens count alignment in two ways.
_TOKENS_APART = 0.05


def quarrels(ledger: shapes.Ledger, log: t.Sequence[Message]) -> list[str]:
    """A clause for each disagreement, with both figures."""
    return [*_with_flags(ledger), *_of_cards(ledger), *_of_capacity(ledger, log)]


def _with_flags(ledger: shapes.Ledger) -> t.Iterator[str]:
    """The command line of another process contradicts the boot."""
    flags, capacity = ledger["flags"], ledger["capacity"]
    trained = ledger["model"]["trained_context"]
    for flag, printed in (("max-num-seqs", capacity["sequences"]), ("max-model-len", capacity["tokens"])):
        stated = flags.get(flag, "")
        if printed is None or not _COUNT.match(stated) or int(stated) == printed:
            continue
        if flag != "max-model-len" or printed != trained or int(stated) < printed:
            yield f"--{flag} is {stated} and the boot says {printed}"
    if flags.get("tp-wire") == "exact" and ledger["wire"]["mode"] == "wht6":
        yield "--tp-wire is exact and the boot calls its wire lossy"


def _of_cards(ledger: shapes.Ledger) -> t.Iterator[str]:
    used = ledger["devices"]["used"]
    for row in ledger["settled"]:
        if row["card"] not in used:
            yield f"card {row['card']} settled, on which no rank runs"


def _of_capacity(ledger: shapes.Ledger, log: t.Sequence[Message]) -> t.Iterator[str]:
    capacity, rows = ledger["capacity"], ledger["sampler"]["rows"]
    sequences, tokens = capacity["sequences"], capacity["tokens"]
    if not sequences or not tokens:
        return
    if rows is not None and rows % sequences:
        yield f"{rows} sampler rows are no multiple of {sequences} sequences"
    before = tables.read_sentence(log)
    if before is not None and (before["sequences"], before["tokens"]) != (sequences, tokens):
        yield (
            f"{before['sequences']} sequences of {before['tokens']} tokens before the table and {sequences} of "
            f"{tokens} in it"
        )
    percent, sessions = capacity["backing_percent"], capacity["full_length_sessions"]
    # Half a percent and half a tenth of a session are their rounding.
    rounding = 0.005 * sequences + 0.05 + 1e-9
    if percent is not None and sessions is not None and abs(sessions - percent / 100 * sequences) > rounding:
        yield f"{sessions:.1f} full-length sessions are not {percent:.0f} % of {sequences}"
    groups = [group for group in ledger["kv"]["groups"] if group["tokens"] is not None]
    if groups and all(group["kind"] == "full" for group in groups):
        planned = min(group["tokens"] or 0 for group in groups) / (sequences * tokens)
        least = 1.0 if percent is None else percent / 100 - 0.005
        most = float("inf") if percent is None else percent / 100 + 0.005
        if planned < least * (1 - _TOKENS_APART) or planned > most * (1 + _TOKENS_APART):
            yield f"the KV plan holds {planned:.2f} of {sequences} x {tokens} tokens, which the table says otherwise"
