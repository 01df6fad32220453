# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record as the module reads and extends it, run as its own process like Ansible runs it."""

from __future__ import annotations

import pathlib
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.tests.unit.plugins.modules import module_process


def run(path: pathlib.Path, entries: list[dict[str, t.Any]], check: bool = False) -> dict[str, t.Any]:
    arguments = {"path": str(path), "entries": entries, "_ansible_check_mode": check, "_ansible_diff": True}
    return module_process.run("resize_record", arguments)


def back(says: str) -> dict[str, t.Any]:
    return _records.entry("rollback", "dankserver", "flashnext", None, to={}, returns_to="0" * 12, says=says)


def test_reading_changes_nothing(tmp_path: pathlib.Path) -> None:
    result = run(tmp_path / "none" / "records.jsonl", [])
    assert (result["changed"], result["entries"], result["added"]) == (False, [], 0)
    assert not (tmp_path / "none").exists()


def test_only_what_is_missing_is_added(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "state" / "records.jsonl"
    first, second = back("one"), back("two")
    assert run(path, [first])["added"] == 1
    result = run(path, [first, second])
    assert (result["changed"], result["added"], result["entries"]) == (True, 1, [first, second])
    assert "two" in result["diff"]["after"] and "one" not in result["diff"]["after"]
    again = run(path, [first, second])
    assert (again["changed"], again["added"]) == (False, 0)
    assert _records.read(str(path)) == [first, second]


def test_the_diff_has_of_a_long_line_the_beginning(tmp_path: pathlib.Path) -> None:
    after = run(tmp_path / "records.jsonl", [back("x" * 900)])["diff"]["after"]
    assert after.startswith('{"at":"') and "xx … (1," in after and len(after) < 440


def test_check_mode_says_the_same_and_writes_nothing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "records.jsonl"
    entry = back("one")
    checked = run(path, [entry], check=True)
    assert not path.exists()
    done = run(path, [entry])
    for key in ("changed", "added", "entries", "diff"):
        assert checked[key] == done[key]


def test_an_entry_of_another_shape_is_refused_without_its_text(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "records.jsonl"
    result = run(path, [back("one"), {"kind": "rollback", "says": "sk-secret-value"}])
    assert (result["failed"], result["code"]) == (True, "record_invalid")
    assert "sk-secret-value" not in result["msg"]
    assert not path.exists()


def test_a_torn_line_is_a_warning(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "records.jsonl"
    entry = back("one")
    run(path, [entry])
    with path.open("a") as handle:
        handle.write('{"kind":"pla')
    result = run(path, [back("two")])
    assert "line 2" in str(result["warnings"])
    assert [line["says"] for line in result["entries"]] == ["one", "two"]


def test_a_record_that_cannot_be_read_is_named(tmp_path: pathlib.Path) -> None:
    result = run(tmp_path, [])
    assert result["code"] == "record_unreachable"
    assert str(tmp_path) in result["msg"]
