# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""playbooks/history.yml by a real run: a host that answers and one that does not, and a file of arms."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _records

ROOT = pathlib.Path(__file__).resolve().parents[3]
ARMS = """\
- {weights_mib: 22208, prefill_tps: 3397, prompt_tokens: 43500, kv_cache_dtype: fp8}
- {weights_mib: 24000, prefill_tps: 3290, prompt_tokens: 43500, kv_cache_dtype: fp8}
- {weights_mib: 25600, prefill_tps: 3584, prompt_tokens: 43500, kv_cache_dtype: fp8}
- {weights_mib: 26071, prefill_tps: 4379, prompt_tokens: 43500, kv_cache_dtype: fp8}
- {weights_mib: 26071, decode_tps: 124.1, prompt_tokens: 51500, generated_tokens: 512, kv_cache_dtype: fp8}
- {weights_mib: 22208, decode_tps: 94.1, prompt_tokens: 51500, generated_tokens: 512, kv_cache_dtype: bf16}
"""
VERDICT = "{quantity: prefill_tps, predicted: {low: 4200, high: 4500}, measured: 4379, unit: t/s, verdict: held}"
SERVICE = {
    "name": "flashnext",
    "engine": ["/usr/bin/radiance"],
    "model": "/m.rad",
    "port": 9,
    "log": "/none/engine.log",
    "pid_file": "/none/engine.pid",
}


@pytest.fixture
def fleet(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with an inventory of two hosts, ``up`` and ``down``; neither serves anything."""
    silent = tmp_path / "ssh"
    silent.write_text("#!/bin/sh\n[ -t 0 ] || cat >/dev/null\necho 'no route to host' >&2\nexit 255\n")
    silent.chmod(0o755)
    hosts: dict[str, t.Any] = {
        "up": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable},
        "down": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_ssh_executable": str(silent)},
    }
    for name, host in hosts.items():
        host |= {"endpoint_fleet_dir": f"{tmp_path}/{name}/fleet", "endpoint_target_dir": f"{tmp_path}/{name}/target"}
    inventory = {"all": {"hosts": hosts, "vars": {"endpoint_services": [SERVICE]}}}
    (tmp_path / "hosts.json").write_text(json.dumps(inventory))
    (tmp_path / "arms.yml").write_text(ARMS)
    return tmp_path


def run(fleet: pathlib.Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", str(fleet / "hosts.json"), "-e", "all=true"]
        + ["playbooks/history.yml", *arguments],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
        | {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"), "ANSIBLE_DISPLAY_FAILED_STDERR": "false"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, " ".join(done.stdout.split())


def test_arms_of_a_file_are_added_once_and_shown(fleet: pathlib.Path) -> None:
    there = fleet / "up/target/.kvfleet/flashnext/records.jsonl"
    here = {name: fleet / name / "fleet/records/flashnext.jsonl" for name in ("up", "down")}

    (fleet / "past.yml").write_text(f"arms:\n{ARMS}verdicts:\n- {VERDICT}\n")
    code, said = run(fleet, "-e", f"import={fleet}/past.yml")
    assert code == 0, said
    assert said.count("added 7 of 7 arms and verdicts of") == 2
    assert said.count("– prefill_tps 4,200 to 4,500 t/s 4,379 held") == 2
    assert "The record on the host, joined with the one in the fleet directory." in said
    assert "The record in the fleet directory alone, because the one on the host cannot be read: " in said
    assert "no route to host" in said
    for row in ("– 26,071 4,379 – 43,500 fp8 – – import –", "– 22,208 – 94.1 51,500 bf16 – – import –"):
        assert said.count(row) == 2, said
    first = {name: path.read_bytes() for name, path in here.items()}
    assert there.read_bytes() == first["up"]
    lines = [entry.get("weights_mib", entry["kind"]) for entry in _records.read(str(here["down"]))]
    assert lines == [22208, 24000, 25600, 26071, 26071, 22208, "past_verdict"]

    # The same arms, written down at another time, are the same arms. Check mode says what is new.
    (fleet / "arms.yml").write_text(f"{ARMS}- {{weights_mib: 20000, prefill_tps: 3000.0}}\n")
    code, said = run(fleet, "-e", f"import={fleet}/arms.yml", "-l", "up", "--check")
    assert code == 0, said
    assert "would add 1 of 7 arms of" in said
    assert here["up"].read_bytes() == there.read_bytes() == first["up"]
