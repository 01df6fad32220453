# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One fault on one host: the run that meets it, what serves then, the next run, and one that changes nothing."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
import typing as t

import jsonschema
from hosts import CHECKOUT, Host, Pair, state_folder
from judging import without_service
from plays import Play

PAIRS: tuple[Pair, Pair] = ((25000, 5120), (25600, 5120))
# Generous: the machine has other work. What a boot and a way back take is a part of it.
SERVES_AGAIN_SECONDS = 120
PHASE_SECONDS = 600
_HERE = pathlib.Path(__file__).parent
_RECORD = json.loads((CHECKOUT / "schemas/record.schema.json").read_text())


class Missed(Exception):
    """The fault did not come where it was meant; nothing is said of it."""


class Watch:
    """A watch.py on the host, which waits for a phase of the next run."""

    def __init__(self, host: Host, phase: str, count: int, how: str) -> None:
        words = [f"{host.state}/progress.jsonl", phase, str(count), how, str(PHASE_SECONDS)]
        argv = ["podman", "--log-level", "error", "exec", "-i", host.box, "python3", "-", *words]
        self.host, self.phase = host, phase
        self.process = subprocess.Popen(
            argv, stdin=(_HERE / "watch.py").open("rb"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def wait(self, play: Play) -> int:
        """Until the moment came in this run; the module's pid. Raises Missed where it did not, or was over."""
        while self.process.poll() is None:
            if play.process.poll() is not None:
                time.sleep(2)  # the moment may have been the last one of the run
                self.end()
            time.sleep(0.02)
        out, err = self.process.communicate()
        found = json.loads(out or "null")
        if found is None or found["phase"] != self.phase:
            if found is not None:
                self.host.root("kill", "-CONT", str(found["pid"]), check=False)
            play.wait()
            raise Missed(f"{self.phase}: {found} {err.strip()[-200:]} {play.text[-300:]}")
        return int(found["pid"])

    def end(self) -> None:
        """Nobody waits for it any more. (Killed, podman would leave it behind on the host; its time ends it.)"""
        self.process.kill()
        self.process.wait()


class Client:
    """A client.py that runs until ``samples`` ends it."""

    def __init__(self, host: Host, log: pathlib.Path) -> None:
        self.log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen([sys.executable, str(_HERE / "client.py"), host.box], stdout=out)

    def samples(self) -> list[dict[str, t.Any]]:
        """All of them so far; a line that is being written is none yet."""
        return [json.loads(line) for line in self.log.read_text().split("\n")[:-1]]

    def end(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


class Trial:
    """What a fault's function handles. ``play`` begins the run that is to meet the fault."""

    def __init__(self, host: Host, folder: pathlib.Path) -> None:
        self.host = host
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.before = host.running() or host.target_pair()
        self.asked = next(pair for pair in PAIRS if pair != self.before)
        self.limit = host.name
        self._plays = 0
        self._held = 0
        self._watches: list[Watch] = []
        self._endings: list[t.Callable[[], object]] = []
        self.mended: list[str] = []  # what of the host itself had to be brought back, in words
        self.client = Client(host, folder / "client.jsonl")

    @property
    def request(self) -> list[str]:
        """What the run asks for."""
        return ["-e", f"weights_mib={self.asked[0]}", "-e", f"kv_mib={self.asked[1]}"]

    def play(self, *more: str, plain: bool = False, wrap: t.Sequence[str] = ()) -> Play:
        """Begin a run; ``plain`` asks for nothing."""
        self._plays += 1
        words = [*([] if plain else self.request), *more]
        return Play(self.folder / f"run{self._plays}.log", self.limit, words, wrap)

    def play_until(self, phase: str, *more: str, count: int = 1, how: str = "look") -> Play:
        """Begin a run, and return as soon as its switch has begun the phase for the ``count``-th time.

        ``how``: ``kill``, and the module was killed there, or ``hold``, and it stands still until ``go_on``. Raises
        Missed where that moment did not come.
        """
        watch = Watch(self.host, phase, count, how)
        self._watches.append(watch)
        time.sleep(1.0)  # until it has read what there was before
        play = self.play(*more)
        self._held = watch.wait(play)
        if how == "hold":
            self.at_end(self.go_on)
        return play

    def go_on(self) -> None:
        """Let the module that was held go on."""
        self.host.root("kill", "-CONT", str(self._held), check=False)

    def arm(self, *faults: str) -> None:
        """Have the engine's boots after the present one meet these, in this order."""
        self.host.write(f"{self.host.home}/models/flashnext.faults.json", json.dumps(list(faults)))

    def disarm(self) -> None:
        """Nothing is armed any more."""
        self.host.owner("rm", "-f", f"{self.host.home}/models/flashnext.faults.json")

    def settle(self) -> str:
        """Wait until something serves or nothing is going to; which pair it is, in words."""
        end = time.monotonic() + SERVES_AGAIN_SECONDS
        idle = 0
        while time.monotonic() < end:
            last = self.client.samples()[-1:]
            if last and last[0]["good"] and time.monotonic() - last[0]["at"] < 1.5:
                break
            idle = 0 if self.host.inspect() or self.host.active() else idle + 1
            if idle >= 3:
                return "nothing"
            time.sleep(1.0)
        else:
            return "nothing"
        return {self.before: "the old pair", self.asked: "the new pair"}.get(
            self.host.running() or (0, 0), "another pair"
        )

    def at_end(self, undo: t.Callable[[], object]) -> None:
        """Have this done between the next run and the one that changes nothing."""
        self._endings.append(undo)

    def undo(self) -> None:
        """Do what ``at_end`` was told, the last first."""
        while self._endings:
            self._endings.pop()()

    def check(self) -> list[str]:
        """What is not as it has to be once everything is over."""
        bad = []
        self.settle()
        samples = self.client.samples()
        if any(sample["wrong"] for sample in samples):
            bad.append("wrong answers")
        if not samples or not samples[-1]["good"]:
            bad.append("does not serve at the end")
        for name in self.limit.split(","):
            bad += self._check_host(self.host if name == self.host.name else Host(name))
        return bad

    def _check_host(self, host: Host) -> list[str]:
        bad = []
        pairs = {"runs": host.running(), "target": host.target_pair(), "fleet": host.fleet_pair()}
        if len(set(pairs.values())) != 1:
            bad.append(f"the pairs on {host.name} differ: {pairs}")
        if host.engines() != 1:
            bad.append(f"{host.engines()} engines")
        bad += [f"left: {path}" for path in host.leftovers()]
        bad += [f"held: {path}" for path in host.held_locks()]
        for where, lines in host.records().items():
            for line in lines:
                try:
                    jsonschema.validate(json.loads(line), _RECORD)
                except (ValueError, jsonschema.ValidationError) as error:
                    bad.append(f"a line of the record on the {where}: {str(error)[:100]}")
        return bad

    def close(self) -> None:
        """End what this has begun."""
        self.undo()
        for watch in self._watches:
            watch.end()
        self.client.end()

    def outage(self) -> float:
        """What its client has seen."""
        return without_service(self.client.samples())


def results_folder() -> pathlib.Path:
    """Where the results and the logs of every run are."""
    return state_folder() / "faults"
