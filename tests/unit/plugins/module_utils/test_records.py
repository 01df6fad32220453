# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record only grows, each line is checked, and a write that was cut costs one line."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
import tracemalloc
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError

TO = {"weights_mib": 25844, "kv_mib": 5119}


def planned(number: int = 0) -> dict[str, t.Any]:
    return _records.entry("planned", "dankserver", "flashnext", "0123456789ab", plan={"n": number}, request={})


def rolled_back() -> dict[str, t.Any]:
    return _records.entry(
        "rolled_back",
        "dankserver",
        "flashnext",
        "0123456789ab",
        to=TO,
        tried=TO,
        phase="referee",
        says="settled 12.00 MiB free",
        downtime_seconds=12.5,
        serving=True,
    )


def test_an_entry_carries_its_stamp_and_an_id_of_its_content() -> None:
    value = planned()
    assert value["schema"] == "kvfleet.radiance/record/1"
    assert value["at"].endswith("Z") and len(value["at"]) == 20
    assert len(value["id"]) == 12
    changed = {**value, "host": "another"}
    with pytest.raises(RadianceError, match="does not belong"):
        _records.check(changed)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"plan": {}}, "no field request"),
        ({"plan": {}, "request": {}, "extra": 1}, "unknown field extra"),
        ({"plan": [], "request": {}}, "plan of another type"),
    ],
)
def test_an_entry_of_another_shape_is_refused(fields: dict[str, t.Any], word: str) -> None:
    with pytest.raises(RadianceError) as caught:
        _records.entry("planned", "h", "s", None, **fields)
    assert caught.value.code == "record_invalid"
    assert word in caught.value.text


def test_a_kind_and_a_verdict_are_words_of_the_list() -> None:
    with pytest.raises(RadianceError, match="not a kind"):
        _records.entry("resized", "h", "s", None)
    with pytest.raises(RadianceError, match="a verdict that is none"):
        _records.entry("verdict", "h", "s", None, prediction="p", quantity="q", verdict="fine", measured=1, says="")
    with pytest.raises(RadianceError, match="serving of another type"):
        _records.check({**rolled_back(), "serving": 1})


def test_appending_adds_what_is_not_there(tmp_path: t.Any) -> None:
    path = str(tmp_path / "records.jsonl")
    first, second = planned(1), rolled_back()
    assert _records.append(path, [first]) == []
    assert _records.append(path, [first, second, second]) == []
    assert _records.read(path) == [first, second]
    assert (tmp_path / "records.jsonl").read_text().count("\n") == 2


def test_nothing_is_written_when_one_entry_is_wrong(tmp_path: t.Any) -> None:
    path = tmp_path / "records.jsonl"
    with pytest.raises(RadianceError):
        _records.append(str(path), [planned(), {"kind": "planned"}])
    assert not path.exists()


def test_a_line_that_nests_without_end_costs_itself_only() -> None:
    entries, reports = _records.scan([b"[" * 100_000])
    assert entries == []
    assert "line 1 of the record is not JSON" in reports[0]


def test_a_torn_last_line_costs_itself_only_and_is_reported(tmp_path: t.Any) -> None:
    path = tmp_path / "records.jsonl"
    first, second = planned(1), planned(2)
    _records.append(str(path), [first])
    with path.open("a") as handle:
        handle.write('{"schema":"kvfleet.rad')
    reports = _records.append(str(path), [second])
    assert len(reports) == 1 and "line 2" in reports[0]
    assert _records.read(str(path)) == [first, second]


def test_a_whole_last_line_without_newline_is_kept(tmp_path: t.Any) -> None:
    path = tmp_path / "records.jsonl"
    first, second = planned(1), planned(2)
    path.write_text(_records.canonical(first))
    assert _records.append(str(path), [second]) == []
    assert _records.read(str(path)) == [first, second]


def test_an_absent_record_is_empty(tmp_path: t.Any) -> None:
    assert _records.read(str(tmp_path / "none.jsonl")) == []


