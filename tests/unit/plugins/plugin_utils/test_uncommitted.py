# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether git has all of a fleet directory."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._fleet_dir import uncommitted


def git(folder: pathlib.Path, *words: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"]
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def test_only_tracked_files_that_changed_are_uncommitted(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.env").write_text("A=1\n")
    assert uncommitted(str(tmp_path)) is False
    git(tmp_path, "init")
    git(tmp_path, "add", "a.env")
    assert uncommitted(str(tmp_path)) is True
    git(tmp_path, "commit", "-m", "first")
    (tmp_path / "b.env").touch()
    assert uncommitted(str(tmp_path)) is False
    (tmp_path / "a.env").write_text("A=2\n")
    assert uncommitted(str(tmp_path)) is True


def test_looking_changes_nothing_and_minds_no_lock(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.env").write_text("A=1\n")
    git(tmp_path, "init")
    git(tmp_path, "add", "a.env")
    git(tmp_path, "commit", "-m", "first")
    # Git would note down that the file only looks changed.
    os.utime(tmp_path / "a.env", (1, 1))
    before = (tmp_path / ".git" / "index").read_bytes()
    (tmp_path / ".git" / "index.lock").touch()
    assert uncommitted(str(tmp_path)) is False
    (tmp_path / ".git" / "index.lock").unlink()
    assert uncommitted(str(tmp_path)) is False
    assert (tmp_path / ".git" / "index").read_bytes() == before


def test_where_git_is_missing_nothing_is_known(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert uncommitted(str(tmp_path)) is False
