# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What no file of the collection may hold."""

from __future__ import annotations

import ast
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from contract_files import ROOT, text_files

WORD_THAT_ZSH_EXPANDS = re.compile(r"(?:^|[\s;&|(])(=[^\s;&|)]+)")
COMMANDS = {"command", "shell", "raw", "script", "expect"}


def remote_commands(node: Any) -> Iterator[str]:
    """Every command line in a playbook or task file, list forms joined."""
    if isinstance(node, list):
        for item in node:
            yield from remote_commands(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if str(key).rsplit(".", maxsplit=1)[-1] in COMMANDS:
                if isinstance(value, dict):
                    value = value.get("cmd") or value.get("argv") or ""
                yield " ".join(map(str, value)) if isinstance(value, list) else str(value)
            else:
                yield from remote_commands(value)


def without_jinja(text: str) -> str:
    return re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", "x", text, flags=re.DOTALL)


def zsh_words(command: str) -> list[str]:
    return WORD_THAT_ZSH_EXPANDS.findall(without_jinja(command))


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("echo === done", ["==="]),
        ("echo =ls", ["=ls"]),
        ("true; =ls", ["=ls"]),
        ("echo a=b --c=d", []),
        ("[ a = b ]", []),
        ("echo {{ x == y }}", []),
    ],
)
def test_the_search_finds_a_word_that_zsh_expands(command: str, found: list[str]) -> None:
    assert zsh_words(command) == found


def yaml_files() -> list[pathlib.Path]:
    return [p for p in text_files("roles", "playbooks", "resize.yml") if p.suffix in {".yml", ".yaml"}]


@pytest.mark.parametrize("path", yaml_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_remote_command_has_a_word_that_begins_with_an_equals_sign(path: pathlib.Path) -> None:
    for document in yaml.load_all(path.read_text(), Loader=_AnyTag):
        for command in remote_commands(document):
            assert zsh_words(command) == [], command


class _AnyTag(yaml.SafeLoader):
    """Reads !unsafe and !vault as what they wrap."""


_AnyTag.add_multi_constructor("!", lambda loader, _suffix, node: loader.construct_scalar(node))


@pytest.mark.parametrize(
    "path",
    [p for p in text_files("roles/endpoint/templates", "rehearse") if p.suffix == ".j2" or p.name == "rehearse"],
    ids=lambda p: p.name,
)
def test_no_shell_script_has_a_word_that_begins_with_an_equals_sign(path: pathlib.Path) -> None:
    text = path.read_text()
    if not text.startswith("#!"):
        return
    for line in without_jinja(text).splitlines():
        if not line.lstrip().startswith("#"):
            assert zsh_words(line) == [], line


@pytest.mark.parametrize(
    "path",
    [p for p in text_files("plugins/modules", "plugins/module_utils", "plugins/action") if p.suffix == ".py"],
    ids=lambda p: str(p.relative_to(ROOT / "plugins")),
)
def test_no_argument_list_has_a_word_that_begins_with_an_equals_sign(path: pathlib.Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.List):
            words = [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
            assert [word for word in words if re.match("=.", word)] == []


def test_no_file_names_a_path_of_one_machine() -> None:
    homes = [re.escape(str(path)) for path in (pathlib.Path.home(), ROOT)]
    pattern = re.compile(r"(?<![\w.])(?:" + "|".join([*homes, "/" + "root", "/" + "work"]) + ")/")
    folders = (
        "plugins",
        "roles",
        "playbooks",
        "inventory",
        "meta",
        "schemas",
        "extensions",
        "docs",
        "README.md",
        "rehearse",
    )
    for path in text_files(*(f for f in folders if (ROOT / f).exists())):
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            assert not pattern.search(line), f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
