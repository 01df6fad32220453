# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot logs for a report: nothing that tells whose they are, and the same figures."""

from __future__ import annotations

import pathlib

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.anonymous import anonymous_log, figures
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.names import paths_in
from hypothesis import given
from hypothesis import strategies as st

LOGS = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "logs"
NAMES = sorted(path.name for path in LOGS.glob("*.log"))
HEALTHY = (LOGS / "healthy-1.0.13.log").read_text()
DEVICES, REST = HEALTHY.split("\n", 1)
ENDS = "I server: listening on http://127.0.0.1:8465 (8 threads, up to 64)"


def of_line(line: str, names: tuple[str, ...] = (), secrets: tuple[str, ...] = ()) -> str:
    """What becomes of a line within a boot."""
    log = anonymous_log(f"{DEVICES}\n{line}\n{REST}", names=names, secrets=secrets)
    assert log is not None
    return log.splitlines()[1]


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("I chat: template from /srv/radiance/t.jinja (812 bytes)", "I chat: template from <path-1> (812 bytes)"),
        ("E cannot create '/data/my models/kv'", "E cannot create '<path-1>'"),
        ("E cannot create /data/kv,cache.", "E cannot create <path-1>."),
        ("W --prefix-cache-dir=/data/kv is slow", "W --prefix-cache-dir=<path-1> is slow"),
        ("I plugin ~/plugins/x.so is shadowed by ./x.so", "I plugin <path-1> is shadowed by <path-2>"),
        ("E models/flash.rad carries no dimensions, flash.rad", "E <file-1> carries no dimensions, <file-2>"),
        ("I at http://dank.lan:8000/x?token=1, or", "I at http://<host-1>:8000/<path-1>, or"),
        ("I at http://10.0.3.7 and http://[fd00::5]:80", "I at http://<address-1> and http://<address-2>:80"),
        ("I from https://bob:hush@git.example.com/a/b", "I from https://<host-1>/<path-1>"),
        ("I 10.0.3.7 fd00::5 10.0.3.7:80, 127.0.0.1", "I <address-2> <address-1> <address-2>:80, 127.0.0.1"),
        ("W peer 00:1a:2b:3c:4d:5e", "W peer <hardware-1>"),
        ("I mail alice@dank.lan", "I mail <mail-1>"),
        ("I node7.fleet.example.com answers", "I <host-1> answers"),
        ("I /home/alice/x belongs to alice", "I <path-1> belongs to <name-1>"),
        ("W --api-key hunter22 and --api-key=hunter23", "W --api-key <key-1> and --api-key=<key-2>"),
        ("W api_key: hunter22", "W api_key: <key-1>"),
        ("W token 'abcd1234' key=\"abcdefgh\"", "W token '<key-1>' key=\"<key-2>\""),
        ("W Authorization: Bearer abcd1234efgh", "W Authorization: Bearer <key-1>"),
        ("W sk-abc123def456ghi789", "W <key-1>"),
        ("W hf_AbCdEfGhIjKlMnOpQr1", "W <key-1>"),
        ("W container 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "W container <key-1>"),
        ("I the model qwen3.8-flash-next is warm", "I the model <model-1> is warm"),
        # Nothing of these is anybody's.
        ("W a bearer key is required", "W a bearer key is required"),
        ("I 6.1 GB/s, rank 0/2, linear/conv state, 13/12/36", "I 6.1 GB/s, rank 0/2, linear/conv state, 13/12/36"),
        ("I POST /v1/completions at 12:30:05 by 1.0.13", "I POST /v1/completions at 12:30:05 by 1.0.13"),
        ("I 151936-token vocabulary, --max-tokens-cap 4096", "I 151936-token vocabulary, --max-tokens-cap 4096"),
    ],
)  # fmt: skip
def test_what_becomes_of_a_line(line: str, left: str) -> None:
    assert of_line(line) == left


def test_words_that_are_known() -> None:
    line = "I dank and Dank-7 in dankserver; open sesame by bob, /srv/My Models/a.rad of root"
    left = of_line(line, names=("dank", "bob", "/srv/My Models/a.rad", "root", ""), secrets=("open sesame",))
    assert left == "I <name-1> and <name-2>-7 in dankserver; <key-1> by <name-3>, <path-1> of root"


