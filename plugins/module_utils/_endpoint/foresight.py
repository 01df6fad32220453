# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the probes of one endpoint will cost, told before any of it is spent, also of an endpoint that nobody planned.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.cost import (
    CHUNK_TOKENS,
    RATE_GENERATE_TOKENS,
    RATE_PROMPT_TOKENS,
    RATE_RUNS,
    SPECULATIVE_TOKENS,
    cost_words,
    probe_cost,
    tokens_a_second,
)
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.facts import Inconclusive, read_facts
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import Settings


def foresee(settings: Settings, probes: str, prefill_tps: float | None, decode_tps: float | None) -> dict[str, t.Any]:
    """What the probes of ``settings`` will cost: ``{probes, prompt_tokens, generated_tokens, seconds, sequences,
    max_model_len, says}``, by the stated shape or, where none is stated, by what the endpoint says that it serves.

    What cannot be known is None, and ``says`` why. Asks only what the endpoint answers from memory. Raises
    RadianceError for a wrong key or nothing listening.
    """
    sequences, window = settings.sequences, settings.max_model_len
    chunk, depth = CHUNK_TOKENS, SPECULATIVE_TOKENS
    notes: list[str] = []
    if probes == "none":
        return {
            "probes": probes,
            **probe_cost("none", 0, 0),
            "sequences": sequences,
            "max_model_len": window,
            "says": "none will run (probes=none)",
        }
    try:
        facts = read_facts(settings.client, settings.model, settings.timeout, settings.load_timeout)
        for name, stated, serves in (
            ("max_num_seqs", sequences, facts.max_num_seqs),
            ("max_model_len", window, facts.max_model_len),
        ):
            if stated is not None and serves is not None and stated > serves:
                notes.append(
                    f"{name} is {stated:,} where the endpoint serves {serves:,}: the boundary will not be asked"
                )
        sequences, window = sequences or facts.max_num_seqs, window or facts.max_model_len
        chunk = min(facts.chunk_tokens or chunk, chunk)
        depth = depth if facts.speculative_tokens is None else facts.speculative_tokens
    except Inconclusive as reason:
        notes.append(reason.says)
    cost: dict[str, t.Any] = {"prompt_tokens": None, "generated_tokens": None, "seconds": None}
    if sequences is None or window is None:
        unknown = " and ".join(
            name for name, value in (("max_num_seqs", sequences), ("max_model_len", window)) if value is None
        )
        notes.insert(0, f"cannot be known: nothing is stated of {unknown}, and the endpoint does not say it")
    else:
        tokens, generate = (
            settings.prompt_tokens or RATE_PROMPT_TOKENS,
            settings.generate_tokens or RATE_GENERATE_TOKENS,
        )
        runs = settings.runs or RATE_RUNS
        cost = probe_cost(probes, sequences, window, tokens, runs, prefill_tps, generate, decode_tps, chunk, depth)
        notes.insert(0, cost_words(cost))
        if probes == "full" and sequences > 1 and decode_tps is None:
            fast = tokens_a_second(generate)
            notes.append(f"more are generated where a stream decodes faster than {fast:,.0f} tokens/s")
        if prefill_tps is None:
            notes.append("no prefill rate of this service is known that would tell the time")
    shape = {"sequences": sequences, "max_model_len": window}
    return {"probes": probes, **cost, **shape, "says": f"{probes}: " + "; ".join(notes)}
