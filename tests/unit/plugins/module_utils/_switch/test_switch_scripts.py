# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scripts that a switch leaves on the host, run by each shell that is there."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import host_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import boot_guard, unit_files
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.scripts import (
    Until,
    probation_script,
    restore_script,
)
from hypothesis import given, settings
from hypothesis import strategies as st

SHELLS = [words for words in (["sh"], ["dash"], ["busybox", "sh"], ["bash", "--posix"]) if shutil.which(words[0])]
NAMES = st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..") and len(name.encode()) < 60
)
SOON = 3600


def entries(folder: pathlib.Path, name: str) -> list[dict[str, t.Any]]:
    """A file that was replaced, with its copy beside it, and one that was not there before."""
    old, dest, new = folder / f".{name}.id.old", folder / name, folder / f"{name}.fresh"
    old.write_text("before")
    dest.write_text("after")
    new.write_text("after")
    return [
        {"dest": str(dest), "existed": True, "old": str(old)},
        {"dest": str(new), "existed": False, "old": None},
    ]


def texts(rows: list[dict[str, t.Any]]) -> list[str | None]:
    return [pathlib.Path(row["dest"]).read_text() if os.path.exists(row["dest"]) else None for row in rows]


def run(script: str, shell: list[str] = SHELLS[0], **environment: str) -> int:  # noqa: B006
    """By a file, as systemd does it."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="") as file:
        file.write(script)
        file.flush()
        env = {"PATH": os.environ["PATH"], **environment}
        return subprocess.run([*shell, file.name], check=False, env=env, stdin=subprocess.DEVNULL).returncode


@settings(max_examples=15, deadline=None)
@given(name=NAMES)
def test_any_name_of_a_file_is_restored(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder) / name
        place.mkdir()
        rows = entries(place, "env of " + name)
        journal = place / "journal"
        journal.touch()
        script = restore_script("flash", "another boot", str(journal), rows)
        assert run(script) == 0
        assert texts(rows) == ["before", None]
        assert run(script) == 0, "the second time"
        assert texts(rows) == ["before", None]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
def test_nothing_is_restored_in_the_boot_of_the_switch_or_after_it(tmp_path: pathlib.Path, shell: list[str]) -> None:
    rows = entries(tmp_path, "env")
    journal = tmp_path / "journal"
    assert run(restore_script("flash", "another boot", str(journal), rows), shell) == 0
    assert texts(rows) == ["after", "after"]
    journal.touch()
    assert run(restore_script("flash", host_boot(), str(journal), rows), shell) == 0
    assert texts(rows) == ["after", "after"]
    assert run(restore_script("flash", "another boot", str(journal), rows), shell) == 0
    assert texts(rows) == ["before", None]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
def test_what_had_given_up_its_cards_is_started_in_another_boot_alone(tmp_path: pathlib.Path, shell: list[str]) -> None:
    rows, journal, asked = entries(tmp_path, "env"), tmp_path / "journal", tmp_path / "asked"
    program = tmp_path / "system ctl"
    program.write_text(f'#!/bin/sh\necho "$*" >>{asked}\n[ "$3" != gone.service ]\n', encoding="utf-8")
    program.chmod(0o755)
    journal.touch()
    then = [[str(program), "stop", "--no-block", "night.service"], [str(program), "start", "--no-block", "day.service"]]
    assert run(restore_script("night", host_boot(), str(journal), rows, then), shell) == 0
    assert not asked.exists()
    assert run(restore_script("night", "another boot", str(journal), rows, then), shell) == 0
    assert texts(rows) == ["before", None]
    assert asked.read_text() == "stop --no-block night.service\nstart --no-block day.service\n"
    gone = [[str(program), "start", "--no-block", "gone.service"]]
    assert run(restore_script("night", "another boot", str(journal), rows, gone), shell) == 1


class Watched:
    """What a probation leaves, and a systemctl that tells of jobs and keeps what it was asked."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.rows = entries(folder, "env")
        self.armed, self.mark, self.asked = folder / "armed", folder / "mark", folder / "asked"
        self.armed.touch()
        self.jobs = folder / "jobs"
        self.jobs.write_text("  7 other.service stop waiting\n")
        program = folder / "systemctl"
        program.write_text(
            f'#!/bin/sh\necho "$*" >>{self.asked}\ncase $* in *list-jobs*) cat {self.jobs} ;; esac\n', encoding="utf-8"
        )
        program.chmod(0o755)

    def ends(self, told: str, shell: list[str], until: Until | None = None) -> int:
        """The unit stops with ``RESULT CODE STATUS``."""
        result, code, status = told.split()
        with open("/proc/uptime", encoding="ascii") as file:
            now = int(float(file.read().split()[0]))
        until = until or Until(host_boot(), now + SOON, 0)
        armed, mark = str(self.armed), str(self.mark)
        script = probation_script("flash", "flash.service", "user", until, armed, mark, self.rows)
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        return run(script, shell, PATH=path, SERVICE_RESULT=result, EXIT_CODE=code, EXIT_STATUS=status)

    def starts(self) -> int:
        """How often the unit was to be started."""
        text = self.asked.read_text() if self.asked.exists() else ""
        return text.count("--user start --no-block flash.service\n")


