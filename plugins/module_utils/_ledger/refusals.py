# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why the engine ended a boot itself: its refusals, each to a stable code and a sentence with numbers and a way out.

The first refusal of a boot is the cause; what follows it is its wake. The words of ``REASON_CODES`` are public;
docs/ledger-reasons.md says of each what it comes from and what to do.
"""

from __future__ import annotations

import math
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.boots import COMMAND_LINE_ERROR
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import Message
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.shapes import Reason
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.tables import read_table
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import SIZE_PATTERN, Size

REASON_CODES: t.Mapping[str, str] = {
    # refused: the engine ended the boot
    "unknown_option": "the engine does not know an option of its command line",
    "bad_command_line": "an option's value or a missing option ended the boot",
    "no_device": "no usable device, or fewer than --tp asks for",
    "model_unusable": "the model file or its plug-in cannot be served",
    "vram_short": "the fixed costs and the stated pools leave no VRAM to divide (SHORT BY)",
    "pools_over_card": "the two pools together are larger than the card has room for (OVER BY)",
    "pools_empty": "both pools resolved to 0 MiB",
    "pool_allocation_refused": "a pool was budgeted and the card would not give it, or gave less",
    "weights_do_not_fit": "experts or weights found no place (DID NOT FIT)",
    "slab_no_vram": "the weight slab got no VRAM",
    "host_pool_no_memory": "no pinned host memory for the host pool",
    "kv_fixed_costs": "the KV pool does not cover its fixed state and checkpoints (SHORT BY)",
    "kv_no_blocks": "the KV pool leaves a group without a single block",
    "kv_pool_refused": "a part of the KV pool was not given",
    "chunk_geometry": "the batch is smaller than the model's chunk geometry allows",
    "cannot_bind": "the port cannot be bound",
    "engine_fatal": "the engine stopped itself with a fatal error",
    # incomplete
    "log_cut": "the beginning of the boot is missing",
    "table_hidden": "the log level hides the table",
    "not_ready": "the boot has not come to its listening line",
    "rows_unreadable": "a row's figure is not in the engine's form",
    "rows_missing": "rows that this kind of boot prints are missing",
    "sums_off": "the figures contradict each other",
    "endpoint_differs": "the endpoint tells of another boot than the log",
    # absent
    "log_empty": "there is no text",
    "no_boot": "no boot of this engine is in the text",
    "boot_not_in_log": "the log does not hold the boot asked for",
    "log_unreadable": "the log cannot be opened or read",
    "journal_unreadable": "the journal cannot be read",
    "container_absent": "there is no such container, or it does not run",
    "unit_inactive": "there is no such unit, or it does not run",
}

_S = f"({SIZE_PATTERN})"
_Row = dict[str, tuple[Size, str]]


def read_refusal(log: t.Sequence[Message]) -> Reason | None:
    """The first refusal that a boot printed, or None."""
    for number, message in enumerate(log):
        fatal = None if message.level else _FATAL.match(message.text)
        if fatal:
            return _reason("engine_fatal", _fatal_words(fatal.group(1), log[:number]))
        if message.level == "E":
            reason = _from_table(message) or _from_line(message.text)
        elif not message.level:
            reason = _from_bare(message)
        elif message.text.startswith("placement plan "):
            reason = _did_not_fit(message)
        else:
            reason = None
        if reason is not None:
            return reason
    return None


def _reason(code: str, text: str) -> Reason:
    return {"code": code, "text": text}


def _whole_mib(size: Size) -> str:
    """The smallest whole number of MiB that surely covers a printed size."""
    return f"{math.ceil(size.high_mib - 1e-9):,} MiB"


def _printed(rows: _Row, name: str) -> str:
    return rows[name][0].text if name in rows else "an unprinted size"


def _excess(rows: _Row, name: str) -> tuple[str, str]:
    """By how much a table says that it does not fit: as a clause, and as the amount to move by. Empty if unprinted."""
    if name not in rows:
        return "", ""
    size = rows[name][0]
    return f", {name} {size.text}", f" by {_whole_mib(size)}"


def _from_table(message: Message) -> Reason | None:
    text = message.text
    rows = read_table(message.rows)
    if text.startswith("VRAM does not cover the fixed costs"):
        by, amount = _excess(rows, "SHORT BY")
        stated = [f"{name} {rows[name][0].text}" for name in ("--vram-weights-mib", "--vram-kv-mib") if name in rows]
        pools = f" and the stated {' + '.join(stated)}" if stated else ""
        # The pair is lowered MiB for MiB; what the arena gives for a smaller batch, only the next boot tells.
        lower = f"the pair{amount}" if stated else "--max-num-batched-tokens"
        return _reason(
            "vram_short",
            f"The card's {_printed(rows, 'card total')} do not cover what is held already "
            f"({_printed(rows, 'already held')}), the activation arena ({_printed(rows, 'activation arena')}), the "
            f"step staging ({_printed(rows, 'step staging')}), the headroom ({_printed(rows, '--gpu-headroom-mib')})"
            f"{pools}{by}. Lower {lower}, or free the card.",
        )
    if text.startswith("VRAM budgets do not fit:"):
        by, amount = _excess(rows, "OVER BY")
        return _reason(
            "pools_over_card",
            f"vram_weights {_printed(rows, 'vram_weights')} + vram_kv {_printed(rows, 'vram_kv')} make "
            f"{_printed(rows, 'total')} and the card has {_printed(rows, 'card total')}{by}. "
            f"Lower the pair's sum{amount}.",
        )
    if text.startswith("VRAM pool budgets are empty"):
        return _reason(
            "pools_empty",
            "Both pools resolved to 0 MiB. State --vram-weights-mib and --vram-kv-mib as whole MiB.",
        )
    if text.startswith("vram_kv does not fit its fixed costs:"):
        by, amount = _excess(rows, "SHORT BY")
        return _reason(
            "kv_fixed_costs",
            f"--vram-kv-mib of {_printed(rows, '--vram-kv-mib')} does not cover its fixed {_printed(rows, 'fixed')}: "
            f"{_row_text(rows, 'linear/conv state')} of state, {_row_text(rows, 'checkpoints')} of checkpoints{by}. "
            f"Raise --vram-kv-mib{amount}, or lower --max-num-seqs or --checkpoint-slots.",
        )
    if text.startswith("pool allocation refused:"):
        wanted = [row.strip() for row in message.rows if row.strip().startswith("REFUSED ")]
        detail = f" ({wanted[0][:300]})" if wanted else ""
        return _reason(
            "pool_allocation_refused",
            f"A pool was budgeted and not given{detail}. Free the card, or lower the pair.",
        )
    return None


def _row_text(rows: _Row, name: str) -> str:
    if name not in rows:
        return "an unprinted size"
    size, text = rows[name]
    return f"{size.text} {text}".strip()


class _Form(t.NamedTuple):
    code: str
    pattern: t.Pattern[str]
    says: t.Callable[[t.Match[str]], str]


def _quote(way_out: str) -> t.Callable[[t.Match[str]], str]:
    return lambda found: f"The engine ended the boot: {found.string[:400].rstrip('.')}. {way_out}"


_FORMS: tuple[_Form, ...] = (
    _Form(
        "unknown_option",
        re.compile(r"^\w+ (?:option|flag|argument)\b[^-\w]*(-{0,2}[^\s':]*)"),
        lambda found: (
            f"This engine does not know the option '{found.group(1)[:100]}' and ended the boot. Take it off the "
            "command line (--expert-vs-cache-ratio ended with 1.1, --vram-weights-mib and --vram-kv-mib with 1.3)."
        ),
    ),
    _Form("bad_command_line", COMMAND_LINE_ERROR, _quote("Mend the command line.")),
    _Form(
        "no_device",
        re.compile(r"^(?:no usable device|--tp \d+ needs \d+ devices )"),
        _quote("Give it the cards that --tp asks for, or lower --tp."),
    ),
    _Form(
        "model_unusable",
        re.compile(
            r"^(?:.* carries no model dimensions|the plugins under .* did not load"
            r"|\d+ weight\(s\) of .* are not in a form the engine serves|.*: rad_arch_declare returned "
            r"|.*: \d+ device band\(s\) resolved to no kernel)"
        ),
        _quote("Give it a model that this release serves."),
    ),
    _Form(
        "chunk_geometry",
        re.compile(r"^--max-num-batched-tokens is \d+ but this model's chunk geometry needs at least (\d{1,12})"),
        lambda found: (
            f"The engine ended the boot: {found.string[:400].rstrip('.')}. "
            f"Raise --max-num-batched-tokens to {found.group(1)}."
        ),
    ),
    _Form(
        "chunk_geometry",
        re.compile(r"^the checkpoint interval resolves to \d+ .* is not a multiple"),
        _quote("Choose a --checkpoint-interval that is a multiple of the attention block."),
    ),
    _Form(
        "slab_no_vram",
        re.compile(rf"^mover: no VRAM for the '(.*)' slab: (\d{{1,15}}) slots of {_S}"),
        lambda found: (
            f"The card had no VRAM for {int(found.group(2)):,} slots of {found.group(3)} of the "
            f"'{found.group(1)[:60]}' slab. Lower --vram-weights-mib, or free the card."
        ),
    ),
    _Form(
        "slab_no_vram",
        re.compile(r"^mover: (?:no VRAM for |the weight budget is )"),
        _quote("Raise --vram-weights-mib, or free the card."),
    ),
    _Form(
        "host_pool_no_memory",
        re.compile(rf"^mover: no pinned host memory for the '(.*)' pool: (\d{{1,15}}) slots of {_S}"),
        lambda found: (
            f"The host had no pinned memory for {int(found.group(2)):,} slots of {found.group(3)} of the "
            f"'{found.group(1)[:60]}' pool. Lower --host-pool-mib, raise the memlock limit, or free host memory."
        ),
    ),
    _Form(
        "weights_do_not_fit",
        re.compile(r"^placement: "),
        _quote("Raise --vram-weights-mib or --host-pool-mib."),
    ),
    _Form(
        "kv_no_blocks",
        re.compile(
            rf"^KV group '(.*)': a {_S} KV pool leaves 0 blocks \({_S} a page\) "
            rf"after the fixed linear/conv costs of {_S}"
        ),
        lambda found: (
            f"A KV pool of {found.group(2)} leaves the group '{found.group(1)[:60]}' 0 blocks ({found.group(3)} a "
            f"page) after its fixed costs of {found.group(4)}. Raise --vram-kv-mib, or lower --max-num-seqs."
        ),
    ),
    _Form(
        "kv_pool_refused",
        re.compile(r"^(?:KV group '.*': .* did not fit the KV pool|linear checkpoint slot .* did not fit|KV pool: )"),
        _quote("Raise --vram-kv-mib, or free the card."),
    ),
    _Form(
        "cannot_bind",
        re.compile(r"^server: cannot bind (\S{1,300}):(\d{1,5})"),
        lambda found: (
            f"The engine cannot bind {found.group(1)} port {found.group(2)}: another process holds it, or the "
            "address is not this host's. End that process, or serve on another port."
        ),
    ),
)


def _from_line(text: str) -> Reason | None:
    for form in _FORMS:
        found = form.pattern.match(text[:1000])
        if found:
            return _reason(form.code, form.says(found))
    return None


_FATAL = re.compile(r"^radiance: fatal: (.*)$")
_SCORE_PLANE = re.compile(r"^radiance: \S+: (the QSA score plane would be .*|an expert is .* cannot .*)$")


def _fatal_words(fatal: str, before: t.Sequence[Message]) -> str:
    """The fatal line with the error that came before it, or where there was none with how far the boot had come."""
    told = [message for message in before if message.text and message.level not in ("D", "T")]
    errors = [message for message in told if message.level == "E"]
    said = f"The engine stopped itself: {fatal[:400].rstrip('.')}."
    if not told:
        return said
    last = (errors or told)[-1].text[:300]
    return f"{said} The last {'error' if errors else 'message'} before it was {last!r}."


def _from_bare(message: Message) -> Reason | None:
    plane = _SCORE_PLANE.match(message.text)
    if plane:
        return _reason("model_unusable", f"The model's plug-in refused: {plane.group(1)[:400]}")
    return _did_not_fit(message)


def _did_not_fit(message: Message) -> Reason | None:
    for number, row in enumerate(message.rows):
        if row.strip() == "DID NOT FIT":
            what = "; ".join(line.strip()[:200] for line in message.rows[number + 1 : number + 3])
            detail = f" ({what})" if what else ""
            return _reason(
                "weights_do_not_fit",
                f"Part of the model DID NOT FIT{detail}. Raise --vram-weights-mib or --host-pool-mib.",
            )
    return None
