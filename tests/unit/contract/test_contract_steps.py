# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each step of the role declares the variables that its tasks read, and no others."""

from __future__ import annotations

import pathlib
import re
import sys
from typing import Any

import jinja2
import jinja2.nodes
import pytest
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from contract_files import ROOT, text_files

ROLE = ROOT / "roles" / "endpoint"
TASKS = ROLE / "tasks"
# Keywords whose text is an expression without braces, and those that include another file.
_BARE = {"when", "that", "failed_when", "changed_when", "until"}
_INCLUDES = {"ansible.builtin.include_tasks", "ansible.builtin.import_tasks"}
# The step survey has no spec: an item of which the name alone is known fits none.
_UNDECLARED = {"survey"}
# What each step takes from the one before and hands on, by no option of its own.
_HANDED_ON = {"endpoint_run"}


def loaded(path: pathlib.Path) -> Any:
    return yaml.safe_load(path.read_text())


SPECS: dict[str, Any] = loaded(ROLE / "meta" / "argument_specs.yml")["argument_specs"]
# What a name stands for where no task sets it.
STANDS_FOR: dict[str, Any] = {**loaded(ROLE / "vars" / "main.yml"), **loaded(ROLE / "defaults" / "main.yml")}


class Reader:
    """Goes through a step in its order, and keeps the names that are read before a task has set them."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self._set: set[str] = set()
        self._being_read: set[tuple[str, frozenset[str]]] = set()

    def file(self, name: str, scope: frozenset[str]) -> None:
        if ("file " + name, scope) not in self._being_read:
            self._being_read.add(("file " + name, scope))
            self.node(loaded(TASKS / name), scope)

    def node(self, node: Any, scope: frozenset[str], key: str = "") -> None:
        """Read what stands in a task or in a part of one; ``scope`` holds what ``vars`` around it set."""
        if isinstance(node, dict):
            if isinstance(node.get("vars"), dict):
                scope = scope.union(node["vars"])
            for name, value in node.items():
                self.node(value, scope, name)
            for name in _INCLUDES & node.keys():
                for path in TASKS.glob(jinja2.Environment(undefined=_Any).from_string(node[name]).render()):
                    self.file(path.name, scope)
            self._set |= {node["register"]} if "register" in node else set()
            self._set |= {node["loop_var"]} if "loop_var" in node else set()
            self._set |= node.get("ansible.builtin.set_fact", {}).keys()
        elif isinstance(node, list):
            for item in node:
                self.node(item, scope, key)
        elif isinstance(node, str):
            self.text(f"{{{{ {node} }}}}" if key in _BARE else node, scope)

    def text(self, template: str, scope: frozenset[str]) -> None:
        names = {name.name for name in jinja2.Environment().parse(template).find_all(jinja2.nodes.Name)}
        for name in names - scope - self._set:
            self.read.add(name)
            if name in STANDS_FOR and (name, scope) not in self._being_read:
                self._being_read.add((name, scope))
                self.node(STANDS_FOR[name], scope)


class _Any(jinja2.Undefined):
    """What nobody knows, as a part of a file's name."""

    def __str__(self) -> str:
        return "*"

    def __getattr__(self, name: str) -> _Any:
        return self


def read_by(entry: str) -> set[str]:
    reader = Reader()
    reader.file(f"{entry}.yml", frozenset())
    return {name for name in reader.read if name.startswith("endpoint_")} - _HANDED_ON


@pytest.mark.parametrize("entry", sorted(SPECS))
def test_a_step_declares_what_it_reads(entry: str) -> None:
    assert set(SPECS[entry].get("options") or {}) == read_by(entry)


def test_what_a_step_sets_itself_it_does_not_ask_for() -> None:
    reader = Reader()
    reader.node(
        [
            {"debug": {"msg": "{{ endpoint_before }}"}, "register": "endpoint_kept", "when": "endpoint_when"},
            {"ansible.builtin.set_fact": {"endpoint_before": "{{ endpoint_kept }}"}},
            {"vars": {"endpoint_inner": "{{ endpoint_outer }}"}, "debug": {"msg": "{{ endpoint_inner }}"}},
        ],
        frozenset(),
    )
    assert reader.read == {"endpoint_before", "endpoint_when", "endpoint_outer"}


def test_every_entry_point_of_the_readme_is_declared() -> None:
    rows = [line.split("`")[1] for line in (ROLE / "README.md").read_text().splitlines() if line.startswith("| `")]
    steps = [name for name in rows if (TASKS / f"{name}.yml").is_file()]
    assert set(steps) - _UNDECLARED == set(SPECS)


def test_the_table_of_the_readme_has_what_the_steps_hand_on() -> None:
    table = (ROLE / "README.md").read_text().partition("## The steps hand on `endpoint_run`")[2]
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    listed = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
    tasks = "".join(path.read_text() for path in text_files("roles/endpoint/tasks", "roles/endpoint/vars", "playbooks"))
    used = {name for names in re.findall(r"endpoint_run(?:\.(\w+)|\['(\w+)'\])", tasks) for name in names} - {""}
    assert used - listed == set()
    sources = tasks + "".join(path.read_text() for path in text_files("plugins/plugin_utils", "plugins/action"))
    nowhere = [key for key in listed if not re.search(rf"""['"]{key}['"]|\b{key}=|^ +{key}:""", sources, re.MULTILINE)]
    assert nowhere == []