@pytest.fixture(name="watched")
def watched_fixture(tmp_path: pathlib.Path) -> Watched:
    """A pair on probation for an hour."""
    return Watched(tmp_path)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
@pytest.mark.parametrize("told", ["exit-code exited 137", "signal killed KILL", "core-dump dumped SEGV"])
def test_a_crash_returns_once(watched: Watched, told: str, shell: list[str]) -> None:
    assert watched.ends(told, shell) == 0
    assert (texts(watched.rows), watched.starts()) == (["before", None], 1)
    assert watched.mark.read_text().split()[1:] == told.split()
    assert not watched.armed.exists()
    pathlib.Path(watched.rows[0]["dest"]).write_text("of another hand")
    assert watched.ends(told, shell) == 0
    assert (texts(watched.rows), watched.starts()) == (["of another hand", None], 1)


@pytest.mark.parametrize(
    "told", ["success exited 0", "success killed TERM", "exit-code exited 143", "exit-code exited 130"]
)
def test_an_end_that_was_asked_for_changes_nothing(watched: Watched, told: str) -> None:
    assert watched.ends(told, SHELLS[0]) == 0
    assert (texts(watched.rows), watched.starts(), watched.mark.exists()) == (["after", "after"], 0, False)


@pytest.mark.parametrize("job", ["stop running", "restart running"])
def test_a_stop_that_ends_badly_is_no_crash(watched: Watched, job: str) -> None:
    watched.jobs.write_text(f"  8 flash.service {job}\n")
    assert watched.ends("timeout killed KILL", SHELLS[0]) == 0
    assert (texts(watched.rows), watched.starts()) == (["after", "after"], 0)


def test_a_crash_in_a_start_returns(watched: Watched) -> None:
    watched.jobs.write_text("  8 flash.service start running\n")
    assert watched.ends("exit-code exited 1", SHELLS[0]) == 0
    assert (texts(watched.rows), watched.starts()) == (["before", None], 1)


@pytest.mark.parametrize(("wall", "is_over"), [(2**33, False), (1, True)])
@pytest.mark.parametrize("boot", ["this", "another"])
def test_the_deadline(watched: Watched, boot: str, wall: int, is_over: bool) -> None:
    """In the boot of the switch by the time that the machine is up, whatever the clock was set to since."""
    until = Until(host_boot(), 1 if is_over else 2**33, 0) if boot == "this" else Until("another", 0, wall)
    assert watched.ends("exit-code exited 1", SHELLS[0], until) == 0
    assert texts(watched.rows) == (["after", "after"] if is_over else ["before", None])


def test_a_return_that_was_cut_is_finished_by_the_next_crash(watched: Watched) -> None:
    os.replace(watched.rows[0]["old"], watched.rows[0]["dest"])
    assert watched.ends("exit-code exited 1", SHELLS[0]) == 0
    assert (texts(watched.rows), watched.starts(), watched.mark.exists()) == (["before", None], 1, True)


def test_a_disk_that_takes_nothing_does_not_keep_the_old_pair_away(watched: Watched) -> None:
    """What is noted of the end goes to a device that is full; renames need no room."""
    watched.armed.unlink()
    watched.armed.symlink_to("/dev/full")
    assert watched.ends("exit-code exited 1", SHELLS[0]) == 0
    assert (texts(watched.rows), watched.starts(), watched.mark.is_symlink()) == (["before", None], 1, True)


def test_a_unit_in_which_nothing_of_a_path_means_anything() -> None:
    text = boot_guard.unit_text("flash", "flash.service", "system", '/srv/a "b" $HOME 50%/\\x/restore.sh')
    assert r'ExecStart=/bin/sh "/srv/a \"b\" $$HOME 50%%/\\x/restore.sh"' in text.splitlines()
    assert r'RequiresMountsFor="/srv/a \"b\" $HOME 50%%/\\x"' in text.splitlines()
    assert 'ConditionPathExists=/srv/a "b" $HOME 50%%/\\x/restore.sh' in text.splitlines()
    with pytest.raises(RadianceError) as found:
        unit_files.word("/srv/a\nExecStart=/bin/true")
    assert found.value.code == "units_unwritable"
