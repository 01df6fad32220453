# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that goes down in a switch, and a pair that crashes in its probation: the old pair comes back alone."""

from __future__ import annotations

import os
import signal

from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import host_boot
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    NEW,
    OLD,
    env_text,
    wait_until,
)
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_units import (
    UnitService,
    before,
)

BAD = {**OLD, "weights_mib": 26000}
GUARD = "kvfleet-restore-flash.service"


def left_over(unit: UnitService) -> list[str]:
    """What a switch has put somewhere and not taken away."""
    found = [path.name for path in unit.folder.iterdir() if path.name.startswith(".")]
    found += [path.name for path in unit.state.iterdir() if path.suffix in (".sh", ".json", ".mark", ".armed")]
    return sorted(found + [str(path.name) for path in (unit.host / "etc").rglob("*.conf")])


def goes_down(unit: UnitService) -> None:
    """The machine ends; what was of its boot is of another one now."""
    unit.kill_all()
    for path in [unit.host / "state.json", *(unit.host / "containers").iterdir(), *(unit.host / "asked").iterdir()]:
        path.unlink()
    for path in (unit.state / "restore.sh", unit.state / "journal.json", unit.state / "probation.json"):
        if path.exists():
            path.write_text(path.read_text().replace(host_boot(), "an-earlier-boot"))


def test_a_machine_that_goes_down_in_a_switch_comes_back_on_the_old_pair(unit: UnitService) -> None:
    unit.start_old()
    unit.killed(lambda _argv: unit.journal_phase() == "ready", BAD)
    assert unit.env.read_text() == env_text(BAD)
    goes_down(unit)
    unit.start_old()
    assert (unit.pair(), unit.env.read_text()) == ("24000+5120", env_text(OLD))
    pid = unit.pid()
    would = unit.run(check_mode=True)
    assert (would["outcome"], unit.journal_phase()) == ("rolled_back", "ready")
    result = unit.run()
    assert (result["outcome"], result["failed"], unit.pid()) == ("rolled_back", False, pid), result
    assert "phase ready, and the old pair came back without us: the old pair 24,000 + 5,120 serves" in result["says"]
    unit.check_whole(OLD)
    (entry,) = unit.records()
    assert (entry["kind"], entry["phase"], entry["serving"]) == ("rolled_back", "ready", True)
    assert entry["says"] == "the machine went down before the new pair was up"
    assert left_over(unit) == []


def test_an_old_pair_that_still_loads_after_the_machine_went_down_is_waited_for(unit: UnitService) -> None:
    unit.start_old()
    unit.killed(before("systemctl", "start"), NEW)
    goes_down(unit)
    unit.world(load_speedup=8)
    unit.systemctl("start")
    wait_until(lambda: unit.pair() == "24000+5120")
    pid = unit.pid()
    assert not unit.serves()
    result = unit.run()
    assert (result["outcome"], result["failed"], unit.pid()) == ("rolled_back", False, pid), result
    unit.check_whole(OLD)
    assert left_over(unit) == []


def test_a_crash_in_probation_returns_to_the_old_pair(unit: UnitService) -> None:
    unit.start_old()
    result = unit.run(NEW, probation=3600)
    assert (result["outcome"], result["probation"]["state"]) == ("switched", "watching"), result
    unit.check_whole(NEW)
    os.kill(unit.pid(), signal.SIGKILL)
    wait_until(lambda: unit.pair() == "24000+5120" and unit.serves())
    assert unit.env.read_text() == env_text(OLD)

    would = unit.run(check_mode=True)
    assert [entry["kind"] for entry in would["records"]] == ["rolled_back"]
    late = unit.run(NEW)
    assert (late["failed"], late["code"], late["outcome"]) == (True, "probation_failed", "rolled_back"), late
    unit.check_whole(OLD)
    _switched, entry = unit.records()
    assert (entry["phase"], entry["attempt"], entry["serving"]) == ("probation", "0123456789ab", True)
    assert entry["says"] == "The engine ended with status 137 in the probation of 25,844 + 5,119."
    assert (entry["to"]["weights_mib"], entry["tried"]["weights_mib"]) == (24000, 25844)
    assert left_over(unit) == []
    again = unit.run()
    assert (again["outcome"], again["changed"], again["probation"]) == ("unchanged", False, None)


def test_what_an_operator_stops_and_confirms_stays(unit: UnitService) -> None:
    unit.start_old()
    unit.run(NEW, probation=3600)
    assert len(left_over(unit)) == 5  # the old env, the probation's three, the drop-in
    unit.systemctl("stop")
    wait_until(lambda: unit.told()["ActiveState"] == "inactive")
    unit.start_old()
    unit.check_whole(NEW)
    result = unit.run()
    assert (result["changed"], result["probation"]["state"]) == (False, "watching")
    unit.tell("fails.units", 1)
    result = unit.run(probation=0)
    assert (result["failed"], result["changed"], result["probation"]["state"]) == (False, True, "confirmed"), result
    (said,) = result["warnings"]
    assert said.startswith("The probation is over, and its drop-in ")
    assert said.endswith(
        "kvfleet-probation.conf could not be taken out of the unit: systemctl daemon-reload failed: Failed to connect "
        "to bus: Connection refused. It does nothing any more, and the next run tries again."
    )
    assert (unit.state / "probation.ended").exists()
    would = unit.run(check_mode=True)
    assert (would["probation"], (unit.state / "probation.ended").exists()) == (None, True)
    result = unit.run()
    assert (result["failed"], result["changed"], result["warnings"]) == (False, False, []), result
    unit.check_whole(NEW)
    assert not (unit.state / "probation.ended").exists()
    assert left_over(unit) == []


def test_another_switch_ends_a_probation_and_its_time_does(unit: UnitService) -> None:
    unit.start_old()
    unit.run(NEW, probation=3600)
    result = unit.run(OLD, probation=1)
    assert "The probation of 25,844 + 5,119 was ended by this switch." in result["says"]
    (path,) = unit.folder.glob(".flash.env.*.old")
    assert path.read_text() == env_text(NEW)
    wait_until(lambda: unit.run(check_mode=True)["probation"]["state"] == "confirmed")
    os.kill(unit.pid(), signal.SIGKILL)
    wait_until(lambda: unit.told()["ActiveState"] == "failed")
    assert unit.env.read_text() == env_text(OLD)
    result = unit.run()
    assert (result["outcome"], result["changed"], result["records"]) == ("unchanged", True, [])
    assert left_over(unit) == []


def test_where_no_unit_can_be_installed_a_switch_goes_on_and_a_probation_does_not(unit: UnitService) -> None:
    unit.unit(files="disabled")
    unit.start_old()
    unit.tell("fails.units", -1)
    refused = unit.run(NEW, probation=60)
    assert (refused["code"], unit.pair()) == ("probation_impossible", "24000+5120"), refused
    result = unit.run(NEW)
    assert result["outcome"] == "switched", result
    disabled, no_guard = result["warnings"]
    assert disabled.startswith("flash.service is disabled: when the machine restarts nothing starts it")
    assert no_guard.startswith("Where the machine goes down in this switch, nothing restores the old files")
    unit.check_whole(NEW)


def test_check_mode_says_what_it_would_install_and_writes_nothing(unit: UnitService) -> None:
    unit.start_old()
    would = unit.run(NEW, check_mode=True, probation=60)
    assert ["systemctl", "--user", "enable", GUARD] in would["actions"]
    assert "It would be on probation for 60 s." in would["says"]
    assert not (unit.host / "etc").exists()
    assert not unit.state.exists()