def test_a_line_of_another_release_or_without_end_stays_and_is_reported(tmp_path: t.Any) -> None:
    path = tmp_path / "records.jsonl"
    first, second = planned(1), planned(2)
    _records.append(str(path), [first])
    newer = json.dumps({**first, "schema": "kvfleet.radiance/record/2", "more": 1})
    with path.open("a") as handle:
        handle.write(f"{newer}\n" + "x" * 5_000_000 + '\n"\xff"\n')
    reports = _records.append(str(path), [second])
    assert reports[0].startswith("line 2 of the record was passed over: It is of schema kvfleet.radiance/record/2, and")
    assert reports[1] == "line 3 of the record is longer than 1,048,576 bytes and was passed over"
    assert "line 4 of the record" in reports[2]
    assert _records.read(str(path)) == [first, second]
    assert newer in path.read_text()


def test_a_long_line_takes_no_memory(tmp_path: t.Any) -> None:
    path = tmp_path / "records.jsonl"
    _records.append(str(path), [planned(1)])
    with path.open("ab") as handle:
        handle.truncate(64 << 20)  # a hole, which is a line
    tracemalloc.start()
    try:
        entries, reports = _records.read_with_reports(str(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(entries) == 1 and "line 2 of the record is longer" in reports[0]
    assert peak < 8 << 20


def test_an_entry_that_no_reader_would_take_is_not_written(tmp_path: t.Any) -> None:
    path = tmp_path / "records.jsonl"
    value = _records.entry("planned", "h", "s", None, plan={"n": "x" * (1 << 20)}, request={})
    with pytest.raises(RadianceError, match="longer than 1,048,576 bytes"):
        _records.append(str(path), [value])
    assert not path.exists()


def test_a_full_disk_leaves_the_record_as_it_was(tmp_path: t.Any) -> None:
    path = tmp_path / "records.jsonl"
    _records.append(str(path), [planned(1)])
    before = path.read_bytes()
    # A limit of the process ends a write half-way, as a full disk does.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, hard))
    try:
        with pytest.raises(OSError):
            _records.append(str(path), [planned(2), planned(3)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    _records.append(str(path), [planned(2), planned(3)])
    assert [value["plan"]["n"] for value in _records.read(str(path))] == [1, 2, 3]


def test_a_link_stays_a_link_and_a_pipe_keeps_nobody_waiting(tmp_path: t.Any) -> None:
    real, link = tmp_path / "real.jsonl", tmp_path / "records.jsonl"
    link.symlink_to(real)
    _records.append(str(link), [planned(1)])
    _records.append(str(real), [planned(2)])
    assert link.is_symlink() and len(_records.read(str(link))) == 2
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="no regular file"):
        _records.read(pipe)
    with pytest.raises(OSError, match="no regular file"):
        _records.append(pipe, [planned()])


WRITER = """
import itertools, json, sys
sys.path[:] = json.loads(sys.argv[1])
from ansible_collections.kvfleet.radiance.plugins.module_utils import _records as r
for n in itertools.count():
    value = r.entry("planned", "h", sys.argv[3], None, plan={"n": n, "long": "x" * 3000}, request={})
    r.append(sys.argv[2], [value])
    print(value["id"], flush=True)
"""


def test_what_a_killed_writer_had_written_is_there(tmp_path: t.Any) -> None:
    path = tmp_path / "records.jsonl"
    said = []
    running = []
    for number in range(8):
        said.append(tmp_path / str(number))
        with said[-1].open("wb") as output:
            command = [sys.executable, "-c", WRITER, json.dumps(sys.path), str(path), f"w{number}"]
            running.append(subprocess.Popen(command, stdout=output))
    deadline = time.monotonic() + 60
    while not all(file.stat().st_size > 30 for file in said):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for process in running:
        process.send_signal(signal.SIGKILL)
    for process in running:
        process.wait(60)
    told = {line for file in said for line in file.read_text().splitlines() if len(line) == 12}
    assert len(told) >= 16
    assert told <= {value["id"] for value in _records.read(str(path))}


def test_writers_side_by_side_lose_nothing(tmp_path: t.Any) -> None:
    path = tmp_path / "records.jsonl"
    program = (
        "import json,sys;"
        "from ansible_collections.kvfleet.radiance.plugins.module_utils import _records as r;"
        "[r.append(sys.argv[1], [r.entry('planned','h',sys.argv[2],None,plan={'n':n},request={})]) for n in range(20)]"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path[:] = {json.dumps(sys.path)}; {program}", str(path), name]
        )
        for name in ("a", "b", "c")
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert len(_records.read(str(path))) == 60
