# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lookups tell of the record in a fleet directory, and of what is no file of one."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest
from ansible.errors import AnsibleLookupError
from ansible_collections.kvfleet.radiance.plugins.lookup import env_file, managed_file, record
from ansible_collections.kvfleet.radiance.plugins.module_utils import _records


def back(says: str, host: str = "dankserver") -> dict[str, t.Any]:
    return _records.entry("rollback", host, "flashnext", None, to={}, returns_to="0" * 12, says=says)


def test_a_record_is_joined_with_what_it_does_not_hold_and_stays(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "flashnext.jsonl"
    first, second = back("one"), back("two")
    _records.append(str(path), [first])
    before = path.read_bytes()
    look = record.LookupModule().run
    assert look([str(path)], entries=[first, second, second]) == [first, second]
    assert look([str(path)]) == [first]
    assert look([str(tmp_path / "none.jsonl")], entries=[second]) == [second]
    assert path.read_bytes() == before


def test_of_a_record_that_hosts_share_each_has_its_own_lines(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "flashnext.jsonl"
    here, there = back("here"), back("there", "nighthost")
    renamed = back("before it got its name", "oldname")
    _records.append(str(path), [here, there, renamed])
    look = record.LookupModule().run
    assert look([str(path)], host="dankserver") == [here]
    assert look([str(path)], host="nighthost") == [there]
    # What stands on the host itself is its own, under whatever name.
    assert look([str(path)], host="dankserver", entries=[renamed]) == [here, renamed]


def test_a_record_that_cannot_be_read_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(AnsibleLookupError, match=f"The record {tmp_path} cannot be read: "):
        record.LookupModule().run([str(tmp_path)])


@pytest.mark.parametrize("lookup", [managed_file, env_file])
@pytest.mark.parametrize("kind", ["fifo", "folder", "large"])
def test_what_is_no_file_of_a_fleet_is_named_at_once(tmp_path: pathlib.Path, lookup: t.Any, kind: str) -> None:
    path = tmp_path / kind
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)
    why = "it has more than 16,777,216 bytes" if kind == "large" else "it is no regular file"
    with pytest.raises(AnsibleLookupError, match=f"{path} cannot be read: {why}"):
        lookup.LookupModule().run([str(path)])
