# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger of one boot of the rehearsal engine, held to its own endpoint and to that of another boot."""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import subprocess
import sys
import time
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.kvfleet.radiance.plugins.modules import boot_ledger_info

ENGINE = pathlib.Path(boot_ledger_info.__file__).absolute().parents[2] / "extensions" / "rehearsal" / "radiance.py"
KEY = "sk-rehearsal-key"
SHAPE = (
    "--tp 2 --tp-wire wht6 --max-num-seqs 3 --max-model-len 200000 --kv-cache-dtype fp8 --num-speculative-tokens 2 "
    f"--host-pool-mib 16384 --vram-weights-mib 24000 --host 127.0.0.1 --port 0 --api-key {KEY}"
)


class Booted(t.NamedTuple):
    log: str
    pid_file: str
    url: str


@contextlib.contextmanager
def booted(folder: pathlib.Path, kv_mib: int) -> t.Iterator[Booted]:
    folder.mkdir()
    (folder / "model.rad").touch()
    (folder / "model.world.json").write_text(json.dumps({"load_speedup": 10_000}))
    log = folder / "engine.log"
    with open(log, "wb") as file:
        process = subprocess.Popen(
            [
                *(sys.executable, str(ENGINE), "--model", str(folder / "model.rad")),
                *(*SHAPE.split(), "--vram-kv-mib", str(kv_mib)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=file,
        )
    (folder / "pid").write_text(str(process.pid))
    try:
        end = time.monotonic() + 30
        while not (found := re.search(r"server: listening on (http://\S+)", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        yield Booted(str(log), str(folder / "pid"), found[1])
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def read(capsys: pytest.CaptureFixture[str]) -> t.Callable[..., dict[str, t.Any]]:
    def run_module(boot: Booted, **options: t.Any) -> dict[str, t.Any]:
        options = {"source": "file", "path": boot.log, "api_key": KEY, "require": "any", **options}
        options = {name: value for name, value in options.items() if value is not None}
        with patch_module_args(options), pytest.raises(SystemExit):
            boot_ledger_info.main()
        return t.cast("dict[str, t.Any]", json.loads(capsys.readouterr().out)["ledger"])

    return run_module


def test_what_an_endpoint_does_that_cannot_be_asked_leaves_what_the_log_tells(
    read: t.Callable[..., dict[str, t.Any]], tmp_path: pathlib.Path
) -> None:
    with booted(tmp_path / "one", 5120) as one:
        for options in ({"api_key": "another-key"}, {"api_key": None, "api_key_file": str(tmp_path / "gone")}):
            found = read(one, endpoint=one.url, **options)
            assert (found["status"], found["engine"]["version"]) == ("complete", None)
            assert not [check for check in found["checks"] if check["name"].startswith("endpoint_")]


def test_a_boot_and_the_endpoint_of_another_one(
    read: t.Callable[..., dict[str, t.Any]], tmp_path: pathlib.Path
) -> None:
    with booted(tmp_path / "one", 5120) as one, booted(tmp_path / "other", 4000) as other:
        own = read(one, pid_file=one.pid_file, endpoint=one.url)
        assert (own["status"], own["reason"]) == ("complete", None)
        asked = [check for check in own["checks"] if check["name"].startswith("endpoint_")]
        assert len(asked) > 20
        assert all(check["holds"] for check in asked)

        mixed = read(one, pid_file=one.pid_file, endpoint=other.url)
        assert (mixed["status"], mixed["reason"]["code"]) == ("incomplete", "endpoint_differs")
        broken = [check["name"] for check in mixed["checks"] if not check["holds"]]
        assert broken[:3] == ["endpoint_kv.kv_attn", "endpoint_kv.kv_attn.blocks", "endpoint_kv.kv_attn.tokens"]
        assert "Unless the endpoint is of another service, read the boot's receipt" in mixed["reason"]["text"]

        # Of a log alone it is known that it is of the past, and of an endpoint that it runs.
        alone = read(one, endpoint=other.url)
        assert alone["reason"]["text"].startswith(
            "The endpoint serves another boot than the log's: the KV group kv_attn"
        )
        assert "so the log is stale, and the endpoint, which has served since" in alone["reason"]["text"]
