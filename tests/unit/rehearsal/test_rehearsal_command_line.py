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


@pytest.mark.parametrize(
    ("flag", "default"),
    [
        ("--tp", 1), ("--tp-wire-min-kb", 128), ("--max-model-len", 0), ("--vram-kv-mib", 0), ("--host-pool-mib", 0),
        ("--prefix-cache-host-mib", 0), ("--prefix-cache-disk-mib", 0), ("--checkpoint-interval", 2048),
        ("--checkpoint-slots", 8), ("--read-timeout", 30), ("--write-timeout", 600), ("--keep-alive-timeout", 5),
        ("--max-body-mib", 512), ("--retry-after", 1),
    ],
)  # fmt: skip
def test_default_of_a_number(flag: str, default: int) -> None:
    assert parse(["--model", "m.rad"]).number(flag) == default


@pytest.mark.parametrize(
    ("flag", "default"),
    [
        ("--tp-wire", "exact"), ("--placement", "auto"), ("--checkpoint-policy", "geometric-backoff"),
        ("--num-speculative-tokens", "auto"), ("--default-max-tokens", "auto"), ("--ngram-placement", "auto"),
    ],
)  # fmt: skip
def test_default_of_a_text(flag: str, default: str) -> None:
    assert parse(["--model", "m.rad"]).text(flag) == default


def test_two_flags_have_a_form_in_the_environment_and_no_other() -> None:
    environment = {"RADIANCE_HOME": "/r", "RADIANCE_KERNELS": "/k", "VRAM_KV_MIB": "77", "RADIANCE_VRAM_KV_MIB": "77"}
    flags = parse(["--model", "m.rad"], None, environment)
    assert (flags.text("--radiance-home"), flags.text("--kernels"), flags.number("--vram-kv-mib")) == ("/r", "/k", 0)
    assert parse(["--model", "m", "--kernels", "/other"], None, environment).text("--kernels") == "/other"


PUBLISHED = [
    "--model /models/qwen3.8-next-flash-fp8-iq4r-moe.rad --host :: --port 8000 --api-key k --tp 2 --tp-wire wht6 "
    "--max-num-seqs 8 --max-model-len 200000 --placement expert_tiered --host-pool-mib 12288 --gpu-headroom-mib 96 "
    "--expert-vs-cache-ratio 0.82 --kv-cache-dtype fp8 --prefix-cache-host-mib 4096 --prefix-cache-dir /data/kv "
    "--prefix-cache-disk-mib 131072 --num-speculative-tokens 3 --max-num-batched-tokens 2048",
    "--model q.rad --tp 2 --max-model-len 200000 --kv-cache-dtype fp8 --max-num-seqs 8 --host 0.0.0.0 --port 8000",
]


@pytest.mark.parametrize("line", PUBLISHED)
def test_published_command_lines_are_taken(line: str) -> None:
    flags = parse(line.split())
    assert (flags.number("--tp"), flags.number("--max-num-seqs"), flags.number("--port")) == (2, 8, 8000)


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
        ("--model m --p2p maybe", "unknown option '--p2p'"),
        ("--model m --ngram-placement tape", "--ngram-placement takes auto, disk or ram, not 'tape'"),
        ("--model m --checkpoint-policy none", "--checkpoint-policy takes geometric-backoff, tip-only or keep-all, "),
        ("--model m --draft-model d", "--draft-model is not implemented."),
        ("--model m --max-num-seqs many", "--max-num-seqs must be in [1, 65536], not 0"),
        ("--model m --max-n 9 --max-queued-requests 4", "--max-n 9 is above the 4 requests the queue admits"),
        ("--model m --expert-vs-cache-ratio 1", "--expert-vs-cache-ratio is the WEIGHTS share"),
    ],
)
def test_refusals(line: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line.split())
    assert str(caught.value).startswith(text)
