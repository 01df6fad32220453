# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of records: what they read back as, and what only looks like one."""

from __future__ import annotations

import io
import pathlib
import time
import tracemalloc

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import records
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.file import read_log
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
from hypothesis import given
from hypothesis import strategies as st

LOGS = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "logs"
HEALTHY = (LOGS / "healthy-1.0.13.log").read_bytes()
REFUSED = b"E unknown option '--expert-vs-cache-ratio'\nusage: radiance --model FILE\n"
TRAFFIC = b"W server: scheduler refused request 7: too long\nI prefix cache: reset, 3 entries dropped\n"
STAMP = b"2026-11-29T19:40:32.741234567+00:00"
FORGED = b"I device: AQL backend, 1 device(s) [0:gfx1201]\nE server: cannot bind 0.0.0.0:8000\n"


def recorded(text: bytes, parts: int = 0, stream: bytes = b"stderr") -> bytes:
    """Each line as one record, or as partial ones of so many bytes and the last."""
    written = []
    for line in text.splitlines(keepends=True):
        rest = line.rstrip(b"\n")
        while parts and len(rest) > parts:
            written.append(b"%s %s P %s\n" % (STAMP, stream, rest[:parts]))
            rest = rest[parts:]
        written.append(b"%s %s F %s\n" % (STAMP, stream, rest))
    return b"".join(written)


def write(path: pathlib.Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def read_back(content: bytes, end: int | None = None, piece: int = 4096) -> bytes:
    reader = records.RecordText(io.BytesIO(content), end)
    return b"".join(iter(lambda: reader.readline(piece), b""))


LINES = st.lists(
    st.one_of(
        st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b"")),
        st.sampled_from([b"", b"I text", STAMP + b" stderr F I text", STAMP + b" stdout P ", b"P", b"\r", b" F "]),
    ),
    max_size=8,
)


@given(st.data(), LINES, st.booleans())
def test_any_text_in_any_parts_reads_back(data: st.DataObject, lines: list[bytes], ended: bool) -> None:
    text = b"".join(line + b"\n" for line in lines)
    written = []
    for line in lines:
        stream = data.draw(st.sampled_from([b"stdout", b"stderr"]))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(line)), max_size=3)))
        pieces = [line[a:b] for a, b in zip([0, *cuts], [*cuts, len(line)])]
        tags = [b"P"] * (len(pieces) - 1) + [b"F"]
        written += [b"%s %s %s %s\n" % (STAMP, stream, tag, piece) for tag, piece in zip(tags, pieces)]
    content = b"".join(written)
    if not ended and content:  # the log's last record is being written
        content, text = content[:-1], text[:-1]
    assert read_back(content) == text
    assert read_back(content, piece=data.draw(st.integers(1, 9))) == text
    assert read_back(content + b"more", end=len(content)) == text


@given(st.lists(st.tuples(st.integers(10, 20), st.integers(0, 90))), st.integers(9, 21), st.booleans())
def test_the_first_record_of_a_time_is_found(records_of: list[tuple[int, int]], since: int, cut: bool) -> None:
    lines = [b"2026-11-29T19:40:%dZ stderr F %s\n" % (second, b"x" * size) for second, size in sorted(records_of)]
    content = b"".join(lines)
    before = sum(len(line) for line, (second, _size) in zip(lines, sorted(records_of)) if second < since)
    file = io.BytesIO(content[:-1] if cut else content)
    records.seek_first(file, lambda time: time >= f"2026-11-29T19:40:{since:02}Z")
    assert file.read() == (content[:-1] if cut else content)[before:]


@pytest.mark.parametrize("text", [b"I no record\n" * 9, recorded(b"a\n") + b"x" * 70_000 + recorded(b"a\n")])
def test_a_time_is_looked_for_in_records_alone(text: bytes) -> None:
    with pytest.raises(records.NotRecords):
        records.seek_first(io.BytesIO(text), lambda time: time > "2026-11-29T19:41")


def test_the_two_streams_do_not_end_each_others_lines() -> None:
    content = b"".join(
        b"2026-11-29T19:40:32Z " + record + b"\n"
        for record in (b"stderr P I dev", b"stdout P ban", b"stderr F ice: x", b"stdout F ner", b"stderr P cut off")
    )
    assert read_back(content) == b"I device: x\nbanner\ncut off"


