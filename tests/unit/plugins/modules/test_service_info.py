# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a service has on its host, read by the module as its own process like Ansible runs it."""

from __future__ import annotations

import json
import os
import pathlib
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.modules import service_info
from ansible_collections.kvfleet.radiance.tests.unit.plugins.modules import module_process


def run(folder: pathlib.Path, *files: str, boot: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
    arguments = {
        "service": "flashnext",
        "state_dir": str(folder / "state"),
        "files": [str(folder / name) for name in files],
        "others": ["embed", "rerank"],
        "boot": boot,
    }
    return module_process.run("service_info", arguments)


def told(result: dict[str, t.Any]) -> list[t.Any]:
    return [result[name] for name in ("changed", "interrupted", "on_probation", "texts", "entries")]


def test_nothing_is_there_and_nothing_is_made(tmp_path: pathlib.Path) -> None:
    assert told(run(tmp_path, "a.env")) == [False, False, False, {}, []]
    assert list(tmp_path.iterdir()) == []


def test_files_and_record_are_returned_as_they_are(tmp_path: pathlib.Path) -> None:
    state = tmp_path / "state" / "flashnext"
    state.mkdir(parents=True)
    entry = _records.entry("rollback", "dankserver", "flashnext", None, to={}, returns_to="0" * 12, says="back")
    _records.append(str(state / "records.jsonl"), [entry])
    (tmp_path / "a.env").write_bytes(b"A=1\n\n\xff")
    (tmp_path / "empty").touch()
    found = run(tmp_path, "a.env", "empty", "none")
    texts = {str(tmp_path / "a.env"): "A=1\n\n\ufffd", str(tmp_path / "empty"): ""}
    assert told(found) == [False, False, False, texts, [entry]]


def test_a_secret_does_not_leave_the_host(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.env").write_text("A=1\nHF_TOKEN=hf_abcdefgh\n")
    found = run(tmp_path, "a.env")
    assert found["texts"] == {str(tmp_path / "a.env"): "A=1\nHF_TOKEN=********\n"}


def test_what_is_no_file_of_a_service_is_named_and_not_waited_for(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate((1 << 20) + 1)
    for name, why in (
        ("fifo", "it is no regular file"),
        ("folder", "it is no regular file"),
        ("loop", "Too many levels of symbolic links"),
        ("huge", "it has more than 1,048,576 bytes"),
    ):
        found = run(tmp_path, name)
        says = f"{tmp_path / name} cannot be read: {why}. Put that right on the host, then run this again."
        assert (found["code"], found["msg"]) == ("file_unreadable", says)


@pytest.mark.parametrize(
    ("name", "interrupted", "on_probation"),
    [("journal.json", True, False), ("probation.json", False, True), ("probation.ended", False, True)],
)
def test_what_a_switch_left_is_told(tmp_path: pathlib.Path, name: str, interrupted: bool, on_probation: bool) -> None:
    (tmp_path / "state" / "flashnext").mkdir(parents=True)
    (tmp_path / "state" / "flashnext" / name).touch()
    assert told(run(tmp_path)) == [False, interrupted, on_probation, {}, []]


def test_a_switch_of_another_service_is_told_by_its_name(tmp_path: pathlib.Path) -> None:
    for service, name in (("embed", "lock"), ("rerank", "journal.json")):
        (tmp_path / "state" / service).mkdir(parents=True)
        (tmp_path / "state" / service / name).touch()
    found = run(tmp_path)
    assert (found["interrupted"], found["others_interrupted"]) == (False, ["rerank"])


def test_a_line_that_is_none_is_warned_of(tmp_path: pathlib.Path) -> None:
    (tmp_path / "state" / "flashnext").mkdir(parents=True)
    (tmp_path / "state" / "flashnext" / "records.jsonl").write_text("{torn\n")
    found = run(tmp_path)
    assert found["entries"] == []
    assert "line 1 of the record is not JSON" in json.dumps(found["warnings"])


def test_what_cannot_be_looked_at_is_refused_and_not_taken_for_absent(tmp_path: pathlib.Path) -> None:
    # A file where a folder should be: nobody, root included, can look into it.
    (tmp_path / "state").write_text("")
    found = run(tmp_path)
    assert (found["failed"], found["code"]) == (True, "file_unreadable")
    path = f"{tmp_path}/state/flashnext/journal.json"
    assert found["msg"] == (f"{path} cannot be read: Not a directory. Put that right on the host, then run this again.")


def test_the_boot_is_what_boot_ledger_info_tells_of_it(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "boot.log"
    log.write_text("E unknown option: --vram-wieghts-mib\n")
    found = run(tmp_path, boot={"source": "file", "path": str(log), "require": "any"})
    assert sorted(found["boot"]) == ["last_boot", "ledger"]
    assert found["boot"]["ledger"]["status"] == "refused"
    # What it would fail for is told beside the files, which the caller wants in any case.
    found = run(tmp_path, boot={"source": "file", "path": str(log)})
    assert (found["changed"], found["entries"], found["boot"]["code"]) == (False, [], "unknown_option")
    found = run(tmp_path, boot={"source": "file", "path": str(tmp_path / "none.log")})
    assert (found["boot"]["code"], found["boot"]["ledger"]["status"]) == ("log_unreadable", "absent")
    assert "boot" not in run(tmp_path)


def test_the_options_of_a_boot_are_held_to_its_rules(tmp_path: pathlib.Path) -> None:
    for boot, why in (
        ({"source": "file"}, "source is file but all of the following are missing: path"),
        (
            {"source": "tape"},
            "value of source must be one of: podman, docker, journald, file, receipt, text, got: tape",
        ),
        ({"name": "flashnext", "api_key": "hunter2hunter2"}, "api_key. Supported parameters include"),
    ):
        found = run(tmp_path, boot=boot)
        assert (found["failed"], found["msg"].startswith("boot: "), why in found["msg"]) == (True, True, True)


def test_a_folder_that_is_closed_to_this_user_comes_with_the_way_in(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: str) -> t.NoReturn:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.stat", closed)  # root, which may run this, may look everywhere
    options = {"service": "flashnext", "state_dir": "/srv/radiance/.kvfleet"}
    with patch_module_args(options), pytest.raises(SystemExit):
        service_info.main()
    found = json.loads(capsys.readouterr().out)
    assert (found["code"], found["msg"]) == (
        "file_unreadable",
        "/srv/radiance/.kvfleet/flashnext/journal.json cannot be read: Permission denied. A unit of the system needs "
        "ansible_become: true in the inventory; a service of a user is reached as that user.",
    )
