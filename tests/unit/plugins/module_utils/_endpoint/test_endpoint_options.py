# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probes' options: what is refused before anything is sent, and in which words."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import read, read_key
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

GOOD: dict[str, t.Any] = {"endpoint": "http://127.0.0.1:8000", "model": None, "timeout": 1800}


def test_good_options() -> None:
    found = read({**GOOD, "sequences": "3", "max_model_len": 200000, "chars_per_token": 2.7617}, None)
    assert (found.sequences, found.max_model_len, found.chars_per_token, found.timeout) == (3, 200_000, 2.7617, 1800.0)
    assert (found.generate_tokens, found.runs, found.prompt_tokens, found.require_idle) == (None, None, None, False)


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ({"endpoint": "127.0.0.1:8000"}, "endpoint_unusable", "is not an http or https URL"),
        ({"endpoint": "http://127.0.0.1:8000/v1"}, "endpoint_unusable", "ends in /v1"),
        ({"timeout": "1e3"}, "not_a_whole_number", "timeout is '1e3'"),
        ({"timeout": 0}, "option_out_of_range", "timeout is 0"),
        ({"timeout": 604_801}, "option_out_of_range", "timeout is 604,801, and 604,800 is the most"),
        ({"load_timeout": 999_999_999_999}, "option_out_of_range", "load_timeout is 999,999,999,999"),
        ({"sequences": 4097}, "option_out_of_range", "sequences is 4,097, and 4,096 is the most"),
        ({"max_model_len": 2**24 + 1}, "option_out_of_range", "max_model_len is 16,777,217"),
        ({"sequences": "06"}, "not_a_whole_number", "sequences is '06'"),
        ({"max_model_len": "200k"}, "not_a_whole_number", "max_model_len is '200k'"),
        ({"generate_tokens": 6.5}, "not_a_whole_number", "generate_tokens is 6.5"),
        ({"generate_tokens": True}, "not_a_whole_number", "generate_tokens is True"),
        ({"prompt_tokens": "43,500"}, "not_a_whole_number", "prompt_tokens is '43,500'"),
        ({"runs": "0"}, "option_out_of_range", "runs is 0"),
        ({"chars_per_token": 0.9}, "option_out_of_range", "chars_per_token is 0.9"),
        ({"chars_per_token": float("nan")}, "option_out_of_range", "chars_per_token is nan"),
    ],
)
def test_a_bad_option_is_quoted(options: dict[str, t.Any], code: str, says: str) -> None:
    with pytest.raises(RadianceError) as caught:
        read({**GOOD, **options}, None)
    assert caught.value.code == code
    assert says in caught.value.text


@pytest.mark.parametrize(
    "key", ["sevench", "1234567890123", "", "two words here", "sk-n\u00e4ive-secret-key", "a\nb-c-d-e-f"]
)
def test_a_key_that_cannot_be_kept_secret_is_refused(tmp_path: pathlib.Path, key: str) -> None:
    path = tmp_path / "key"
    path.write_text(key, encoding="utf-8")
    for api_key, api_key_file in ((key, None), (None, str(path))):
        with pytest.raises(RadianceError) as caught:
            read_key(api_key, api_key_file)
        assert caught.value.code == "key_unusable"
        assert not key or key not in caught.value.text


def test_a_key_from_a_file_loses_its_newline(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "key"
    path.write_text("sk-very-secret-key\n")
    assert read_key(None, str(path)) == "sk-very-secret-key"
    assert read_key("sk-very-secret-key", None) == "sk-very-secret-key"
    assert read_key(None, None) is None


def test_a_key_file_that_cannot_be_read(tmp_path: pathlib.Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xfa-secret-key")
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it
    for path in (tmp_path / "absent", tmp_path / "bytes", tmp_path / "pipe", tmp_path):
        with pytest.raises(RadianceError) as caught:
            read_key(None, str(path))
        assert caught.value.code == "key_unreadable"
