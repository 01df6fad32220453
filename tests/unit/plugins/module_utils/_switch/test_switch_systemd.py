# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a unit can be told without a systemd; real units are switched on the test hosts of extensions/hosts."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.unit import exec_words
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import release
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import manager_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import TIMEOUTS, read_request

SHOWN = (
    "{ path=/opt/inference/scripts/serve-flashnext.sh ; argv[]=/opt/inference/scripts/serve-flashnext.sh --quiet ; "
    "ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }\n"
)


def options(**more: t.Any) -> dict[str, t.Any]:
    return {"service": "flashnext", "source": None, "state_dir": "/srv/radiance/.kvfleet", **TIMEOUTS, **more}


def test_the_words_of_exec_start() -> None:
    assert exec_words(SHOWN) == ["/opt/inference/scripts/serve-flashnext.sh", "--quiet"]
    assert exec_words("\n") == []


def test_a_unit_has_its_names_from_the_service() -> None:
    described = read_request(options(manager="systemd")).manager
    assert described == {
        "kind": "systemd",
        "unit": "flashnext.service",
        "scope": "system",
        "source": "podman",
        "name": "flashnext",
        "script": None,
    }
    assert manager_of(described).described == described
    assert manager_of(described).start_argv == ["systemctl", "start", "flashnext.service"]


def test_a_unit_of_a_user_with_names_of_its_own() -> None:
    wanted = options(manager="systemd_user", unit="llm.service", source="journald", name="x", start=["/srv/serve.sh"])
    manager = manager_of(read_request(wanted).manager)
    assert manager.described["scope"] == "user"
    assert manager.described["script"] == "/srv/serve.sh"
    assert manager.stop_argv(1) == ["systemctl", "--user", "stop", "llm.service"]
    assert manager.by_hand(None, ["mv a b"]) == [
        "mv a b",
        "systemctl --user reset-failed llm.service",
        "systemctl --user start llm.service",
    ]
    assert manager.writes() == []


def test_a_process_is_described_for_its_journal() -> None:
    wanted = options(manager="process", start=["/srv/serve.sh"], pid_file="/srv/engine.pid", path="/srv/engine.log")
    described = read_request(wanted).manager
    assert described == {
        "kind": "process",
        "start": ["/srv/serve.sh"],
        "pid_file": "/srv/engine.pid",
        "log": "/srv/engine.log",
    }
    assert manager_of(described).described == described


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"manager": "systemd", "source": "file"}, "podman, docker or journald; source is file"),
        ({"manager": "systemd", "start": ["serve.sh"]}, "absolute path"),
        (
            {"manager": "process", "start": ["/s"], "pid_file": "/p", "path": "/l", "source": "podman"},
            "a file; source is podman",
        ),
        ({"manager": "process", "start": ["/s"], "pid_file": "p", "path": "/l"}, "pid_file 'p'"),
        ({"manager": "process", "start": [], "pid_file": "/p", "path": "/l"}, "absolute path"),
        ({"manager": "systemd", "state_dir": "here"}, "state_dir 'here'"),
    ],
)
def test_options_that_do_not_go_together(wanted: dict[str, t.Any], said: str) -> None:
    with pytest.raises(RadianceError) as error:
        read_request(options(**wanted))
    assert error.value.code == "option_unusable"
    assert said in error.value.text


def test_the_children_of_a_process() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        child = int(shell.stdout.readline())
        assert release.children(shell.pid) == [child]
        assert release.children(child) == []
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize(
    ("device", "opens"),
    [("/dev/kfd", True), ("/dev/dri/renderD128", True), ("/dev/null", False), ("/srv/dev/kfd", False)],
)
def test_the_engine_behind_a_first_process_is_looked_at(tmp_path: pathlib.Path, device: str, opens: bool) -> None:
    """A container's first process may be an init, which has no card open itself."""
    for pid, begun, opened in ((1, "2 ", "/dev/null"), (2, "3 ", "/dev/null"), (3, "", device)):
        task, fd = tmp_path / str(pid) / "task" / str(pid), tmp_path / str(pid) / "fd"
        task.mkdir(parents=True)
        fd.mkdir()
        (task / "children").write_text(begun)
        (fd / "0").symlink_to("/dev/null")
        (fd / "7").symlink_to(opened)
    assert [release.opens_a_card(pid, str(tmp_path)) for pid in (1, 2, 3, 4)] == [opens, opens, opens, False]
