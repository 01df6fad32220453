# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real runs of ansible-playbook against the test hosts."""

from __future__ import annotations

import os
import pathlib
import re
import signal
import subprocess
import sys
import typing as t

from hosts import CHECKOUT, state_folder

_SECONDS = 900


class Play:
    """One run of resize.yml, in a process group of its own; what it prints goes into a file."""

    def __init__(self, log: pathlib.Path, limit: str, words: t.Sequence[str], wrap: t.Sequence[str] = ()) -> None:
        self.log = log
        scenario = CHECKOUT / "extensions/molecule/hosts/inventory/hosts.yml"
        sources = [f"--inventory={state_folder()}/inventory.yml", f"--inventory={scenario}"]
        playbook = pathlib.Path(sys.executable).with_name("ansible-playbook")
        argv = [*wrap, str(playbook), *sources, "--limit", limit, "-e", "probes=none", *words, "resize.yml"]
        environment = {
            **os.environ,
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_TIMEOUT": "60",  # of a machine with other work
            "MOLECULE_PROJECT_DIRECTORY": str(CHECKOUT),
            "PATH": f"{playbook.parent}:{os.environ['PATH']}",
        }
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                argv,
                cwd=CHECKOUT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment,
                start_new_session=True,
            )

    def wait(self) -> Play:
        """Wait for its end."""
        try:
            self.process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return self

    def kill(self) -> None:
        """SIGKILL to it and to its workers: the controller is gone."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def code(self) -> int:
        """The status of its exit."""
        return t.cast("int", self.process.returncode)

    @property
    def text(self) -> str:
        """What it has printed."""
        return self.log.read_text(errors="replace")

    def changed(self) -> int:
        """How much it says that it changed, over all hosts."""
        return sum(int(number) for number in re.findall(r"changed=(\d+)", self.text))

    def says(self, host: str) -> str:
        """What it says of a switch that was interrupted, and the line with which it sums up, for the host."""
        told = re.search(rf"Tell what became of it\].*?\[{host}\].*?msg: (.*?)\n\n", self.text, re.DOTALL)
        summed = self.text.rpartition("Show the summary")[2]
        line = re.search(rf"^ *{host} +(\S.*?)\n(?=\S|\n| *dankserver)", summed, re.MULTILINE | re.DOTALL)
        said = [" ".join(found[1].split()).strip(" |>-'\"") for found in (told, line) if found]
        return re.sub(r" of \d{4}-\S+Z", "", " ".join(said))
