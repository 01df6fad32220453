# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""An env file means the same to a shell, to systemd and to podman, or the reader says on which line it does not."""

from __future__ import annotations

import shlex
import subprocess
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _env_file
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from hypothesis import given
from hypothesis import strategies as st

PLAIN = st.text(alphabet="abcXYZ0189._:/@%+=,-", max_size=30)
NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,20}", fullmatch=True)


def test_values_are_kept_in_their_order_between_comments_and_blank_lines() -> None:
    env = _env_file.read_env("# a pair\n\nVRAM_KV_MIB=6144\nIMAGE=docker.io/x/y@sha256:0a\nEMPTY=\n")
    assert list(env.values.items()) == [
        ("VRAM_KV_MIB", "6144"),
        ("IMAGE", "docker.io/x/y@sha256:0a"),
        ("EMPTY", ""),
    ]
    assert env.errors == []


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("\ufeffA=1\n", 1, "byte order mark"),
        ("A=1\nVRAM_KV_MIB=6144\r\n", 2, "CR LF"),
        ("# a comment\r\n", 1, "CR LF"),
        ("VRAM_KV_MIB=6144 # was 8192\n", 1, "comment behind"),
        ('NAME="qwen 27b"\n', 1, "quote"),
        ("NAME='x'\n", 1, "quote"),
        ("export A=1\n", 1, "export"),
        ("A=1\n\nA=2\n", 3, "line 1"),
        ("A=1\\\nB=2\n", 1, "backslash"),
        ("2A=1\n", 1, "not a name"),
        ("A-B=1\n", 1, "not a name"),
        ("A =1\n", 1, "blank beside"),
        ("A= 1\n", 1, "blank beside"),
        (" A=1\n", 1, "starts with a blank"),
        ("A=1 2\n", 1, "a blank in its value"),
        ("A=1 \n", 1, "a blank in its value"),
        ("A=$HOME\n", 1, "read alike"),
        ("A=x#y\n", 1, "read alike"),
        ("JUSTAWORD\n", 1, "no `=`"),
    ],
)
def test_what_the_readers_do_not_agree_on_is_an_error_with_its_line(text: str, line: int, word: str) -> None:
    errors = _env_file.read_env(text).errors
    assert [error.line for error in errors] == [line]
    assert word in errors[0].text


def test_a_wrong_line_gives_no_value_and_its_text_is_not_repeated() -> None:
    env = _env_file.read_env("API_KEY='sk-secret-value'\nPORT=8000\n")
    assert env.values == {"PORT": "8000"}
    assert "sk-secret-value" not in env.errors[0].text


def test_bytes_that_are_not_utf8_are_an_error_of_their_line() -> None:
    env = _env_file.read_env(b"PORT=8000\nNAME=\xff\n")
    assert [error.line for error in env.errors] == [2]
    assert env.values == {"PORT": "8000"}


def test_a_renderer_refuses_what_it_could_not_read_back() -> None:
    with pytest.raises(RadianceError) as caught:
        _env_file.render_env([], {"MODEL": "a b"})
    assert caught.value.code == "env_value_not_plain"
    with pytest.raises(RadianceError) as caught:
        _env_file.render_env([], {"A B": "1"})
    assert caught.value.code == "env_name_unfit"


def test_the_rendered_bytes() -> None:
    assert _env_file.render_env(["one", "", "two"], {"PORT": "8000"}) == "# one\n#\n# two\n\nPORT=8000\n"


@given(st.dictionaries(NAMES, PLAIN, max_size=6), st.lists(st.text(alphabet="ab $'\"\\=", max_size=20), max_size=3))
def test_what_is_rendered_reads_back(values: dict[str, str], header: list[str]) -> None:
    env = _env_file.read_env(_env_file.render_env(header, values))
    assert env.errors == []
    assert env.values == values


def test_a_shell_reads_what_the_renderer_wrote(tmp_path: t.Any) -> None:
    values = {"PORT": "8000", "IMAGE": "docker.io/x/y@sha256:0a", "FLAG": "a=b,c%d+e", "EMPTY": ""}
    path = tmp_path / "x.env"
    path.write_text(_env_file.render_env(["$(touch never) `never`"], values))
    for name, value in values.items():
        shown = subprocess.run(
            ["sh", "-c", f'. {shlex.quote(str(path))}; printf %s "${name}"'], stdout=subprocess.PIPE, check=True
        )
        assert shown.stdout.decode() == value
