# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""SIGKILL at every act that a switch cannot take back, one after the other; then the next run has to put it right.

The engine is a replay of boots that the rehearsal engine printed, because a hundred boots are needed here.
"""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import boots as switch_boots
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    NEW,
    OLD,
    Service,
    env_text,
    wait_until,
)

# What the interpreter announces before it does it: renames, removals, signals and new processes.
ACTS = ("os.rename", "os.remove", "os.kill", "subprocess.Popen")
REPLAY = """import sys, signal
name = sys.argv[sys.argv.index("--vram-weights-mib") + 1]
with open("{folder}/" + name + ".boot") as boot:
    text = boot.read()
sys.stderr.write(text)
sys.stderr.flush()
if "LINGER" in text:
    signal.sigtimedwait([], 20)
if "listening" not in text:
    sys.exit(1)
signal.pause()
"""


class Replayed(Service):
    """A service whose engine prints a recorded boot and then waits for SIGTERM."""

    def __init__(self, folder: pathlib.Path, boots: dict[str, str]) -> None:
        super().__init__(folder)
        replay = folder / "replay.py"
        replay.write_text(REPLAY.format(folder=folder))
        for name, text in boots.items():
            (folder / f"{name}.boot").write_text(text)
        text = self.serve.read_text()
        head = text.partition("exec ")[0]
        flags = text.partition("--tp 2")[2]
        self.serve.write_text(f"{head}exec {sys.executable} -S -E {replay} --tp 2{flags}")
        self.start_old()

    def killed_at(self, number: int, act: t.Callable[[], t.Any], acts: t.Sequence[str] = ACTS) -> bool:
        """Do it in a process of its own that dies before its act of that number; whether it came so far."""
        child = os.fork()
        if child == 0:
            left = number

            def count(event: str, _args: tuple[t.Any, ...]) -> None:
                nonlocal left
                if event in acts:
                    left -= 1
                    if left == 0:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(count)
            try:
                act()
            finally:
                os._exit(0)
        _pid, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status)

    def check_whole(self) -> str:
        """Everything that must hold after a recovery; returns the pair that runs."""
        pair = self.pair()
        assert pair in ("24000+5120", "25844+5119")
        assert self.env.read_text() == env_text(OLD if pair == "24000+5120" else NEW)
        assert len(self.pids()) == 1
        assert not (self.state / "journal.json").exists()
        assert list((self.state / "backup").iterdir()) == []
        assert not list(self.folder.glob(".flash*"))
        for kind in ("switched", "rolled_back"):
            assert len([entry for entry in self.records() if entry["kind"] == kind]) <= 1
        return str(pair)


def sweep(
    tmp_path: pathlib.Path,
    boots: dict[str, str],
    act: t.Callable[[Replayed], t.Any],
    prepare: t.Callable[[Replayed], t.Any],
) -> list[tuple[str, str]]:
    """Kill ``act`` before its first restorable step, its second, and so on; recover each time; tell how each ended."""
    ends: list[tuple[str, str]] = []
    for number in range(1, 100):
        folder = tmp_path / str(number)
        folder.mkdir()
        service = Replayed(folder, boots)
        try:
            prepare(service)
            if not service.killed_at(number, lambda: act(service)):  # noqa: B023  called before the loop goes on
                return ends
            interrupted = (service.state / "journal.json").exists()
            running = service.pair()
            result = service.run()
            assert result["failed"] is False, result
            assert bool(result["recovered"]) is interrupted
            if interrupted:
                assert result["recovered"].startswith("The switch to 25,844 + 5,119 of ")
            pair = service.check_whole()
            if running == "25844+5119" and "listening" in boots["25844"]:
                assert pair == running, "a new pair that is up is finished, not undone"
            ends.append((result["outcome"], pair))
        finally:
            service.kill_all()
    raise AssertionError("the switch never came to its end")


def test_killed_at_any_act_the_next_run_restores_or_finishes(tmp_path: pathlib.Path, boots: dict[str, str]) -> None:
    ends = sweep(tmp_path, boots, lambda service: service.run(NEW), lambda service: None)
    # Through all of it: before the stop, after it, with the new pair up, and after its journal was closed.
    assert ends[0] == ("unchanged", "24000+5120")
    assert ("rolled_back", "24000+5120") in ends
    assert ("switched", "25844+5119") in ends
    assert ends[-1] == ("unchanged", "25844+5119")
    assert len(ends) >= 15


def test_killed_at_any_act_of_a_roll_back_the_next_run_restores(tmp_path: pathlib.Path, boots: dict[str, str]) -> None:
    refused = "I device: AQL backend, 1 device(s) [0:gfx1201]\nE no usable device\n"
    ends = sweep(tmp_path, {**boots, "25844": refused}, lambda service: service.run(NEW), lambda service: None)
    assert {pair for _outcome, pair in ends} == {"24000+5120"}
    assert {outcome for outcome, _pair in ends} == {"unchanged", "rolled_back"}
    assert len(ends) >= 20


def test_an_engine_that_dies_after_listening_is_rolled_back(
    tmp_path: pathlib.Path, boots: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Replayed(tmp_path, boots)
    save = switch_boots.save_receipt

    def saved_while_it_dies(*what: t.Any) -> str:
        if service.pair() == "25844+5119":
            os.kill(service.pid(), signal.SIGKILL)
            wait_until(lambda: service.pair() is None)
        return save(*what)

    monkeypatch.setattr(switch_boots, "save_receipt", saved_while_it_dies)
    try:
        result = service.run(NEW)
        assert result["outcome"] == "rolled_back"
        assert "listened and has ended since" in result["msg"]
        assert service.pair() == "24000+5120"
    finally:
        service.kill_all()


def test_a_refused_engine_that_is_slow_to_end_is_not_left_behind(tmp_path: pathlib.Path, boots: dict[str, str]) -> None:
    refused = "I device: AQL backend, 1 device(s) [0:gfx1201]\nE no usable device\nLINGER\n"
    service = Replayed(tmp_path, boots)
    try:
        for name in boots:
            (tmp_path / f"{name}.boot").write_text(refused)
        result = service.run(NEW)
        assert result["outcome"] == "failed"
        assert "was left running" not in result["msg"]
        assert service.pair() is None
    finally:
        service.kill_all()


def test_a_recovery_that_is_killed_as_well_is_recovered(tmp_path: pathlib.Path, boots: dict[str, str]) -> None:
    def interrupt(service: Replayed) -> None:
        # The start is the first process: between the stop and it nothing runs.
        assert service.killed_at(1, lambda: service.run(NEW), ("subprocess.Popen",))
        assert service.pair() is None

    ends = sweep(tmp_path, boots, lambda service: service.run(), interrupt)
    assert {pair for _outcome, pair in ends} == {"24000+5120"}
    assert len(ends) >= 5


def killed_while_loading(service: Service) -> None:
    """A switch whose module is killed while the new engine loads."""
    service.world(load_speedup=30, stop_seconds=0)
    child = os.fork()
    if child == 0:
        try:
            service.run(NEW)
        finally:
            os._exit(0)
    try:
        wait_until(lambda: service.pair() == "25844+5119" and '"phase": "ready"' in journal(service))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert not service.serves()


def journal(service: Service) -> str:
    path = service.state / "journal.json"
    return path.read_text() if path.exists() else ""


def test_an_engine_that_was_loading_is_waited_for_and_kept(service: Service) -> None:
    killed_while_loading(service)
    pid = service.pid()
    would = service.run(NEW, check_mode=True)
    assert (would["outcome"], would["changed"]) == ("switched", True)

    result = service.run()
    assert (result["outcome"], result["failed"], service.pair()) == ("switched", False, "25844+5119")
    assert result["recovered"].endswith("was interrupted in phase ready: the new pair was up, and it was finished.")
    assert [phase["name"] for phase in result["phases"]] == ["lock", "ready", "referee", "receipt", "keep"]
    assert service.pid() == pid and service.serves()
    assert result["downtime_seconds"] > 1
    assert [entry["kind"] for entry in service.records()] == ["switched"]


def test_the_same_switch_again_finishes_the_interrupted_one_and_is_done(service: Service) -> None:
    stale = "0123456789ab"
    killed_while_loading(service)
    wait_until(service.serves)
    # The plan's boot is gone, but what the plan asks for is what has just been finished.
    result = service.run(NEW, fingerprint=stale)
    assert (result["outcome"], result["failed"], service.pair()) == ("switched", False, "25844+5119")
    # Nobody has seen since when it serves, so that is no outage to expect of the next switch.
    assert (result["downtime_seconds"], service.records()[0]["downtime_seconds"]) == (None, None)
    assert result["says"].startswith(result["recovered"] + " Switched to 25,844 + 5,119.")
    assert service.run(NEW, fingerprint=stale)["code"] == "plan_is_stale"


def test_an_engine_that_died_meanwhile_is_restored(service: Service) -> None:
    killed_while_loading(service)
    os.kill(service.pid(), signal.SIGKILL)
    wait_until(lambda: service.pair() is None)
    assert service.run(NEW, check_mode=True)["outcome"] == "rolled_back"

    result = service.run()
    assert (result["outcome"], result["failed"], service.pair()) == ("rolled_back", False, "24000+5120")
    assert result["recovered"].endswith("was interrupted in phase ready: the old pair was restored.")
    assert service.env.read_text() == env_text(OLD)
    (entry,) = service.records()
    assert (entry["kind"], entry["phase"], entry["serving"]) == ("rolled_back", "ready", True)


def test_the_referee_judges_a_boot_that_an_earlier_run_started(service: Service) -> None:
    service.arm("settle_short")
    killed_while_loading(service)
    result = service.run()
    assert (result["outcome"], result["failed"], service.pair()) == ("rolled_back", False, "24000+5120")
    assert result["recovered"].endswith("the new pair did not hold, and the old pair was restored.")
