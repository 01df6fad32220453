# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of the stand-in: defaults, loose numbers, refusals."""

from __future__ import annotations

import pytest
from engine.command_line import UsageError, atoll, parse


def test_defaults() -> None:
    flags = parse(["--model", "m.rad"])
    assert flags.number("--max-num-seqs") == 256
    assert flags.number("--max-num-batched-tokens") == 8192
    assert flags.number("--gpu-headroom-mib") == 96
    assert flags.number("--vram-weights-mib") == 0
    assert flags.text("--kv-cache-dtype") == "bf16"
    assert flags.text("--expert-vs-cache-ratio") == "0.75"
    assert flags.text("--host") == "0.0.0.0"
    assert flags.number("--port") == 8000
    assert flags.drafts is None
    assert (flags.queue_cap, flags.max_n) == (2048, 256)


@pytest.mark.parametrize(("text", "value"), [("3.5G", 3), ("abc", 0), (" 12x", 12), ("-4", -4), ("5,120", 5), ("", 0)])
def test_sizes_are_read_as_loosely_as_the_engine_reads_them(text: str, value: int) -> None:
    assert atoll(text) == value


def test_the_last_of_a_repeated_flag_wins() -> None:
    flags = parse(["--model", "m", "--vram-kv-mib", "5120", "--vram-kv-mib", "3.5G", "--gpu-headroom", "64"])
    assert flags.number("--vram-kv-mib") == 3
    assert flags.number("--gpu-headroom-mib") == 64


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("--model m --no-such 1", "unknown option '--no-such'"),
        ("--model m --port=80", "unknown option '--port=80'"),
        ("--model m --tp", "--tp needs an argument"),
        ("--tp 2", "--model is required"),
        ("--model m --tp 0", "--tp must be >= 1"),
        ("--model m --port 70000", "--port must be in [0, 65535], not 70000"),
        ("--model m --port eighty", "--port takes a whole number, not 'eighty'"),
        ("--model m --num-speculative-tokens 2x", "--num-speculative-tokens takes a whole number, not '2x'"),
        ("--model m --tp-wire fast", "--tp-wire takes exact or wht6, not 'fast'"),
        ("--model m --kv-cache-dtype q8", "--kv-cache-dtype takes bf16 or fp8, not 'q8'"),
        ("--model m --max-num-seqs many", "--max-num-seqs must be in [1, 65536], not 0"),
        ("--model m --max-n 9 --max-queued-requests 4", "--max-n 9 is above the 4 requests the queue admits"),
        ("--model m --expert-vs-cache-ratio 1", "--expert-vs-cache-ratio is the WEIGHTS share"),
    ],
)
def test_refusals(line: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line.split())
    assert str(caught.value).startswith(text)
