# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A switch of a unit that dies by SIGKILL; then the next run has to put it right."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    NEW,
    OLD,
    wait_until,
)
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_units import (
    Moment,
    UnitService,
    after,
    before,
)

BAD = {**OLD, "weights_mib": 26000}


def while_it_starts(unit: UnitService, phase: str) -> Moment:
    """The moment just after the unit was started, or the one before the first question in ``ready``."""
    return after("systemctl", "start") if phase == "start" else lambda _argv: unit.journal_phase() == "ready"


def test_killed_before_the_unit_is_started(unit: UnitService) -> None:
    unit.start_old()
    unit.killed(before("systemctl", "start"), NEW)
    assert (unit.journal_phase(), unit.pair()) == ("start", None)
    result = unit.run()
    assert (result["outcome"], result["failed"]) == ("rolled_back", False), result
    assert result["recovered"].endswith("was interrupted in phase start: the old pair was restored.")
    unit.check_whole(OLD)


@pytest.mark.parametrize("phase", ["start", "ready"])
def test_killed_while_the_new_pair_comes_up(unit: UnitService, phase: str) -> None:
    unit.start_old()
    unit.killed(while_it_starts(unit, phase), NEW)
    assert unit.journal_phase() == phase
    wait_until(lambda: unit.pair() == "25844+5119")
    pid = unit.pid()
    result = unit.run()
    assert (result["outcome"], result["failed"]) == ("switched", False), result
    assert result["recovered"].endswith(f"in phase {phase}: the new pair was up, and it was finished.")
    unit.check_whole(NEW)
    assert unit.pid() == pid
    assert [entry["kind"] for entry in unit.records()] == ["switched"]


@pytest.mark.parametrize("phase", ["start", "ready"])
def test_killed_while_a_unit_goes_round(unit: UnitService, phase: str) -> None:
    unit.unit(restart=0.3)
    unit.start_old()
    unit.killed(while_it_starts(unit, phase), BAD)
    assert unit.journal_phase() == phase
    wait_until(lambda: int(unit.told()["NRestarts"]) >= 1)
    result = unit.run()
    assert (result["outcome"], result["failed"]) == ("rolled_back", False), result
    assert "the old pair was restored" in result["recovered"]
    unit.check_whole(OLD)
    assert [entry["kind"] for entry in unit.records()] == ["rolled_back"]


def test_killed_on_the_way_back(unit: UnitService) -> None:
    unit.unit(restart=0.3)
    unit.start_old()
    # The second start is that of the old pair.
    unit.killed(before("systemctl", "start", count=2), BAD)
    assert (unit.journal_phase(), unit.pair()) == ("start", None)
    result = unit.run()
    assert (result["outcome"], result["failed"]) == ("rolled_back", False), result
    assert result["recovered"].endswith("in phase start of the way back: the old pair was restored.")
    unit.check_whole(OLD)


def test_killed_while_the_old_pair_comes_back(unit: UnitService) -> None:
    unit.start_old()
    left = [2]

    def is_moment(argv: list[str]) -> bool:
        left[0] -= "start" in argv
        return left[0] <= 0 and "start" not in argv

    unit.killed(is_moment, BAD)
    assert unit.journal_phase() == "start"
    wait_until(lambda: unit.pair() == "24000+5120")
    pid = unit.pid()
    result = unit.run()
    assert (result["outcome"], result["failed"]) == ("rolled_back", False), result
    unit.check_whole(OLD)
    assert unit.pid() == pid
