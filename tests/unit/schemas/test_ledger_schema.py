# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ledgers of every status against their published schema, and the schema against the code."""

from __future__ import annotations

import json
import pathlib
import typing

import jsonschema
import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger, shapes
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.refusals import REASON_CODES
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.tables import ROWS
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = pathlib.Path(__file__).resolve().parents[3]
LOGS = ROOT / "tests" / "unit" / "fixtures" / "logs"
SCHEMA = json.loads((ROOT / "schemas" / "ledger.schema.json").read_text())
HEALTHY = (LOGS / "healthy-1.0.13.log").read_text()
NAMES = sorted(path.name for path in LOGS.glob("*.log"))


def valid(ledger: dict[str, typing.Any]) -> dict[str, typing.Any]:
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(ledger, allow_nan=False)))
    return ledger


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("name", NAMES)
def test_complete_ledgers(name: str) -> None:
    assert valid(read_boot("file", path=str(LOGS / name)).ledger)["status"] == "complete"


def test_a_ledger_with_flags() -> None:
    flags = {"tp": "2", "vram-weights-mib": "24000", "vram-kv-mib": "5120"}
    assert valid(read_ledger(HEALTHY, source={"kind": "text"}, flags=flags))["pair"]["exact"] is True


def test_every_boot_cut_after_any_line() -> None:
    lines = HEALTHY.splitlines(keepends=True)
    for last in range(len(lines) + 1):
        valid(read_ledger("".join(lines[:last]), source={}))
        valid(read_ledger("".join(lines[last:]), source={}))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NAMES), st.data())
def test_a_log_with_edits(name: str, data: st.DataObject) -> None:
    text = (LOGS / name).read_text()
    at = data.draw(st.integers(0, len(text) - 1))
    inserted = data.draw(st.one_of(st.just(""), st.text(max_size=20)))
    valid(read_ledger(text[:at] + inserted + text[at + data.draw(st.integers(0, 60)) :], source={}))


@pytest.mark.parametrize("text", ["", "x\n", "E unknown option '--x'\n", "I device: AQL backend, 1 device(s) [0:a]\n"])
def test_refused_absent_and_incomplete_ledgers(text: str) -> None:
    valid(read_ledger(text, source={"kind": "text"}))


def test_a_log_that_cannot_be_read(tmp_path: pathlib.Path) -> None:
    valid(read_boot("file", path=str(tmp_path / "none")).ledger)


def test_an_added_key_is_refused() -> None:
    ledger = read_ledger(HEALTHY, source={})
    with pytest.raises(jsonschema.ValidationError):
        valid({**ledger, "spare": 1})
    with pytest.raises(jsonschema.ValidationError):
        valid({**ledger, "sampler": {}})


def test_the_schema_names_what_the_code_gives() -> None:
    properties = SCHEMA["properties"]
    assert list(properties) == list(shapes.Ledger.__annotations__)
    assert list(properties["budget"]["properties"]["rows"]["properties"]) == list(ROWS)
    assert set(properties["reason"]["oneOf"][0]["properties"]["code"]["enum"]) == set(REASON_CODES)
