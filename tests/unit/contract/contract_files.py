# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the contract tests read: the files of the collection, and what its modules declare."""

from __future__ import annotations

import importlib
import pathlib
import re
from collections.abc import Iterator
from typing import Any
from unittest import mock

import yaml
from ansible.module_utils import basic

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = "ansible_collections.kvfleet.radiance.plugins.modules"
ACTIONS = "ansible_collections.kvfleet.radiance.plugins.action"
FRAGMENTS = "ansible_collections.kvfleet.radiance.plugins.doc_fragments"
MODULES = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py"))
SCHEMAS = sorted(path.name for path in (ROOT / "schemas").glob("*.schema.json"))


_LEFT_BEHIND = re.compile(r"\.pyc$|/\.\w+_cache/|/\.ansible/")


class _Declared(BaseException):
    """Carries a module's argument spec out of its main()."""


def module_strings(name: str) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """DOCUMENTATION with its fragments, EXAMPLES and RETURN of one module, parsed."""
    module = importlib.import_module(f"{PACKAGE}.{name}")
    documentation = yaml.safe_load(module.DOCUMENTATION)
    for fragment in documentation.get("extends_documentation_fragment", []):
        file, _dot, section = fragment.rpartition("kvfleet.radiance.")[2].partition(".")
        fragments = importlib.import_module(f"{FRAGMENTS}.{file}").ModuleDocFragment
        for key, value in yaml.safe_load(getattr(fragments, section.upper() or "DOCUMENTATION")).items():
            documentation[key] = {**value, **documentation.get(key, {})}
    return (
        documentation,
        yaml.safe_load(module.EXAMPLES),
        yaml.safe_load(module.RETURN),
    )


def argument_spec(name: str) -> dict[str, Any]:
    """What one module gives to AnsibleModule as its argument_spec; what the action takes, where that is all of it."""

    def declare(_self: basic.AnsibleModule, argument_spec: dict[str, Any], **_others: Any) -> None:
        raise _Declared(argument_spec)

    module = importlib.import_module(f"{PACKAGE}.{name}")
    if not hasattr(module, "main"):
        taken: dict[str, Any] = importlib.import_module(f"{ACTIONS}.{name}").ARGUMENTS
        return taken
    with mock.patch.object(basic.AnsibleModule, "__init__", declare):
        try:
            module.main()
        except _Declared as declared:
            spec: dict[str, Any] = declared.args[0]
            return spec
    raise AssertionError(f"{name} made no AnsibleModule")


def options_of(spec: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every option of a spec with its own, the inner ones as ``outer.inner``."""
    for name, option in spec.items():
        yield prefix + name, option
        yield from options_of(option.get("options") or {}, f"{prefix}{name}.")


def text_files(*folders: str) -> list[pathlib.Path]:
    """The text files under these folders and files of the collection, without what tools leave behind."""
    found: list[pathlib.Path] = []
    for folder in folders:
        top = ROOT / folder
        paths = [top] if top.is_file() else sorted(top.rglob("*"))
        found += [path for path in paths if path.is_file() and not _LEFT_BEHIND.search(str(path))]
    return found
