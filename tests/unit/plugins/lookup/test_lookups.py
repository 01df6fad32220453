# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lookups tell of files on the controller."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible.errors import AnsibleLookupError
from ansible.template import Templar, trust_as_template
from ansible_collections.kvfleet.radiance.plugins.lookup import env_file, managed_file, request


def look(plugin: t.Any, *paths: pathlib.Path) -> list[dict[str, t.Any]]:
    found: list[dict[str, t.Any]] = plugin.LookupModule().run([str(path) for path in paths])
    return found


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A fleet's files: one of ours, one of somebody else."""
    (tmp_path / "ours.env").write_text("# kvfleet.radiance: managed; x\nVRAM_KV_MIB=5120\n")
    (tmp_path / "theirs.env").write_bytes(b"\xef\xbb\xbfVRAM_KV_MIB=6144\r\nPORT=8000\n")
    return tmp_path


def test_an_env_is_read_strictly(folder: pathlib.Path) -> None:
    ours, theirs, none = look(env_file, folder / "ours.env", folder / "theirs.env", folder / "none.env")
    assert (ours["exists"], ours["foreign"], ours["values"]) == (True, False, {"VRAM_KV_MIB": "5120"})
    assert (theirs["foreign"], theirs["values"]) == (True, {"PORT": "8000"})
    assert [error["line"] for error in theirs["errors"]] == [1, 1]
    assert (none["exists"], none["foreign"], none["values"], none["errors"]) == (False, False, {}, [])


@pytest.mark.parametrize("value", ["06144", "6,144", "8k", "0x1800", "6_144", ""])
def test_a_pair_and_a_shape_are_plain_digits_and_nothing_else(tmp_path: pathlib.Path, value: str) -> None:
    (tmp_path / "x.env").write_text(f"# kvfleet.radiance: managed; x\nVRAM_KV_MIB={value}\nMODEL=6,144\n")
    (found,) = look(env_file, tmp_path / "x.env")
    assert found["values"] == {"MODEL": "6,144"}
    assert [error["line"] for error in found["errors"]] == [2]
    assert f"VRAM_KV_MIB is {value!r}, which the engine reads as " in found["errors"][0]["text"]


def test_a_secret_in_an_env_of_ours_is_refused_and_not_shown(tmp_path: pathlib.Path) -> None:
    lines = ["# kvfleet.radiance: managed; x", "API_KEY=sk-test", "PORT=8000", "HF_TOKEN=hf_test", "MAX_TOKENS=5"]
    (tmp_path / "x.env").write_text("\n".join(lines) + "\n")
    (found,) = look(env_file, tmp_path / "x.env")
    assert found["values"] == {"PORT": "8000", "MAX_TOKENS": "5"}
    assert [(error["line"], error["text"].split(",")[0]) for error in found["errors"]] == [
        (2, "API_KEY carries a secret"),
        (4, "HF_TOKEN carries a secret"),
    ]
    assert not any(secret in str(found["errors"]) for secret in ("sk-test", "hf_test"))


def test_a_file_without_our_marker_is_foreign(folder: pathlib.Path) -> None:
    ours, theirs, none = look(managed_file, folder / "ours.env", folder / "theirs.env", folder / "none.env")
    assert [item["foreign"] for item in (ours, theirs, none)] == [False, True, False]
    assert none == {"path": str(folder / "none.env"), "foreign": False, "text": ""}


def test_a_request_is_what_variables_of_its_names_say() -> None:
    given = trust_as_template("{{ half }}0")
    variables = {"max_num_seqs": "2", "kv_mib": given, "half": "512", "other": "1", "to": "previous"}
    look = request.LookupModule(templar=Templar(variables=variables))
    assert look.run([], variables, defaults={"to": "list", "after_stop": "undo", "fill": None}) == [
        {"after_stop": "undo", "max_num_seqs": "2", "kv_mib": "5120", "to": "previous"}
    ]
    assert look.run([], variables) == [{"max_num_seqs": "2", "kv_mib": "5120", "to": "previous"}]


def test_a_request_of_a_file_or_a_name_is_none() -> None:
    with pytest.raises(AnsibleLookupError, match="takes no terms, and has fill: what is asked are variables"):
        request.LookupModule(templar=Templar(variables={})).run(["fill"], {})
