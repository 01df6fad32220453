# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every module promises beyond what ansible-test checks (that compares argument specs with documentation)."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re
import sys
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from contract_files import MODULES, ROOT, argument_spec, module_strings, options_of

KEYWORDS_BESIDE_A_MODULE = set(
    [
        "any_errors_fatal",
        "become",
        "check_mode",
        "delegate_to",
        "loop",
        "loop_control",
        "name",
        "no_log",
        "register",
        "run_once",
        "vars",
        "when",
    ]
)
SECRETS = {"api_key"}


def test_one_action_group_names_the_modules() -> None:
    group = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text())["action_groups"]["radiance"]
    assert group == MODULES


def test_what_runs_on_the_controller_takes_what_is_documented() -> None:
    # ansible-test holds to their documentation those alone that run on a target.
    documented = module_strings("service_plan")[0]["options"]
    taken = argument_spec("service_plan")
    assert list(documented) == list(taken)
    for name, option in taken.items():
        assert (documented[name]["type"], documented[name].get("required", False)) == (
            option["type"],
            option.get("required", False),
        )
        assert documented[name].get("default") == option.get("default"), name
        assert documented[name].get("choices") == option.get("choices"), name


@pytest.mark.parametrize("name", MODULES)
def test_an_option_named_like_a_secret_says_whether_it_is_one(name: str) -> None:
    for option, declared in options_of(argument_spec(name)):
        last = option.rsplit(".", maxsplit=1)[-1]
        if last in SECRETS:
            assert declared.get("no_log") is True, option
        elif re.search(r"token|key|secret|password", last):
            # True would blank every equal number in the output; left out, ansible-core warns and guesses.
            assert declared.get("no_log") is False, option
        else:
            assert not declared.get("no_log"), option


@pytest.mark.parametrize("name", MODULES)
def test_no_secret_has_a_default(name: str) -> None:
    for option, declared in options_of(argument_spec(name)):
        if declared.get("no_log"):
            assert declared.get("default") is None, option
            assert "fallback" not in declared, option


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_tasks_that_use_what_is_documented(name: str) -> None:
    documentation, examples, _returned = module_strings(name)
    used = False
    for task in examples:
        assert task.get("name"), f"an example of {name} has no name"
        actions = set(task) - KEYWORDS_BESIDE_A_MODULE
        assert len(actions) == 1, f"{task['name']}: {sorted(actions)}"
        action = actions.pop()
        assert action.count(".") >= 2, f"{task['name']}: {action} is no full name"
        if action == f"kvfleet.radiance.{name}":
            used = True
            unknown = set(task[action] or {}) - set(documentation["options"])
            assert not unknown, f"{task['name']}: {sorted(unknown)}"
        elif action.startswith("kvfleet.radiance."):
            assert action.rsplit(".", maxsplit=1)[-1] in MODULES
    assert used, f"no example of {name} calls it"


@pytest.mark.parametrize(
    ("name", "key", "schema"),
    [("boot_ledger_info", "ledger", "ledger"), ("pair_plan", "plan", "plan")],
)
def test_return_documents_the_keys_of_the_schema(name: str, key: str, schema: str) -> None:
    if name not in MODULES:
        return
    properties = json.loads((ROOT / "schemas" / f"{schema}.schema.json").read_text())["properties"]
    contains: dict[str, Any] = module_strings(name)[2][key]["contains"]
    assert set(contains) == set(properties)


@pytest.mark.parametrize("name", MODULES)
def test_module_is_a_thin_edge(name: str) -> None:
    source = (ROOT / "plugins" / "modules" / f"{name}.py").read_text()
    assert source.startswith("#!/usr/bin/python\n")
    assert "from __future__ import annotations\n" in source
    assert (ROOT / "plugins" / "modules" / f"{name}.py").stat().st_mode & 0o111 == 0
    documentation = module_strings(name)[0]
    assert documentation["module"] == name
    assert {"check_mode", "diff_mode"} <= set(documentation["attributes"])


def test_unit_tests_have_names_of_their_own() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py") if "output" not in path.parts]
    assert sorted(names) == sorted(set(names))


def test_core_needs_nothing_but_the_standard_library() -> None:
    for path in (ROOT / "plugins" / "module_utils").rglob("*.py"):
        for found in re.finditer(r"^\s*(?:from|import) (\w+)", path.read_text(), re.MULTILINE):
            top = found[1]
            known = top in {"ansible_collections", "ansible"} or top in sys.stdlib_module_names
            assert known, f"{path.relative_to(ROOT)} imports {top}"
    assert importlib.util.find_spec("ansible_collections.kvfleet.radiance.plugins.module_utils._sizes")
