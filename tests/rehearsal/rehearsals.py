# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A checkout of its own in which ./rehearse is run, and what is to be seen of it from outside.

Nothing here imports the collection: files, the process table and the engine's own log are what is looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = pathlib.Path(os.environ.get("REHEARSAL_TEST_VENV") or ROOT / ".venv")
LISTENING = "server: listening"


@dataclass
class Run:
    """What one ./rehearse came to. ``pids`` are the engines seen while it ran, in their order."""

    code: int
    text: str
    seconds: float
    pids: list[int] = field(default_factory=list)

    @property
    def words(self) -> str:
        """The text with every run of blanks as one, since tables and folded lines are laid out for a screen."""
        return re.sub(r"[\s\"]+", " ", self.text)


class Checkout:
    """A copy of the checkout with a .rehearsal of its own."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.state = path / ".rehearsal"
        listed = subprocess.run(
            ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
        ).stdout
        for name in os.fsdecode(listed).split("\0"):
            source = ROOT / name
            if not name or not os.path.lexists(source):
                continue
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, path / name, follow_symlinks=False)

    # ------------------------------------------------------------------------------------------------------- running

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """./rehearse in a session of its own, its output captured."""
        # Nothing of the tests' own Ansible settings reaches it.
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("ANSIBLE_", "PYTEST_", "PYTHON"))}
        return subprocess.Popen(
            ["./rehearse", *arguments],
            cwd=self.path,
            env={**environment, "ANSIBLE_NOCOLOR": "1", "REHEARSE_VENV": str(VENV)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def rehearse(self, *arguments: str, limit: float = 400) -> Run:
        """Runs ./rehearse to its end, and notes which engines were alive meanwhile."""
        began = time.monotonic()
        pids: list[int] = []
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.05):
                pid = self.engine()
                if pid and pid not in pids:
                    pids.append(pid)

        process = self.start(*arguments)
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            text, _none = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, _none = process.communicate()
            raise AssertionError(f"./rehearse {' '.join(arguments)} took more than {limit} s:\n{text}") from None
        finally:
            done.set()
            watcher.join()
        return Run(process.returncode, text, time.monotonic() - began, pids)

    def engine(self) -> int | None:
        """The pid of the engine, where one is alive."""
        try:
            pid = int((self.state / "engine.pid").read_text())
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError, IndexError):
            return None
        return pid if state != "Z" and any(word.endswith(b"radiance.py") for word in words) else None

    def stop(self) -> None:
        """Ends the engine, if a run left one."""
        pid = self.engine()
        if pid:
            os.kill(pid, signal.SIGKILL)

    # ------------------------------------------------------------------------------------------------ what is to see

    def one(self, pattern: str) -> pathlib.Path:
        """The only file below .rehearsal that matches."""
        found = sorted(self.state.glob(pattern))
        assert len(found) == 1, f"{pattern}: {found}"
        return found[0]

    def fleet_env(self) -> dict[str, str]:
        """The env in the fleet directory, read the plain way."""
        return read_env(self.one("fleet/scripts/*.env"))

    def target_env(self) -> dict[str, str]:
        """The env that the engine is started from."""
        return read_env(self.one("target/**/*.env"))

    def record(self) -> list[dict[str, Any]]:
        """The record in the fleet directory; empty where there is none yet."""
        lines: list[dict[str, Any]] = []
        for path in self.state.glob("fleet/records/*.jsonl"):
            lines += [json.loads(line) for line in path.read_text().splitlines()]
        return lines

    def kinds(self) -> list[str]:
        """The kinds of the entries of the record, in order."""
        return [entry["kind"] for entry in self.record()]

    def log(self) -> str:
        """All that the engines have printed."""
        return self.one("engine.log").read_text(errors="replace")

    def boots(self) -> int:
        """How many boots came to listen."""
        return self.log().count(LISTENING)

    def commit_fleet(self) -> None:
        """Makes a repository of the fleet directory, or commits what has changed in it."""
        self._git("init", "-q")
        self._git("add", "-A")
        self._git("-c", "user.name=t", "-c", "user.email=t", "commit", "-q", "--allow-empty", "-m", "as it is")

    def changed_in_fleet(self) -> set[str]:
        """The files of the fleet directory that git shows as new or changed."""
        shown = self._git("status", "--porcelain", "--untracked-files=all").splitlines()
        return {line[3:] for line in shown}

    def _git(self, *words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=self.state / "fleet", check=True, capture_output=True, text=True
        ).stdout

    def fleet_diffs(self, text: str) -> dict[str, list[str]]:
        """The lines that the diffs on a screen take away from and add to files of the fleet directory, by the file."""
        found: dict[str, list[str]] = {}
        lines: list[str] | None = None
        for line in text.splitlines():
            if line.startswith("+++ "):
                path = line.removeprefix("+++ after: ")
                fleet = f"{self.state}/fleet/"
                lines = found.setdefault(path.removeprefix(fleet), []) if path.startswith(fleet) else None
            elif not line.startswith(("+", "-", " ", "@@", "\\")) or line.startswith("--- "):
                lines = None
            elif lines is not None and line.startswith(("+", "-")):
                lines.append(line)
        return found

    def files(self, *, own: bool = True) -> dict[str, str]:
        """Every file of the fleet and the target directory with a hash of what it holds and its mode.

        What git keeps for itself is left out, and without ``own`` what is in .kvfleet: locks, journal and progress,
        staging and summary.
        """
        found = {}
        for top in ("fleet", "target"):
            for path in sorted((self.state / top).rglob("*")):
                if path.is_file() and ".git" not in path.parts and (own or ".kvfleet" not in path.parts):
                    mode = path.stat().st_mode & 0o7777
                    digest = hashlib.sha256(path.read_bytes()).hexdigest()
                    found[str(path.relative_to(self.state))] = f"{mode:o} {digest}"
        return found


def read_env(path: pathlib.Path) -> dict[str, str]:
    """KEY=value lines."""
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def until(condition: Callable[[], bool], limit: float, what: str) -> None:
    """Waits for a condition."""
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, f"not within {limit} s: {what}"
        time.sleep(0.02)
