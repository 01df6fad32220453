# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a boot of the rehearsal engine to a plan, to the boot that the plan leads to, to its verdicts."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan, verdicts
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import flags_of
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import ARMS

ENGINE = pathlib.Path(__file__).resolve().parents[4] / "extensions" / "rehearsal" / "radiance.py"
FLAGS = {
    "weights_mib": "--vram-weights-mib",
    "kv_mib": "--vram-kv-mib",
    "max_num_seqs": "--max-num-seqs",
    "max_model_len": "--max-model-len",
    "kv_cache_dtype": "--kv-cache-dtype",
    "num_speculative_tokens": "--num-speculative-tokens",
}
RUNNING: dict[str, t.Any] = {
    "weights_mib": 24000,
    "kv_mib": 5120,
    "max_num_seqs": 3,
    "max_model_len": 200000,
    "kv_cache_dtype": "fp8",
    "num_speculative_tokens": 2,
}

Boot = t.Callable[[dict[str, t.Any]], dict[str, t.Any]]


@pytest.fixture(name="boot")
def _boot(tmp_path: pathlib.Path) -> Boot:
    """Boots the engine with a pair and shape until it listens, ends it, and returns its ledger."""
    (tmp_path / "flashnext.rad").write_bytes(b"model")
    (tmp_path / "flashnext.world.json").write_text(json.dumps({"load_speedup": 1_000_000}))

    def boot(to: dict[str, t.Any]) -> dict[str, t.Any]:
        argv = [sys.executable, str(ENGINE), "--model", str(tmp_path / "flashnext.rad"), "--port", str(_free_port())]
        argv += ["--host", "127.0.0.1", "--tp", "2", "--tp-wire", "wht6", "--host-pool-mib", "16384"]
        argv += ["--max-num-batched-tokens", "2048"]
        argv += [word for name, flag in FLAGS.items() for word in (flag, str(to[name]))]
        log = tmp_path / "boot.log"
        with log.open("wb") as stderr:
            process = subprocess.Popen(argv, stderr=stderr, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            deadline = time.monotonic() + 60
            while "server: listening" not in log.read_text() and process.poll() is None:
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.02)
            text = log.read_text()
        finally:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGTERM)
            process.wait(30)
        return read_ledger(text, source={"kind": "file", "name": None}, flags=flags_of(argv))

    return boot


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_fill_holds_every_prediction_and_the_next_changes_nothing(boot: Boot) -> None:
    plan = make_plan(boot(RUNNING), {"arms": ARMS})
    assert (plan["to"]["weights_mib"], plan["to"]["kv_mib"]) == (25844, 5119)
    assert (plan["ceiling"]["mib"], plan["ceiling"]["plus_minus_mib"]) == (30969.05, 5.125)
    after = boot(plan["to"])
    found = {item["id"]: item for item in verdicts(plan["predictions"], after)}
    assert {name: item["says"] for name, item in found.items() if item["verdict"] == "killed"} == {}
    assert {name for name, item in found.items() if item["verdict"] == "open"} == {"prefill_tps"}
    assert found["settled_free_mib.card0"]["measured"] == 215.3
    assert found["slab_slots.rank0"]["measured"] == 18898
    again = make_plan(after, {"arms": ARMS})
    assert (again["changes"], again["restart"], again["to"]) == ([], False, plan["to"])


@pytest.mark.parametrize(
    "shape",
    [
        {"max_num_seqs": 4},
        {"kv_cache_dtype": "bf16"},
        {"num_speculative_tokens": 3},
        {"num_speculative_tokens": 0},
        {"max_model_len": 262144},
    ],
)
def test_a_changed_shape_backs_its_sequences_and_settles_above_the_floor(boot: Boot, shape: dict[str, t.Any]) -> None:
    plan = make_plan(boot(RUNNING), {"shape": shape})
    after = boot(plan["to"])
    assert after["status"] == "complete"
    assert after["capacity"]["full"] is True
    assert after["capacity"]["sequences"] == plan["to"]["max_num_seqs"]
    for row in after["settled"]:
        assert row["free"]["mib"] >= row["floor"]["mib"]
    assert {
        item["id"]: item["says"] for item in verdicts(plan["predictions"], after) if item["verdict"] == "killed"
    } == {}
    # The engine's own KV plan and the dimensions that the plan was made from agree to the byte.
    kept = make_plan(after, {"pair": "keep"})
    assert kept["contract"]["needed_mib"] == plan["contract"]["needed_mib"]


def test_a_pool_one_mib_short_of_the_fill_backs_less(boot: Boot) -> None:
    plan = make_plan(boot(RUNNING), {})
    short = boot({**plan["to"], "kv_mib": plan["to"]["kv_mib"] - 1})
    assert short["capacity"]["full"] is False
