# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Breaks one behaviour after the other on purpose, and asks for a test that fails.

Each mutation is a place in the source, what stands there instead, and the tests that must notice. The numbers are those
of the invariants in docs/design.md. Nothing in the checkout is touched: the tests run in a copy.

    tests/run.sh mutations
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
CORE = "plugins/module_utils"
PLAN = "tests/unit/plugins/module_utils/_plan"
SWITCH = "tests/unit/plugins/module_utils/_switch"
SOURCES = "tests/unit/plugins/module_utils/test_sources_process.py"
HIDDEN = "tests/unit/plugins/module_utils/test_hidden.py"
CONTRACT = "tests/unit/contract"


class Mutation(NamedTuple):
    """``invariant`` breaks when ``old`` in ``file`` reads ``new``; ``tests`` (paths for pytest) must fail then."""

    invariant: int
    file: str
    old: str
    new: str
    tests: str


MUTATIONS = [
    # 1: the worked ceiling.
    Mutation(
        1, f"{CORE}/_plan/ceiling.py", "free.mib - withdrawn - floor.mib + pair_sum)", "free.mib + pair_sum)", PLAN
    ),
    Mutation(1, f"{CORE}/_plan/ceiling.py", "pair_sum = weights.mib + kv.mib", "pair_sum = weights.mib", PLAN),
    Mutation(1, f"{CORE}/_plan/ceiling.py", "free.plus_minus_mib + floor.plus_minus_mib", "free.plus_minus_mib", PLAN),
    # 2: the worked contract.
    Mutation(2, f"{CORE}/_plan/contract.py", "sequences * a_sequence / MIB", "a_sequence / MIB", PLAN),
    Mutation(
        2,
        f"{CORE}/_plan/contract.py",
        "self.state_mib(shape.max_num_seqs) + self.checkpoint_mib\n",
        "self.state_mib(shape.max_num_seqs)\n",
        PLAN,
    ),
    # 3: bounds, and where they come from.
    Mutation(
        3,
        f"{CORE}/_plan/ceiling.py",
        "math.floor(rounded(self.surest.sure_mib",
        "math.floor(rounded(self.surest.ours_mib",
        PLAN,
    ),
    Mutation(
        3,
        f"{CORE}/_plan/ceiling.py",
        "rounded(self.lowest.ours_mib - self.reserve_mib)",
        "rounded(self.lowest.ours_mib)",
        PLAN,
    ),
    Mutation(3, f"{CORE}/_plan/ceiling.py", "rounded(self.low_mib - self.others_mib)", "rounded(self.low_mib)", PLAN),
    Mutation(3, f"{CORE}/_plan/gates.py", '"from": finding.source,', '"from": "",', PLAN),
    # 4: check mode says what the run does, and touches nothing.
    Mutation(4, f"{CORE}/_switch/switch.py", '= "switched", True', '= "switched", False', SWITCH),
    Mutation(4, f"{CORE}/_switch/switch.py", "        if check_mode:\n", "        if False:\n", SWITCH),
    Mutation(4, f"{CORE}/_switch/switch.py", "run.diff = files.diffs(changes)", "run.diff = []", SWITCH),
    # 5: a second run restarts nothing, and the process is what decides.
    Mutation(5, f"{CORE}/_switch/precheck.py", "        if not different:\n", "        if False:\n", SWITCH),
    Mutation(
        5,
        f"{CORE}/_switch/precheck.py",
        'different = referee.differences(expect["to"], process.flags)',
        "different = []",
        SWITCH,
    ),
    # 6: after any failure the old pair serves, or the result says that it does not.
    Mutation(
        6,
        f"{CORE}/_switch/back.py",
        'put_back = files.restore(self.journal.data["files"])\n            self.run.changed = True\n',
        "put_back = []\n            self.run.changed = True\n",
        SWITCH,
    ),
    Mutation(
        6,
        f"{CORE}/_switch/back.py",
        'put_back = files.restore(self.journal.data["files"])\n            self.run.changed = self.run.changed or',
        "put_back = []\n            self.run.changed = self.run.changed or",
        SWITCH,
    ),
    Mutation(6, f"{CORE}/_switch/transaction.py", "            if wrong:\n", "            if False:\n", SWITCH),
    Mutation(
        6,
        f"{CORE}/_switch/back.py",
        'nothing ran before."""\n        self.run.outcome = "failed"',
        'nothing ran before."""\n        self.run.outcome = "rolled_back"',
        SWITCH,
    ),
    Mutation(
        6,
        f"{CORE}/_switch/switch.py",
        "    if interrupted is not None:\n        recovery.finish(request, state, run, interrupted)\n",
        "",
        SWITCH,
    ),
    # 8: no secret is printed.
    Mutation(8, f"{CORE}/_sources/process.py", "if not is_secret(name):", "if True:", SOURCES),
    Mutation(8, f"{CORE}/_hidden.py", "_masked(text[start:end])", "text[start:end]", HIDDEN),
    Mutation(
        8,
        f"{CORE}/_hidden.py",
        "shown.append(kept + MASK)",
        "shown.append(word)",
        HIDDEN,
    ),
    # 10: no bare word that zsh expands.
    Mutation(10, "roles/endpoint/templates/serve.sh.j2", "set -eu\n", "set -eu\necho === starting\n", CONTRACT),
    Mutation(
        10,
        "roles/endpoint/tasks/switch.yml",
        "---\n",
        "---\n- name: Say so\n  ansible.builtin.shell: echo ===\n  changed_when: false\n\n",
        CONTRACT,
    ),
]


def copy_of_the_checkout(folder: pathlib.Path) -> None:
    """All files that are committed or about to be."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists() or (ROOT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)


def failing(folder: pathlib.Path, tests: str) -> str:
    """The first test that fails, or nothing where all pass. Raises RuntimeError where pytest could not run them."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--tb=no", tests],
        cwd=folder,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if run.returncode not in (0, 1):
        raise RuntimeError(f"pytest {tests} ended with {run.returncode}:\n{run.stdout}\n{run.stderr}")
    if run.returncode == 0:
        return ""
    return next((line.split(" - ")[0] for line in run.stdout.splitlines() if line.startswith("FAILED")), "a test")


def main(only: list[str]) -> int:
    """Run all mutations, or those of the invariants that are named; the exit status."""
    chosen = [m for m in MUTATIONS if not only or str(m.invariant) in only]
    survived = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        copy_of_the_checkout(folder)
        for tests in sorted({m.tests for m in chosen}):
            broken = failing(folder, tests)
            if broken:
                print(f"{tests} fails without any mutation: {broken}")
                return 1
        for mutation in chosen:
            path = folder / mutation.file
            text = path.read_text(encoding="utf-8")
            if text.count(mutation.old) != 1:
                found = text.count(mutation.old)
                print(f"{mutation.invariant}: {mutation.file} has {mutation.old!r} at {found} places, not at one")
                survived += 1
                continue
            path.write_text(text.replace(mutation.old, mutation.new, 1), encoding="utf-8")
            noticed = failing(folder, mutation.tests)
            path.write_text(text, encoding="utf-8")
            survived += not noticed
            print(f"{mutation.invariant}: {mutation.old.strip()!r}: {noticed or 'NOT NOTICED'}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} mutations were noticed")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
