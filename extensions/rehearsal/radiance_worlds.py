# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints a world file for the stand-in: ``radiance_worlds.py dense`` or ``--seed 7``; ``--flags`` its command line."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from dataclasses import asdict

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from engine.random_worlds import random_world  # noqa: E402
from engine.world import WorldError  # noqa: E402
from engine.world_files import named, names  # noqa: E402


def main() -> int:
    """Exit status 0, or 2 for a world that is none."""
    parser = argparse.ArgumentParser(description="Print a world file for the stand-in engine.")
    parser.add_argument("name", nargs="?", help=f"a named world: {', '.join(names())}")
    parser.add_argument("--seed", type=int, help="a random valid world; the same seed is the same world")
    parser.add_argument("--flags", action="store_true", help="print a command line that boots in it instead")
    asked = parser.parse_args()
    if (asked.name is None) == (asked.seed is None):
        parser.error("either a name or --seed")
    try:
        world = named(asked.name) if asked.name else random_world(asked.seed)
    except WorldError as error:
        parser.error(str(error))
    print(world.flags if asked.flags else json.dumps(asdict(world), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
