# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal, the progress lines, the clocks and the wait for card memory, each by itself."""

from __future__ import annotations

import json
import os
import pathlib
import stat
import subprocess
import threading
import time

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import alive, start_ticks
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import boots, journal, release
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.log_text import LogText
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Phase, Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import Progress, State


@pytest.fixture(name="state")
def state_fixture(tmp_path: pathlib.Path) -> State:
    state = State(str(tmp_path / "state"), "flash")
    state.make()
    return state


def test_a_journal_is_on_the_disk_before_its_phase_begins(state: State) -> None:
    begun = journal.Journal.begin(state, manager={"kind": "process"}, expect={"to": {}})
    begun.enter("drain")
    read = journal.Journal.load(state)
    assert read is not None
    assert (read.data["phase"], read.data["direction"], read.data["service"]) == ("drain", "forward", "flash")
    assert stat.S_IMODE(os.stat(state.journal).st_mode) == 0o600
    read.close()
    assert journal.Journal.load(state) is None


HALF = '{"schema": "kvfleet.radiance/switch-journal/1", "service": "flash", "phase": "start"}'


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": "another/9", "service": "flash"}', "\udcff", HALF])
def test_a_journal_that_is_none_of_ours_stops_everything(state: State, content: str) -> None:
    pathlib.Path(state.journal).write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(RadianceError) as error:
        journal.Journal.load(state)
    assert error.value.code == "switch_journal_unreadable"
    assert state.backup in error.value.text


def test_seconds_are_measured_across_processes_and_across_a_restart_of_the_machine() -> None:
    moment = journal.instant()
    script = "import time; print(time.monotonic())"
    other = float(subprocess.run(["python3", "-c", script], capture_output=True, check=True).stdout)
    assert abs(other - moment["clock"]) < 5
    assert journal.seconds_since(None) is None
    assert 9.9 < (journal.seconds_since({**moment, "clock": moment["clock"] - 10, "wall": 0.0}) or 0) < 15
    restarted = {"clock": 1e9, "boot_id": "another", "wall": time.time() - 30}
    assert 29.9 < (journal.seconds_since(restarted) or 0) < 35
    set_back = {"clock": 0.0, "boot_id": "another", "wall": time.time() + 3600}
    assert journal.seconds_since(set_back) == 0


def test_progress_names_its_process_and_its_end(state: State) -> None:
    progress = Progress(state.progress)
    progress.line("ready", "loading 62 %")
    progress.close()
    lines = [json.loads(line) for line in pathlib.Path(state.progress).read_text().splitlines()]
    assert [(line["phase"], line["says"]) for line in lines] == [("lock", ""), ("ready", "loading 62 %"), ("end", "")]
    assert {line["run"] for line in lines} == {progress.run}
    assert alive(lines[0]["pid"], lines[0]["ticks"])


def test_a_process_is_told_from_another_with_its_number_and_from_a_zombie() -> None:
    child = subprocess.Popen(["/bin/sleep", "60"])
    ticks = start_ticks(child.pid)
    assert ticks is not None and alive(child.pid, ticks) and not alive(child.pid, ticks + 1)
    child.kill()
    deadline = time.monotonic() + 5
    while alive(child.pid, ticks):
        assert time.monotonic() < deadline
    assert start_ticks(child.pid) == ticks, "it is a zombie, and still there"
    child.wait()
    assert start_ticks(child.pid) is None


def test_a_phase_that_raises_keeps_the_error_as_its_sentence() -> None:
    run = Run()
    with pytest.raises(RadianceError), run.phase("drain"):
        raise RadianceError("--api-key hunter2hunter2 is wrong", code="x")
    (phase,) = run.result()["phases"]
    assert (phase["name"], phase["says"]) == ("drain", "--api-key ******** is wrong")


LOAD = "I load: 18.10 GiB of 72.40 GiB read, 1.3 GB/s, at container offset 19434727014\n"


def test_load_lines_become_a_percentage() -> None:
    assert boots.load_progress("I model: x\n") is None
    assert boots.load_progress(LOAD) == (25, "loading 25 % (18.10 GiB of 72.40 GiB, 1.3 GB/s)")
    assert boots.load_progress(LOAD + LOAD.replace("18.10", "36.20")) == (
        50,
        "loading 50 % (36.20 GiB of 72.40 GiB, 1.3 GB/s)",
    )
    assert boots.load_progress("I load: 0 B of 0 B read, 0.0 GB/s\n") is None


