# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A switch whose own files somebody replaced by what is no file: it waits for nothing, and names the one in its way."""

from __future__ import annotations

import os
import pathlib
import time
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import files
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.journal import Journal
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.probation_begun import Probation
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import Progress, State, locked
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.steps import as_radiance_error


@pytest.fixture(autouse=True)
def at_once() -> t.Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 5, "it waited for something"


def lock(state: State) -> None:
    with locked(state, [0]):
        pass


def put(path: str, kind: str) -> str:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        os.mkdir(path)
    elif kind == "device":
        os.symlink("/dev/zero", path)
    elif kind == "huge":
        with open(path, "wb") as file:
            file.truncate(1 << 30)
    return path


@pytest.fixture(name="state")
def made(tmp_path: pathlib.Path) -> State:
    state = State(str(tmp_path), "flash")
    state.make()
    return state


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "huge"])
def test_a_journal_that_cannot_be_read_is_named_with_a_way_out(state: State, kind: str) -> None:
    put(state.journal, kind)
    with pytest.raises(RadianceError, match="move the journal away") as told:
        Journal.load(state)
    assert told.value.code == "switch_journal_unreadable"
    assert told.value.text.startswith(f"The journal {state.journal} cannot be read: it ")


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "huge"])
@pytest.mark.parametrize("name", ["probation.json", "probation.ended"])
def test_a_probation_that_cannot_be_read_is_named_with_a_way_out(state: State, kind: str, name: str) -> None:
    path = put(f"{state.folder}/{name}", kind)
    with pytest.raises(RadianceError, match="Move it away, and remove kvfleet-probation.conf") as told:
        Probation.load(state)
    assert told.value.code == "switch_probation_unreadable"
    assert told.value.text.startswith(f"{path} cannot be read: it ")


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("name", ["flash/lock", "card0.lock"])
def test_a_lock_that_is_no_file_is_named(state: State, kind: str, name: str) -> None:
    path = put(f"{state.root}/{name}", kind)
    with pytest.raises(RadianceError) as told:
        lock(state)
    assert told.value.code == "state_dir_unusable"
    assert told.value.text.startswith(f"The lock {path} cannot be opened: it is no regular file. Nothing was changed.")


def test_a_lock_is_for_its_owner_alone(state: State) -> None:
    lock(state)
    assert os.stat(state.lock).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["pipe", "device", "huge"])
def test_progress_is_a_new_file_whatever_was_there(state: State, kind: str) -> None:
    put(state.progress, kind)
    progress = Progress(state.progress)
    progress.line("start", "it begins")
    progress.close()
    lines = pathlib.Path(state.progress).read_text().splitlines()
    assert [line.split('"phase": ')[1].split(",")[0] for line in lines] == ['"lock"', '"start"', '"end"']


def test_a_folder_in_the_place_of_the_progress_is_named(state: State) -> None:
    path = put(state.progress, "folder")
    with pytest.raises(OSError) as told:
        Progress(path)
    assert as_radiance_error(told.value).text.startswith(f"{path} cannot be used: ")


@pytest.mark.parametrize("name", ["restore.sh", "backup/0"])
def test_a_folder_that_nothing_can_replace_is_found_before_anything_is_stopped(state: State, name: str) -> None:
    path = put(f"{state.folder}/{name}", "folder")
    with pytest.raises(OSError) as told:
        state.sweep()
    assert told.value.filename == path


def test_a_restore_script_without_a_journal_goes(state: State) -> None:
    put(state.restore, "pipe")
    state.sweep()
    assert not os.path.lexists(state.restore)


def test_a_pipe_in_the_place_of_a_folder_of_the_state_is_named(state: State) -> None:
    os.rmdir(state.receipts)
    put(state.receipts, "pipe")
    with pytest.raises(RadianceError, match=f"{state.receipts} cannot be made: File exists") as told:
        state.make()
    assert told.value.code == "state_dir_unusable"


def test_a_pipe_that_lies_where_a_file_is_made_ready_is_no_obstacle(tmp_path: pathlib.Path) -> None:
    put(str(tmp_path / ".env.new"), "pipe")
    _durable.replace(str(tmp_path / "env"), b"A=1\n", 0o644)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"env": b"A=1\n"}


def test_an_old_file_comes_back_in_the_place_of_a_pipe(tmp_path: pathlib.Path) -> None:
    dest, backup = tmp_path / "env", tmp_path / "backup"
    backup.write_bytes(b"OLD=1\n")
    put(str(dest), "pipe")
    entry = {
        "dest": str(dest),
        "existed": True,
        "mode": 0o640,
        "uid": os.getuid(),
        "gid": os.getgid(),
        "backup": str(backup),
        "staged": str(tmp_path / "staged"),
        "old": None,
    }
    assert not files.are_back([entry])
    assert files.by_hand([entry]) == [f"install -m 0640 {backup} {dest}"]
    assert files.restore([entry]) == [str(dest)]
    assert (dest.read_bytes(), dest.stat().st_mode & 0o777) == (b"OLD=1\n", 0o640)
    assert files.are_back([entry]) and files.by_hand([entry]) == []


def test_any_file_that_is_in_the_way_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(OSError) as told:
        _durable.read(put(str(tmp_path / "odd"), "folder"))
    error = as_radiance_error(told.value)
    assert error.code == "file_unusable"
    assert error.text == f"{tmp_path}/odd cannot be used: it is no regular file. Put that right, then run this again."
