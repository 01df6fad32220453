# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schemas hold what this collection itself writes, and name what is off without quoting it."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.kvfleet.radiance.plugins.module_utils import _record_fields, _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _plan_file, _schemas
from ansible_collections.kvfleet.radiance.plugins.test.valid import valid


def test_every_line_of_the_record_fits_its_schema(example: t.Any) -> None:
    past = {"quantity": "prefill_tps", "low": 1, "high": 1.5}
    lines = [
        example.planned(),
        example.switched(),
        example.rolled_back(),
        example.entry("refused", phase="precheck", says="No room."),
        example.verdict("weights_mib", "held", 25844),
        example.verdict("prefill_tps", "open", None),
        example.entry("probed", calibration=None, boundary={}, rates=None),
        example.entry("rollback", to=example.old, returns_to="0" * 12, says="back"),
        example.arm(25844, prefill_tps=3996.4),
        example.entry("adopted", to=example.old, image=None, fingerprint="10644b1004ce", files=[], env_names={}),
        example.entry("past_verdict", **past, unit=None, measured=1, verdict="held", says="", judged_at="2026-10-13"),
    ]
    assert {line["kind"] for line in lines} == set(_record_fields.FIELDS)
    for line in lines:
        assert _schemas.problems(line, "record") == []


def test_the_schema_refuses_what_the_plain_checks_refuse(example: t.Any) -> None:
    good = example.rolled_back()
    for name in good:
        broken = {key: value for key, value in good.items() if key != name}
        assert _schemas.problems(broken, "record") != [], name
        with pytest.raises(RadianceError):
            _records.check(broken)
    assert _schemas.problems({**good, "extra": 1}, "record") != []


def test_a_plan_file_fits_its_schema(example: t.Any) -> None:
    run = {"service": example.service, "options": {}, "plan": example.plan}
    content = _plan_file.plan_file({"dankserver": [run]})
    assert _schemas.problems(content, "plan-file") == []
    content["plans"][0].pop("request")
    assert _schemas.problems(content, "plan-file") == ["at plans/0: missing request"]


def test_a_service_fits_its_schema(example: t.Any) -> None:
    assert _schemas.problems(example.service, "service") == []
    assert valid(example.service, "service") is True


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pairs": "fill"}, "unknown pairs"),
        ({"pair": "most"}, "at pair: must be keep or fill"),
        ({"name": "a b"}, "at name"),
        ({"docs": ["readme"]}, "at docs/0"),
        ({"flags": {"TP": "2"}}, "at flags"),
        (
            {"arms": [{"weights_mib": 1}]},
            "at arms/0: missing decode_tps (an arm has a rate, prefill_tps or decode_tps)",
        ),
        ({"arms": [{"prefill_tps": 1}]}, "at arms/0: missing weights_mib"),
    ],
)
def test_what_is_off_is_named(example: t.Any, change: dict[str, t.Any], said: str) -> None:
    (problem,) = _schemas.problems({**example.service, **change}, "service")
    assert said in problem


def test_a_declared_arm_may_have_either_rate_and_what_it_was_measured_on(example: t.Any) -> None:
    arms = [
        {"weights_mib": 26_071, "decode_tps": 124.1, "engine_version": "1.0.13", "image_digest": "sha256:aa"},
        {"weights_mib": 26_071, "prefill_tps": 4_379},
    ]
    assert _schemas.problems({**example.service, "arms": arms}, "service") == []


def test_values_are_not_quoted(example: t.Any) -> None:
    with pytest.raises(AnsibleFilterError) as caught:
        valid({**example.service, "port": ["sk-secret-value"]}, "service")
    assert "at port" in str(caught.value)
    assert "sk-secret-value" not in str(caught.value)


def test_a_schema_that_is_not_there_is_named() -> None:
    with pytest.raises(AnsibleFilterError, match="plan-file"):
        valid({}, "other")
