# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of random worlds, damaged: the parser never fails, and never calls a ledger complete that tells a wrong number.

What that can mean. Damage of the SHAPES takes lines away, repeats, disorders, joins or soils them; no figure of the
engine becomes another one. Then a complete ledger tells no wrong number at all. It may tell less: MAY_BE_UNTOLD are
the lines that not every boot prints, so that nothing can miss them. One thing is told by a line that is not there: an
exact wire. Where the whole announcement of a lossy one is lost, only the command line can contradict.

Damage of the FIGURES makes another figure of one. Most are printed twice, or are terms of a sum or a product: those
are right in a complete ledger, within what the roundings of that sum leave open. TOLD_ONCE are the others: nothing
else in the log speaks of them, so the ledger tells them as the log does.

DAMAGES=100000 tries that many of each; without it, a sample.
"""

from __future__ import annotations

import functools
import json
import os
import random
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from hypothesis import given, settings
from hypothesis import strategies as st
from world_damage import FIGURES, SHAPES, damaged
from world_logs import NOTHING, Mib, Printed, boot_of, told, truth, wrong

CORPUS = 48
EXAMPLES = settings(max_examples=int(os.environ.get("DAMAGES", "500")), derandomize=True, deadline=None)

MAY_BE_UNTOLD = {
    ("lent", "slots"),  # not every boot lends
    ("lent", "size"),
    ("slab", "slots"),  # a dense model has no slab
    ("slab", "shadow_slots"),
    ("slab", "pool_slots"),
    ("slab", "static"),
    ("settled", "headroom"),  # a settled line in other words still tells its floor
    ("settled", "static_region"),
    ("checkpoints", "slots"),  # with none, and the command line says so
    ("checkpoints", "each"),
    ("checkpoints", "size"),
    ("checkpoints", "backed"),
    ("wire", "exact_rows"),
}
TEXTS = {("model", "name"), ("model", "arch"), ("model", "quant")}
TOLD_ONCE = {
    ("lent", "slots"),
    ("lent", "size"),
    ("slab", "slots"),
    ("slab", "shadow_slots"),
    ("slab", "pool_slots"),
    ("slab", "static"),
    ("settled", "free"),
    ("model", "layers"),
    ("model", "trained_context"),
    ("wire", "exact_rows"),
}

Path = tuple[t.Any, ...]


@functools.cache
def boots() -> list[Printed]:
    return [boot_of(seed) for seed in range(CORPUS)]


def read(boot: Printed, kinds: dict[str, t.Any], names: list[str], seed: int, with_flags: bool) -> tuple[str, t.Any]:
    """(the damaged text, its ledger)."""
    chance = random.Random(seed)
    text = boot.text
    for name in names:
        text = damaged(kinds[name], text, chance)
    found = read_ledger(text, source={}, flags=boot.flags if with_flags else None)
    json.dumps(found, allow_nan=False)
    assert (found["reason"] is None) == (found["status"] == "complete")
    assert found["status"] in ("complete", "incomplete", "refused", "absent")
    return text, found


def told_wrong(boot: Printed, found: t.Any) -> dict[Path, tuple[t.Any, t.Any]]:
    """What a complete ledger tells wrong; its sums hold."""
    if found["status"] != "complete":
        return {}
    assert found["ready"] and found["essential"] and found["missing"] == []
    assert all(check["holds"] for check in found["checks"])
    # A name is a text: a group whose name was soiled is compared as the one that is missed.
    groups = found["kv"]["groups"]
    missed = [group.name for group in boot.machine.kv.groups if group.name not in [one["name"] for one in groups]]
    for group in groups:
        if missed and group["name"] not in [one.name for one in boot.machine.kv.groups]:
            group["name"] = missed.pop(0)
    return wrong(truth(boot.machine, bool(found["flags"])), told(found))


def smallest_sum(found: t.Any) -> float:
    return 2 * t.cast("float", max(check["tolerance_mib"] for check in found["checks"]))


@EXAMPLES
@given(
    st.integers(0, CORPUS - 1),
    st.lists(st.sampled_from(sorted(SHAPES)), min_size=1, max_size=3),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_a_damaged_shape_is_incomplete_or_right(world: int, names: list[str], seed: int, with_flags: bool) -> None:
    boot = boots()[world]
    text, found = read(boot, SHAPES, names, seed, with_flags)
    for path, (true, said) in told_wrong(boot, found).items():
        what = (path[0], path[-1])
        if what == ("wire", "mode"):
            assert not with_flags and said == "exact" and "LOSSY" not in text
        elif path in (("budget", "rows", "unusable"), ("budget", "rows", "prefill_staging")):
            assert said is None and true.mib <= smallest_sum(found), (path, true)
        elif what not in TEXTS:
            assert what in MAY_BE_UNTOLD and said in (None, NOTHING), (path, true, said)


@EXAMPLES
@given(st.integers(0, CORPUS - 1), st.sampled_from(sorted(FIGURES)), st.integers(0, 2**32), st.booleans())
def test_a_damaged_figure_is_told_only_where_nothing_contradicts(
    world: int, name: str, seed: int, with_flags: bool
) -> None:
    boot = boots()[world]
    _text, found = read(boot, FIGURES, [name], seed, with_flags)
    for path, (true, said) in told_wrong(boot, found).items():
        what = (path[0], path[-1])
        assert what in TEXTS | TOLD_ONCE or as_far_as_the_sums(boot, found, path, true, said), (path, true, said)


def as_far_as_the_sums(boot: Printed, found: t.Any, path: Path, true: t.Any, said: t.Any) -> bool:
    """Whether a figure that is wrong in a complete ledger is one of those that its sums and products leave open."""
    what, flags = (path[0], path[-1]), found["flags"]
    if said in (None, NOTHING):
        return what in MAY_BE_UNTOLD or what == ("budget", "unusable")
    if path[0] == "capacity":
        # Without the command line nothing else speaks of the shape; shares are as exact as their rounding.
        shape = boot.machine.shape.sequences
        shares = {"backing_percent": 2 + 10 / shape, "full_length_sessions": 0.02 * shape + 0.1}
        return (not flags and path[1] in ("sequences", "tokens")) or (
            path[1] in shares and abs(said - true.value) <= shares[path[1]]
        )
    if what == ("sampler", "rows"):
        return boot.machine.tp == 1 and said % found["capacity"]["sequences"] == 0
    if what == ("budget", "static_weights") and found["budget"]["weights"] == "stated":
        return True  # printed for information: no sum takes it
    if not isinstance(true, Mib) or not isinstance(said, dict):
        return False
    off = abs(said["mib"] - true.mib)
    if path[0] == "kv" and path[-1] in ("page", "state"):
        (group,) = (one for one in found["kv"]["groups"] if one["name"] == path[1])
        off *= group["blocks"] or group["slots"] or 0
    if path[0] == "checkpoints":
        off *= found["kv"]["checkpoints"]["slots"] if path[-1] == "each" else 1
    return bool(off <= smallest_sum(found))