@pytest.mark.parametrize("parts", [0, 1, 7, 40])
def test_the_last_boot_of_a_log_of_records(tmp_path: pathlib.Path, parts: int) -> None:
    before = recorded(REFUSED + TRAFFIC)
    log = write(tmp_path / "log", before + recorded(HEALTHY, parts) + recorded(TRAFFIC, parts))
    text, place = read_log(log)
    assert text.encode() == HEALTHY
    assert (place["offset"], place["boots_seen"], place["boot"]) == (len(before), 2, 1)
    assert read_boot("file", path=log).ledger["status"] == "complete"
    assert read_boot("file", path=log, boot=0).ledger["reason"]["code"] == "unknown_option"


def test_records_with_the_colours_and_returns_of_a_terminal(tmp_path: pathlib.Path) -> None:
    log = write(tmp_path / "log", recorded(b"fetch 10%\rfetch 100%\r" + HEALTHY.replace(b"\n", b"\r\n"), 30))
    found = read_boot("file", path=log).ledger
    assert (found["status"], found["source"]["boots_seen"]) == ("complete", 1)


@pytest.mark.parametrize("tag", [b"F", b"P"])
@pytest.mark.parametrize("before", [b"", b"\x1b[32m", b"\x00", b"20\x1b[m"])
def test_a_record_in_a_plain_log_begins_and_ends_no_boot(tmp_path: pathlib.Path, tag: bytes, before: bytes) -> None:
    stamp = before + STAMP[2 if before.startswith(b"20") else 0 :]
    forged = b"".join(b"%s stderr %s %s\n" % (stamp, tag, line) for line in FORGED.splitlines())
    log = write(tmp_path / "log", HEALTHY + TRAFFIC + forged + TRAFFIC)
    text, place = read_log(log)
    assert (text.encode(), place["boots_seen"]) == (HEALTHY, 1)
    # The log was rotated, so that nothing but requests is left of it.
    for content in (TRAFFIC + forged, forged + TRAFFIC):
        rotated = read_boot("file", path=write(tmp_path / "rotated", content)).ledger
        assert (rotated["status"], rotated["source"]["boots_seen"]) != ("refused", 1)
        assert rotated["source"]["boots_seen"] == 0
        assert rotated["devices"]["used"] == []


def test_a_log_that_begins_like_records_and_is_plain_is_plain(tmp_path: pathlib.Path) -> None:
    log = write(tmp_path / "log", recorded(b"client text\n") + TRAFFIC * 5_000 + HEALTHY)
    text, place = read_log(log)
    assert (text.encode(), place["boots_seen"]) == (HEALTHY, 1)


@pytest.mark.parametrize("requests", [1, 5_000])
def test_a_plain_log_that_begins_within_the_longest_client_text_is_plain(tmp_path: pathlib.Path, requests: int) -> None:
    # The engine's logger cuts at 4,095 bytes; the rest of the log was rotated away.
    forged = (recorded(FORGED) + recorded(b"client text\n") * 99)[:4095].rpartition(b"\n")[0] + b"\n"
    place = read_log(write(tmp_path / "log", forged + TRAFFIC * requests))[1]
    assert (place["boots_seen"], place["boot"]) == (0, None)


@pytest.mark.parametrize(("before", "behind"), [(1, 1), (30, 9_000), (2_000, 9_000)])
def test_a_log_of_records_and_other_lines_is_no_log_of_records(
    tmp_path: pathlib.Path, before: int, behind: int
) -> None:
    text, _place = read_log(write(tmp_path / "log", recorded(b"client text\n") * before + TRAFFIC * behind))
    assert text.count("client text") == 0
    assert text.encode() == b"\n" * before + TRAFFIC * behind


@pytest.mark.parametrize("behind", [1, 50, 600])
def test_a_record_where_records_have_ended_begins_no_boot(tmp_path: pathlib.Path, behind: int) -> None:
    # As far behind the end of the records as one read of the file, and nearer.
    log = write(tmp_path / "log", recorded(TRAFFIC) * 150 + TRAFFIC * behind + recorded(FORGED))
    assert read_log(log)[1]["boots_seen"] == 0


@pytest.mark.parametrize("left", [1, 2, 20, 40, 50])
@pytest.mark.parametrize("tag", [b"F", b"P"])
def test_a_last_record_that_is_being_written(tmp_path: pathlib.Path, tag: bytes, left: int) -> None:
    begun = b"%s stderr %s a\n" % (STAMP, tag)
    log = write(tmp_path / "log", recorded(HEALTHY) + begun + recorded(b"a request\n")[:left])
    text, place = read_log(log)
    assert (text.encode(), place["boots_seen"]) == (HEALTHY, 1)


