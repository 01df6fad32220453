# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A template of the role, rendered for several cases by a real play."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[3]


def render(
    folder: pathlib.Path, template: str, dest: str, name: str, cases: t.Sequence[t.Any], **variables: t.Any
) -> None:
    """Write ``template`` of the role to ``folder / dest`` once a case, which the templates know by ``name``."""
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        # Its real path: the one of an environment may hold blanks, which Ansible does not take.
        "vars": {"ansible_python_interpreter": str(pathlib.Path(sys.executable).resolve()), **variables},
        "vars_files": [str(ROOT / "roles/endpoint/vars/main.yml")],
        "tasks": [
            {
                "ansible.builtin.template": {
                    "src": str(ROOT / "roles/endpoint/templates" / template),
                    "dest": f"{folder}/{dest}",
                    "mode": "0755",
                },
                "loop": list(cases),
                "loop_control": {"loop_var": name},
            }
        ],
    }
    (folder / "play.yml").write_text(json.dumps([play]))
    ran = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "-c", "local", str(folder / "play.yml")],
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
