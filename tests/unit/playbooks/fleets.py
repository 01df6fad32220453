# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet on this machine: hosts over local connections, each with a rehearsal engine of its own, and real runs."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[3]
ENGINE = ROOT / "extensions" / "rehearsal" / "radiance.py"
FLAGS = {"tp": "2", "tp-wire": "wht6", "host-pool-mib": "16384"}
SHAPE = {"max-num-seqs": "3", "max-model-len": "200000", "kv-cache-dtype": "fp8", "num-speculative-tokens": "2"}
PAIR = {"vram-weights-mib": "24000", "vram-kv-mib": "5120"}


class Fleet:
    """Hosts with one service, ``flashnext``, and one fleet directory. ``vars`` holds variables of single hosts."""

    def __init__(self, path: pathlib.Path, names: t.Sequence[str]) -> None:
        self.path = path
        self.hosts: dict[str, dict[str, t.Any]] = {name: self._host(name) for name in names}
        self.vars: dict[str, t.Any] = {
            "endpoint_fleet_dir": str(path / "fleet"),
            "endpoint_probes": "none",
            "endpoint_timeouts": {"drain": 5, "stop": 5, "release": 5, "ready": 30, "probe": 30},
        }

    def _host(self, name: str) -> dict[str, t.Any]:
        own = self.path / name
        (own / "model").mkdir(parents=True)
        (own / "model/flashnext.rad").touch()
        (own / "model/flashnext.world.json").write_text('{"load_speedup": 5000, "serve_speedup": 20}')
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        service = {
            "name": "flashnext",
            "engine": [sys.executable, str(ENGINE)],
            "model": str(own / "model/flashnext.rad"),
            "port": port,
            "log": str(own / "engine.log"),
            "pid_file": str(own / "engine.pid"),
            "flags": FLAGS,
            "per_host": True,
        }
        return {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "endpoint_target_dir": str(own / "target"),
            "endpoint_services": [service],
        }

    def start(self, *names: str) -> None:
        """Start an engine by hand on each of these hosts, or on all, and wait until they listen."""
        for name in names or self.hosts:
            service = self.hosts[name]["endpoint_services"][0]
            flags = {**FLAGS, **SHAPE, **PAIR, "host": "127.0.0.1", "port": str(service["port"])}
            words = [word for flag, value in flags.items() for word in (f"--{flag}", value)]
            with open(service["log"], "ab") as log:
                engine = subprocess.Popen(
                    [*service["engine"], "--model", service["model"], *words],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    env={**os.environ, "LC_ALL": "C"},
                )
            pathlib.Path(service["pid_file"]).write_text(f"{engine.pid}\n")
        end = time.monotonic() + 20
        while not all(self.boots(name) for name in names or self.hosts):
            assert time.monotonic() < end
            time.sleep(0.05)

    def stop(self) -> None:
        """End every engine that a run or a test has left."""
        for name in self.hosts:
            with contextlib.suppress(OSError, ValueError):
                os.kill(self.pid(name), signal.SIGKILL)

    def pid(self, name: str) -> int:
        """Of the engine that runs there."""
        return int((self.path / name / "engine.pid").read_text())

    def boots(self, name: str) -> int:
        """How many boots have come to listen there."""
        log = self.path / name / "engine.log"
        return log.read_text(errors="replace").count("server: listening") if log.exists() else 0

    def slab(self, name: str) -> str:
        """The slab that runs there, from the command line of the process."""
        words = pathlib.Path(f"/proc/{self.pid(name)}/cmdline").read_text().split("\0")
        return words[words.index("--vram-weights-mib") + 1]

    def play(self, name: str, *arguments: str, **environment: str) -> tuple[int, str]:
        """The exit code of a playbook over all hosts, and what it printed, each run of blanks as one."""
        inventory = {"all": {"hosts": self.hosts, "vars": self.vars}}
        (self.path / "hosts.json").write_text(json.dumps(inventory))
        ours = {
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_DISPLAY_FAILED_STDERR": "false",
        }
        done = subprocess.run(
            [sys.executable, "-m", "ansible", "playbook", "-i", str(self.path / "hosts.json"), "-e", "all=true"]
            + [f"playbooks/{name}.yml", *arguments],
            cwd=ROOT,
            env={**os.environ, **ours, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        self.text = done.stdout
        return done.returncode, " ".join(done.stdout.split())

    def summary(self) -> dict[str, t.Any]:
        """summary.json of the last run."""
        content: dict[str, t.Any] = json.loads((self.path / "fleet/.kvfleet/summary.json").read_text())
        return content
