# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A reviewed plan is exactly what runs, or nothing does."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _plan_file, _request

ANEW = "ansible-playbook playbooks/plan.yml -l dankserver -e service=flashnext -e plan_file=FILE"


def reviewed(plan: dict[str, t.Any]) -> dict[str, t.Any]:
    """An item of a plan file."""
    return {"host": "dankserver", "service": "flashnext", "request": {}, "plan": plan}


def test_a_plan_file_is_for_its_hosts_only(example: t.Any, tmp_path: pathlib.Path) -> None:
    run = {"service": example.service, "options": {"pair": "fill"}, "plan": example.plan}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(_plan_file.plan_file({"dankserver": [run], "idle": []})))
    item = _plan_file.reviewed_plan(str(path), "dankserver", "flashnext")
    assert item["request"] == {"pair": "fill"}
    assert item["plan"] == example.plan
    with pytest.raises(RadianceError, match="flashnext on dankserver, not flashnext on other"):
        _plan_file.reviewed_plan(str(path), "other", "flashnext")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON: "),
        ('{"schema": "x", "plans": []}', "is no plan file: at schema: must be kvfleet.radiance/plan-file/1"),
        ('{"schema": "kvfleet.radiance/plan-file/1", "plans": []}', "The plan file plans nothing"),
    ],
)
def test_a_plan_file_that_is_none_is_named(example: t.Any, tmp_path: pathlib.Path, text: str, said: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    found = _request.request_objection({"plan": str(path)}, [example.service], "dankserver")
    assert said in found
    assert str(path) in found and ANEW in found or "plans nothing" in said


def test_the_same_plan_of_the_same_boot_meets_no_objection(example: t.Any) -> None:
    _plan_file.hold_to_reviewed(example.plan, reviewed(example.plan))


def test_a_plan_of_another_boot_is_stale_and_names_both(example: t.Any) -> None:
    with pytest.raises(RadianceError) as refused:
        _plan_file.hold_to_reviewed(example.plan, reviewed({**example.plan, "fingerprint": "ffffffffffff"}))
    assert refused.value.code == "plan_is_stale"
    says = refused.value.text
    assert "ffffffffffff" in says and "10644b1004ce" in says
    assert says.endswith(f"\n{ANEW}")


def test_an_edited_plan_is_refused_and_the_part_is_named(example: t.Any) -> None:
    edited = {**example.plan, "to": {**example.new, "weights_mib": 26000}}
    with pytest.raises(RadianceError) as refused:
        _plan_file.hold_to_reviewed(example.plan, reviewed(edited))
    assert refused.value.code == "plan_differs"
    says = refused.value.text
    assert " in to." in says
    assert says.endswith(f"\n{ANEW}")
