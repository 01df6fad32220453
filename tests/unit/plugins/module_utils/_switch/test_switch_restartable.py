# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that somebody started by hand, on a target that has none of the files that a switch installs."""

from __future__ import annotations

import os
import pathlib
import stat
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    NEW,
    OLD,
    Service,
    env_text,
    wait_until,
)


@pytest.fixture(name="bare")
def bare_fixture(service: Service) -> Service:
    """The service runs by its engine's command line; its files are to lie in folders that are not there yet."""
    argv, text = service.argv(), service.serve.read_text()
    service.kill_all()
    service.env.unlink()
    service.serve.unlink()
    scripts = service.folder / "target" / "scripts"
    text = text.replace(f". {service.env}", f". {scripts}/flash.env")
    service.env, service.serve = scripts / "flash.env", scripts / "serve.sh"
    service.script = text  # type: ignore[attr-defined]
    service.by_hand(*argv)
    wait_until(lambda: "server: listening" in service.log.read_text())
    return service


def wanted(service: Service, to: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    return [
        {"dest": str(service.env), "content": env_text(to), "mode": None},
        {"dest": str(service.serve), "content": service.script, "mode": "0755"},  # type: ignore[attr-defined]
    ]


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_switch_whose_way_back_has_nothing_to_start_stops_nothing(bare: Service, check_mode: bool) -> None:
    pid = bare.pid()
    result = bare.run(NEW, check_mode, files=wanted(bare, NEW), endpoint=bare.endpoint)
    assert (result["code"], result["outcome"], result["changed"]) == ("no_way_back", "unchanged", False)
    assert f"{bare.serve} is not on the target yet, and start needs it" in result["msg"]
    assert "files and expect.to are those of 24,000 + 5,120 restarts nothing" in result["msg"]
    assert (bare.pid(), bare.serves(), bare.serve.exists()) == (pid, True, False)
    assert not (bare.state / "journal.json").exists()


def test_the_files_of_what_runs_are_installed_first_and_then_there_is_a_way_back(bare: Service) -> None:
    pid, everything = bare.pid(), bare.everything()
    would = bare.run(OLD, check_mode=True, files=wanted(bare, OLD))
    assert (would["outcome"], would["changed"], would["failed"]) == ("unchanged", True, False)
    assert [entry["after"] for entry in would["diff"]] == [env_text(OLD), bare.script]  # type: ignore[attr-defined]
    assert bare.everything() == everything

    mask = os.umask(0o077)
    try:
        did = bare.run(OLD, files=wanted(bare, OLD))
    finally:
        os.umask(mask)
    assert (did["outcome"], did["changed"], did["diff"]) == ("unchanged", True, would["diff"])
    assert bare.pid() == pid
    for folder in (bare.serve.parent, bare.serve.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert stat.S_IMODE(bare.serve.stat().st_mode) == 0o755

    bare.arm("refuse_boot")
    result = bare.run(NEW, files=wanted(bare, NEW))
    assert (result["outcome"], result["code"], bare.pair()) == ("rolled_back", "engine_refused", "24000+5120")
    assert bare.serves()


def test_each_file_that_the_way_back_needs_is_asked_for_by_itself(bare: Service) -> None:
    bare.run(OLD, files=wanted(bare, OLD))
    # The env that the serve script reads
    bare.env.unlink()
    result = bare.run(NEW, files=wanted(bare, NEW), check_mode=True)
    assert (result["code"], f"{bare.env} is not on the target yet" in result["msg"]) == ("no_way_back", True)
    # a script that an interpreter starts
    bare.env.write_text(env_text(OLD))
    bare.serve.unlink()
    result = bare.run(NEW, files=wanted(bare, NEW), check_mode=True, start=["/bin/sh", str(bare.serve)])
    assert (result["code"], f"{bare.serve} is not on the target yet" in result["msg"]) == ("no_way_back", True)
    # a script that is there, and that would be put back as one that nobody may run
    bare.serve.write_text(bare.script)  # type: ignore[attr-defined]
    bare.serve.chmod(0o644)
    result = bare.run(NEW, files=wanted(bare, NEW), check_mode=True)
    assert (result["code"], "not an executable file" in result["msg"]) == ("no_way_back", True)
    # and all of it there is no refusal.
    bare.serve.chmod(0o755)
    assert bare.run(NEW, files=wanted(bare, NEW), check_mode=True)["outcome"] == "switched"


def test_a_service_that_does_not_run_needs_no_way_back(bare: Service) -> None:
    bare.kill_all()
    result = bare.run(NEW, files=wanted(bare, NEW))
    assert (result["outcome"], bare.pair()) == ("switched", "25844+5119")


def test_a_first_start_that_fails_leaves_nothing_for_the_next_run_to_fail_on(bare: Service) -> None:
    bare.kill_all()
    bare.arm("refuse_boot")
    result = bare.run(NEW, files=wanted(bare, NEW))
    assert (result["outcome"], result["code"], result["by_hand"]) == ("failed", "engine_refused", [])
    assert "Nothing ran before the switch, and nothing runs now" in result["msg"]
    assert not bare.serve.exists() and not (bare.state / "journal.json").exists()
    assert bare.run(OLD, files=wanted(bare, OLD))["outcome"] == "switched"


def test_a_file_where_a_folder_is_needed_is_found_before_the_stop(service: Service) -> None:
    pid = service.pid()
    (service.folder / "none").write_text("a file\n")
    dest = service.folder / "none" / "deeper" / "added.txt"
    for check_mode in (True, False):
        result = service.run(NEW, check_mode, files=[{"dest": str(dest), "content": "x"}])
        assert result["code"] == "file_unusable"
        assert f"{dest} cannot be read: Not a directory" in result["msg"]
    assert service.pid() == pid


def test_a_switch_makes_the_folders_of_its_files(service: Service) -> None:
    dest = service.folder / "a" / "b" / "added.txt"
    files = [*service.options(NEW)["files"], {"dest": str(dest), "content": "x"}]
    assert service.run(NEW, files=files)["outcome"] == "switched"
    assert dest.read_text() == "x"
    assert [stat.S_IMODE(pathlib.Path(path).stat().st_mode) for path in (dest.parent, dest.parent.parent)] == [
        0o755
    ] * 2
