# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the planner compares: pair and shape, as a command line states them and in a plan, and engine versions.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Json, digits, whole_or_float

KNOWN_DTYPES = ("bf16", "fp8")
# --kv-cache-dtype of an engine that was given none (1.0.x).
DEFAULT_DTYPE = "bf16"
SHAPE_NAMES = ("max_num_seqs", "max_model_len", "kv_cache_dtype", "num_speculative_tokens")
# Pair and shape by the engine's flags, in the order in which they are shown.
FLAGS: t.Mapping[str, str] = {
    "weights_mib": "vram-weights-mib",
    "kv_mib": "vram-kv-mib",
    "max_num_seqs": "max-num-seqs",
    "max_model_len": "max-model-len",
    "kv_cache_dtype": "kv-cache-dtype",
    "num_speculative_tokens": "num-speculative-tokens",
}

# From these releases on: checkpoints live in pinned host memory; the pair's flags are gone.
HOST_CHECKPOINTS_FROM = (1, 1)
NO_PAIR_FROM = (1, 3)

# Options that a release no longer takes; it does not start with one.
GONE_FLAGS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("expert-vs-cache-ratio", HOST_CHECKPOINTS_FROM),
    ("vram-weights-mib", NO_PAIR_FROM),
    ("vram-kv-mib", NO_PAIR_FROM),
)


class Shape(t.NamedTuple):
    """How many sequences of how many tokens, in which cache dtype, at which speculation depth."""

    max_num_seqs: int
    max_model_len: int
    kv_cache_dtype: str
    num_speculative_tokens: int

    @property
    def sampler_rows(self) -> int:
        """The rows of a full decode step: sequences x (depth + 1), as the engine's ``sampler:`` line counts them."""
        return self.max_num_seqs * (self.num_speculative_tokens + 1)

    def same_cache(self, other: Shape) -> bool:
        """Whether one boot's KV plan speaks for both: the same dtype and depth, hence bytes a token and a sequence."""
        return (self.kv_cache_dtype, self.num_speculative_tokens) == (
            other.kv_cache_dtype,
            other.num_speculative_tokens,
        )

    def grows_from(self, other: Shape) -> bool:
        """Whether this shape may want a larger arena or staging than ``other``."""
        return (
            self.max_num_seqs > other.max_num_seqs
            or self.max_model_len > other.max_model_len
            or self.num_speculative_tokens > other.num_speculative_tokens
            or self.kv_cache_dtype != other.kv_cache_dtype
        )

    def with_pair(self, weights_mib: float | None, kv_mib: float | None) -> Json:
        """The six keys of a plan's ``from`` and ``to``."""
        return {
            "weights_mib": None if weights_mib is None else whole_or_float(weights_mib),
            "kv_mib": None if kv_mib is None else whole_or_float(kv_mib),
            "max_num_seqs": self.max_num_seqs,
            "max_model_len": self.max_model_len,
            "kv_cache_dtype": self.kv_cache_dtype,
            "num_speculative_tokens": self.num_speculative_tokens,
        }


def pair_of(flags: t.Mapping[str, str]) -> Json:
    """Pair and shape of a command line in the form of a plan's ``to``: null for a flag that is not there, and the text
    of one that is no plain count.
    """
    texts = {name: flags.get(flag) for name, flag in FLAGS.items()}
    counts = {name: digits(text) for name, text in texts.items() if name != "kv_cache_dtype"}
    return {name: text if counts.get(name) is None else counts[name] for name, text in texts.items()}


def version_of(text: str | None) -> tuple[int, ...] | None:
    """``1.0.13`` as ``(1, 0, 13)``; None where the text does not start with such a version."""
    found = re.match(r"^v?([0-9]{1,9}(?:\.[0-9]{1,9})+)(?!\.?[0-9])", text or "")
    return tuple(int(part) for part in found.group(1).split(".")) if found else None


def at_least(text: str | None, bound: tuple[int, ...]) -> bool:
    """Whether the version is known and not older than ``bound``."""
    version = version_of(text)
    return version is not None and version >= bound
