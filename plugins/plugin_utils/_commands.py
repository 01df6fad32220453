# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that a person can paste, for the host and the service that is told of."""

from __future__ import annotations

import re
import shlex


def playbook(play: str, host: str, service: str, *words: str) -> str:
    """The command that runs the playbook ``play`` of ours for one service; ``words`` are further arguments."""
    return " ".join(
        ["ansible-playbook", f"playbooks/{play}.yml", "-l", shlex.quote(host), "-e", _service(service), *words]
    )


def _service(name: str) -> str:
    return shlex.quote(f"service={name}")


def beside(undo: str, play: str = "resize") -> str:
    """The command of ``play`` in the same place, for the same host and service, as the one that undoes a resize."""
    return re.sub(r"\brollback\b", play, re.sub(r" -e to=\S+", "", undo), count=1)


def for_other(command: str, service: str, other: str) -> str:
    """The command for one service as that for another; where none is named, the other is added."""
    named = re.compile(rf"(?<=-e ){re.escape(_service(service))}(?=\s|$)")
    if not named.search(command):
        return f"{command} -e {_service(other)}"
    return named.sub(lambda _found: _service(other), command)