def test_folders_of_the_command_line_may_have_blanks() -> None:
    names = paths_in({"model": "/srv/My Models/of bob/a b.rad", "tp": "2", "x": "/"})
    assert names == ["/srv/My Models/of bob/a b.rad", "/srv/My Models", "/srv/My Models/of bob"]
    assert of_line("W no /srv/My Models/of bob/b.rad here", names=names) == "W no <path-1>/b.rad here"


def test_the_same_thing_has_the_same_placeholder() -> None:
    log = anonymous_log(f"{DEVICES}\nI /a/b\nI /c/d\nI /a/b\n{REST}")
    assert log is not None
    assert log.splitlines()[1:4] == ["I <path-1>", "I <path-2>", "I <path-1>"]


@pytest.mark.parametrize("name", NAMES)
def test_a_log_reads_back_and_is_left_as_it_is_otherwise(name: str) -> None:
    text = (LOGS / name).read_text()
    log = anonymous_log(text, names=("dankserver",))
    assert log is not None
    assert figures(log) == figures(text)
    changed = [line for line, plain in zip(log.splitlines(), text.splitlines()) if line != plain]
    assert [line.split("  ")[0] for line in changed] == ["I model: <model-1>"]
    assert read_ledger(log, source={"kind": "text"})["status"] == "complete"


def test_what_runtimes_and_terminals_add_is_left_out() -> None:
    dressed = "".join(f"Nov 02 10:00:00 dank radiance[7]: \x1b[1m{line}\x1b[0m\n" for line in HEALTHY.splitlines())
    assert anonymous_log(dressed) == anonymous_log(HEALTHY)


def test_nothing_of_a_client_is_in_it() -> None:
    traffic = "W server: scheduler refused request 7: my diary\n"
    log = anonymous_log(HEALTHY + traffic)
    assert log is not None
    assert log.splitlines()[-1] == ENDS
    assert anonymous_log(traffic * 9) is None
    assert anonymous_log("") is None


def test_of_a_log_without_its_head_there_is_what_came_before_listening() -> None:
    log = anonymous_log(REST)
    assert log is not None
    assert log.splitlines()[-1] == ENDS


@pytest.mark.parametrize(("boot", "first"), [(0, "E unknown option '--x'"), (-1, DEVICES)])
def test_one_boot_of_several(boot: int, first: str) -> None:
    log = anonymous_log("E unknown option '--x'\nusage of /usr/bin/radiance\n" + HEALTHY, boot=boot)
    assert log is not None
    assert log.splitlines()[0] == first
    assert "usage of /usr" not in log


def test_a_name_that_is_a_word_of_the_reports_is_refused() -> None:
    with pytest.raises(RadianceError) as caught:
        anonymous_log(HEALTHY, names=("claimable",))
    assert caught.value.code == "log_not_anonymous"
    assert "not give the same status, reason" in caught.value.text


PRIVATE = [
    "/srv/secret-plan/x.rad",
    "sk-abc123def456ghi789",
    "10.20.30.40",
    "alice@dank.lan",
    "http://dank.lan:81/diary",
    "~/diary/kv",
    "zaphod",
    "diary.gguf",
]
LEFTOVER = ("secret", "abc123", "10.20", "alice", "dank", "diary", "zaphod")


@given(
    st.sampled_from(NAMES), st.lists(st.tuples(st.integers(0, 80), st.sampled_from(PRIVATE), st.booleans()), max_size=6)
)
def test_wherever_it_stands_it_is_gone(name: str, put: list[tuple[int, str, bool]]) -> None:
    lines = (LOGS / name).read_text().splitlines()
    for at, private, quoted in put:
        # Not within a report, whose rows are one after the other.
        level = next((number for number in range(at, len(lines)) if lines[number].startswith("I load")), len(lines) - 1)
        lines.insert(level, f"W plugin: '{private}' failed" if quoted else f"W plugin: {private} failed")
    text = "\n".join(lines) + "\n"
    log = anonymous_log(text, names=("zaphod",))
    assert log is not None
    assert not [word for word in LEFTOVER if word in log]
    assert figures(log) == figures(text)
    assert anonymous_log(log) == log


@given(st.text(alphabet="/~.:@ab1-<>'\"(),\u00e9 \t", max_size=40))
def test_any_text_has_placeholders_that_stay(text: str) -> None:
    log = anonymous_log(f"{DEVICES}\nW x {text}\n{REST}")
    assert log is not None
    assert anonymous_log(log) == log
