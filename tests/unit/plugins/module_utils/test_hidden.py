# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets of somebody's own files: hidden where they are read, and there again where they are written."""

from __future__ import annotations

import pathlib

import hypothesis
import hypothesis.strategies as st
import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _env_file
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import hidden, put_back
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import files

TEXT = """\
# by hand
POOL_MIB=5120
HF_TOKEN=hf_abc/DEF
#OLD_API_KEY=sk-1
export DB_PASSWORD='a b'
exec e --api-key sk-2 --api-key-file /k --auth-token="x" --max-tokens 5
key=$(cat /k)
exec e --api-key "$key"
"""
HIDDEN = """\
# by hand
POOL_MIB=5120
HF_TOKEN=********
#OLD_API_KEY=********
export DB_PASSWORD='******** ********'
exec e --api-key ******** --api-key-file /k --auth-token="********" --max-tokens 5
key=$(cat /k)
exec e --api-key "$key"
"""


def test_what_has_the_name_of_a_secret_is_hidden_and_put_back() -> None:
    assert hidden(TEXT) == HIDDEN
    assert put_back(HIDDEN, TEXT) == TEXT
    # What was changed around it stays changed.
    assert put_back("# new\n" + HIDDEN.replace("5120", "6144"), TEXT) == "# new\n" + TEXT.replace("5120", "6144")


@hypothesis.given(st.text("aK=_'\" $*#-\\\r\n", max_size=60), st.sampled_from(["A_KEY=", "--a-key ", "# K_TOKEN=x\n"]))
def test_any_text_comes_back(text: str, secret: str) -> None:
    whole = text + secret + text + "b\n" + secret + "c"
    assert put_back(hidden(whole), whole) == whole


def test_a_secret_that_the_file_lacks_is_refused_by_its_line() -> None:
    with pytest.raises(RadianceError, match="line 3 holds a secret, 'HF_TOKEN=[*]{8}'") as refused:
        put_back(HIDDEN, TEXT.replace("HF_TOKEN", "OTHER_TOKEN"))
    assert refused.value.code == "secret_missing"
    # What we tell in a comment may have a mask of its own.
    assert put_back("# it ran --api-key ********\n", "") == "# it ran --api-key ********\n"


def test_an_env_reads_the_same_without_its_secrets() -> None:
    for line in ("HF_TOKEN=hf_abc\n", "HF_TOKEN='hf abc'\n", "HF_TOKEN=a b\n", "HF_TOKEN=\n", "HF_TOKEN=a;b\n"):
        assert _env_file.read_env(hidden(line)).errors == _env_file.read_env(line).errors


def test_a_switch_keeps_the_secrets_that_a_file_has(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "q.env"
    path.write_bytes(b"# na\xefve\nPOOL_MIB=5120\nHF_TOKEN=hf_abc\n")
    wanted = files.wanted({"dest": str(path), "content": "POOL_MIB=6144\nHF_TOKEN=********\n"})
    (change,) = files.compare([wanted])
    assert change.after == b"POOL_MIB=6144\nHF_TOKEN=hf_abc\n"
    path.write_bytes(change.after)
    assert files.compare([wanted]) == []


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "exec podman run -e HF_TOKEN=hush -eA_KEY=hush img",
            "exec podman run -e HF_TOKEN=******** -eA_KEY=******** img",
        ),
        ("  --env=HF_TOKEN='hush hush' \\", "  --env=HF_TOKEN='******** ********' \\"),
        ('  --api-key "hush hush" \\', '  --api-key "******** ********" \\'),
        ("HF_TOKEN=hush exec e --port $PORT", "HF_TOKEN=******** exec e --port $PORT"),
        ("export A=1 HF_TOKEN=hush", "export A=1 HF_TOKEN=********"),
        ("exec e -e HF_TOKEN=$HF_TOKEN --max-tokens 5 -e MAX_TOKENS=5", None),
    ],
)
def test_a_secret_in_the_words_of_a_command(line: str, shown: str | None) -> None:
    assert hidden(line) == (shown or line)
    assert put_back(hidden(line), line) == line
    if shown:
        with pytest.raises(RadianceError):
            put_back(shown, "")
