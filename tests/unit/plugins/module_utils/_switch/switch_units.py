# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that a unit starts and a container holds: the engine, its client and the switch are real processes, and
systemd and podman are the stand-ins of ``switch_programs``."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import typing as t

from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    ENGINE,
    Service,
    env_text,
    wait_until,
)

# Asked with the command line of each program that a run is about to call.
Moment = t.Callable[[list[str]], bool]
SERVE = """#!/bin/sh
set -a
. {folder}/flash.env
exec podman run {options} "${{IMAGE:-localhost/radiance:1.0.13}}" \\
  --model {folder}/flash.rad --tp 2 --host 127.0.0.1 --port {port} \\
  ${{VRAM_WEIGHTS_MIB:+--vram-weights-mib "$VRAM_WEIGHTS_MIB"}} ${{VRAM_KV_MIB:+--vram-kv-mib "$VRAM_KV_MIB"}} \\
  --max-num-seqs "$MAX_NUM_SEQS" \\
  --max-model-len "$MAX_MODEL_LEN" --kv-cache-dtype fp8 --num-speculative-tokens 2 --host-pool-mib 16384
"""
# Each with the module of ``switch_programs`` that it is.
PROGRAMS = {"systemctl": "systemd", "journalctl": "systemd", "loginctl": "systemd", "podman": "podman"}
RUN = "--rm --replace --name flash --log-driver journald"


