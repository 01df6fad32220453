# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the probes cost, before they are run. Pure.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

CHUNK_TOKENS = 2048
SPECULATIVE_TOKENS = 2
RATE_PROMPT_TOKENS = 43500
RATE_GENERATE_TOKENS = 512
RATE_RUNS = 2
LEAST_GENERATED = 128
# More streams at once than this show nothing new, and a window of many sequences would make the probe dear.
MOST_STREAMS = 8
# What a later turn of the full form adds to a prompt at most, whatever the ratio.
LATER_TOKENS = 1_000
# They generate for about so long, unless the answer of a run takes longer.
_STREAM_SECONDS = 2.0
_MOST_STREAMED = 8_192
# The short prompt after a boundary, and its answer at most.
AFTER_CHARS = 2_000
AFTER_GENERATED = 128
# A single stream decoded 90 to 124 tokens/s on the endpoints that published a figure.
_DECODE_TPS = 100.0


def boundary_generate_tokens(
    sequences: int,
    max_model_len: int,
    chunk_tokens: int = CHUNK_TOKENS,
    speculative_tokens: int = SPECULATIVE_TOKENS,
) -> int:
    """The tokens that each boundary sequence must be able to decode while the others are prefilled.

    Decode goes on one step a prefill chunk, and a step yields at most 1 + depth tokens: (sequences - 1) x
    ceil(window / chunk) x (1 + depth), rounded up to a hundred and at least 128. 600 for 3 x 200,000.
    """
    chunks = -(-max_model_len // max(1, chunk_tokens))
    least = (sequences - 1) * chunks * (1 + speculative_tokens)
    return max(LEAST_GENERATED, -(-least // 100) * 100)


def streamed_tokens(generate_tokens: int, decode_tps: float | None) -> int:
    """What each of several streams at once generates: a fast endpoint more, so that there is a time to be measured."""
    return max(generate_tokens, min(int(_STREAM_SECONDS * (decode_tps or 0.0)), _MOST_STREAMED))


def tokens_a_second(generate_tokens: int) -> float:
    """The rate of a stream from which on several at once generate more than ``generate_tokens`` each."""
    return generate_tokens / _STREAM_SECONDS


def probe_cost(
    probes: str,
    sequences: int,
    max_model_len: int,
    prompt_tokens: int = RATE_PROMPT_TOKENS,
    runs: int = RATE_RUNS,
    prefill_tps: float | None = None,
    generate_tokens: int = RATE_GENERATE_TOKENS,
    decode_tps: float | None = None,
    chunk_tokens: int = CHUNK_TOKENS,
    speculative_tokens: int = SPECULATIVE_TOKENS,
) -> dict[str, t.Any]:
    """``{prompt_tokens, generated_tokens, seconds}`` of all probes of one endpoint; zero for ``probes`` none.

    ``prompt_tokens`` is also what passes through the endpoint's prefix cache. ``seconds`` is None where no prefill
    rate is known; it takes the rate at ``prompt_tokens`` for every prompt, so that longer windows take rather more.
    Calibration is refused before any prefill and costs nothing; the short prompt after the boundary is less than what
    the long ones leave free. What ``full`` adds goes on from prompts that the prefix cache still knows; it is counted
    as if none did, so that it is the most that it can cost. Rates whose prompts do not fit the window are not asked.
    """
    if probes == "none":
        return {"prompt_tokens": 0, "generated_tokens": 0, "seconds": 0.0}
    each = boundary_generate_tokens(sequences, max_model_len, chunk_tokens, speculative_tokens)
    full = probes == "full"
    fits = prompt_tokens + generate_tokens + (LATER_TOKENS if full else 0) <= max_model_len
    rates = runs + 1 if fits else 0
    prompts = sequences * max(0, max_model_len - each) + rates * prompt_tokens
    generated = sequences * each + AFTER_GENERATED + rates * generate_tokens
    alone = each + AFTER_GENERATED + rates * generate_tokens
    if full:
        streams = min(sequences, MOST_STREAMS)
        together = streams if streams > 1 and fits else 0
        streamed = together * streamed_tokens(generate_tokens, decode_tps)
        second = 1 if fits else 0
        prompts += max_model_len + (second + together) * prompt_tokens
        generated += 1 + second * generate_tokens + streamed
        alone += second * generate_tokens + streamed
    seconds = None
    if prefill_tps is not None and prefill_tps > 0:
        # Only the last boundary sequence decodes alone; the others decode while the next ones are prefilled.
        seconds = round(prompts / prefill_tps + alone / (decode_tps or _DECODE_TPS), 1)
    return {"prompt_tokens": prompts, "generated_tokens": generated, "seconds": seconds}


def cost_words(cost: t.Mapping[str, t.Any]) -> str:
    """What ``probe_cost`` says, in words."""
    seconds = cost["seconds"]
    time = "for as long as the prefill rate makes it" if seconds is None else f"about {seconds:,.0f} s"
    return (
        f"{time}; {cost['prompt_tokens']:,} prompt tokens go through the caches, "
        f"{cost['generated_tokens']:,} are generated"
    )
