# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boots of the rehearsal engine, started as a service would be, read back by their log and pid file."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
import typing

import jsonschema
import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot

ROOT = pathlib.Path(__file__).resolve().parents[3]
ENGINE = ROOT / "extensions" / "rehearsal" / "radiance.py"
SCHEMA = json.loads((ROOT / "schemas" / "ledger.schema.json").read_text())
SHAPE = (
    "--tp 2 --tp-wire wht6 --max-num-seqs 3 --max-model-len 200000 --kv-cache-dtype fp8 --num-speculative-tokens 2 "
    "--host-pool-mib 16384 --host 127.0.0.1 --port 0 --api-key hush-hush-1234"
)


class Service:
    """A log and a pid file in one directory, and the processes that ran there."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.log = directory / "engine.log"
        self.pid_file = directory / "engine.pid"
        self.processes: list[subprocess.Popen[bytes]] = []
        (directory / "flash.rad").touch()

    def start(self, flags: str, **world: typing.Any) -> None:
        fields = {"load_speedup": 2000, "serve_speedup": 40, **world}
        (self.directory / "flash.world.json").write_text(json.dumps(fields))
        argv = [
            sys.executable,
            str(ENGINE),
            "--model",
            str(self.directory / "flash.rad"),
            *SHAPE.split(),
            *flags.split(),
        ]
        with open(self.log, "ab") as log:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        self.processes.append(process)
        self.pid_file.write_text(f"{process.pid}\n")

    def ledger(self) -> dict[str, typing.Any]:
        found = read_boot("file", path=str(self.log), pid_file=str(self.pid_file)).ledger
        jsonschema.Draft202012Validator(SCHEMA).validate(found)
        return found

    def settled_ledger(self) -> dict[str, typing.Any]:
        """The ledger as soon as the boot listens, or its process has ended."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            ended = self.processes[-1].poll() is not None
            found = self.ledger()
            # Until the new process prints, the last boot of the log is the one before.
            if ended or (found["ready"] and found["source"]["boots_seen"] == len(self.processes)):
                return found
            time.sleep(0.02)
        raise AssertionError(self.log.read_text())

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def service(tmp_path: pathlib.Path) -> typing.Iterator[Service]:
    one = Service(tmp_path)
    yield one
    one.stop()


def test_the_worked_example_is_read_back(service: Service) -> None:
    service.start("--vram-weights-mib 24000 --vram-kv-mib 5120")
    found = service.settled_ledger()
    assert (found["status"], found["reason"], found["missing"]) == ("complete", None, [])
    assert found["pair"] == {"weights_mib": 24000, "kv_mib": 5120, "exact": True}
    assert found["flags"]["max-num-seqs"] == "3"
    assert "hush-hush-1234" not in json.dumps(found)
    card = found["settled"][0]
    assert (card["card"], card["free"]["text"], card["floor"]["text"]) == (0, "2.01 GiB", "209.19 MiB")
    assert (card["headroom"]["text"], card["static_region"]["text"]) == ("96.00 MiB", "113.19 MiB")
    ceiling = card["free"]["mib"] - card["floor"]["mib"] + found["pair"]["weights_mib"] + found["pair"]["kv_mib"]
    assert ceiling == pytest.approx(30969.05)
    assert found["capacity"] == {
        "sequences": 3,
        "tokens": 200000,
        "full": True,
        "backing_percent": None,
        "full_length_sessions": None,
    }
    assert [row["slots"] for row in found["slab"]][0] == 17548
    assert (found["sampler"]["rows"], found["wire"]) == (9, {"mode": "wht6", "exact_rows": 25})
    assert found["source"]["started_at"].endswith("Z")


def test_the_seeds_table_is_read_back(service: Service) -> None:
    service.start("--vram-weights-mib 25600 --vram-kv-mib 5120")
    rows = service.settled_ledger()["budget"]["rows"]
    assert rows["unclaimed"]["text"] == "477.30 MiB"
    assert (rows["vram_weights"]["text"], rows["vram_kv"]["text"]) == ("25.00 GiB", "5.00 GiB")


