# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of the fleet directory, written by the module as its own process like Ansible runs it."""

from __future__ import annotations

import json
import pathlib
import subprocess
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.tests.unit.plugins.modules import module_process

OLD = "# HF_TOKEN=hf_hunter2\n# curl -u bob:hunter2 https://x\nRED=\x1b[31m\nA=1\r\n"
NEW = "# HF_TOKEN=********\n# curl -u bob:******** https://x\nRED=\x1b[31m\nA=2\r\n"


def start(path: pathlib.Path, content: str, *, check: bool = False, mode: t.Any = None) -> subprocess.Popen[str]:
    arguments = {"path": str(path), "content": content, "_ansible_check_mode": check, "_ansible_diff": True}
    if mode is not None:
        arguments["mode"] = mode
    return module_process.start("fleet_file", arguments)


def run(path: pathlib.Path, content: str, **how: t.Any) -> dict[str, t.Any]:
    printed = start(path, content, **how).communicate()[0]
    result: dict[str, t.Any] = json.loads(printed)
    # Nothing that it returns, its invocation included, has a secret, or the text itself.
    assert "hunter2" not in printed
    # Newer releases of ansible-core return none.
    assert "content" not in result.get("invocation", {}).get("module_args", {})
    return result


@pytest.mark.parametrize("check", [True, False])
def test_what_a_mask_stands_for_stays_in_the_file_and_off_the_screen(tmp_path: pathlib.Path, check: bool) -> None:
    path = tmp_path / "a.env"
    path.write_bytes(OLD.encode())
    path.chmod(0o640)
    found = run(path, NEW, check=check, mode="0755")
    assert found["changed"] is True
    shown = NEW.replace("\x1b", "\\x1b")
    assert found["diff"] == [
        {
            "before": shown.replace("A=2", "A=1"),
            "after": shown,
            "before_header": str(path),
            "after_header": str(path),
        }
    ]
    assert path.read_bytes().decode() == (OLD if check else OLD.replace("A=1", "A=2"))
    assert path.stat().st_mode & 0o777 == 0o640
    assert [item.name for item in tmp_path.iterdir()] == ["a.env"]
    if not check:
        found = run(path, NEW)
        assert (found["changed"], found["diff"]) == (False, [])


def test_a_new_file_has_the_mode_that_is_asked_for(tmp_path: pathlib.Path) -> None:
    assert run(tmp_path / "a", "x\n", mode="0755", check=True)["changed"] is True
    assert list(tmp_path.iterdir()) == []
    found = run(tmp_path / "a", "x\n", mode="0755")
    assert (found["changed"], found["diff"][0]["before"]) == (True, "")
    run(tmp_path / "b", "x\n")
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "b")] == [0o755, 0o644]


def test_a_link_stays_one_and_what_it_leads_to_is_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("old\n")
    (tmp_path / "AGENTS.md").symlink_to("CLAUDE.md")
    assert run(tmp_path / "AGENTS.md", "new\n")["changed"] is True
    assert (tmp_path / "AGENTS.md").is_symlink()
    assert (tmp_path / "CLAUDE.md").read_text() == "new\n"


def test_a_secret_that_is_no_text_comes_back(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").write_bytes(b"HF_TOKEN=hunter2\xff\n")
    assert run(tmp_path / "a", "HF_TOKEN=********\nB=1\n")["changed"] is True
    assert (tmp_path / "a").read_bytes() == b"HF_TOKEN=hunter2\xff\nB=1\n"


def test_what_cannot_be_written_is_refused_and_left(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").write_text("API_KEY=hunter2\n")
    found = run(tmp_path / "a", "HF_TOKEN=********\n")
    assert (found["failed"], found["code"]) == (True, "secret_missing")
    assert found["msg"].startswith("line 1 holds a secret, 'HF_TOKEN=********', which the file there does not have.")
    assert (tmp_path / "a").read_text() == "API_KEY=hunter2\n"
    found = run(tmp_path, "A=1\n")
    says = (
        f"{tmp_path} cannot be read: it is no regular file. Nothing was changed. Put that right, then run this again."
    )
    assert (found["code"], found["msg"]) == ("file_unusable", says)
    found = run(tmp_path / "none" / "a", "A=1\n")
    assert found["code"] == "file_unusable"
    assert found["msg"] == f"{tmp_path}/none/a cannot be written: No such file or directory."


def test_writers_side_by_side_leave_the_whole_text_of_one(tmp_path: pathlib.Path) -> None:
    texts = [letter * 100_000 for letter in "abcd"]
    writers = [start(tmp_path / "a", text) for text in texts]
    assert [json.loads(writer.communicate()[0])["changed"] for writer in writers] == [True] * 4
    assert (tmp_path / "a").read_text() in texts
    assert [item.name for item in tmp_path.iterdir()] == ["a"]
