# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A document of the fleet directory by a real run, of hosts that write at the same time into a file that hands keep."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
HOSTS = ("alpha", "bravo")
TO = {"weights_mib": 24000, "kv_mib": 5120}
HAND = "# Ours\r\n\r\n{{ not_a_variable }} and {% raw %}, by hand\r\n\r\n- a list"


@pytest.fixture
def fleet(tmp_path: pathlib.Path) -> pathlib.Path:
    """Two hosts of one fleet directory, where AGENTS.md is a link to a file with CRLF and no line end at its end."""
    service = {"name": "flashnext", "engine": ["/e"], "model": "/m", "port": 9, "log": "/l", "pid_file": "/p"}
    every: dict[str, t.Any] = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "endpoint_fleet_dir": f"{tmp_path}/fleet",
        "endpoint_service": {**service, "per_host": True},
        "endpoint_run": {
            "service": {**service, "per_host": True},
            "record": [],
            "plan": {"from": TO, "to": TO},
            "making": None,
        },
    }
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {host: {} for host in HOSTS}, "vars": every}}))
    task = {
        "name": "Write the documents",
        "ansible.builtin.include_role": {"name": "kvfleet.radiance.endpoint", "tasks_from": "document"},
        "vars": {"__endpoint_doc": "agents"},
    }
    (tmp_path / "play.json").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [task]}]))
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / "CLAUDE.md").write_text(HAND, newline="")
    (tmp_path / "fleet" / "CLAUDE.md").chmod(0o640)
    (tmp_path / "fleet" / "AGENTS.md").symlink_to("CLAUDE.md")
    return tmp_path


def run(fleet: pathlib.Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ansible",
            "playbook",
            "-i",
            str(fleet / "hosts.json"),
            str(fleet / "play.json"),
        ],
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_hosts_at_the_same_time_and_the_hands_that_keep_the_files(fleet: pathlib.Path) -> None:
    run(fleet)
    agents = fleet / "fleet" / "AGENTS.md"
    text = agents.read_bytes().decode()
    assert text.startswith(HAND + "\r\n\r\n<!-- BEGIN kvfleet.radiance: managed; services -->\r\n")
    assert text.count("\n") == text.count("\r\n")
    rows = [line.split(" ")[3] for line in text.splitlines() if line.startswith("| flashnext on ")]
    assert rows == list(HOSTS)
    assert agents.is_symlink()
    assert agents.stat().st_mode & 0o777 == 0o640
