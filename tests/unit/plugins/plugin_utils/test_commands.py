# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands to paste are for the host and the service that they are told of."""

from __future__ import annotations

import shlex

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _commands


def test_a_shell_takes_a_name_for_one_word() -> None:
    command = _commands.playbook("plan", "a host", "a;b", "-e fill=true")
    assert shlex.split(command) == [
        *("ansible-playbook", "playbooks/plan.yml", "-l", "a host", "-e", "service=a;b"),
        *("-e", "fill=true"),
    ]
    assert _commands.playbook("p", "box", "day") == "ansible-playbook playbooks/p.yml -l box -e service=day"


@pytest.mark.parametrize(
    ("command", "other"),
    [
        ("resize.yml -e service=day -e fill=true", "resize.yml -e service=night -e fill=true"),
        ("resize.yml -e service=day", "resize.yml -e service=night"),
        # One of an inventory that has a single service, or says it by a name of its own
        ("./rehearse --play resize", "./rehearse --play resize -e service=night"),
        ("make resize OF=day", "make resize OF=day -e service=night"),
        ("resize.yml -e service=days", "resize.yml -e service=days -e service=night"),
    ],
)
def test_a_command_for_another_service_names_that_one(command: str, other: str) -> None:
    assert _commands.for_other(command, "day", "night") == other
