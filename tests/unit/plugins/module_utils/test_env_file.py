# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""An env file means the same to shells, systemd, podman and docker, or the reader says on which line it does not.

The real shells are asked here; systemd, podman and docker where there is a host for them (extensions/hosts).
"""

from __future__ import annotations

import pathlib
import shutil
import sys

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _env_file
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(pathlib.Path(__file__).parents[4] / "extensions" / "hosts"))

import env_cases
import env_readers

PLAIN = st.text(alphabet="abcXYZ0189._:/@%+=,-", max_size=30)
NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,20}", fullmatch=True)
# Lines that are mostly wrong, each in its own way.
CHARACTERS = st.sampled_from(
    [*"aA_1=:~+-/@%.,# \t\\\"'$`&;|<>()*?[]{}!^", "\r", "\0", "\ufeff", "\u00e9", "\x0c", "\x85"]
)
LINES = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "", "", " ", "#", "export ", "\ufeff"]),
        st.one_of(st.sampled_from(["A", "B", "_", "UID", "path", "HISTCMD", "LINENO", "argv", "X1"]), NAMES),
        st.sampled_from(["=", "=", "=", "=", "+=", " =", "= ", ""]),
        st.one_of(st.text(alphabet=CHARACTERS, max_size=6), st.text(alphabet="=:~%+a/", max_size=6)),
    ),
)
SHELLS = [name for name in ("sh", "bash", "zsh") if shutil.which(name)]


def of_shells(text: bytes) -> list[env_readers.Values | str]:
    """What the shells that are there make of a text, each once."""
    found: list[env_readers.Values | str] = []
    for name in SHELLS:
        told = env_readers.told(env_readers.shell(name), text)
        if told not in found:
            found.append(told)
    return found


def test_values_are_kept_in_their_order_between_comments_and_blank_lines() -> None:
    env = _env_file.read_env("# a pair\n\nVRAM_KV_MIB=6144\n  # more\nIMAGE=docker.io/x/y@sha256:0a\nEMPTY=\n")
    assert list(env.values.items()) == [
        ("VRAM_KV_MIB", "6144"),
        ("IMAGE", "docker.io/x/y@sha256:0a"),
        ("EMPTY", ""),
    ]
    assert env.errors == []
    assert env.lines == {"VRAM_KV_MIB": 3, "IMAGE": 5, "EMPTY": 6}


def test_every_shape_of_a_plain_value_is_kept() -> None:
    env = _env_file.read_env(env_cases.KEPT)
    assert env.errors == []
    assert env.values == env_cases.KEPT_VALUES


@pytest.mark.parametrize("case", env_cases.CASES, ids=[repr(case.text[:20]) for case in env_cases.CASES])
def test_what_the_readers_do_not_agree_on_is_an_error_with_its_line_and_the_reason(case: env_cases.Case) -> None:
    env = _env_file.read_env(b"FIRST=1\n# two\n" * (case.word != "byte order mark") + case.text)
    assert [error.line for error in env.errors] == [1 if case.word == "byte order mark" else 3]
    assert case.word in env.errors[0].text
    # A line that is refused gives no value; what stands on the next one may.
    assert set(env.values) <= {"FIRST", "COMMENT", "NEXT"}
    told = [case.told(reader) for reader in ("sh", "bash", "zsh", "systemd", "podman", "docker")]
    alike = [text for text, _word, _values in env_cases.ALIKE]
    assert (case.text.decode("utf-8", "replace") in alike) == all(one == told[0] for one in told)


@pytest.mark.parametrize("name", SHELLS)
def test_the_shells_of_this_machine_do_what_the_cases_say(name: str) -> None:
    assert list(env_readers.differences(name, env_readers.shell(name))) == []


def test_every_name_that_a_shell_keeps_is_refused() -> None:
    for name in (
        "UID",
        "PPID",
        "_",
        "BASH_SOURCE",
        "ZSH_SUBSHELL",
        "HISTCMD",
        "RANDOM",
        "status",
        "path",
        "dis_aliases",
    ):
        assert "keeps for itself" in _env_file.read_env(f"{name}=1\n").errors[0].text
    for name in ("HOST", "PORT", "TP", "MODEL", "PATHS", "PID_FILE", "UIDS", "BASHFUL", "STATUS", "HISTORY", "OPTIONS"):
        assert _env_file.read_env(f"{name}=1\n").errors == []


def test_both_a_mark_and_line_ends_are_told() -> None:
    env = _env_file.read_env(b"\xef\xbb\xbfVRAM_KV_MIB=6144\r\nPORT=8000\n")
    assert [(error.line, error.text.split(":")[0]) for error in env.errors] == [
        (1, "the file starts with a byte order mark, which hides the first line"),
        (1, "the line ends in CR LF"),
    ]
    assert env.values == {"PORT": "8000"}


def test_a_mark_before_a_comment_hides_nothing_and_is_told() -> None:
    env = _env_file.read_env("\ufeff# ours\nA=1\n")
    assert [error.line for error in env.errors] == [1]
    assert env.values == {"A": "1"}


def test_a_second_value_is_told_with_the_line_of_the_first() -> None:
    env = _env_file.read_env("A=1\n\nA=2\n")
    assert [(error.line, error.text.split(":")[0]) for error in env.errors] == [(3, "A stands on line 1 already")]
    assert env.values == {"A": "1"}


@pytest.mark.parametrize(
    ("value", "read"),
    [("06144", 6144), ("6,144", 6), ("8k", 8), ("0x1800", 0), ("6_144", 6), ("auto", 0), ("", 0), ("6144MiB", 6144)],
)
def test_a_number_that_the_engine_would_read_as_another_is_told_with_it(value: str, read: int) -> None:
    env = _env_file.without_loose_numbers(
        _env_file.read_env(f"# a\nKV={value}\nSLAB=24000\nNAME=6,144\n"), ["KV", "SLAB", "NONE"]
    )
    assert [(error.line, error.text.split(". ")[0]) for error in env.errors] == [
        (2, f"KV is {value!r}, which the engine reads as {read}")
    ]
    assert env.values == {"SLAB": "24000", "NAME": "6,144"}


def test_a_wrong_line_gives_no_value_and_its_text_is_not_repeated() -> None:
    env = _env_file.read_env("API_KEY='sk-secret-value'\nPORT=8000\n")
    assert env.values == {"PORT": "8000"}
    assert "sk-secret-value" not in env.errors[0].text


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"MODEL": "a b"}, "env_value_not_plain"),
        ({"MODEL": "=ls"}, "env_value_not_plain"),
        ({"MODEL": "a\n"}, "env_value_not_plain"),
        ({"A B": "1"}, "env_name_unfit"),
        ({"A\n": "1"}, "env_name_unfit"),
        ({"UID": "1"}, "env_name_unfit"),
    ],
)
def test_a_renderer_refuses_what_it_could_not_read_back(values: dict[str, str], code: str) -> None:
    with pytest.raises(RadianceError) as caught:
        _env_file.render_env([], values)
    assert caught.value.code == code


def test_the_rendered_bytes() -> None:
    text = _env_file.render_env(["one", "", "two \\", "three\rA=1", "a\0b"], {"PORT": "8000"})
    assert text == "# one\n#\n# two\n# three\n# A=1\n# a b\n\nPORT=8000\n"


@given(st.dictionaries(NAMES, PLAIN, max_size=6), st.lists(st.text(alphabet="ab $'\"\\=\r", max_size=20), max_size=3))
def test_what_is_rendered_reads_back(values: dict[str, str], header: list[str]) -> None:
    try:
        text = _env_file.render_env(header, values)
    except RadianceError as error:
        assert error.code in ("env_name_unfit", "env_value_not_plain")
        return
    env = _env_file.read_env(text)
    assert env.errors == []
    assert env.values == values


# What they are asked takes its time, so that an example is told as it was found.
@settings(max_examples=30, phases=[Phase.generate])
@given(st.lists(LINES, min_size=8, max_size=24))
def test_what_is_let_through_reads_the_same_in_every_real_shell(lines: list[str]) -> None:
    # Line by line, so that one that is refused does not hide another; then all of them, read by the programs at once.
    kept: dict[str, str] = {}
    for line in lines:
        env = _env_file.read_env(line)
        if not env.errors:
            kept.update(env.values)
    text = _env_file.render_env(lines, kept)
    assert _env_file.read_env(text).values == kept
    assert of_shells(text.encode()) == [kept]
