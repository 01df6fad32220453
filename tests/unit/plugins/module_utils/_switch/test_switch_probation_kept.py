# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A switch that ends before its stop leaves the pair that is on probation watched."""

from __future__ import annotations

import os
import signal

from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    NEW,
    OLD,
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
