# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Injects the faults on hosts that are up and have the scenario's service, and writes docs/faults.md.

``run.py [--list] [--resume] [--host HOST] [FAULT…]``: all faults, or those whose name contains one of the words.
``--resume`` leaves out what has a good result in ``.cache/faults.json``. Both hosts are worked off at the same time,
then what needs them together. The page is made of all results that there are, and says of which fault there is none.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
import traceback
import types
import typing as t

from catalogue import FAULTS, UNTESTED, Fault
from hosts import CHECKOUT, Host
from judging import page
from mending import free, mend_podman, start
from trial import Missed, Trial, results_folder

PAGE = CHECKOUT / "docs/faults.md"
RESULTS = CHECKOUT / ".cache/faults.json"
ATTEMPTS = 3
_LOCK = threading.Lock()


def load() -> dict[str, dict[str, t.Any]]:
    """The results so far, by fault and host."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def keep(key: str, row: dict[str, t.Any]) -> None:
    """Put a result with the others."""
    with _LOCK:
        found = load()
        found[key] = row
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(found, indent=1))
    told = [f"{row['seconds']} s", row["after"], row["next"], *(row["bad"] or ["good"])]
    print(f"{row['fault']}, {row['where']}: {'; '.join(told)}", flush=True)


def key_of(fault: Fault, host: str) -> str:
    """What a result is filed under."""
    return f"{fault.name} @ {host}"


def inject(fault: Fault, host: Host, number: int) -> dict[str, t.Any]:
    """The whole of one fault on one host; its row."""
    name = re.sub(r"[^a-z0-9]+", "-", fault.name)
    trial = Trial(host, results_folder() / f"{name}-{host.name[-1]}{number}")
    bad: list[str] = []
    try:
        time.sleep(2)
        steps = fault.inject(trial)
        if isinstance(steps, types.GeneratorType):
            next(steps)
        after = trial.settle()
        if isinstance(steps, types.GeneratorType):
            next(steps, None)
        following = trial.play(*fault.next_words, plain=fault.plain).wait()
        if following.code:
            bad.append(f"the next run ended with {following.code}")
        seconds = trial.outage()
        trial.undo()
        clean = trial.play(plain=True).wait()
        if clean.code or clean.changed():
            bad.append(f"the run after it ended with {clean.code} and {clean.changed()} changes")
        bad += trial.check()
    finally:
        bad += recover(trial)
    return {
        "fault": fault.name,
        "where": host.scope,
        "seconds": seconds,
        "after": after,
        "next": following.says(host.name),
        "mended": trial.mended,
        "bad": bad,
    }


def recover(trial: Trial) -> list[str]:
    """Have every host of a trial serve before the next one; what no run could bring back."""
    bad = []
    try:
        trial.undo()
        for name in trial.limit.split(","):
            host = trial.host if name == trial.host.name else Host(name)
            trial.mended += mend_podman(host)
            if not host.healthy() or host.leftovers():
                free(host)
                trial.play(plain=True).wait()  # whatever came of it is over before the next fault
                bad += start(host)
    finally:
        trial.close()
    return bad


def work(name: str, faults: t.Sequence[Fault]) -> None:
    """Inject them on this host, one after the other."""
    host = Host(name)
    for fault in faults:
        for number in range(1, ATTEMPTS + 1):
            try:
                keep(key_of(fault, name), inject(fault, host, number))
            except Missed as error:
                print(f"{fault.name}, {host.scope}: missed, {error}", flush=True)
                continue
            except Exception:  # one fault that cannot be injected is no reason to leave the others out
                print(f"{fault.name}, {host.scope}: {traceback.format_exc()}", flush=True)
            break


def main() -> int:
    """Inject what is asked for; 1 where a fault did not come out well, or has no result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--host", action="append")
    parser.add_argument("faults", nargs="*")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(f"{fault.name}: {', '.join(fault.hosts)}" for fault in FAULTS))
        return 0
    results_folder().mkdir(exist_ok=True)
    chosen = [fault for fault in FAULTS if not asked.faults or any(word in fault.name for word in asked.faults)]
    names = asked.host or sorted({name for fault in FAULTS for name in fault.hosts})
    done = {key: row for key, row in load().items() if not row["bad"]} if asked.resume else {}
    for name in names:
        Host(name).prepare()
    for together in (False, True):
        threads = []
        for name in names:
            mine = [f for f in chosen if name in f.hosts and f.of_both == together and key_of(f, name) not in done]
            threads.append(threading.Thread(target=work, args=(name, mine)))
            threads[-1].start()
        for thread in threads:
            thread.join()
    found = load()
    wanted = [(fault.name, Host(name).scope, key_of(fault, name)) for fault in FAULTS for name in fault.hosts]
    rows = {(fault, where): found[key] for fault, where, key in wanted if key in found}
    PAGE.write_text(page([row[:2] for row in wanted], rows, UNTESTED))
    missing = [row[2] for row in wanted if row[2] not in found]
    wrong = [row[2] for row in wanted if row[2] in found and found[row[2]]["bad"]]
    for what, keys in (("without a result", missing), ("did not come out well", wrong)):
        if keys:
            print(f"{what}:", *keys, sep="\n  ")
    return 1 if missing or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
