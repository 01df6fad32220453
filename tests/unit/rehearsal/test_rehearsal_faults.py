# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults: which boot they hit, and what they do."""

from __future__ import annotations

import json
import pathlib
import signal
from typing import Any

import pytest
from engine.faults import Faults

PAIR = "--vram-weights-mib 24000 --vram-kv-mib 5120"


def arm(directory: pathlib.Path, *names: str) -> str:
    """Write the list of faults; the model's path."""
    (directory / "flash.faults.json").write_text(json.dumps(names))
    return str(directory / "flash.rad")


def boots(model: str, count: int) -> list[str | None]:
    """The faults of some boots, each of which gets ready and ends."""
    hits = []
    for _boot in range(count):
        faults = Faults(model)
        hits.append(faults.take())
        faults.ready()
        faults.ended()
    return hits


def test_the_first_ready_boot_is_spared_and_each_name_hits_once(tmp_path: pathlib.Path) -> None:
    assert boots(arm(tmp_path, "settle_short"), 4) == [None, "settle_short", None, None]


def test_a_fault_named_twice_hits_twice(tmp_path: pathlib.Path) -> None:
    assert boots(arm(tmp_path, "settle_short", "settle_short"), 4) == [None, "settle_short", "settle_short", None]


def test_a_boot_that_is_not_ready_spares_nothing(tmp_path: pathlib.Path) -> None:
    model = arm(tmp_path, "settle_short")
    assert Faults(model).take() is None
    assert boots(model, 2) == [None, "settle_short"]


def test_an_engine_that_serves_while_it_is_armed_is_the_first_ready_boot(tmp_path: pathlib.Path) -> None:
    serving = Faults(str(tmp_path / "flash.rad"))
    serving.ready()
    model = arm(tmp_path, "refuse_boot")
    serving.ended()
    assert boots(model, 2) == ["refuse_boot", None]


def test_an_engine_that_had_ended_before_is_not(tmp_path: pathlib.Path) -> None:
    boots(str(tmp_path / "flash.rad"), 1)
    model = arm(tmp_path, "refuse_boot")
    assert boots(model, 3) == [None, "refuse_boot", None]


def test_arming_again_begins_again(tmp_path: pathlib.Path) -> None:
    model = arm(tmp_path, "refuse_boot")
    assert boots(model, 2) == [None, "refuse_boot"]
    arm(tmp_path, "never_ready")
    assert boots(model, 3) == [None, "never_ready", None]


def test_settle_short_serves_below_the_floor_and_the_next_boot_is_well(start: Any, tmp_path: pathlib.Path) -> None:
    arm(tmp_path, "settle_short")
    for settled in (
        "W[0] card 0 settled at 2.01 GiB free",
        "W[0] card 0 settled at 149.19 MiB free",
        "W[0] card 0 settled at 2.01",
    ):
        engine = start(PAIR).ready()
        assert engine.line(r"card 0 settled").startswith(settled)
        assert engine.stop() == 0


def test_refuse_boot_ends_with_the_report(start: Any, tmp_path: pathlib.Path) -> None:
    arm(tmp_path, "refuse_boot")
    start(PAIR).ready().stop()
    engine = start(PAIR)
    assert engine.exit() == 1
    engine.line(r"^E VRAM does not cover the fixed costs before a single pool is sized:$")
    engine.line(r"^  SHORT BY           512\.00 MiB$")
    start(PAIR).ready()


def test_never_ready_stays_where_it_is(start: Any, tmp_path: pathlib.Path) -> None:
    arm(tmp_path, "never_ready")
    start(PAIR).ready().stop()
    engine = start(PAIR)
    engine.wait_for(r"^I load: 44\.89 GiB of 72\.40 GiB read")
    with pytest.raises(Exception, match="timed out"):
        engine.process.wait(0.3)
    engine.process.send_signal(signal.SIGTERM)
    assert engine.exit() == -signal.SIGTERM
    assert "listening" not in engine.log


def test_an_unknown_fault_is_named(start: Any, tmp_path: pathlib.Path) -> None:
    arm(tmp_path, "explode")
    engine = start(PAIR)
    assert engine.exit() == 1
    assert "['explode'] has what is no fault (explode); known are refuse_boot, no_device, " in engine.lines[-1]
