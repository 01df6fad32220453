# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet on this machine: hosts over local connections, and real runs of the playbooks over them."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Fleet:
    """Hosts with one service, ``flashnext``, that does not run, and one fleet directory for all."""

    def __init__(self, path: pathlib.Path, names: t.Sequence[str]) -> None:
        self.path = path
        self.hosts: dict[str, dict[str, t.Any]] = {name: self._host(path / name) for name in names}
        self.vars: dict[str, t.Any] = {"endpoint_fleet_dir": str(path / "fleet"), "endpoint_probes": "none"}

    def _host(self, own: pathlib.Path) -> dict[str, t.Any]:
        service = {
            "name": "flashnext",
            "engine": ["/usr/bin/radiance"],
            "model": "/m.rad",
            "port": 9,
            "log": str(own / "engine.log"),
            "pid_file": str(own / "engine.pid"),
            "per_host": True,
        }
        return {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "endpoint_target_dir": str(own / "target"),
            "endpoint_services": [service],
        }

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
        return done.returncode, " ".join(done.stdout.split())

    def summary(self) -> dict[str, t.Any]:
        """summary.json of the last run."""
        content: dict[str, t.Any] = json.loads((self.path / "fleet/.kvfleet/summary.json").read_text())
        return content
