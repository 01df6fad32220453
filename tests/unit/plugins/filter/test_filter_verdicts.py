# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdicts filter, templated as a playbook does."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

from ansible_collections.kvfleet.radiance.plugins.filter.endpoint import FilterModule
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import ledger

ROOT = pathlib.Path(__file__).resolve().parents[4]


def test_verdicts_of_a_list_without_a_boot() -> None:
    verdicts = FilterModule().filters()["verdicts"]
    predictions = make_plan(ledger(), {})["predictions"]
    assert {item["verdict"] for item in verdicts(predictions)} == {"open"}
    assert {item["verdict"] for item in verdicts(predictions, {"status": "refused"}, {})} == {"killed"}


def test_ansible_doc_takes_its_documentation() -> None:
    parts = ROOT.parts
    collections = (
        pathlib.Path(*parts[: parts.index("ansible_collections")])
        if "ansible_collections" in parts
        else ROOT / "collections"
    )
    command = [sys.executable, "-m", "ansible.cli.doc", "-t", "filter", "--json", "kvfleet.radiance.verdicts"]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(collections)}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    doc = json.loads(shown.stdout)["kvfleet.radiance.verdicts"]["doc"]
    assert set(doc["options"]) == {"_input", "ledger", "probes"}
