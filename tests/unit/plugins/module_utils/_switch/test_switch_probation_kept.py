# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A switch that ends before its stop leaves the pair that is on probation watched."""

from __future__ import annotations

import os
import signal

import pytest
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    NEW,
    OLD,
    OPTIONS,
    env_text,
    wait_until,
)
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_units import UnitService


def test_a_switch_that_stops_nothing_ends_no_probation(unit: UnitService) -> None:
    unit.start_old()
    unit.run(NEW, probation=3600)
    result = unit.run(OLD, before_drain=["/bin/false"])
    assert (result["code"], result["outcome"], unit.pair()) == ("hook_failed", "unchanged", "25844+5119"), result
    assert unit.run(check_mode=True)["probation"]["state"] == "watching"
    os.kill(unit.pid(), signal.SIGKILL)
    wait_until(lambda: unit.env.read_text() == env_text(OLD) and unit.pair() == "24000+5120")
    assert unit.run()["probation"]["state"] == "returned"


def test_what_systemd_put_back_after_a_run_that_died_stays(unit: UnitService, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal of that run has the files of the pair that crashed."""
    unit.start_old()
    unit.run(NEW, probation=3600)
    with monkeypatch.context() as patched:
        patched.setitem(OPTIONS, "before_drain", ["/bin/true"])
        unit.killed(lambda argv: argv == ["/bin/true"], {**OLD, "weights_mib": 24500})
    assert (unit.journal_phase(), unit.pair()) == ("drain", "25844+5119")
    os.kill(unit.pid(), signal.SIGKILL)
    wait_until(lambda: unit.env.read_text() == env_text(OLD) and unit.pair() == "24000+5120")
    unit.systemctl("stop")
    wait_until(lambda: unit.pair() is None)
    result = unit.run()
    assert unit.env.read_text() == env_text(OLD)
    assert (result["probation"]["state"], result["outcome"]) == ("returned", "rolled_back"), result
    assert "was interrupted in phase drain: nothing had been stopped, so nothing was changed." in result["recovered"]
    assert [entry["kind"] for entry in unit.records()] == ["switched", "rolled_back"]
    assert unit.journal_phase() is None
