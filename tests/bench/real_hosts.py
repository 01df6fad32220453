# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real test hosts for a bench, with the service of the molecule scenario on them, and Ansible's way to them."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import typing as t

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
SCRIPT = str(ROOT / "extensions" / "hosts" / "hosts.sh")
# The host of a unit of the system, and that of a user's: how systemd and podman are asked, and where the service lies.
SYSTEMCTL = {"dankserver-a": ["sudo", "systemctl"], "dankserver-b": ["systemctl", "--user"]}
PODMAN = {"dankserver-a": ["sudo", "podman"], "dankserver-b": ["podman"]}
HOMES = {"dankserver-a": "/srv/radiance", "dankserver-b": "/home/kvfleet/radiance"}
BOOT_LIMIT = 600


class Service:
    """The service of the two hosts, whose engine takes so long to load."""

    def __init__(self, folder: pathlib.Path, load_seconds: float) -> None:
        state = os.environ["KVFLEET_HOSTS_STATE"]
        self.control = pathlib.Path(state, "control")
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
            "ANSIBLE_NOCOLOR": "1",
            "MOLECULE_PROJECT_DIRECTORY": str(ROOT),
        }
        scenario = ROOT / "extensions" / "molecule" / "hosts" / "inventory" / "hosts.yml"
        # What the scenario declares, given the time that the service takes here.
        services = yaml.safe_load(scenario.read_text())["all"]["children"]["inference"]["vars"]["endpoint_services"]
        services[0]["timeouts"]["ready"] = BOOT_LIMIT
        declared = folder / "services.json"
        declared.write_text(json.dumps({"endpoint_services": services}))
        self._told = ["-i", f"{state}/inventory.yml", "-i", str(scenario), "-e", f"@{declared}"]
        self.ssh("dankserver-b", "mkdir", "-p", ".config/systemd/user")
        prepare = ("extensions/molecule/hosts/prepare.yml", "--start-at-task", "Say what the service starts with")
        self.ansible("ansible-playbook", *prepare)
        world = json.dumps({"load_seconds": load_seconds, "load_speedup": 1, "serve_speedup": 20})
        for host, home in HOMES.items():
            self.ssh(host, "sudo", "tee", f"{home}/models/flashnext.world.json", told=world)

    def ansible(self, program: str, *words: str) -> str:
        """What one run of Ansible printed; it has to end well."""
        argv = [str(BIN / program), *self._told, *words]
        done = subprocess.run(argv, cwd=ROOT, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(argv)}\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
        return done.stdout

    def ssh(self, host: str, *words: str, told: str = "") -> str:
        argv = [SCRIPT, "ssh", host, *words]
        return subprocess.run(argv, input=told, capture_output=True, text=True, check=True).stdout

    def hang_up(self) -> None:
        """The next run of Ansible begins without a connection."""
        for socket in self.control.glob("*"):
            subprocess.run(["ssh", "-o", f"ControlPath={socket}", "-O", "exit", "x"], capture_output=True, check=False)


@contextlib.contextmanager
def service(load_seconds: float) -> t.Iterator[Service | None]:
    """The service on hosts that are up, and stay; or on hosts that are brought up and taken down. None: not here."""
    if subprocess.run([SCRIPT, "check"], check=False).returncode:
        print("not tried: the test hosts cannot be on this machine")
        yield None
        return
    with contextlib.ExitStack() as stack:
        told = os.environ.get("KVFLEET_HOSTS_STATE")
        if not told or not pathlib.Path(told, "inventory.yml").is_file():
            os.environ["KVFLEET_HOSTS_STATE"] = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="kvfleet-bench-hosts-", ignore_cleanup_errors=True)
            )
            stack.callback(subprocess.run, [SCRIPT, "down"], check=False)
            subprocess.run([SCRIPT, "up"], check=True, stdout=subprocess.DEVNULL)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kvfleet-bench-"))
        yield Service(pathlib.Path(folder), load_seconds)
