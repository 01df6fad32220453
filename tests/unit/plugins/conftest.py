# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of a host that a test puts into the PATH."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest

PutProgram = t.Callable[[str, str], pathlib.Path]


@pytest.fixture
def put_program(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> PutProgram:
    """``put_program(name, script)`` makes a program of a shell script, which is found before any other of this name.

    What it is called with is in ``<name>.calls`` beside it, one call a line. Gives the folder.
    """
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(name: str, script: str) -> pathlib.Path:
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "$*" >> "$0.calls"\n{script}\n')
        program.chmod(0o755)
        return folder

    return put
