# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""pair_plan as ansible-core runs it: options in, one JSON document out."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.plugins.modules import pair_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import ARMS, ledger

Run = t.Callable[..., dict[str, t.Any]]


@pytest.fixture(name="run")
def _run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_module(**options: t.Any) -> dict[str, t.Any]:
        with patch_module_args(options), pytest.raises(SystemExit):
            pair_plan.main()
        return t.cast("dict[str, t.Any]", json.loads(capsys.readouterr().out))

    return run_module


def test_a_plan_comes_back_unchanged(run: Run) -> None:
    result = run(ledger=ledger(), arms=ARMS)
    assert result["changed"] is False
    assert result["plan"] == make_plan(ledger(), {"arms": ARMS})
    assert result["plan"]["to"]["weights_mib"] == 25844


def test_check_mode_gives_the_same_plan(run: Run) -> None:
    options = {"ledger": ledger(), "shape": {"max_num_seqs": "4"}, "running": {"max_num_seqs": 3}}
    assert run(**options) == run(_ansible_check_mode=True, **options)


def test_a_blocked_gate_fails_with_the_plan(run: Run) -> None:
    result = run(ledger=ledger(), pair={"weights_mib": 26000, "kv_mib": "5120"})
    assert result["failed"] is True
    assert result["code"] == "pair_within_ceiling"
    assert "31,120" in result["msg"] and "25,849" in result["msg"]
    assert result["plan"]["to"]["weights_mib"] == 26000


def test_report_returns_it(run: Run) -> None:
    result = run(ledger=ledger(), pair={"weights_mib": 26000, "kv_mib": 5120}, on_gate="report")
    assert not result.get("failed")
    assert [gate["name"] for gate in result["plan"]["gates"] if not gate["holds"]] == ["pair_within_ceiling"]


@pytest.mark.parametrize("text", ["06144", "6_144", "1e3", "6,144", "6144.0"])
def test_loose_numbers_reach_the_core_as_text(run: Run, text: str) -> None:
    for options in (
        {"shape": {"max_num_seqs": text}},
        {"pair": {"kv_mib": text}},
        {"reserve_mib": text},
        {"arms": [{"weights_mib": text, "prefill_tps": 1}]},
        {"running": {"weights_mib": text}},
    ):
        result = run(ledger=ledger(), **options)
        assert result["failed"] is True
        assert result["code"] == "not_a_whole_number"
        assert repr(text) in result["msg"]


def test_a_mistake_is_a_sentence_and_no_traceback(run: Run) -> None:
    result = run(ledger={"schema": "something else"})
    assert result["failed"] is True and result["code"] == "ledger_unknown"
    assert "exception" not in result
