# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service as an operator has one: a serve script, an env file, a log and a pid file, around the rehearsal engine."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import running
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import read_request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.switch import switch

ROOT = pathlib.Path(__file__).resolve().parents[5]
ENGINE = ROOT / "extensions" / "rehearsal" / "radiance.py"
SERVE = """#!/bin/sh
set -a
. {folder}/flash.env
exec {python} {engine} --model {folder}/flash.rad --tp 2 --host 127.0.0.1 --port {port} \\
  --vram-weights-mib "$VRAM_WEIGHTS_MIB" --vram-kv-mib "$VRAM_KV_MIB" --max-num-seqs "$MAX_NUM_SEQS" \\
  --max-model-len "$MAX_MODEL_LEN" --kv-cache-dtype fp8 --num-speculative-tokens 2 --host-pool-mib 16384
"""
OLD = {
    "weights_mib": 24000,
    "kv_mib": 5120,
    "max_num_seqs": 3,
    "max_model_len": 200000,
    "kv_cache_dtype": "fp8",
    "num_speculative_tokens": 2,
}
NEW = {**OLD, "weights_mib": 25844, "kv_mib": 5119}
# The phases of a switch that holds.
FORWARD = ["lock", "precheck", "drain", "stop", "release", "swap", "start", "ready", "referee", "receipt", "keep"]
OPTIONS: dict[str, t.Any] = {
    "manager": "process",
    "source": "file",
    "cards": [],
    "files": [],
    "endpoint": None,
    "api_key_file": None,
    "expect": None,
    "fingerprint": None,
    "drain_timeout": 2,
    "stop_timeout": 5,
    "release_timeout": 2,
    "ready_timeout": 20,
    "before_drain": [],
    "after_ready": [],
}


def env_text(to: dict[str, t.Any]) -> str:
    """The env file of a pair."""
    return (
        f"VRAM_WEIGHTS_MIB={to['weights_mib']}\nVRAM_KV_MIB={to['kv_mib']}\n"
        f"MAX_NUM_SEQS={to['max_num_seqs']}\nMAX_MODEL_LEN={to['max_model_len']}\n"
    )


class Service:
    """One service in a folder of its own."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.env = folder / "flash.env"
        self.serve = folder / "serve.sh"
        self.log = folder / "flash.log"
        self.pid_file = folder / "flash.pid"
        self.state = folder / "state" / "flash"
        self.endpoint = f"http://127.0.0.1:{self.port}"
        (folder / "flash.rad").touch()
        self.world(load_speedup=2000, stop_seconds=0)
        self.env.write_text(env_text(OLD))
        self.serve.write_text(
            SERVE.format(folder=folder, python=sys.executable, engine=ENGINE, port=self.port), encoding="utf-8"
        )
        self.serve.chmod(0o755)

    def world(self, **fields: t.Any) -> None:
        """The world that the next boot finds."""
        (self.folder / "flash.world.json").write_text(json.dumps(fields))

    def arm(self, *faults: str) -> None:
        """Faults for the boots after the present one."""
        (self.folder / "flash.faults.json").write_text(json.dumps(faults))

    def options(self, to: dict[str, t.Any] | None = None, **more: t.Any) -> dict[str, t.Any]:
        """The module's options for a switch to a pair, or without one those that only finish."""
        options: dict[str, t.Any] = {
            **OPTIONS,
            "service": "flash",
            "start": [str(self.serve)],
            "pid_file": str(self.pid_file),
            "path": str(self.log),
            "state_dir": str(self.folder / "state"),
        }
        if to is not None:
            options["expect"] = {
                "to": to,
                "predictions": [{"id": "sequences_backed", "quantity": "sequences_backed", "low": 3, "high": 3}],
                "attempt": "0123456789ab",
                "host": "dankserver",
            }
            options["files"] = [{"dest": str(self.env), "content": env_text(to), "mode": None}]
        return {**options, **more}

    def run(self, to: dict[str, t.Any] | None = None, check_mode: bool = False, **more: t.Any) -> dict[str, t.Any]:
        """Run the switch in this process; a failure has ``failed``, ``msg`` and ``code`` beside the result."""
        try:
            run = switch(read_request(self.options(to, **more)), check_mode)
        except RadianceError as error:
            return {**error.result, "failed": True, "msg": error.text, "code": error.code}
        return {**run.result(), "failed": False}

    def start_old(self) -> None:
        """Bring up the old pair without our help, as an operator would."""
        self.by_hand(str(self.serve), log_mode="ab")
        wait_until(lambda: "server: listening" in self.log.read_text())

    def by_hand(self, *argv: str, log_mode: str = "wb") -> None:
        """Start something as the service, with the log cut to nothing (``>``) or appended to (``>>``)."""
        with self.log.open(log_mode) as log:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.pid_file.write_text(f"{child.pid}\n")

    def argv(self) -> list[str]:
        """The command line of what runs now."""
        found = running(str(self.pid_file), str(self.log))
        assert found is not None
        return found.argv

    def flags(self) -> dict[str, str] | None:
        """The command line of what runs now."""
        found = running(str(self.pid_file), str(self.log))
        return None if found is None else found.flags

    def pair(self) -> str | None:
        """The pair that runs, like ``24000+5120``; None when nothing does."""
        flags = self.flags() or {}
        # Before its exec the process is still the serve script, which has no flags.
        return f"{flags['vram-weights-mib']}+{flags['vram-kv-mib']}" if "vram-kv-mib" in flags else None

    def pid(self) -> int:
        """The pid that runs."""
        found = running(str(self.pid_file), str(self.log))
        assert found is not None
        return found.pid

    def serves(self) -> bool:
        """Whether the port takes connections."""
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def records(self) -> list[dict[str, t.Any]]:
        """What the record holds."""
        return _records.read(str(self.state / "records.jsonl"))

    def everything(self) -> dict[str, tuple[bytes, int]]:
        """Every file of the service but its log, with content and mode."""
        return {
            str(path.relative_to(self.folder)): (path.read_bytes(), path.stat().st_mode)
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path != self.log
        }

    def kill_all(self) -> None:
        """End everything of this service that still runs, whoever started it."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.pids())

    def pids(self) -> list[int]:
        """Every live process that has this service's folder on its command line; zombies have none."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if str(self.folder).encode() + b"/" in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
        return found


def wait_until(holds: t.Callable[[], bool], seconds: float = 15.0) -> None:
    """Fail unless it holds within the time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def names(result: dict[str, object]) -> list[str]:
    """The phases that a switch went through."""
    return [phase["name"] for phase in result["phases"]]  # type: ignore[attr-defined]


def fingerprint(service: Service) -> str:
    """That of the boot that runs."""
    return str(read_boot("file", path=str(service.log), pid_file=str(service.pid_file)).ledger["fingerprint"])
