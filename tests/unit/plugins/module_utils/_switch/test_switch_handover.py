# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two services on one card set: cards that are taken are refused, shared on purpose, or handed over and back.

The engines are replays of boots that the rehearsal engine printed, so that each act of a handover can be the last.
"""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    FORWARD,
    NEW,
    OLD,
    Service,
    env_text,
)
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.test_switch_kills import Replayed

REFUSED = "I device: AQL backend, 2 device(s) [0:gfx1201 1:gfx1201]\nE the pools do not fit the card\n"


class Two:
    """Services `day` and `night` of one host, both declared on cards 0 and 1; `day` runs."""

    def __init__(self, folder: pathlib.Path, boots: dict[str, str]) -> None:
        self.root = folder / "state"
        (folder / "day").mkdir(parents=True)
        (folder / "night").mkdir()
        self.day, self.night = Replayed(folder / "day", boots), Replayed(folder / "night", boots)
        for name in ("day", "night"):
            self.named(name).state = self.root / name
        self.night.kill_all()

    def named(self, name: str) -> Service:
        service: Service = getattr(self, name)
        return service

    def run(self, name: str, to: dict[str, t.Any] | None = None, **more: t.Any) -> dict[str, t.Any]:
        """Switch one of them, with the other as the one that is declared on its cards."""
        other = "night" if name == "day" else "day"
        service = self.named(other)
        beside = {
            "service": other,
            "manager": "process",
            "start": [str(service.serve)],
            "pid_file": str(service.pid_file),
            "path": str(service.log),
            "source": "file",
            "cards": [0, 1],
            "reserved": more.pop("reserved", False),
        }
        common = {"service": name, "state_dir": str(self.root), "cards": [0, 1], "others": [beside]}
        return self.named(name).run(to, **common, **more)

    def runs(self) -> list[str]:
        """Which of them run."""
        return [name for name in ("day", "night") if self.named(name).pair() is not None]

    def records(self, name: str) -> list[dict[str, t.Any]]:
        return _records.read(str(self.root / name / "records.jsonl"))


@pytest.fixture(name="two")
def two_fixture(tmp_path: pathlib.Path, boots: dict[str, str]) -> t.Iterator[Two]:
    two = Two(tmp_path, boots)
    try:
        yield two
    finally:
        two.day.kill_all()
        two.night.kill_all()


def test_taken_cards_are_refused_and_handed_over_when_asked_and_back_again(two: Two) -> None:
    pid = two.day.pid()
    result = two.run("night", NEW)
    assert (result["outcome"], result["code"], result["changed"]) == ("unchanged", "cards_taken", False)
    assert result["msg"] == (
        f"day (process {pid}, 24,000 + 5,120 MiB a card) runs on cards 0, 1, and night does not run. Nothing was "
        "stopped or changed. Stop day; or keep free what it takes (reserved_for_others_mib, for each of these cards); "
        "or have the cards handed over (-e handover=true): day is drained and stopped, and started again if this does "
        "not hold."
    )
    assert two.runs() == ["day"]
    assert two.night.env.read_text() == env_text(OLD)

    would = two.run("night", NEW, handover=True, check_mode=True)
    assert would["says"].endswith("day would be stopped for it and stay stopped.")
    assert would["actions"] == [["kill", "-TERM", str(pid)], [str(two.night.serve)]]
    assert two.runs() == ["day"]

    result = two.run("night", NEW, handover=True)
    assert (result["outcome"], result["failed"]) == ("switched", False)
    assert two.runs() == ["night"]
    assert two.night.pair() == "25844+5119"
    assert result["says"].endswith("day was stopped for it and stays stopped.")
    assert [(other["service"], other["stance"], other["pid"]) for other in result["others"]] == [
        ("day", "handed_over", pid)
    ]
    assert 0 < result["downtime_seconds"] < 15
    assert two.records("night")[-1]["handed_over"] == ["day"]
    # The boot that ended for it had no receipt, and it is planned from that when the cards come back.
    kept = read_boot(
        "file",
        path=str(two.day.log),
        pid_file=str(two.day.pid_file),
        receipts=str(two.root / "day" / "receipts"),
        last_receipt="always",
    ).ledger
    assert (kept["source"]["kind"], kept["pair"]["weights_mib"]) == ("receipt", 24000)
    assert kept["flags"]["max-num-seqs"] == "3"

    back = two.run("day", OLD, handover=True)
    assert back["outcome"] == "switched"
    assert two.runs() == ["day"]
    assert two.run("night")["outcome"] == "unchanged"


def test_a_plan_of_the_last_boot_is_taken_for_a_handover_alone(two: Two) -> None:
    kept = two.run("night", OLD, handover=True)["ledger"]["fingerprint"]
    assert two.run("day", OLD, handover=True)["outcome"] == "switched"
    stale = two.run("night", OLD, fingerprint=kept)
    assert stale["code"] == "plan_is_stale"
    other = two.run("night", OLD, fingerprint="0123456789ab", handover=True)
    assert other["code"] == "plan_is_stale"
    assert two.runs() == ["day"]
    assert two.run("night", OLD, fingerprint=kept, handover=True)["outcome"] == "switched"


def test_a_handover_that_does_not_hold_has_the_other_serve_again(tmp_path: pathlib.Path, boots: dict[str, str]) -> None:
    two = Two(tmp_path, {**boots, "25844": REFUSED})
    try:
        result = two.run("night", NEW, handover=True)
        assert (result["outcome"], result["code"]) == ("rolled_back", "engine_exited")
        assert result["msg"].startswith("The switch to 25,844 + 5,119 ended in phase ready: ")
        assert " day serves again after " in result["msg"]
        phases = [phase["name"] for phase in result["phases"]]
        assert phases == [*FORWARD[: FORWARD.index("referee")], "restore", "hand_back"]
        assert two.runs() == ["day"]
        assert two.night.env.read_text() == env_text(OLD)
        assert two.records("night")[-1]["handed_over"] == ["day"]
        assert two.records("night")[-1]["serving"] is True
    finally:
        two.day.kill_all()
        two.night.kill_all()


def test_the_next_run_has_one_serve_again_that_did_not_come_back(tmp_path: pathlib.Path, boots: dict[str, str]) -> None:
    two = Two(tmp_path, {**boots, "25844": REFUSED})
    broken = tmp_path / "broken"
    try:
        script = two.day.serve.read_text()
        two.day.serve.write_text(script.replace("#!/bin/sh\n", f"#!/bin/sh\n[ ! -e {broken} ] || exit 9\n", 1))
        broken.touch()
        result = two.run("night", NEW, handover=True)
        assert (result["outcome"], result["code"]) == ("failed", "engine_exited")
        assert (
            "A SERVICE IS DOWN: what was stopped for night did not come back (day: The engine ended " in result["msg"]
        )
        assert "(nothing was printed)). The next run tries again; by hand: " in result["msg"]
        assert [str(two.day.serve) in command for command in result["by_hand"]] == [True]
        assert two.run("day", OLD)["code"] == "switch_interrupted"
        assert two.runs() == []
        broken.unlink()
        assert two.run("night")["outcome"] == "rolled_back"
        assert two.runs() == ["day"]
    finally:
        two.day.kill_all()
        two.night.kill_all()


def test_services_that_share_cards_on_purpose_are_left_alone(two: Two) -> None:
    two.night.start_old()  # it began after the boot of day, and so before its own next boot
    result = two.run("night", NEW)
    assert result["outcome"] == "switched"
    assert [other["stance"] for other in result["others"]] == ["beside"]
    assert two.runs() == ["day", "night"]
    assert result["warnings"][0].startswith("day (process ")
    # The other way round what began since is in no ledger: what runs has room beside it, a larger pair may not.
    assert two.run("day", NEW)["code"] == "cards_taken"
    smaller = two.run("day", {**OLD, "max_num_seqs": 2})
    assert (smaller["outcome"], [other["stance"] for other in smaller["others"]]) == ("switched", ["beside"])
    assert "a larger pair may not fit beside it" in smaller["warnings"][0]
    two.night.kill_all()
    two.night.start_old()
    assert two.run("day", NEW, reserved=True)["outcome"] == "switched"
    assert two.runs() == ["day", "night"]


def test_killed_at_any_act_of_a_handover_the_next_run_has_one_of_them_serve(
    tmp_path: pathlib.Path, boots: dict[str, str]
) -> None:
    ends = []
    for number in range(1, 100, 2):
        two = Two(tmp_path / str(number), boots)
        try:
            if not two.night.killed_at(number, lambda: two.run("night", NEW, handover=True)):  # noqa: B023
                break
            interrupted = (two.root / "night" / "journal.json").exists()
            if interrupted:
                assert two.run("day", OLD)["code"] == "switch_interrupted"
            result = two.run("night")
            assert result["failed"] is False, result
            assert bool(result["recovered"]) is interrupted
            came_to = tuple(entry["kind"] for entry in two.records("night"))
            serves = {(): "day", ("rolled_back",): "day", ("switched",): "night"}[came_to]
            assert two.runs() == [serves]
            assert two.night.env.read_text() == env_text({"day": OLD, "night": NEW}[serves])
            assert result["outcome"] == (came_to[0] if interrupted and came_to else "unchanged")
            ends.append((result["outcome"], serves))
        finally:
            two.day.kill_all()
            two.night.kill_all()
    assert ends[0] == ("unchanged", "day")
    assert ("rolled_back", "day") in ends
    assert ("switched", "night") in ends
