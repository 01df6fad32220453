# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that crashed is planned from its last boot and started; one that was stopped is not."""

from __future__ import annotations

import os
import signal

from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    NEW,
    OLD,
    wait_until,
)
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_units import UnitService

BAD = {**OLD, "weights_mib": 26000}


def read(unit: UnitService, last_receipt: str = "crashed") -> Reading:
    where = {"name": "flash", "unit": "flash.service", "scope": "user", "receipts": str(unit.state / "receipts")}
    return read_boot("podman", last_receipt=last_receipt, **where)


def crash(unit: UnitService) -> None:
    os.kill(unit.pid(), signal.SIGKILL)
    wait_until(lambda: unit.told()["ActiveState"] == "failed")


def test_a_crashed_unit_is_started_by_a_plan_of_its_last_boot(unit: UnitService) -> None:
    unit.start_old()
    kept = unit.run(NEW)
    fingerprint = kept["ledger"]["fingerprint"]
    assert "last_boot" not in read(unit).known
    crash(unit)

    found = read(unit)
    assert (found.ledger["fingerprint"], found.ledger["source"]["kind"]) == (fingerprint, "receipt")
    assert found.known["last_boot"] == (
        "flash.service does not run: systemd has it as failed, with the result exit-code and status 137, and the "
        f"ledger is that of its last boot, by its receipt {kept['receipt']}"
    )
    assert read(unit, "never").ledger["reason"]["code"] == "container_absent"

    would = unit.run(NEW, fingerprint=fingerprint, check_mode=True)
    assert (would["outcome"], would["actions"]) == ("switched", [["systemctl", "--user", "start", "flash.service"]])
    assert unit.run(NEW, fingerprint="0123456789ab")["code"] == "plan_is_stale"
    assert unit.pair() is None
    result = unit.run(NEW, fingerprint=fingerprint)
    assert (result["outcome"], result["failed"]) == ("switched", False), result
    unit.check_whole(NEW)

    unit.systemctl("stop")
    wait_until(lambda: unit.told()["ActiveState"] in ("inactive", "failed"))
    assert read(unit).ledger["reason"]["code"] == "container_absent"
    stale = unit.run(NEW, fingerprint=result["ledger"]["fingerprint"])
    assert (stale["code"], unit.pair()) == ("plan_is_stale", None)


def test_a_crashed_unit_that_does_not_take_a_new_pair_serves_the_old_one(unit: UnitService) -> None:
    unit.start_old()
    fingerprint = unit.run(NEW)["ledger"]["fingerprint"]
    crash(unit)
    result = unit.run(BAD, fingerprint=fingerprint)
    assert (result["outcome"], result["code"]) == ("rolled_back", "engine_refused"), result
    unit.check_whole(NEW)
