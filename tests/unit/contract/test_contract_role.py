# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role says one thing about its variables: in its argument specs, its defaults, its playbooks and its modules."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _request
from contract_files import ROOT, module_strings

ROLE = ROOT / "roles" / "endpoint"
# The task files that a play includes by name; the others are theirs.
ENTRY_POINTS = ("plan", "files", "switch", "verify", "probe", "record")
# What a command asks of the play itself, and not of the planner.
OF_THE_PLAY = {
    *("service", "image", "fill", "plan", "drift", "probes", "probation", "handover"),
    *("not_after", "after_stop", "to"),
}


def specs() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROLE / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    return found


def defaults() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    return found


def options() -> dict[str, dict[str, Any]]:
    """Every option of any entry point; one that several have must be the same in all."""
    together: dict[str, dict[str, Any]] = {}
    for entry, spec in specs().items():
        for name, option in (spec.get("options") or {}).items():
            assert together.setdefault(name, option) == option, f"{entry}: {name} differs between entry points"
    return together


@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_entry_point_is_described(entry: str) -> None:
    spec = specs()[entry]
    assert (ROLE / "tasks" / f"{entry}.yml").is_file()
    assert spec["short_description"]
    assert spec["description"]


def test_every_default_is_an_option_with_that_default() -> None:
    declared = {name: option["default"] for name, option in options().items() if "default" in option}
    assert declared == defaults()


def test_a_timeout_of_the_switch_is_the_same_with_and_without_the_role() -> None:
    documented = module_strings("service_switch")[0]["options"]
    of_the_module = {name: documented[f"{name}_timeout"]["default"] for name in ("drain", "stop", "release", "ready")}
    assert {**of_the_module, "probe": 1800} == defaults()["endpoint_timeouts"]


def test_every_option_is_prefixed_and_described() -> None:
    for name, option in options().items():
        assert name.startswith("endpoint_")
        assert option["description"], name
        assert option["type"], name


def test_defaults_are_of_their_types() -> None:
    plain = {name: value for name, value in defaults().items() if "{{" not in str(value)}
    spec = {name: option for name, option in options().items() if name in plain}
    result = ArgumentSpecValidator(spec).validate(plain)
    assert result.error_messages == []


def test_a_request_holds_what_the_planner_and_the_play_take() -> None:
    documented = module_strings("pair_plan")[0]["options"]
    of_the_planner = set(documented) | set(documented["shape"]["suboptions"]) | {"weights_mib", "kv_mib"}
    assert set(_request.REQUEST) - OF_THE_PLAY <= of_the_planner
    assert set(options()["endpoint_request"]["options"]) == set(_request.REQUEST)
