# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schemas are valid themselves, and closed: a misspelt key is refused."""

from __future__ import annotations

import json
import pathlib
import re
import sys
from typing import Any

import jsonschema
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from contract_files import ROOT, SCHEMAS


def load(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((ROOT / "schemas" / name).read_text())
    return schema


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_valid_draft_2020_12(name: str) -> None:
    schema = load(name)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_describes_itself(name: str) -> None:
    schema = load(name)
    assert schema["title"]
    assert schema["description"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_references_lead_somewhere(name: str) -> None:
    schema = load(name)
    for reference in re.findall(r'"\$ref": "#/([^"]*)"', json.dumps(schema)):
        node: Any = schema
        for step in reference.split("/"):
            node = node[step]
