# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The codes of a ledger's reason are one list: in what raises them, in the schema, on their page, in the module."""

from __future__ import annotations

import ast
import json
import pathlib
import re
import typing as t

import yaml
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.refusals import REASON_CODES
from ansible_collections.kvfleet.radiance.plugins.modules import boot_ledger_info

ROOT = pathlib.Path(__file__).resolve().parents[3]
STATUSES = ("refused", "incomplete", "absent")


def page() -> dict[str, dict[str, list[str]]]:
    """The page's tables, by heading: a code and its cells."""
    tables: dict[str, dict[str, list[str]]] = {}
    heading = ""
    for line in (ROOT / "docs" / "ledger-reasons.md").read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        found = re.match(r"^\| `(\w+)` \| (.*) \|$", line)
        if found:
            assert found.group(1) not in tables.setdefault(heading, {})
            tables[heading][found.group(1)] = found.group(2).split(" | ")
    return tables


def text_of(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def raised() -> tuple[dict[str, set[str]], set[str]]:
    """What the sources of the ledger give as the code of a reason, by status, and the codes of their errors."""
    reasons: dict[str, set[str]] = {status: set() for status in STATUSES}
    errors: set[str] = set()
    for folder in ("_ledger", "_sources"):
        for path in (ROOT / "plugins" / "module_utils" / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    collect_call(node, reasons, errors if folder == "_sources" else set())
    return reasons, errors


def collect_update(node: ast.Call, reasons: dict[str, set[str]]) -> None:
    """``ledger.update(status="incomplete", reason={"code": "endpoint_differs", …})``."""
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    status, reason = text_of(given.get("status")), given.get("reason")
    if status in STATUSES and isinstance(reason, ast.Dict):
        for key, value in zip(reason.keys, reason.values):
            if text_of(key) == "code":
                reasons[t.cast("str", status)].add(t.cast("str", text_of(value)))


def collect_call(node: ast.Call, reasons: dict[str, set[str]], errors: set[str]) -> None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    code = next((text_of(keyword.value) for keyword in node.keywords if keyword.arg == "code"), None)
    if name == "Status" and len(node.args) > 1 and text_of(node.args[1]):
        reasons[t.cast("str", text_of(node.args[0]))].add(t.cast("str", text_of(node.args[1])))
    elif name == "update":
        collect_update(node, reasons)
    elif name in ("_reason", "_Form") and text_of(node.args[0]):
        reasons["refused"].add(t.cast("str", text_of(node.args[0])))
    elif name == "absent" and len(node.args) > 1 and text_of(node.args[1]):
        reasons["absent"].add(t.cast("str", text_of(node.args[1])))
    elif name == "NotReadable" and code:
        reasons["absent"].add(code)
    elif name == "RadianceError" and code:
        errors.add(code)


def test_the_page_has_every_code_that_is_raised_and_no_other() -> None:
    reasons, errors = raised()
    listed = page()
    # Two are raised as errors by what reads a log, and are turned into the reason of an absent ledger.
    reasons["absent"] |= {"log_unreadable", "journal_unreadable"} & errors
    for status in STATUSES:
        assert set(listed[status]) == reasons[status], status
    assert set(listed["What could not be asked"]) == errors - {"log_unreadable", "journal_unreadable"}


def test_the_list_of_the_code_the_schema_and_the_page_are_one() -> None:
    listed = {code: cells for status in STATUSES for code, cells in page()[status].items()}
    assert {code: cells[0] for code, cells in listed.items()} == dict(REASON_CODES)
    schema = json.loads((ROOT / "schemas" / "ledger.schema.json").read_text())
    assert set(schema["properties"]["reason"]["oneOf"][0]["properties"]["code"]["enum"]) == set(REASON_CODES)


def test_each_code_has_its_cause_and_its_way_out() -> None:
    for table in page().values():
        for code, cells in table.items():
            assert len(cells) == 3, code
            assert all(len(cell) > 7 for cell in cells), code


def test_the_module_names_every_code() -> None:
    documented = yaml.safe_load(boot_ledger_info.RETURN)
    said = " ".join(documented["ledger"]["contains"]["reason"]["description"])
    assert set(re.findall(r"V\((\w+)\)", said)) - set(STATUSES) == set(REASON_CODES)
    said = " ".join(documented["code"]["description"])
    assert set(re.findall(r"V\((\w+)\)", said)) >= set(page()["What could not be asked"])
