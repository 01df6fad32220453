# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boots out of real log files."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tracemalloc

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.boots import BootCounter
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.lines import read_line, split_lines
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.file import read_log
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import boot_of_log, read_boot
from hypothesis import given
from hypothesis import strategies as st

LOGS = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "logs"
HEALTHY = (LOGS / "healthy-1.0.13.log").read_bytes()
DERIVED = (LOGS / "derived-1.0.4.log").read_bytes()
TRAFFIC = b"W server: scheduler refused request 7: too long\nI prefix cache: reset, 3 entries dropped\n"
REFUSED = b"E unknown option '--expert-vs-cache-ratio'\nusage: radiance --model FILE\n"


def write(path: pathlib.Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def test_the_last_boot_is_read_from_its_own_first_byte(tmp_path: pathlib.Path) -> None:
    log = write(tmp_path / "log", DERIVED + TRAFFIC + HEALTHY + TRAFFIC)
    text, place = read_log(log)
    assert text.encode() == HEALTHY
    assert place == {
        "inode": os.stat(log).st_ino,
        "offset": len(DERIVED) + len(TRAFFIC),
        "boots_seen": 2,
        "boot": 1,
        "failed": 0,
    }


@pytest.mark.parametrize(("boot", "weights"), [(0, "derived"), (1, "stated"), (-1, "stated"), (-2, "derived")])
def test_any_boot_can_be_asked_for(tmp_path: pathlib.Path, boot: int, weights: str) -> None:
    log = write(tmp_path / "log", DERIVED + TRAFFIC + HEALTHY)
    ledger = read_boot("file", path=log, boot=boot).ledger
    assert (ledger["status"], ledger["budget"]["weights"]) == ("complete", weights)
    assert ledger["source"]["boots_seen"] == 2


@pytest.mark.parametrize("boot", [2, -3])
def test_a_boot_that_the_log_does_not_hold(tmp_path: pathlib.Path, boot: int) -> None:
    log = write(tmp_path / "log", DERIVED + HEALTHY)
    ledger = read_boot("file", path=log, boot=boot).ledger
    assert (ledger["status"], ledger["reason"]["code"]) == ("absent", "boot_not_in_log")
    assert ledger["reason"]["text"].startswith(f"Boot {boot} was asked for and the log holds 2.")


def test_a_later_refused_boot_is_not_covered_up_by_a_good_one(tmp_path: pathlib.Path) -> None:
    ledger = read_boot("file", path=write(tmp_path / "log", HEALTHY + TRAFFIC + REFUSED)).ledger
    assert (ledger["status"], ledger["reason"]["code"]) == ("refused", "unknown_option")
    assert ledger["source"]["boots_seen"] == 2
    assert ledger["pair"] == {"weights_mib": None, "kv_mib": None, "exact": False}


def test_a_boot_after_a_refused_command_line_is_one_of_its_own(tmp_path: pathlib.Path) -> None:
    ledger = read_boot("file", path=write(tmp_path / "log", REFUSED + HEALTHY)).ledger
    assert (ledger["status"], ledger["source"]["boots_seen"]) == ("complete", 2)


def test_a_misspelt_log_level_belongs_to_the_boot_that_follows(tmp_path: pathlib.Path) -> None:
    level = b"E RADIANCE_LOG='loud' is not error|warn|info|debug|trace; using info\n"
    log = write(tmp_path / "log", HEALTHY + TRAFFIC + level + HEALTHY)
    text, place = read_log(log)
    assert (place["offset"], place["boots_seen"]) == (len(HEALTHY) + len(TRAFFIC), 2)
    assert text.startswith("E RADIANCE_LOG=")
    assert read_boot("file", path=log).ledger["status"] == "complete"


def test_behind_an_offset_only_what_comes_before_listening_counts(tmp_path: pathlib.Path) -> None:
    forged = b"I device: AQL backend, 1 device(s) [0:gfx1201]\nE server: cannot bind 0.0.0.0:8000\n"
    log = write(tmp_path / "log", DERIVED + HEALTHY + TRAFFIC + forged)
    text, place = read_log(log, len(DERIVED))
    assert text.encode() == HEALTHY
    assert (place["offset"], place["boots_seen"]) == (len(DERIVED), 1)


def test_behind_an_offset_an_attempt_that_never_listened_is_passed_over(tmp_path: pathlib.Path) -> None:
    log = write(tmp_path / "log", DERIVED + HEALTHY[:900] + b"\n" + HEALTHY)
    text, place = read_log(log, len(DERIVED))
    assert text.encode() == HEALTHY
    assert (place["offset"], place["boots_seen"]) == (len(DERIVED) + 901, 2)


def test_a_log_that_was_emptied_since_is_read_from_its_beginning(tmp_path: pathlib.Path) -> None:
    text, place = read_log(write(tmp_path / "log", HEALTHY), len(HEALTHY) + 5000)
    assert text.encode() == HEALTHY
    assert place["offset"] == 0


def test_nothing_has_been_printed_yet(tmp_path: pathlib.Path) -> None:
    text, place = read_log(write(tmp_path / "log", HEALTHY), len(HEALTHY))
    assert (text, place["boots_seen"], place["boot"]) == ("", 0, None)


def test_the_fingerprint_does_not_depend_on_how_the_boot_was_found(tmp_path: pathlib.Path) -> None:
    log = write(tmp_path / "log", DERIVED + TRAFFIC + HEALTHY + TRAFFIC)
    whole = read_boot("file", path=log).ledger["fingerprint"]
    for offset in (len(DERIVED) + len(TRAFFIC), len(DERIVED)):
        ledger = boot_of_log(log, {"kind": "file"}, None, offset=offset, bounded=True).ledger
        assert ledger["fingerprint"] == whole
    with open(log, "ab") as file:
        file.write(TRAFFIC * 100)
    assert read_boot("file", path=log).ledger["fingerprint"] == whole


def test_two_boots_that_print_the_same_have_two_fingerprints(tmp_path: pathlib.Path) -> None:
    log = write(tmp_path / "log", HEALTHY + HEALTHY)
    first, second = (read_boot("file", path=log, boot=boot).ledger for boot in (0, 1))
    assert first["fingerprint"] != second["fingerprint"]
    assert {**first, "fingerprint": "", "source": {}} == {**second, "fingerprint": "", "source": {}}


def test_a_large_log_is_not_held_in_memory(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    with open(log, "wb") as file:
        file.write(HEALTHY)
        for _block in range(40):
            file.write(TRAFFIC * 5000)
        file.write(b"x" * 5_000_000 + b"\n")
    assert log.stat().st_size > 20_000_000
    tracemalloc.start()
    text, place = read_log(str(log))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert text.encode() == HEALTHY
    assert place["boots_seen"] == 1
    assert peak < 2_000_000


def test_an_overlong_line_does_not_swallow_the_next(tmp_path: pathlib.Path) -> None:
    first, rest = HEALTHY.split(b"\n", 1)
    log = write(tmp_path / "log", first + b"\n" + b"y" * 200_000 + b"\n" + rest)
    assert read_boot("file", path=log).ledger["status"] == "complete"


def test_a_progress_bar_before_the_inventory_line(tmp_path: pathlib.Path) -> None:
    log = write(tmp_path / "log", DERIVED + b"fetch 10%\rfetch 100%\r" + HEALTHY.replace(b"\n", b"\r\n"))
    ledger = read_boot("file", path=log).ledger
    assert (ledger["status"], ledger["source"]["boots_seen"], ledger["budget"]["weights"]) == ("complete", 2, "stated")


def test_coloured_and_plain_logs_give_one_ledger(tmp_path: pathlib.Path) -> None:
    def colour(raw: bytes) -> bytes:
        if raw[:1] in (b"W", b"E"):
            prefix, rest = raw.split(b" ", 1)
            return b"\x1b[33m" + prefix + b"\x1b[0m " + rest
        return raw

    plain = REFUSED + HEALTHY
    coloured = b"\r\n".join(colour(raw) for raw in plain.split(b"\n"))
    ledgers = [
        read_boot("receipt", path=write(tmp_path / "plain", HEALTHY)).ledger,
        read_boot("receipt", path=write(tmp_path / "coloured", coloured)).ledger,
    ]
    assert ledgers[0]["status"] == "complete"
    assert ledgers[0] == ledgers[1]


def test_file_and_text_agree_on_the_boot(tmp_path: pathlib.Path) -> None:
    content = DERIVED + TRAFFIC + REFUSED + REFUSED + HEALTHY
    from_file = read_boot("file", path=write(tmp_path / "log", content)).ledger
    from_text = read_ledger(content.decode(), source={"kind": "file"})
    assert from_file["source"]["boots_seen"] == from_text["source"]["boots_seen"] == 4
    assert {**from_file, "fingerprint": ""} == {**from_text, "fingerprint": ""}


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "no name\0"])
def test_what_cannot_be_read_is_said_with_a_way_out(tmp_path: pathlib.Path, kind: str) -> None:
    path = tmp_path / (kind if "\0" in kind else "log")
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    with pytest.raises(RadianceError) as caught:
        read_log(str(path))
    assert caught.value.code == "log_unreadable"
    ledger = read_boot("file", path=str(path)).ledger
    assert (ledger["status"], ledger["reason"]["code"]) == ("absent", "log_unreadable")
    assert str(path).rstrip("\0") in ledger["reason"]["text"]


