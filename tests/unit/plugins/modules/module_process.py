# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module as its own process, like Ansible runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import typing as t

_PROGRAM = (
    "import sys, json, importlib; sys.path[:] = json.loads(sys.argv[1]);"
    "from ansible.module_utils import basic;"
    "basic._ANSIBLE_ARGS = sys.argv[2].encode(); basic._ANSIBLE_PROFILE = 'legacy';"
    "importlib.import_module('ansible_collections.kvfleet.radiance.plugins.modules.' + sys.argv[3]).main()"
)


def start(module: str, arguments: dict[str, t.Any]) -> subprocess.Popen[str]:
    """The process; what it prints is its result."""
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), json.dumps({"ANSIBLE_MODULE_ARGS": arguments}), module],
        stdout=subprocess.PIPE,
        text=True,
    )


def run(module: str, arguments: dict[str, t.Any]) -> dict[str, t.Any]:
    """Its result."""
    result: dict[str, t.Any] = json.loads(start(module, arguments).communicate()[0])
    return result
