# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan of a fleet costs, against ``ansible -m ping`` of the same hosts: time, commands a host, memory.

    python3 tests/bench/fleet.py [--hosts 40] [--forks 5] [--repeat 3]

The hosts are an SSH server in this process, in turn asked by Ansible's own ssh with the same settings for both; each
has files of its own, and all have one rehearsal engine, its log and its pid file. A row has the best of the
repetitions, which ping and plan take in turns. ``cold`` begins without a connection, ``warm`` has those of a run
before. paramiko is in an environment of its own under .cache/. The exit status is 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import typing as t
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
OWN = ROOT / ".cache" / "bench-fleet"
REQUIREMENTS = pathlib.Path(__file__).with_name("fleet-requirements.txt")
# The goal: a plan against a ping.
TIMES_PING = 3.0
HEAD = """\
                    seconds             ratio of     peak MiB      commands a host
                    ping    plan   time processor   ping   plan   ping   plan"""
ASKED = ["-e", "max_num_seqs=2", "-e", "fill=true"]


def in_own_environment() -> None:
    """Go on in the environment that has paramiko, made or renewed where its requirements have changed."""
    python, stamp = OWN / "bin" / "python", OWN / "installed"
    if not stamp.is_file() or stamp.read_text() != REQUIREMENTS.read_text():
        shutil.rmtree(OWN, ignore_errors=True)
        venv.create(OWN, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--only-binary", ":all:", "-r", REQUIREMENTS], check=True)
        stamp.write_text(REQUIREMENTS.read_text())
    if pathlib.Path(sys.prefix) != OWN:
        os.execv(python, [str(python), *sys.argv])


class Cost(t.NamedTuple):
    """Seconds of wall clock and of processor, peak memory of the controller's largest process in MiB, commands."""

    seconds: float
    processor: float
    peak: float
    commands: int


class Fleet:
    """The engine, the files of every host, and Ansible's view of them."""

    def __init__(self, folder: pathlib.Path, count: int, forks: int) -> None:
        from ssh_hosts import Hosts

        self.folder, self.forks = folder, forks
        self._rehearsal = folder / "rehearsal"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
            "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
            "ANSIBLE_NOCOLOR": "1",
            "REHEARSAL_DIR": str(self._rehearsal),
            "REHEARSE_VENV": str(ROOT / ".venv"),
        }
        # A resize leaves a record; a plan leaves the engine running.
        for play, *more in (("resize", "-e", "probes=none"), ("plan",)):
            argv = [str(ROOT / "rehearse"), "--play", play, *more]
            done = subprocess.run(argv, env=self._environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stdout[-3000:] + done.stderr[-1000:])
        self.names = [f"host-{number:02d}" for number in range(1, count + 1)]
        self.hosts = Hosts(folder, self.names)
        for name in self.names:
            for part in ("fleet", "target"):
                shutil.copytree(self._rehearsal / part, folder / part / name, symlinks=True)
            fleet = str(folder / "fleet" / name)
            identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.invalid"]
            for words in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "the fleet"]):
                subprocess.run(["git", "-C", fleet, *words], check=True)
        self._write_inventory()

    def _write_inventory(self) -> None:
        control = self.folder / "control"
        shared = ROOT / "inventory" / "host_vars" / "rehearsal.yml"
        told = {
            **self.hosts.inventory(control),
            "ansible_python_interpreter": str(pathlib.Path(sys.executable).resolve()),
            "ansible_playbook_python": str(BIN / "python"),
            "inventory_dir": str(ROOT / "inventory"),
        }
        (self.folder / "inventory" / "group_vars").mkdir(parents=True)
        shutil.copy(shared, self.folder / "inventory" / "group_vars" / "many.yml")
        inventory = {"many": {"hosts": dict.fromkeys(self.names), "vars": told}}
        (self.folder / "inventory" / "hosts.yml").write_text(json.dumps(inventory))
        self._more = [
            *("-e", f"endpoint_fleet_dir={self.folder}/fleet/{{{{ inventory_hostname }}}}"),
            *("-e", f"endpoint_target_dir={self.folder}/target/{{{{ inventory_hostname }}}}"),
        ]

    def run(self, program: str, words: t.Sequence[str], warm: bool) -> Cost:
        """One run of Ansible, and what the hosts were asked in it."""
        if not warm:
            self._hang_up()
        before = sum(self.hosts.asked.values())
        argv = [str(BIN / program), "-i", str(self.folder / "inventory"), "-f", str(self.forks), *words]
        began = time.perf_counter()
        with open(self.folder / "printed", "w+") as printed:
            process = subprocess.Popen(
                argv, cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed
            )
            _pid, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                printed.seek(0)
                raise SystemExit(printed.read()[-4000:])
        commands = sum(self.hosts.asked.values()) - before
        return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, commands)

    def ping(self, count: int, warm: bool) -> Cost:
        return self.run("ansible", [":".join(self.names[:count]), "-m", "ansible.builtin.ping"], warm)

    def plan(self, count: int, warm: bool) -> Cost:
        limit = ["-l", ":".join(self.names[:count])]
        return self.run("ansible-playbook", [str(ROOT / "playbooks" / "plan.yml"), *limit, *self._more, *ASKED], warm)

    def _hang_up(self) -> None:
        for control in (self.folder / "control").glob("*"):
            subprocess.run(["ssh", "-o", f"ControlPath={control}", "-O", "exit", "x"], capture_output=True, check=False)

    def close(self) -> None:
        self._hang_up()
        self.hosts.close()
        pid = int((self._rehearsal / "engine.pid").read_text())
        if os.path.samefile(f"/proc/{pid}/fd/2", self._rehearsal / "engine.log"):
            os.kill(pid, signal.SIGTERM)


def best(costs: t.Sequence[Cost]) -> Cost:
    """The shortest times, the highest peak, the most commands."""
    return Cost(
        min(cost.seconds for cost in costs),
        min(cost.processor for cost in costs),
        max(cost.peak for cost in costs),
        max(cost.commands for cost in costs),
    )


def row(name: str, count: int, ping: Cost, plan: Cost) -> bool:
    """Print it; whether the goal is met."""
    times = plan.seconds / ping.seconds
    print(
        f"{name:<16} {ping.seconds:7.2f} {plan.seconds:7.2f} {times:6.2f} {plan.processor / ping.processor:9.2f} "
        f"{ping.peak:6.0f} {plan.peak:6.0f} {ping.commands / count:6.1f} {plan.commands / count:6.1f}",
        flush=True,
    )
    return times <= TIMES_PING


def main() -> int:
    """Exit status 0 where the goal is met."""
    parser = argparse.ArgumentParser(description="What a plan of a fleet costs, against a ping of the same hosts.")
    parser.add_argument("--hosts", type=int, default=40)
    parser.add_argument("--forks", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=3, help="the best of so many")
    asked = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(prefix="kvfleet-bench-") as made:
        fleet = Fleet(pathlib.Path(made), asked.hosts, asked.forks)
        try:
            print(HEAD)
            for count in sorted({1, asked.hosts}):
                for word in ("cold", "warm"):
                    turns = [
                        (fleet.ping(count, word == "warm"), fleet.plan(count, word == "warm"))
                        for _turn in range(asked.repeat)
                    ]
                    pings, plans = zip(*turns, strict=True)
                    good = row(f"{count} hosts, {word}", count, best(pings), best(plans)) and good
        finally:
            fleet.close()
    print(f"\ngoal: a plan <= {TIMES_PING:g} times a ping: {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    in_own_environment()
    sys.exit(main())