def test_an_empty_log(tmp_path: pathlib.Path) -> None:
    ledger = read_boot("file", path=write(tmp_path / "log", b"")).ledger
    assert (ledger["status"], ledger["reason"]["code"], ledger["missing"]) == ("absent", "log_empty", [])


@pytest.mark.parametrize("before", [100_000, 256 * 1024, 512 * 1024 - len(HEALTHY) % 1000, 900_000])
def test_text_within_a_long_line_begins_no_boot(tmp_path: pathlib.Path, before: int) -> None:
    forged = b"x" * before + b"I device: AQL backend, 1 device(s) [0:gfx1201]" * 20_000 + b"\n"
    log = write(tmp_path / "log", HEALTHY + forged + TRAFFIC)
    text, place = read_log(log)
    assert (text.encode(), place["boots_seen"]) == (HEALTHY, 1)
    log = write(tmp_path / "log", HEALTHY + forged + DERIVED)
    text, place = read_log(log)
    assert (text.encode(), place["boots_seen"], place["offset"]) == (DERIVED, 2, len(HEALTHY) + len(forged))


def test_a_long_line_may_break_anywhere_between_two_reads(tmp_path: pathlib.Path) -> None:
    inventory = b"I device: AQL backend, 1 device(s) [0:gfx1201] "
    for before in range(len(inventory)):
        log = write(tmp_path / "log", HEALTHY + b"x" * before + inventory * 18_000 + b"\n")
        assert read_log(log)[1]["boots_seen"] == 1


