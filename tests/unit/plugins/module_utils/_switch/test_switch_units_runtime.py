# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unit switched while podman, systemd or the journal do not answer."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import systemd_manager, unit_seen
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import NEW, OLD
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_units import RUN, UnitService

BAD = {**OLD, "weights_mib": 26000}
LOCKED = "database is locked"


@pytest.mark.parametrize("program", ["podman", "systemctl"])
def test_what_does_not_answer_for_a_moment_undoes_nothing(unit: UnitService, program: str) -> None:
    unit.start_old()
    unit.tell("after.stop", [{program: 4}])
    unit.tell("after.start", [{program: 4}])
    result = unit.run(NEW)
    assert (result["outcome"], result["failed"]) == ("switched", False), result
    unit.check_whole(NEW)
    assert unit.calls("systemctl start")[1:] == ["systemctl start --no-block flash.service"]


def test_nor_does_it_keep_the_old_pair_from_coming_back(unit: UnitService) -> None:
    unit.start_old()
    unit.tell("after.stop", [{"podman": 0}, {"podman": 4}])
    unit.tell("after.start", [{"podman": 4}, {"podman": 4}])
    result = unit.run(BAD)
    assert (result["outcome"], result["code"]) == ("rolled_back", "engine_refused"), result
    unit.check_whole(OLD)


def test_a_runtime_that_never_answers_again_leaves_a_way_out(
    unit: UnitService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_seen, "_PATIENCE", 0.5)
    unit.start_old()
    unit.tell("after.start", [{"podman": -1}])
    result = unit.run(NEW, ready_timeout=2)
    assert (result["outcome"], result["failed"], result["code"]) == ("failed", True, "runtime_unusable"), result
    assert LOCKED in result["msg"] and "THE SERVICE IS DOWN" in result["msg"]
    # The new pair may run: a start alone would leave it.
    assert result["by_hand"][0] == "systemctl --user stop flash.service"
    assert str(unit.env) in result["by_hand"][1]
    assert result["by_hand"][2:] == [
        "systemctl --user reset-failed flash.service",
        "systemctl --user start flash.service",
    ]
    (entry,) = unit.records()
    assert (entry["kind"], entry["serving"]) == ("rolled_back", False)

    # It answers again: the next run finishes.
    unit.tell("fails.podman", 0)
    result = unit.run()
    assert (result["outcome"], result["failed"]) == ("rolled_back", False), result
    unit.check_whole(OLD)


def test_a_runtime_that_never_answers_while_the_unit_stops(unit: UnitService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_seen, "_PATIENCE", 0.2)
    monkeypatch.setattr(systemd_manager, "KILL_WAIT", 0.5)
    unit.start_old()
    unit.tell("after.stop", [{"podman": -1}])
    result = unit.run(NEW, stop_timeout=1)
    assert (result["outcome"], result["code"]) == ("failed", "runtime_unusable"), result
    assert LOCKED in result["msg"] and "the kernel holds it" not in result["msg"]
    assert result["by_hand"] == [
        "systemctl --user stop flash.service",
        "systemctl --user reset-failed flash.service",
        "systemctl --user start flash.service",
    ]
    assert unit.calls("systemctl start")[1:] == []

    unit.tell("fails.podman", 0)
    result = unit.run()
    assert (result["outcome"], result["failed"]) == ("rolled_back", False), result
    unit.check_whole(OLD)


def test_a_journal_that_may_not_be_read_does_not_undo_a_boot_that_podman_tells(unit: UnitService) -> None:
    unit.start_old()
    unit.tell("fails.journalctl", -1)
    result = unit.run(NEW)
    assert (result["outcome"], result["failed"]) == ("switched", False), result
    unit.check_whole(NEW)


def test_a_journal_that_is_read_a_moment_later_has_the_last_words(unit: UnitService) -> None:
    unit.start_old()
    # As many as are read while the boot is refused, at most; the last ones fail in any case.
    unit.tell("after.start", [{"journalctl": 4}])
    result = unit.run(BAD)
    assert (result["outcome"], result["code"]) == ("rolled_back", "engine_refused"), result
    assert "SHORT BY" in result["msg"]
    unit.check_whole(OLD)


def test_a_boot_of_which_nothing_tells_is_given_up(unit: UnitService) -> None:
    """It says what could not be read, and does not wait for as long as a boot may take."""
    unit.serve.write_text(unit.script(RUN.replace("journald", "none")))
    unit.start_old()
    unit.tell("after.start", [{"journalctl": -1}])
    unit.tell("after.stop", [{}, {"journalctl": 0}])
    result = unit.run(NEW)
    assert (result["outcome"], result["code"]) == ("rolled_back", "journal_unreadable"), result
    assert next(phase for phase in result["phases"] if phase["name"] == "ready")["seconds"] < 15
    assert "insufficient permissions" in result["msg"] and "systemd-journal" in result["msg"]
    unit.check_whole(OLD)
