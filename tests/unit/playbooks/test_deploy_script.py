# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/deploy.md: its script, taken out and run, asks for what the words say, and shellcheck likes it."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
RESIZE = ["-i", "inventory", "kvfleet.radiance.resize", "-l"]


@pytest.fixture
def fleet(tmp_path: pathlib.Path) -> pathlib.Path:
    """A fleet directory with the two pieces of the page, and an ansible-playbook that tells what it is asked."""
    ready, line = re.findall(r"```bash\n(.*?)```", (ROOT / "docs" / "deploy.md").read_text(), re.S)
    own = f'#!/usr/bin/env bash\nset -euo pipefail\nhost=$1\nservice=$3\n{line}echo "the rest of it"\n'
    asked = '#!/bin/sh\nprintf "%s\\n" "$PWD" "$@" >"${0%/*}/../asked"\nexit "${ASKED_STATUS:-0}"\n'
    (tmp_path / "my fleet").mkdir()
    (tmp_path / "programs").mkdir()
    for name, text in (("my fleet/deploy.sh", ready), ("my fleet/own.sh", own), ("programs/ansible-playbook", asked)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def run(fleet: pathlib.Path, script: str, *words: str, status: int = 0) -> tuple[int, list[str]]:
    told = fleet / "asked"
    told.unlink(missing_ok=True)
    path = f"{fleet / 'programs'}:{os.environ['PATH']}"
    done = subprocess.run(
        [str(fleet / "my fleet" / script), *words],
        env={**os.environ, "PATH": path, "ASKED_STATUS": str(status)},
        cwd="/",
        capture_output=True,
        check=False,
    )
    return done.returncode, told.read_text().splitlines() if told.exists() else []


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (["dankserver", "--service", "flashnext"], []),
        (["--service=flashnext", "dankserver"], []),
        (["dankserver", "--service", "flashnext", "--check", "--diff"], ["--check", "--diff"]),
        (
            ["dankserver", "--service", "flashnext", "-e", '{"backing_reason": "short chats"}'],
            ["-e", '{"backing_reason": "short chats"}'],
        ),
    ],
)
def test_the_ready_script_asks_for_the_resize(fleet: pathlib.Path, words: list[str], asked: list[str]) -> None:
    want = [str(fleet / "my fleet"), *RESIZE, "dankserver", "-e", "service=flashnext", *asked]
    assert run(fleet, "deploy.sh", *words) == (0, want)
    assert run(fleet, "deploy.sh", *words, status=4)[0] == 4


@pytest.mark.parametrize(
    "words", [[], ["dankserver"], ["--service", "flashnext"], ["dankserver", "--service"], ["a", "b", "--service", "c"]]
)
def test_half_a_command_asks_for_nothing(fleet: pathlib.Path, words: list[str]) -> None:
    assert run(fleet, "deploy.sh", *words) == (2, [])


def test_the_one_line_works_in_a_script_of_their_own(fleet: pathlib.Path) -> None:
    code, asked = run(fleet, "own.sh", "dankserver", "--service", "flashnext")
    assert (code, asked[1:]) == (0, [*RESIZE, "dankserver", "-e", "service=flashnext"])
    assert run(fleet, "own.sh", "dankserver", "--service", "flashnext", status=2)[0] == 2


def test_shellcheck_likes_both(fleet: pathlib.Path) -> None:
    program = shutil.which("shellcheck", path=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    assert program is not None
    scripts = [str(fleet / "my fleet" / name) for name in ("deploy.sh", "own.sh")]
    done = subprocess.run([program, *scripts], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.returncode == 0
