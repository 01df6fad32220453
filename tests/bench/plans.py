# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many plans a second: one request again and again, and a fleet of ledgers from random worlds.

    python3 tests/bench/plans.py [--fleet 1000] [--worlds 40]

The ledgers are those of boots of the stand-in, read before the clock starts; a fleet has each of so many worlds in
turn. ``with alternatives`` is what pair_plan does: the options and the price table are most of the work. A refused
request counts as a plan. The exit status is 1 where a plan alone takes more than 100 ms.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import sys
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("collections", "extensions/rehearsal", "tests/unit/rehearsal")]

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError  # noqa: E402
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan  # noqa: E402
from engine.random_worlds import random_world  # noqa: E402
from engine.world_files import named  # noqa: E402
from rehearsal_ledgers import ledger_of  # noqa: E402

GOAL_SECONDS = 0.1
ARMS = [
    {"weights_mib": slab, "prefill_tps": tps, "prompt_tokens": 43500, "kv_cache_dtype": "fp8"}
    for slab, tps in ((22208, 3397), (24000, 3290), (25600, 3584), (26071, 4379))
]
REQUEST: dict[str, t.Any] = {"shape": {"max_num_seqs": 4}, "arms": ARMS}


def seconds_a_plan(ledgers: t.Sequence[dict[str, t.Any]], alternatives: bool) -> float:
    """The mean time of a plan over all ledgers."""
    began = time.perf_counter()
    for ledger in ledgers:
        with contextlib.suppress(RadianceError):
            make_plan(ledger, REQUEST, alternatives=alternatives)
    return (time.perf_counter() - began) / len(ledgers)


def main() -> int:
    """Print a row for each case."""
    parser = argparse.ArgumentParser(description="How many plans a second.")
    parser.add_argument("--fleet", type=int, default=1000)
    parser.add_argument("--worlds", type=int, default=40)
    asked = parser.parse_args()
    seed = named("dankserver")
    one = ledger_of(seed, seed.flags)
    worlds = [random_world(number) for number in range(asked.worlds)]
    booted = [ledger_of(world, world.flags) for world in worlds]
    fleet = [booted[number % len(booted)] for number in range(asked.fleet)]
    slow = False
    for name, ledgers in (("one request", [one] * 50), (f"fleet of {asked.fleet:,}", fleet)):
        for alternatives in (False, True):
            seconds = seconds_a_plan(ledgers, alternatives)
            slow = slow or seconds > GOAL_SECONDS
            what = "with alternatives" if alternatives else "the plan alone"
            print(f"{name:<16} {what:<18} {1 / seconds:8,.0f} plans/s  {seconds * 1000:6.2f} ms each")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
