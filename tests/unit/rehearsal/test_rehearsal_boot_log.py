# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole boots, as processes: what is printed, in which order, and where a boot is refused."""

from __future__ import annotations

import pathlib
import re
import signal
import socket
import subprocess
import sys
from typing import Any

import pytest

PAIR = "--vram-weights-mib 24000 --vram-kv-mib 5120"
ORDER = [
    r"^I device: AQL backend, 3 device\(s\) \[0:gfx1201 1:gfx1201 2:gfx1036\]$",
    r"^W device: using 2 of 3 \[0:gfx1201 1:gfx1201\], ignoring \[2:gfx1036\]: ",
    r"^I model: flash  arch=qwen4exp  quant=fp8-iq4r  48 layers  262144 ctx$",
    r"^W tp wire: LOSSY \(--tp-wire wht6\) at 128 KiB a message and above\. .* Steps of at most 25 rows are exact: ",
    r"^I\[0\] sampler: 248320-token vocabulary \(124160 this rank\), 9 rows, ",
    r"^I\[0\] declare: ",
    r"^I activation arena: 512 tokens use 513\.00 MiB, 64 tokens use 401\.00 MiB of 897\.00 MiB \(the fixed region is ",
    r"^I VRAM budget, per card:$",
    r"^  card total          31\.86 GiB$",
    r"^  already held       342\.00 MiB   measured: ",
    r"^  --gpu-headroom-mib  96\.00 MiB   left unclaimed on purpose$",
    r"^    kv cache           5\.00 GiB   .*backs 3 sequences all at 200000 tokens at once, ",
    r"^  vram_weights        23\.44 GiB   stated by --vram-weights-mib$",
    r"^  vram_kv              5\.00 GiB   stated by --vram-kv-mib$",
    r"^  unclaimed            2\.03 GiB   ",
    r"^W\[0\] VRAM budgets total 28\.44 GiB of the card's 31\.86 GiB, so 3\.42 GiB is neither budgeted ",
    r"^I\[0\] pools:$",
    r"^  host_pool       16\.00 GiB budget,  10\.11 GiB used,   5\.89 GiB free$",
    r"^I\[0\] mover: 17548 slab slots \(32 shadow\), 7580 pinned pool slots, 42\.40 MiB static vram$",
    r"^I\[1\] mover: 17597 slab slots \(32 shadow\), 7531 pinned pool slots, 42\.40 MiB static vram$",
    r"^I load: 6\.03 GiB of 72\.40 GiB read, ",
    r"^I load: 72\.40 GiB of 72\.40 GiB read, ",
    r"^I chunk geometry: .* prefill chunks of at most 2048 \(the checkpoint interval, not the budget\)$",
    r"^I kv: KV layer bundles ",
    r"^    kv_attn        full    13 layers  block    4 tok  page 26\.00 KiB   150067 blocks = .* \(600268 tokens\)$",
    r"^    checkpoints    linear      8 slots x 56\.00 MiB = 448\.00 MiB  ",
    r"^I prefix cache: 2 paged group\(s\) at 4-token blocks; linear checkpoints every 2048 tokens \(56\.00 MiB x 8 ",
    r"^I mover: 3139 slots can be lent out of the KV cache \(4\.19 GiB\), filled as it lends them$",
    r"^I mover: 363 slots can be lent out of the activation arena \(496\.00 MiB\), filled as it lends them$",
    r"^I device allocations: ",
    r"^W\[0\] card 0 settled at 2\.01 GiB free against 209\.19 MiB \(the 96\.00 MiB --gpu-headroom-mib and 113\.19 ",
    r"^W\[1\] card 1 settled at 2\.02 GiB free against 209\.19 MiB \(the 96\.00 MiB --gpu-headroom-mib and 113\.19 ",
    r"^I serving on http://127\.0\.0\.1:\d+  \(/v1/completions; /v1/chat/completions with tools and reasoning\)$",
    r"^I server: listening on http://127\.0\.0\.1:\d+ \(16 threads, up to 32\)$",
]


def test_a_boot_prints_its_rows_in_order_and_stops_gracefully(start: Any) -> None:
    engine = start(PAIR).ready()
    rest = iter(engine.lines)
    for pattern in ORDER:
        assert any(re.search(pattern, line) for line in rest), f"{pattern} is not where it should be in\n{engine.log}"
    assert engine.stop() == 0
    assert re.fullmatch(r"I mover: 0 dispatches, .* staged \(0\.00 GiB h2d, 0\.00 GiB d2h\)", engine.lines[-1])


def test_the_exact_wire_and_one_rank_have_no_wire_line_and_no_tags(start: Any) -> None:
    engine = start("--vram-weights-mib 24000 --vram-kv-mib 5120 --host-pool-mib 65536 --tp 1 --tp-wire exact").ready()
    assert "tp wire" not in engine.log
    engine.line(r"^W card 0 settled at 2\.01 GiB free against 209\.19 MiB ")
    assert "card 1 settled" not in engine.log
    assert re.search(r"^[EWI]\[", engine.log, re.MULTILINE) is None
    engine.line(r"^I mover: 8774 slab slots ")


