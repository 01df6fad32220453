# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is no regular file, or too large, is named at once: nothing waits for a pipe or reads without an end."""

from __future__ import annotations

import os
import pathlib
import time
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import read_key
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import open_regular, read_regular
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.file import read_log
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import running

NO_FILE = "it is no regular file"


def odd(folder: pathlib.Path, kind: str) -> str:
    path = folder / kind
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        os.mkfifo(folder / "pipe")
        path.symlink_to(folder / "pipe")
    elif kind == "device":
        return "/dev/zero"
    return str(path)


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "device"])
@pytest.mark.parametrize(
    "read", [read_regular, open_regular, _durable.read, running, read_log, lambda path: read_key(None, path)]
)
def test_what_is_no_file_is_told_at_once(tmp_path: pathlib.Path, kind: str, read: t.Callable[[str], t.Any]) -> None:
    path, began = odd(tmp_path, kind), time.monotonic()
    with pytest.raises((OSError, RadianceError)) as told:
        read(path)
    says = told.value.text if isinstance(told.value, RadianceError) else str(told.value)
    assert NO_FILE in says and path in says
    assert time.monotonic() - began < 1


def test_a_file_is_read_up_to_its_size_and_not_further(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_regular(str(path), 5) == b"12345"
    with pytest.raises(OSError, match="it has more than 4 bytes"):
        read_regular(str(path), 4)
    with path.open("ab") as file:
        file.truncate(1 << 40)  # a terabyte of holes
    with pytest.raises(OSError, match="it has more than 16,777,216 bytes"):
        _durable.read(str(path))
    with pytest.raises(RadianceError, match="it has more than 64 bytes"):
        running(str(path))
    with pytest.raises(RadianceError, match="it has more than 4,096 bytes"):
        read_key(None, str(path))


def test_a_path_that_nothing_can_have(tmp_path: pathlib.Path) -> None:
    with pytest.raises(OSError, match="its path has a NUL in it"):
        read_regular(f"{tmp_path}/a\0b")
    with pytest.raises(FileNotFoundError):
        read_regular(str(tmp_path / "absent"))
    assert _durable.read(str(tmp_path / "absent")) is None


def test_what_is_made_where_nothing_is(tmp_path: pathlib.Path) -> None:
    handle = open_regular(str(tmp_path / "new"), os.O_RDWR | os.O_CREAT)
    os.write(handle, b"x")
    os.close(handle)
    assert read_regular(str(tmp_path / "new")) == b"x"