def test_a_boot_far_into_the_log_is_found_at_its_own_byte(tmp_path: pathlib.Path) -> None:
    before = DERIVED + TRAFFIC * 9_000
    assert len(before) > 3 * 256 * 1024
    text, place = read_log(write(tmp_path / "log", before + HEALTHY))
    assert (text.encode(), place["offset"]) == (HEALTHY, len(before))


PREFIXES = ["", "\x1b[32m", "web  | ", "2026-11-02T10:00:00.123456789Z ", "Nov 02 10:00:00 host radiance[7]: "]
LEVELS = ["I ", "E ", "E[0] ", "I[1] ", "E\x1b[0m ", "E\x1b[0m[1] ", "I\x1b[0m \x1b[1m", "E \x1b[31m", "W ", ""]
TEXTS = [
    "device: AQL backend, 2 device(s) [0:gfx1201 1:gfx1201]",
    "device: \x1b[1mAQL backend, 2 device(s) [0:gfx1201 1:gfx1201]",
    "device: host backend, 1 device(s) [0:host]",
    "device: built with HIP but no device is visible -- using the host backend",
    "device: using 2 of 3 [0:a 1:a], ignoring [2:b]",
    "unknown option '--b'",
    "unsupported argument",
    "removed flag --expert-vs-cache-ratio",
    "--model is required",
    "-m needs an argument",
    "RADIANCE_LOG='loud' is not error|warn|info|debug|trace; using info",
    "request 7 failed: E --model is required",
    "",
]


def lines_of_logs() -> st.SearchStrategy[str]:
    parts = st.tuples(*(st.sampled_from(of) for of in (PREFIXES, LEVELS, TEXTS, ["\n", "\r\n", "\r", "\n"])))
    return st.one_of(parts.map("".join), st.text(alphabet="EbIdevice: \u009b\u201bAQL-[0]un\x1bm", max_size=12))


@given(st.lists(lines_of_logs(), max_size=12))
def test_no_beginning_of_a_boot_is_passed_over_and_none_is_made_up(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    content = "".join(lines)
    counter = BootCounter()
    for raw in split_lines(content):
        counter.starts(read_line(raw))
    log = write(tmp_path_factory.getbasetemp() / "passed-over.log", content.encode())
    assert read_log(log)[1]["boots_seen"] == counter.seen


READ_AND_TELL = """
import sys
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
print(read_boot("file", path=sys.argv[1]).ledger["status"])
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""
HEAD, BODY = HEALTHY.split(b"I VRAM budget", 1)
UNREADY = HEALTHY.replace(b"server: listening", b"server: not yet listening")


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ([(HEALTHY, 1), (TRAFFIC, 200_000)], "complete"),
        ([(HEAD, 1), (b"x", 20_000_000), (b"\nI VRAM budget" + BODY, 1)], "complete"),
        ([(TRAFFIC, 200_000)], "absent"),
        ([(b"a\n", 10_000_000)], "absent"),
        ([(b"a\r", 10_000_000)], "absent"),
        ([(UNREADY, 1), (TRAFFIC, 200_000)], "incomplete"),
    ],
    ids=["traffic", "one long line", "no boot", "short lines", "carriage returns", "never listens"],
)
def test_any_log_is_read_in_little_memory(tmp_path: pathlib.Path, parts: list[tuple[bytes, int]], status: str) -> None:
    log = write(tmp_path / "log", b"".join(part * times for part, times in parts))
    collections = pathlib.Path(read_log.__code__.co_filename).parents[6]
    done = subprocess.run(
        [sys.executable, "-c", READ_AND_TELL, log],
        env={**os.environ, "PYTHONPATH": str(collections)},
        check=True,
        capture_output=True,
        text=True,
    )
    told, peak_kib = done.stdout.split()
    assert told == status
    assert int(peak_kib) < 64 * 1024