def test_derived_pools_say_so(start: Any) -> None:
    engine = start("").ready()
    engine.line(r"^I kv: the pool backs 100% of the worst case \(3 sequences all at 200000 tokens\), 3\.0 full-length")
    engine.line(r"^  vram_weights        25\.04 GiB   static \+ experts$")
    engine.line(r"^  vram_kv              5\.00 GiB   the cache's share$")
    engine.line(r"^W checkpoint slots: 7 of 8 backed ")


def test_a_thin_pool_warns_of_the_one_request_limit(start: Any) -> None:
    engine = start("--vram-weights-mib 24000 --vram-kv-mib 2048").ready()
    engine.line(r"^W kv group 'kv_attn' holds 170084 tokens but the context limit is 200000: ONE request")


@pytest.mark.parametrize(
    ("flags", "first", "shortage"),
    [
        (
            "--vram-weights-mib 26000 --vram-kv-mib 5120",
            r"^E VRAM does not cover the fixed",
            r"^  SHORT BY +18\.70 MiB$",
        ),
        (
            "--vram-weights-mib 30000 --vram-kv-mib 5120",
            r"^E\[0\] VRAM budgets do not fit:$",
            r"^  OVER BY +2\.44 GiB$",
        ),
        (
            "--vram-weights-mib 24000 --vram-kv-mib 800",
            r"^E\[0\] vram_kv does not fit its fixed",
            r"^  SHORT BY +33\.40 MiB$",
        ),
        (f"{PAIR} --host-pool-mib 8192", r"^E\[0\] placement: 1580 unit\(s\) fit neither", r"^  DID NOT FIT$"),
        (f"{PAIR} --tp 3", r"^E --tp 3 needs 3 devices of one architecture; 2 are usable \[0:gfx1201 1:gfx1201\]$", ""),
        (
            f"{PAIR} --max-num-batched-tokens 16384",
            r"^E\[0\] qwen4exp: rad_arch_declare",
            r"the QSA score plane would be",
        ),
    ],
)
def test_refused_boots(start: Any, flags: str, first: str, shortage: str) -> None:
    engine = start(flags)
    assert engine.exit() == 1
    engine.line(first)
    engine.line(shortage)
    assert "listening" not in engine.log


def test_a_missing_model_is_refused(start: Any, tmp_path: pathlib.Path) -> None:
    engine = start(f"{PAIR} --model {tmp_path}/none.rad")
    assert engine.exit() == 1
    assert engine.lines[-1] == f"E cannot open {tmp_path}/none.rad"


def test_debug_lines_name_their_place(start: Any) -> None:
    engine = start(f"{PAIR} -v --max-tokens-cap 700").ready()
    engine.line(r"^D\[1\] planner\.cpp:\d+  slab 17597, pool 7531, shadow 32$")
    engine.line(r"^I request defaults and bounds from the command line: max-tokens-cap 700$")
    engine.line(r"^I step batch: \S+ MiB pinned staging ring \+ 187\.70 MiB device slab a rank, 2 KV group\(s\), 3 ")


def test_a_bad_command_line_ends_with_2(start: Any) -> None:
    engine = start(f"{PAIR} --expert-vs-cash 1")
    assert engine.exit() == 2
    assert engine.lines[0] == "E unknown option '--expert-vs-cash'"
    assert engine.lines[1].startswith("usage: ")


def test_help_is_no_error(tmp_path: pathlib.Path) -> None:
    program = pathlib.Path(__file__).resolve().parents[3] / "extensions" / "rehearsal" / "radiance.py"
    done = subprocess.run([sys.executable, str(program), "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "--vram-weights-mib N  (default 0)" in done.stdout


def test_a_port_that_is_taken(start: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        engine = start(f"{PAIR} --port {port}")
        assert engine.exit() == 1
    assert engine.lines[-1] == f"E server: cannot bind 127.0.0.1:{port}"


def test_log_levels(start: Any) -> None:
    quiet = start(f"{PAIR} --tp 3", {"RADIANCE_LOG": "warn"})
    assert quiet.exit() == 1
    assert [line[:9] for line in quiet.lines] == ["W device:", "E --tp 3 "]
    wrong = start(f"{PAIR} --tp 3", {"RADIANCE_LOG": "verbose"})
    assert wrong.exit() == 1
    assert wrong.lines[0] == "E RADIANCE_LOG='verbose' is not error|warn|info|debug|trace; using info"


def test_the_port_is_bound_only_when_the_load_is_over(start: Any) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    engine = start(f"{PAIR} --port {port}", load_speedup=20)
    engine.wait_for(r"^I load: 18\.10 GiB")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1)
    engine.process.send_signal(signal.SIGTERM)
    assert engine.exit() == -signal.SIGTERM


def test_a_world_file_with_an_unknown_field_is_named(start: Any) -> None:
    engine = start(PAIR, cards=3)
    assert engine.exit() == 1
    assert "there is no field 'cards'" in engine.lines[-1]