class UnitService(Service):
    """One unit of a user with its container, in a folder of its own. Its programs have to be the first in the PATH."""

    def __init__(self, folder: pathlib.Path) -> None:
        super().__init__(folder)
        self.host = folder / "host"
        self.programs = folder / "programs"
        for path in (self.programs, self.host / "asked", self.host / "journal", self.host / "containers"):
            path.mkdir(parents=True)
        for source in (pathlib.Path(__file__).parent / "switch_programs").glob("*.py"):
            shutil.copy(source, self.programs)
        for name, module in PROGRAMS.items():
            # Quick to start: it needs neither site-packages nor what the environment says of Python.
            text = f"#!{sys.executable} -SE\nimport {module}\n\n{module}.main({name!r})\n"
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(0o755)
        self.user = ["--user"]
        self.tell("engine.json", [sys.executable, "-S", "-E", str(ENGINE)])
        self.unit()
        self.serve.write_text(self.script())

    def tell(self, name: str, value: t.Any) -> None:
        """Put something where the programs look."""
        (self.host / name).write_text(json.dumps(value))

    def unit(self, **fields: t.Any) -> None:
        """The unit, with what it is to have beside its name and its program."""
        self.tell(
            "unit.json",
            {"name": "flash.service", "scope": "user", "exec": [str(self.serve)], "forgets": True, **fields},
        )

    def script(self, options: str = RUN) -> str:
        """The serve script with these options of ``podman run``."""
        return SERVE.format(folder=self.folder, port=self.port, options=options)

    def image(self, name: str, digest: str, own: dict[str, t.Any], said: tuple[str, str] | None = None) -> None:
        """An image with an engine that has fields of its own, and that says something in other words."""
        folder = self.folder / "images" / digest[-4:]
        for part in ("engine", "worlds"):
            shutil.copytree(ENGINE.parent / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ENGINE, folder)
        (folder / "own.world.json").write_text(json.dumps(own))
        for path in (folder / "engine").glob("*.py"):
            if said is not None and said[0] in path.read_text():
                path.write_text(path.read_text().replace(*said))
        path = self.host / "images.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        engine = [sys.executable, "-S", "-E", str(folder / "radiance.py")]
        self.tell("images.json", {**known, name: {"digest": digest, "engine": engine}})

    def options(self, to: dict[str, t.Any] | None = None, **more: t.Any) -> dict[str, t.Any]:
        """The module's options; see ``Service.options``."""
        units = {"manager": "systemd_user", "source": "podman", "unit": None, "name": None}
        return super().options(to, **{**units, **more})

    def systemctl(self, *words: str) -> str:
        """What a person types."""
        argv = [str(self.programs / "systemctl"), *self.user, *words, "flash.service"]
        return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout

    def podman(self, *words: str) -> str:
        """What a person types."""
        argv = [str(self.programs / "podman"), *words]
        return subprocess.run(argv, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout

    def start_old(self) -> None:
        """Start the unit, as its host does when it boots."""
        self.systemctl("start")
        wait_until(self.serves)

    def told(self) -> dict[str, str]:
        """What systemctl tells of the unit."""
        return dict(line.partition("=")[::2] for line in self.systemctl("show", "--property=Id").splitlines())

    def engines(self) -> list[list[str]]:
        """The command line of each engine that lives, in whatever container."""
        found = []
        for pid in self.pids():
            try:
                argv = pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            except OSError:
                continue
            if any(word.endswith("/radiance.py") for word in argv):
                found.append(argv)
        return found

    def pid(self) -> int:
        """The pid of the engine in the container."""
        return int(json.loads((self.host / "containers" / "flash.json").read_text())["pid"])

    def pair(self) -> str | None:
        """The pair of the one engine that lives, like ``24000+5120``; None when none does."""
        engines = self.engines()
        assert len(engines) <= 1, "two engines hold the cards"
        if not engines:
            return None
        words = dict(zip(engines[0], engines[0][1:]))  # noqa: B905  Python 3.9
        return f"{words['--vram-weights-mib']}+{words['--vram-kv-mib']}"

    def calls(self, start: str) -> list[str]:
        """The calls of the programs that begin so, without what every call of systemctl has."""
        text = (self.host / "calls").read_text()
        for word in ("--user ", "--no-pager ", "--no-ask-password "):
            text = text.replace(word, "")
        return [line for line in text.splitlines() if line.startswith(start)]

    def journal_phase(self) -> str | None:
        """The phase in the journal of the switch, or None without one."""
        path = self.state / "journal.json"
        return str(json.loads(path.read_text())["phase"]) if path.exists() else None

    def check_whole(self, to: dict[str, t.Any]) -> None:
        """One unit, one container and one engine run, on this pair, and no switch is left to finish."""
        pair = f"{to['weights_mib']}+{to['kv_mib']}"
        assert (self.pair(), self.serves(), self.env.read_text()) == (pair, True, env_text(to))
        told = self.told()
        assert (told["ActiveState"], told["SubState"]) == ("active", "running")
        assert json.loads(self.podman("container", "inspect", "flash"))[0]["State"]["Pid"] == self.pid()
        assert self.journal_phase() is None
        assert list((self.state / "backup").iterdir()) == []

    def killed(self, is_moment: Moment, to: dict[str, t.Any] | None = None) -> None:
        """A switch (or without ``to`` a run that finishes one) that dies before it calls a program, by SIGKILL."""
        child = os.fork()
        if child == 0:

            def watch(event: str, args: tuple[t.Any, ...]) -> None:
                if event == "subprocess.Popen" and is_moment([str(word) for word in args[1]]):
                    os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(watch)
            try:
                self.run(to)
            finally:
                os._exit(0)
        _pid, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "it came to its end"

    def kill_all(self) -> None:
        """End everything, what would start it again included."""

        def none_is_left() -> bool:
            for pid in self.pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not self.pids()

        wait_until(none_is_left)


def before(*words: str, count: int = 1) -> Moment:
    """The moment before the call of that number that has all these words."""
    left = count

    def is_moment(argv: list[str]) -> bool:
        nonlocal left
        left -= set(words) <= set(argv)
        return left <= 0

    return is_moment


def after(*words: str, calls: int = 1) -> Moment:
    """The moment before the call of that number after the first one that has all these words."""
    left: int | None = None

    def is_moment(argv: list[str]) -> bool:
        nonlocal left
        if left is not None:
            left -= 1
        elif set(words) <= set(argv):
            left = calls
        return left == 0

    return is_moment
