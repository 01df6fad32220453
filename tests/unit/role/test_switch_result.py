# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a switch came to is its own result, by a real run of the step after another one."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
EARLIER = {"outcome": "switched", "phases": [{"name": "precheck", "says": "of another service"}]}


def test_a_switch_that_is_never_called_has_no_result_of_an_earlier_one(tmp_path: pathlib.Path) -> None:
    service = {"name": "flashnext", "engine": ["/e"], "model": "/m", "port": 9, "log": "/l", "pid_file": "/p"}
    run = {"service": service, "plan": {"restart": False}, "making": None, "record": []}
    tasks = [
        {"name": "Switch another", "ansible.builtin.set_fact": {"__endpoint_switch": EARLIER, "endpoint_run": run}},
        {
            "name": "Switch",
            "ansible.builtin.include_role": {"name": "kvfleet.radiance.endpoint", "tasks_from": "switch"},
        },
        {
            "name": "Tell",
            "ansible.builtin.copy": {"content": "{{ endpoint_run | to_json }}", "dest": f"{tmp_path}/run.json"},
        },
    ]
    told = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "endpoint_service": service}
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {"alpha": told}}}))
    play = {"hosts": "all", "gather_facts": False, "tasks": tasks}
    (tmp_path / "play.json").write_text(json.dumps([play]))
    # Nothing that the call is made from can be told.
    broken = {"__endpoint_to_do": True, "__endpoint_by_hand": "{{ nobody_has_this }}"}
    command = [sys.executable, "-m", "ansible", "playbook", "-i", f"{tmp_path}/hosts.json", "-e", json.dumps(broken)]
    command += [f"{tmp_path}/play.json"]
    env = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": f"{ROOT}/collections"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    came_to = json.loads((tmp_path / "run.json").read_text())
    assert came_to["switched"] == {}
    assert "nobody_has_this" in came_to["failure"]["says"]
