# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""An operator's task_timeout cuts off neither the following of a switch nor a probe that judges one."""

from __future__ import annotations

import pathlib

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_the_plays_that_switch_have_no_time_limit_of_a_task() -> None:
    plays = yaml.safe_load((ROOT / "playbooks/resize.yml").read_text())
    assert [(play["name"].split(",")[0], play.get("timeout")) for play in plays if "serial" in play] == [
        ("Resize", 0),
        ("Undo what was switched", 0),
    ]


def test_the_one_call_of_the_switch_has_none() -> None:
    (task, *_rest) = yaml.safe_load((ROOT / "roles/endpoint/tasks/call_switch.yml").read_text())
    assert "kvfleet.radiance.service_switch" in task and task["timeout"] == 0