@pytest.mark.parametrize(
    ("flags", "budget"),
    [
        ("", ("derived", "derived")),
        ("--vram-kv-mib 5120", ("derived", "stated")),
        ("--vram-weights-mib 24000", ("stated", "derived")),
        ("--vram-weights-mib 22208 --vram-kv-mib 3543", ("stated", "stated")),
        ("--vram-weights-mib 25844 --vram-kv-mib 5119", ("stated", "stated")),
        ("--vram-weights-mib 22016 --vram-kv-mib 8896 --kv-cache-dtype bf16", ("stated", "stated")),
        (
            "--vram-weights-mib 24000 --vram-kv-mib 5120 --num-speculative-tokens 0 --tp-wire exact",
            ("stated", "stated"),
        ),
        ("--vram-weights-mib 24000 --vram-kv-mib 5120 --checkpoint-slots 0", ("stated", "stated")),
    ],
)
def test_every_way_to_size_the_pools_is_complete_and_its_sums_hold(
    service: Service, flags: str, budget: tuple[str, str]
) -> None:
    service.start(flags)
    found = service.settled_ledger()
    assert (found["status"], found["reason"], found["missing"]) == ("complete", None, [])
    assert (found["budget"]["weights"], found["budget"]["kv"]) == budget
    assert found["pair"]["exact"] is (budget == ("stated", "stated"))


def test_a_pool_under_its_contract_says_what_it_backs(service: Service) -> None:
    service.start("--vram-weights-mib 26071 --vram-kv-mib 3543")
    capacity = service.settled_ledger()["capacity"]
    assert (capacity["sequences"], capacity["tokens"], capacity["full"]) == (3, 200000, False)
    assert 0 < capacity["backing_percent"] < 100
    assert 0 < capacity["full_length_sessions"] < 3


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ("--expert-vs-kv 1", "unknown_option"),
        ("--vram-weights-mib 24000 --vram-kv-mib 5120 --kv-cache-dtype q8", "bad_command_line"),
        ("--vram-weights-mib 27000 --vram-kv-mib 5120", "vram_short"),
        ("--vram-weights-mib 24000 --vram-kv-mib 512", "kv_fixed_costs"),
        ("--vram-weights-mib 24000 --vram-kv-mib 5120 --host-pool-mib 1024", "weights_do_not_fit"),
        ("--vram-weights-mib 24000 --vram-kv-mib 5120 --tp 4", "no_device"),
    ],
)
def test_a_boot_that_the_engine_refuses_behind_a_good_one(service: Service, flags: str, code: str) -> None:
    service.start("--vram-weights-mib 24000 --vram-kv-mib 5120")
    assert service.settled_ledger()["status"] == "complete"
    service.stop()
    service.start(flags)
    assert service.processes[-1].wait(30) != 0
    found = service.ledger()
    assert (found["status"], found["reason"] and found["reason"]["code"]) == ("refused", code)
    assert found["source"]["boots_seen"] == 2


def test_the_next_boot_of_the_same_pair_has_another_fingerprint(service: Service) -> None:
    fingerprints = []
    for _boot in range(2):
        service.start("--vram-weights-mib 24000 --vram-kv-mib 5120")
        fingerprints.append(service.settled_ledger()["fingerprint"])
        assert service.ledger()["fingerprint"] == fingerprints[-1]
        if len(fingerprints) == 1:
            service.stop()
    assert fingerprints[0] != fingerprints[1]


def test_the_process_that_runs_did_not_print_an_older_boot(service: Service) -> None:
    service.start("--vram-weights-mib 22208 --vram-kv-mib 5120")
    assert service.settled_ledger()["pair"]["weights_mib"] == 22208
    service.stop()
    service.start("--vram-weights-mib 24000 --vram-kv-mib 5120")
    assert service.settled_ledger()["pair"]["weights_mib"] == 24000
    older = read_boot("file", path=str(service.log), pid_file=str(service.pid_file), boot=0).ledger
    assert (older["flags"], older["source"]["started_at"], older["pair"]["exact"]) == ({}, None, False)
    assert older["budget"]["rows"]["vram_weights"]["text"] == "21.69 GiB"
