# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The slab law: prefill speed over slab size, from measured arms, and only between them.

Slab MiB is expert residency, so prefill follows it; how steeply, only measurements tell. The law interpolates
linearly between the two arms that bracket a slab. It never reaches past the outermost arms, never reads a plateau into
two points, and never mixes arms of another stack, cache dtype or prompt size.

A prompt is a few tokens longer or shorter from run to run than was asked for, so sizes are told apart by the gaps
between them: in ascending order, one that is more than 1 % above the next smaller one begins another series.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re
import statistics
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import Arm
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Json, counted, mib, number, rounded

# Two measurements of one configuration differ by up to this much: the published noise band.
NOISE = 0.03
# Prompts of one asked size differ by a few tokens in ten thousand; sizes that somebody asks for by far more than this.
SAME_PROMPT = 0.01
_RELEASE = re.compile(r"(?<![0-9.])[0-9]+(?:\.[0-9]+){2}(?![0-9.])")


class Law(t.NamedTuple):
    """What the arms say of one slab. ``tps`` is set only where ``status`` is inside."""

    status: str
    tps: float | None
    says: str
    prompt_tokens: int | None = None
    stack: str | None = None

    @property
    def low(self) -> float | None:
        """The lower end of the noise band, t/s."""
        return None if self.tps is None else rounded(self.tps * (1 - NOISE))

    @property
    def high(self) -> float | None:
        """The upper end of the noise band, t/s."""
        return None if self.tps is None else rounded(self.tps * (1 + NOISE))

    def as_dict(self) -> Json:
        """The plan's ``law``."""
        return {"status": self.status, "low": self.low, "high": self.high, "says": self.says}


_RANK = {"none": 0, "too_few": 1, "outside": 2, "inside": 3}


def slab_law(
    arms: t.Sequence[Arm],
    weights_mib: float,
    dtype: str,
    *,
    stack: str | None = None,
    version: str | None = None,
    digest: str | None = None,
) -> Law:
    """The law at ``weights_mib`` for a cache of ``dtype``.

    Arms that are not ``comparable`` are left out. Of several series that remain, the one that brackets the slab speaks,
    then the one with more slabs, then the later one in the list.
    """
    measured = [arm for arm in arms if arm.prefill_tps is not None]
    found = series(measured, dtype, stack, version, digest)
    left_out = len(measured) - sum(len(members) for members in found)
    note = f" ({counted(left_out, 'arm')} of another cache dtype or stack left out)" if left_out else ""
    if not found:
        return Law("none", None, f"No measured arm of {dtype} is known{note}, so prefill speed is not predicted.")
    ranked: list[tuple[int, int, int, Law]] = []
    for members in found:
        law = _of_series(members, weights_mib, note)
        ranked.append((_RANK[law.status], len({arm.weights_mib for arm in members}), len(ranked), law))
    return max(ranked, key=lambda entry: entry[:3])[3]


def series(
    arms: t.Sequence[Arm], dtype: str, stack: str | None, version: str | None, digest: str | None
) -> list[list[Arm]]:
    """The comparable arms that may be held against each other: of one stack, one cache dtype, one prompt size.

    The one with the latest arm of the list comes last. An arm that does not tell its engine or image is taken for one
    of ``version`` and ``digest``.
    """
    arms = [arm for arm in arms if comparable(arm, dtype, stack, version, digest)]
    sizes = prompt_sizes(arm.prompt_tokens for arm in arms)
    found: dict[tuple[t.Any, ...], list[Arm]] = {}
    for arm in arms:
        built = (arm.engine_version or version, arm.image_digest or digest)
        key = (arm.stack, *built, arm.kv_cache_dtype, arm.prompt_tokens and sizes[arm.prompt_tokens])
        # A series that is moved to the end of the dict keeps "the later one" simple to tell.
        found[key] = [*found.pop(key, []), arm]
    return list(found.values())


def prompt_sizes(tokens: t.Iterable[int | None]) -> dict[int, int]:
    """The smallest size of the series that each prompt size belongs to: see the head of this file."""
    smallest: dict[int, int] = {}
    before = 0
    for size in sorted({size for size in tokens if size}):
        smallest[size] = smallest[before] if before and size <= before * (1 + SAME_PROMPT) else size
        before = size
    return smallest


def comparable(arm: Arm, dtype: str, stack: str | None, version: str | None, digest: str | None) -> bool:
    """Whether an arm may speak of a cache of ``dtype`` on this stack.

    Not where its ``stack`` is not ``stack`` (where that is given), nor where it is known to be of another cache dtype,
    release or image. What is known on one side only is no difference.
    """
    if arm.kv_cache_dtype not in (None, dtype):
        return False
    if stack is not None and arm.stack != stack:
        return False
    if digest and arm.image_digest and digest != arm.image_digest:
        return False
    releases = releases_of(arm)
    return not (version and releases and version not in releases)


def releases_of(arm: Arm) -> list[str]:
    """The release that an arm was measured on, or else those that its stack names: 1.0.13 of ``radiance-1.0.13 w4``."""
    return [arm.engine_version] if arm.engine_version else _RELEASE.findall(arm.stack or "")


def _of_series(members: t.Sequence[Arm], weights_mib: float, note: str) -> Law:
    stack = members[0].stack
    slabs = sorted({arm.weights_mib for arm in members})
    rate = {
        slab: statistics.median(arm.prefill_tps or 0.0 for arm in members if arm.weights_mib == slab) for slab in slabs
    }
    sizes = sorted(arm.prompt_tokens for arm in members if arm.prompt_tokens)
    prompt_tokens = statistics.median_low(sizes) if sizes else None
    about = "" if len(set(sizes)) < 2 else "about "
    where = f" at prompts of {about}{prompt_tokens:,} tokens" if prompt_tokens else ""
    if len(slabs) < 2:
        says = (
            f"Only one slab, {mib(slabs[0])}, was measured{where}{note}: one point gives no slope, so "
            "prefill is not predicted."
        )
        return Law("too_few", None, says, prompt_tokens, stack)
    if not slabs[0] <= weights_mib <= slabs[-1]:
        says = (
            f"A slab of {mib(weights_mib)} is outside the measured arms, {mib(slabs[0])} to "
            f"{mib(slabs[-1])}{where}{note}: prefill is not predicted there."
        )
        return Law("outside", None, says, prompt_tokens, stack)
    high = next(slab for slab in slabs if slab >= weights_mib)
    low = high if high == weights_mib else slabs[slabs.index(high) - 1]
    tps = rate[high] if low == high else rate[low] + (rate[high] - rate[low]) * (weights_mib - low) / (high - low)
    between = (
        f"was measured at {number(rate[high])} t/s"
        if low == high
        else f"lies between the arms {mib(low)} ({number(rate[low])} t/s) and {mib(high)} ({number(rate[high])} t/s)"
    )
    says = f"A slab of {mib(weights_mib)} {between}{where}{note}: {tps:,.0f} t/s ± {NOISE:.0%}."
    return Law("inside", tps, says, prompt_tokens, stack)
