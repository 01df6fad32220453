# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import pathlib
import stat
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import masked_argv
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import files
from hypothesis import given
from hypothesis import strategies as st


def prepare(folder: pathlib.Path, wanted: dict[str, bytes]) -> tuple[list[files.Change], list[dict[str, t.Any]]]:
    changes = files.compare([files.Wanted(str(folder / name), data, None) for name, data in wanted.items()])
    (folder / "backup").mkdir(exist_ok=True)
    return changes, files.journal_entries(changes, str(folder / "backup"), "0123456789ab")


def tree(folder: pathlib.Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.name: (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) for path in folder.iterdir() if path.is_file()
    }


def test_files_are_staged_beside_their_place_swapped_and_put_back(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.env").write_bytes(b"A=1\n")
    (tmp_path / "a.env").chmod(0o640)
    before = tree(tmp_path)
    changes, entries = prepare(tmp_path, {"a.env": b"A=2\n", "serve.sh": b"#!/bin/sh\n"})

    files.stage(changes, entries)
    assert tree(tmp_path)["a.env"] == (b"A=1\n", 0o640)
    assert (tmp_path / "backup" / "0123456789ab.0").read_bytes() == b"A=1\n"
    files.swap(entries)
    assert tree(tmp_path) == {"a.env": (b"A=2\n", 0o640), "serve.sh": (b"#!/bin/sh\n", 0o644)}
    assert files.restore(entries) == [str(tmp_path / "a.env"), str(tmp_path / "serve.sh")]
    assert tree(tmp_path) == before
    assert files.restore(entries) == []


def test_a_swap_that_was_cut_between_two_files_is_put_back(tmp_path: pathlib.Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"old")
    before = tree(tmp_path)
    changes, entries = prepare(tmp_path, {"a": b"new", "b": b"new"})
    files.stage(changes, entries)
    files.swap(entries[:1])
    files.restore(entries)
    assert tree(tmp_path) == before


def test_what_does_not_differ_is_left_alone(tmp_path: pathlib.Path) -> None:
    (tmp_path / "same").write_bytes(b"x")
    (tmp_path / "same").chmod(0o600)
    path = str(tmp_path / "same")
    assert files.compare([files.Wanted(path, b"x", None)]) == []
    assert files.compare([files.Wanted(path, b"x", 0o600)]) == []
    (change,) = files.compare([files.Wanted(path, b"x", 0o644)])
    assert (change.mode_before, change.mode) == (0o600, 0o644)
    assert files.diffs([change])[0]["before_header"] == f"{path} (mode 0600)"


def test_a_link_keeps_pointing_and_its_target_is_replaced(tmp_path: pathlib.Path) -> None:
    (tmp_path / "real.env").write_bytes(b"old")
    (tmp_path / "link.env").symlink_to("real.env")
    item = files.wanted({"dest": str(tmp_path / "link.env"), "content": "new"})
    files.install(files.compare([item]))
    assert (tmp_path / "link.env").is_symlink()
    assert (tmp_path / "real.env").read_bytes() == b"new"


def test_src_is_read_on_the_target(tmp_path: pathlib.Path) -> None:
    (tmp_path / "src").write_bytes(b"\x00\xff")
    item = files.wanted({"dest": "/srv/x", "src": str(tmp_path / "src"), "content": None, "mode": "0600"})
    assert item == files.Wanted("/srv/x", b"\x00\xff", 0o600)
    with pytest.raises(RadianceError) as error:
        files.wanted({"dest": "/srv/x", "src": str(tmp_path / "none")})
    assert error.value.code == "file_unusable"


@pytest.mark.parametrize(
    ("mode", "read"), [("0644", 0o644), ("755", 0o755), (0o600, 0o600), (None, None), ("4755", 0o4755)]
)
def test_modes(mode: t.Any, read: int | None) -> None:
    assert files.wanted({"dest": "/srv/x", "content": "", "mode": mode}).mode == read


@pytest.mark.parametrize("mode", ["u=rw", "0888", "rw-r--r--", True, 1.5, ""])
def test_a_mode_that_is_none_is_refused(mode: t.Any) -> None:
    with pytest.raises(RadianceError, match="octal"):
        files.wanted({"dest": "/srv/x", "content": "", "mode": mode})


def test_a_disk_without_room_is_found_before_the_stop(tmp_path: pathlib.Path) -> None:
    files.check_room(str(tmp_path / "not" / "made" / "yet" / "journal.json"), "state_dir")
    with pytest.raises(RadianceError) as error:
        files._check_room(str(tmp_path), 10**18, "state_dir")
    assert error.value.code == "disk_full"
    assert "1,000,000,000,000,000,000 bytes are needed" in error.value.text


def test_by_hand_names_what_is_not_back_yet(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a b").write_bytes(b"old")
    (tmp_path / "a b").chmod(0o600)
    changes, entries = prepare(tmp_path, {"a b": b"new", "c": b"new"})
    files.stage(changes, entries)
    files.swap(entries)
    for command in files.by_hand(entries):
        assert os.system(command) == 0
    assert tree(tmp_path) == {"a b": (b"old", 0o600)}
    assert files.by_hand(entries) == []


SECRET = "hunter2hunter2"


def test_a_diff_and_a_command_show_no_secret(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.env"
    path.write_text(f"API_KEY={SECRET}\nPORT=1\n")
    changes = files.compare([files.Wanted(str(path), f"API_KEY={SECRET}x\nPORT=2\n".encode(), None)])
    (shown,) = files.diffs(changes)
    assert (shown["before"], shown["after"]) == ("API_KEY=********\nPORT=1\n", "API_KEY=********\nPORT=2\n")
    assert masked_argv(["radiance", "--api-key", SECRET, "--port", "1"]) == [
        "radiance",
        "--api-key",
        "********",
        "--port",
        "1",
    ]


def test_a_diff_moves_no_terminal(tmp_path: pathlib.Path) -> None:
    change = files.compare([files.Wanted(str(tmp_path / "a"), b"\x1b[2J\rA=\xc2\x9b1\t\r\n\xe2\x80\xae\xff\n", None)])
    assert files.diffs(change)[0]["after"] == "\\x1b[2J\\rA=\\x9b1\t\r\n\\u202e\ufffd\n"


@given(old=st.none() | st.binary(max_size=200), new=st.binary(max_size=200), cut=st.integers(0, 2))
def test_whatever_the_bytes_they_come_back(
    tmp_path_factory: pytest.TempPathFactory, old: bytes | None, new: bytes, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    if old is not None:
        (folder / "file").write_bytes(old)
    before = tree(folder)
    changes, entries = prepare(folder, {"file": new})
    if cut >= 1:
        files.stage(changes, entries)
    if cut == 2:
        files.swap(entries)
        assert (folder / "file").read_bytes() == new
    files.restore(entries)
    assert tree(folder) == before


def test_a_replace_that_cannot_end_leaves_the_old_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "target").mkdir()
    with pytest.raises(OSError):
        _durable.replace(str(tmp_path / "target"), b"x", 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
