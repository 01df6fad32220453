# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan of one real test host costs, against ``ansible -m ping`` of the same: time, and commands over ssh.

    python3 tests/bench/round_trips.py [--repeat 3]

Each host in its own turn, ping and plan one after the other, by Ansible's own ssh to a real sshd, with sudo on one of
them and podman on both. A row has the best of the repetitions. ``cold`` begins without a connection, ``warm`` has the
one of a run before. Commands are those that Ansible tells of, in a run of its own. The hosts are those of
KVFLEET_HOSTS_STATE where they are up, else they are brought up and taken down. The exit status is 1 where the goal is
missed.
"""

from __future__ import annotations

import argparse
import sys
import time

from real_hosts import HOMES, Service, service

# The goal: a plan against a ping.
TIMES_PING = 3.0
RUNS = {
    "ping": ["ansible", "-m", "ansible.builtin.ping"],
    "plan": ["ansible-playbook", "playbooks/plan.yml", "-e", "fill=true", "-e", "max_num_seqs=2"],
}


def seconds(bench: Service, host: str, name: str, warm: bool) -> float:
    """The wall clock of one run."""
    if not warm:
        bench.hang_up()
    began = time.perf_counter()
    run(bench, host, name)
    return time.perf_counter() - began


def run(bench: Service, host: str, name: str, *more: str) -> str:
    pattern = [host] if name == "ping" else ["-l", host]
    return bench.ansible(*RUNS[name], *pattern, *more)


def main() -> int:
    """Exit status 0 where the goal is met, or nothing could be tried."""
    parser = argparse.ArgumentParser(description="What a plan of one host costs, against a ping.")
    parser.add_argument("--repeat", type=int, default=3, help="the best of so many")
    asked = parser.parse_args()
    good = True
    with service(1.0) as bench:
        if bench is None:
            return 0
        print(f"{'':20} {'ping s':>7} {'plan s':>7} {'ratio':>6}   commands of each")
        for host in HOMES:
            commands = {name: run(bench, host, name, "-vvv").count("SSH: EXEC") for name in RUNS}
            for word in ("cold", "warm"):
                turns = [
                    {name: seconds(bench, host, name, word == "warm") for name in RUNS} for _turn in range(asked.repeat)
                ]
                ping, plan = (min(turn[name] for turn in turns) for name in RUNS)
                good = good and plan <= TIMES_PING * ping
                told = f"{commands['ping']}, {commands['plan']}"
                print(f"{host + ', ' + word:20} {ping:7.2f} {plan:7.2f} {plan / ping:6.2f}   {told}", flush=True)
    print(f"\ngoal: a plan <= {TIMES_PING:g} times a ping: {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