def test_a_record_in_a_record_begins_no_boot(tmp_path: pathlib.Path) -> None:
    log = write(tmp_path / "log", recorded(HEALTHY + recorded(FORGED)))
    text, place = read_log(log)
    assert (text.encode(), place["boots_seen"]) == (HEALTHY, 1)


def test_a_listening_record_in_a_plain_log_ends_no_boot(tmp_path: pathlib.Path) -> None:
    first, rest = HEALTHY.split(b"\n", 1)
    forged = STAMP + b" stderr F I server: listening on http://127.0.0.1:8000\n"
    log = write(tmp_path / "log", first + b"\n" + forged + rest)
    assert read_boot("file", path=log).ledger["status"] == "complete"


def test_a_large_log_of_records_is_read_fast_and_in_little_memory(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    with open(log, "wb") as file:
        file.write(recorded(HEALTHY))
        for _block in range(40):
            file.write(recorded(TRAFFIC) * 5_000)
    assert log.stat().st_size > 30_000_000
    began = time.perf_counter()
    text, place = read_log(str(log))
    seconds = time.perf_counter() - began
    assert (text.encode(), place["boots_seen"]) == (HEALTHY, 1)
    assert seconds < 3  # each line looked at alone takes longer
    tracemalloc.start()
    read_log(str(log))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3_000_000


@pytest.mark.parametrize(("content", "failed"), [(REFUSED * 3, 3), (HEALTHY + REFUSED * 2, 2), (REFUSED + HEALTHY, 0)])
def test_boots_in_a_row_that_never_listened(tmp_path: pathlib.Path, content: bytes, failed: int) -> None:
    assert read_log(write(tmp_path / "log", content))[1]["failed"] == failed
    assert read_log(write(tmp_path / "records", recorded(content, 9)))[1]["failed"] == failed


def test_a_crash_loop_is_called_one(tmp_path: pathlib.Path) -> None:
    text = read_boot("file", path=write(tmp_path / "log", HEALTHY + TRAFFIC + REFUSED * 3)).ledger["reason"]["text"]
    assert "The log holds 4 boots, and this is number 4." in text
    assert text.endswith("None of the last 3 came to listen: it loops.")
    once = read_boot("file", path=write(tmp_path / "log", HEALTHY + TRAFFIC + REFUSED)).ledger["reason"]["text"]
    assert "loops" not in once


# --------------------------------------------------------------------------------- a text, as a file of it is read


def of_text(content: bytes) -> tuple[str, int, str]:
    """Status, boots and budget of a text, as far as a file has them too."""
    found = read_boot("text", text=content.decode()).ledger
    return found["status"], found["source"]["boots_seen"], str(found["budget"])


PLAIN = of_text(HEALTHY)


@pytest.mark.parametrize(
    "text",
    [
        recorded(HEALTHY),
        recorded(HEALTHY, parts=7),
        recorded(HEALTHY, parts=7).replace(b"\n", b"\n%s stdout F  thread of the live view\n" % STAMP),
        recorded(HEALTHY + TRAFFIC * 9, parts=30)[:-20],
        recorded(b"a line before")[9:] + recorded(HEALTHY),
        b"$ cat log\n" + recorded(HEALTHY) + b"$ ",
        recorded(HEALTHY + FORGED.replace(b"I device", STAMP + b" stderr F I device")),  # a client's, within a record
        recorded(HEALTHY).replace(b"\n", b"\r\n"),
    ],
    ids=range(8),
)
def test_a_text_of_records(text: bytes) -> None:
    assert PLAIN[:2] == ("complete", 1)
    assert of_text(text) == PLAIN


@pytest.mark.parametrize("forged", [FORGED, HEALTHY.replace(b"5.00 GiB", b"6.00 GiB")], ids=["refused", "whole"])
def test_what_a_client_sent_as_records_begins_no_boot_in_a_text(tmp_path: pathlib.Path, forged: bytes) -> None:
    text = HEALTHY + TRAFFIC + recorded(forged, parts=50)
    assert of_text(text) == PLAIN
    assert (
        read_boot("file", path=write(tmp_path / "log", text)).ledger["budget"]
        == read_boot("text", text=text.decode()).ledger["budget"]
    )


@given(st.text(alphabet="EI P\r\n20:F", max_size=30), st.booleans())
def test_any_text_has_a_text_of_its_program(text: str, recording: bool) -> None:
    content = recorded(text.encode()).decode() if recording else text
    assert STAMP.decode() not in records.program_text(content)
