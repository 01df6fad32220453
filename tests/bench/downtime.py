# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a service is away in a switch, against a bare restart of its unit, on the real test hosts.

    python3 tests/bench/downtime.py [--repeat 3] [--load-seconds 60]

A client inside each host asks /health all the time: the downtime is from the first question that failed to the next
that was answered, for both alike. Both hosts are measured at the same time, restart and switch in turns; a switch is a
whole resize.yml from one pair to the other, less what it waited for the memory of the cards (its phase release). A row
has the medians. The hosts are those of KVFLEET_HOSTS_STATE where they are up, else they are brought up and taken down.
The exit status is 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import re
import statistics
import subprocess
import sys
import threading
import typing as t

from real_hosts import BOOT_LIMIT, PODMAN, SCRIPT, SYSTEMCTL, Service, service

# The goals: a switch against a restart, and the boots of a resize.
TIMES_RESTART, BOOTS = 1.05, 1
PAIRS = ((25_600, 5_120), (24_000, 5_120))

# Inside the host, so that nothing but the service can be away. A line for each change: when, and whether it answers.
CLIENT = """
import time, urllib.request
was = None
while True:
    try:
        with urllib.request.urlopen("http://127.0.0.1:8000/health", timeout=30) as reply:
            up = reply.status == 200
    except OSError:
        up = False
    if up != was:
        print(time.monotonic(), int(up), flush=True)
        was = up
    time.sleep(0.02)
"""


class Watch:
    """The client on one host, and the last time that the service was away."""

    def __init__(self, host: str) -> None:
        argv = [SCRIPT, "ssh", host, "exec", "python3", "-uc", f"'{CLIENT}'"]
        self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self._host, self._went = host, 0.0
        self._away: list[float] = []
        self._back = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            at, up = line.split()
            with self._back:
                if up == "0":
                    self._went = float(at)
                elif self._went:
                    self._away.append(float(at) - self._went)
                    self._back.notify_all()

    def over(self, what: t.Callable[[], object]) -> float:
        """Seconds that the service was away in this; it has to be so once."""
        before = len(self._away)
        what()
        with self._back:
            if not self._back.wait_for(lambda: len(self._away) > before, BOOT_LIMIT):
                raise SystemExit(f"{self._host} was not seen to go and come back")
            if len(self._away) > before + 1:
                raise SystemExit(f"{self._host} was away {len(self._away) - before} times")
            return self._away[-1]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


class Switched(t.NamedTuple):
    """Seconds away, those of the phase release, and the boots that podman tells of."""

    away: float
    release: float
    boots: int


def restart(bench: Service, host: str, watch: Watch) -> float:
    """Seconds away in a bare restart."""
    return watch.over(lambda: bench.ssh(host, *SYSTEMCTL[host], "restart", "flashnext.service"))


def switch(bench: Service, host: str, watch: Watch, pair: tuple[int, int]) -> Switched:
    """A resize to this pair."""
    asked = [f"-e{name}={value}" for name, value in zip(("weights_mib", "kv_mib"), pair, strict=True)]
    words = ["ansible-playbook", "resize.yml", "-v", "-l", host, "-e", "probes=none", *asked]
    since = bench.ssh(host, "date", "+%s.%N").strip()
    printed: list[str] = []
    away = watch.over(lambda: printed.append(bench.ansible(*words)))
    release = re.search(r"name: release\n\s+says: .*?\n\s+seconds: ([\d.]+)", printed[0], re.DOTALL)
    if release is None:
        raise SystemExit(f"no phase release was shown:\n{printed[0][-3000:]}")
    starts = ["--filter", "container=flashnext", "--filter", "event=start"]
    events = bench.ssh(host, *PODMAN[host], "events", "--stream=false", "--since", since, *starts)
    return Switched(away, float(release[1]), len(events.splitlines()))


def measure(bench: Service, host: str, repeat: int) -> tuple[list[float], list[Switched]]:
    """Restarts and switches of one host, in turns."""
    restarts, switches = [], []
    watch = Watch(host)
    try:
        # The first boot in the slow world, so that every turn ends one of the same kind.
        restart(bench, host, watch)
        for turn in range(repeat):
            restarts.append(restart(bench, host, watch))
            switches.append(switch(bench, host, watch, PAIRS[turn % 2]))
            print(f"{host}: restart {restarts[-1]:.2f} s, switch {switches[-1].away:.2f} s", flush=True)
    finally:
        watch.close()
    return restarts, switches


def main() -> int:
    """Exit status 0 where the goals are met, or nothing could be tried."""
    parser = argparse.ArgumentParser(description="Downtime of a switch against that of a bare restart.")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--load-seconds", type=float, default=60.0, help="how long the engine loads")
    asked = parser.parse_args()
    with service(asked.load_seconds) as bench:
        if bench is None:
            return 0
        with concurrent.futures.ThreadPoolExecutor() as pool:
            turns = pool.map(lambda host: measure(bench, host, asked.repeat), SYSTEMCTL)
            found = dict(zip(SYSTEMCTL, turns, strict=True))
    print(f"{'':14} {'restart s':>10} {'switch s':>9} {'release s':>10} {'ratio':>6} {'boots':>6}")
    good = True
    for host, (restarts, switches) in found.items():
        release = statistics.median(one.release for one in switches)
        bare, ours = statistics.median(restarts), statistics.median(one.away - one.release for one in switches)
        boots = max(one.boots for one in switches)
        good = good and ours <= TIMES_RESTART * bare and boots == BOOTS
        print(f"{host:14} {bare:10.2f} {ours:9.2f} {release:10.2f} {ours / bare:6.3f} {boots:6}")
    print(f"\ngoals: ratio <= {TIMES_RESTART:g}, boots {BOOTS}: {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
