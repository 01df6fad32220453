# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is asked of a service, and what in its answer ends a plan."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _look

PROCESS: dict[str, t.Any] = {
    "name": "flashnext",
    "engine": ["radiance"],
    "model": "/m/flashnext.rad",
    "port": 8000,
    "log": "/l",
    "pid_file": "/p",
    "api_key_file": "/k",
}
UNIT: dict[str, t.Any] = {
    "name": "coder",
    "manager": "systemd_user",
    "runtime": "podman",
    "image": "i",
    "model": "/m/coder.rad",
    "port": 8001,
    "endpoint": "http://10.0.0.2:8001",
    "per_host": True,
}
START = "/srv/radiance/scripts/serve-flashnext.sh"
STATE = "/srv/radiance/.kvfleet"


def question(service: dict[str, t.Any], cross_check: bool = True) -> dict[str, t.Any]:
    return _look.question(
        service,
        "alpha",
        target_dir="/srv/radiance",
        state_dir=STATE,
        others=[{"service": "embed"}],
        cross_check=cross_check,
        last_receipt="crashed",
    )


def test_a_process_is_asked_by_its_log_and_its_pid_file() -> None:
    assert question(PROCESS) == {
        "service": "flashnext",
        "state_dir": STATE,
        "files": ["/srv/radiance/scripts/flashnext.env", START],
        "others": ["embed"],
        "boot": {
            "source": "file",
            "name": "flashnext",
            "scope": "system",
            "path": "/l",
            "pid_file": "/p",
            "receipts": "/srv/radiance/.kvfleet/flashnext/receipts",
            "last_receipt": "crashed",
            "endpoint": "http://127.0.0.1:8000",
            "api_key_file": "/k",
        },
    }


def test_a_unit_is_asked_by_its_container_in_its_scope() -> None:
    asked = question(UNIT)
    assert asked["files"] == [
        "/srv/radiance/scripts/coder.alpha.env",
        "/srv/radiance/scripts/serve-coder.alpha.sh",
    ]
    assert asked["boot"] == {
        "source": "podman",
        "name": "coder",
        "unit": "coder.service",
        "scope": "user",
        "receipts": "/srv/radiance/.kvfleet/coder/receipts",
        "last_receipt": "crashed",
        "endpoint": "http://10.0.0.2:8001",
    }
    assert "endpoint" not in question(UNIT, cross_check=False)["boot"]


def test_a_host_that_tells_nothing_is_no_plan() -> None:
    left = {"interrupted": False, "others_interrupted": [], "on_probation": False}
    answer: dict[str, t.Any] = {"entries": [], "texts": {}, "boot": {}, **left}
    assert _look.no_answer(answer) is None
    for name in ("entries", "boot", "interrupted"):
        found = _look.no_answer({key: value for key, value in answer.items() if key != name})
        assert found == {"word": "refused", "says": "The host's answer is not that of service_info."}
    assert _look.no_answer({"unreachable": True, "msg": "Connection refused"}) == {
        "word": "not_reached",
        "says": "the host does not answer: Connection refused",
    }
    pipe = {"failed": True, "code": "file_unreadable", "msg": "/s/a.env cannot be read: it is no regular file."}
    assert _look.no_answer(pipe) == {
        "word": "refused",
        "says": "/s/a.env cannot be read: it is no regular file.",
        "code": "file_unreadable",
    }
    assert _look.no_answer({"failed": True, "msg": "No python here"}) == {
        "word": "refused",
        "says": "No python here",
    }


def test_a_module_that_died_is_told_by_its_last_words() -> None:
    died = {
        "failed": True,
        "msg": "See stderr for the exact error",
        "module_stderr": "Traceback\nOSError: HF_TOKEN=hf_abcdefgh",
    }
    found = _look.no_answer(died)
    assert found == {"word": "refused", "says": "See stderr for the exact error\nOSError: HF_TOKEN=********"}


@pytest.mark.parametrize("value", [None, "", "srv/radiance", "~/radiance", ["/x"], 5])
def test_a_folder_is_an_absolute_path(value: t.Any) -> None:
    _look.require_path("/srv/radiance", "endpoint_target_dir")
    with pytest.raises(RadianceError, match="endpoint_target_dir is .* Give an absolute path"):
        _look.require_path(value, "endpoint_target_dir")


def test_a_switch_that_is_not_finished_is_finished_by_a_command_of_its_own_line() -> None:
    found = _look.not_ended(PROCESS, "alpha")
    assert (found["word"], found["code"]) == ("refused", "switch_interrupted")
    assert found["says"].splitlines()[-1] == "ansible-playbook playbooks/resize.yml -l alpha -e service=flashnext"


def test_only_a_boot_whose_process_is_there_serves() -> None:
    def fails(boot: dict[str, t.Any]) -> tuple[str, str]:
        found = _look.not_serving(PROCESS, boot, START, [], False)
        return (found["word"], found["says"]) if found else ("", "")

    complete = {"status": "complete", "reason": None, "flags": {"model": "/m"}}
    assert fails({"ledger": complete}) == ("", "")
    # An endpoint that could not be asked leaves what the log tells.
    assert fails({"ledger": complete, "code": "wrong_key", "msg": "The key is wrong."}) == ("", "")
    loading = {"status": "incomplete", "reason": {"code": "not_ready", "text": "It loads."}, "flags": {}}
    assert fails({"ledger": loading, "code": "not_ready", "msg": "It loads."}) == ("not_serving", "It loads.")
    assert fails({"code": "systemd_unreachable", "msg": "systemd does not answer."}) == (
        "refused",
        "systemd does not answer.",
    )
    word, says = fails({"ledger": {**complete, "flags": {}}})
    assert (word, says.startswith("The log /l ends with a complete boot, and /p names no process")) == (
        "not_serving",
        True,
    )
