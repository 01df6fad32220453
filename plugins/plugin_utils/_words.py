# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers and pairs in the words that a person reads: thousands commas, units, one sign for an unknown."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import text as plan_text

UNKNOWN = plan_text.UNKNOWN
# Columns of a screen that a report keeps to.
WIDTH = 118

# The pair and the shape: the order in which they are shown, and the name that each has in the env.
ENV_OF = {
    "weights_mib": "VRAM_WEIGHTS_MIB",
    "kv_mib": "VRAM_KV_MIB",
    "max_num_seqs": "MAX_NUM_SEQS",
    "max_model_len": "MAX_MODEL_LEN",
    "kv_cache_dtype": "KV_CACHE_DTYPE",
    "num_speculative_tokens": "NUM_SPECULATIVE_TOKENS",
}


def number(value: t.Any) -> str:
    """`30969` as 30,969, `30969.05` as 30,969.05, text as it is, None as –."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return plan_text.number(value)


pair = plan_text.pair_text


def shape(to: t.Mapping[str, t.Any]) -> str:
    """The shape: `3 x 200,000 tokens, fp8, speculation depth 2`."""
    return (
        f"{number(to.get('max_num_seqs'))} x {number(to.get('max_model_len'))} tokens, "
        f"{to.get('kv_cache_dtype') or UNKNOWN}, speculation depth {number(to.get('num_speculative_tokens'))}"
    )


def pair_words(to: t.Mapping[str, t.Any]) -> str:
    """Pair and shape in one sentence: ``25,844 + 5,119 MiB a card, 3 x 200,000 tokens, fp8, speculation depth 2``."""
    return f"{pair(to)} MiB a card, {shape(to)}"


def interval(low: t.Any, high: t.Any, unit: str | None) -> str:
    """What a prediction says: one number where both ends read alike, else `low to high`, with its unit."""
    text = plan_text.span(number(low), number(high))
    return f"{text} {unit}".rstrip() if unit else text


def measured(verdict: t.Mapping[str, t.Any]) -> str:
    """What a verdict measured: `2,078.72 ± 5.12` where the print rounds it by more than its two decimals show."""
    text, plus_minus = number(verdict.get("measured")), verdict.get("plus_minus") or 0
    return f"{text} ± {number(plus_minus)}" if plus_minus >= 0.01 else text


def one_line(text: str) -> str:
    """A sentence on one line, whatever blanks it had."""
    return " ".join(str(text).split())


def table(rows: t.Sequence[t.Sequence[str]], indent: str = "  ") -> list[str]:
    """Rows in columns that line up, no blanks at the end of a line."""
    widths: list[int] = []
    for row in rows:
        for column, text in enumerate(row[:-1]):
            widths.extend([0] * (column + 1 - len(widths)))
            widths[column] = max(widths[column], len(text))
    out = []
    for row in rows:
        cells = [text.ljust(widths[column]) if column < len(row) - 1 else text for column, text in enumerate(row)]
        out.append((indent + "  ".join(cells)).rstrip())
    return out