@pytest.mark.parametrize(
    "text",
    [
        LOAD.replace("18.10", "9" * 400 + ".00"),
        LOAD.replace("18.10", "1.00").replace("72.40", "9" * 400 + ".00"),
        LOAD.replace("18.10", "99.00"),
        LOAD.replace("1.3", "....."),
        LOAD.replace("1.3", "9" * 400),
    ],
)
def test_load_lines_that_cannot_be_are_no_progress_and_no_error(text: str) -> None:
    assert boots.load_progress(text) is None


def test_the_last_line_commands_no_terminal() -> None:
    assert boots.last_line("I a\n\x1b[31mE no\x1b[0m\x1b[2J room\x07\tleft\n") == "E no room\tleft"


def test_progress_is_told_every_few_seconds_or_percent() -> None:
    assert [boots.is_due(*asked) for asked in ((1.9, 50, 0), (2.0, 4, 0), (2.0, 5, 0), (9.9, 64, 60))] == [
        False,
        False,
        True,
        False,
    ]
    assert boots.is_due(10.0, 60, 60)  # a disk that stands still is told as well


def test_a_boot_is_read_piece_by_piece(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"older boot\n")
    text = LogText(str(log), 11)
    assert (text.poll(), text.lines(), text.all()) == (False, "", "")
    with log.open("ab") as handle:
        handle.write("I vocab: é".encode()[:-1])
    assert (text.poll(), text.lines()) == (False, "")
    with log.open("ab") as handle:
        handle.write("é".encode()[-1:] + b"\nI mod")
    assert (text.poll(), text.lines(), text.all()) == (True, "I vocab: é\n", "I vocab: é\nI mod")
    # A rotation that copies and cuts: what was read stays, and what comes is read from the beginning.
    os.truncate(log, 0)
    assert (text.poll(), text.emptied) == (False, True)
    with log.open("ab") as handle:
        handle.write(b"el\n")
    assert (text.poll(), text.lines()) == (True, "I vocab: é\nI model\n")
    text.close()


def cards(folder: pathlib.Path, *used_mib: int) -> str:
    for number, mib in enumerate(used_mib):
        device = folder / f"card{number}" / "device"
        device.mkdir(parents=True, exist_ok=True)
        (device / "mem_info_vram_used").write_text(f"{mib * 1024 * 1024}\n")
    (folder / "card0-DP-1").mkdir(parents=True, exist_ok=True)
    return str(folder)


HELD = {"opens_a_card": True, "used_mib": 60000, "pools_mib": 58240}


def test_release_waits_until_the_pools_are_back(tmp_path: pathlib.Path) -> None:
    # At rest, but far from back: a part of the memory comes later, as seen in the field.
    sysfs = cards(tmp_path, 12400, 12400)
    later = threading.Timer(1.5, cards, (tmp_path, 800, 60))
    later.start()
    phase = Phase("release", None)
    began = time.monotonic()
    release.wait(phase, HELD, 10, sysfs)
    assert time.monotonic() - began > 1.5
    assert phase.says.startswith("60,000 MiB in use before, 860 MiB at rest after ")


def test_memory_that_does_not_come_back_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RadianceError) as error:
        release.wait(Phase("release", None), HELD, 0.6, cards(tmp_path, 12400, 12400))
    assert error.value.code == "memory_held"
    assert "24,800 MiB in use" in error.value.text and "1,760 MiB or less were due" in error.value.text


@pytest.mark.parametrize(
    ("held", "says"),
    [
        (None, "nothing ran"),
        ({**HELD, "opens_a_card": False}, "the old process had no card open"),
        ({**HELD, "used_mib": None}, "nothing on this machine shows the memory of a card"),
    ],
)
def test_release_says_why_it_does_not_wait(held: dict[str, object] | None, says: str) -> None:
    phase = Phase("release", None)
    release.wait(phase, held, 10, "/nonexistent")
    assert phase.says.startswith(says)


def test_what_the_old_process_holds_is_read_from_its_ledger() -> None:
    ledger = {"pair": {"weights_mib": 24000, "kv_mib": 5120}, "devices": {"used": [0, 1]}}
    held = release.held_by(os.getpid(), ledger)
    assert (held["opens_a_card"], held["pools_mib"]) == (False, 58240)
    assert release.held_by(os.getpid(), None)["pools_mib"] is None
