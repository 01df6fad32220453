# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One test host of extensions/hosts with the service of the scenario `hosts`, seen and handled past the collection."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import typing as t

Pair = tuple[int, int]
A, B = "dankserver-a", "dankserver-b"  # the service of the system, and the one of a user

IMAGES = ("localhost/radiance:1.2.4", "localhost/radiance:1.0.13")
CHECKOUT = pathlib.Path(__file__).resolve().parents[3]
# The kernel gives a boot id to the machine alone. A rootless container cannot mount its /proc where something lies on
# that of the host, so a user's host keeps the machine's. Its chown is what hosts.sh does once a host is up: too late.
_BOOT_UNIT = "/etc/systemd/system/hosts-boot.service"
_BOOT = """[Unit]
Description=Another boot of a machine
DefaultDependencies=no
Before=systemd-journald.service sysinit.target
[Service]
Type=oneshot
{}
[Install]
WantedBy=sysinit.target
"""
_BOOT_STEPS = {
    "system": """ExecStart=/bin/sh -c 'cat /proc/sys/kernel/random/uuid >/run/boot_id'
ExecStart=/bin/mount --bind /run/boot_id /proc/sys/kernel/random/boot_id""",
    "user": "ExecStart=/bin/chown kvfleet /sys/fs/cgroup",
}
_OWN = ("lock", "progress.jsonl", "records.jsonl", "receipts", "backup")


def state_folder() -> pathlib.Path:
    """Where hosts.sh keeps the inventory and where the fleet directory is."""
    return pathlib.Path(os.environ["KVFLEET_HOSTS_STATE"])


def pair_of(env: str) -> Pair:
    """The pair that the text of an env file states."""
    values = dict(line.split("=", 1) for line in env.splitlines() if line and not line.startswith("#"))
    return int(values["VRAM_WEIGHTS_MIB"]), int(values["VRAM_KV_MIB"])


class Host:
    """A host by its name in the inventory."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.scope = "user" if name.endswith("-b") else "system"
        self.home = "/home/kvfleet/radiance" if self.scope == "user" else "/srv/radiance"
        self.units = "/home/kvfleet/.config/systemd/user" if self.scope == "user" else "/etc/systemd/system"
        self.state = f"{self.home}/.kvfleet/flashnext"
        self.env = f"{self.home}/scripts/flashnext.{name}.env"
        self.serve = f"{self.home}/scripts/serve-flashnext.{name}.sh"
        self.drop_ins = f"{self.units}/flashnext.service.d"
        wanted = ["--filter", f"label=kvfleet.hosts={state_folder()}", "--format", "{{.Names}}"]
        found = subprocess.check_output(["podman", "--log-level", "error", "ps", "--all", *wanted], text=True).split()
        self.box = next(box for box in found if box.endswith(name))

    def root(self, *argv: str, check: bool = True, stdin: str | None = None) -> str:
        """Run it as the host's root; its output."""
        words = ["podman", "--log-level", "error", "exec", *(["-i"] if stdin is not None else []), self.box, *argv]
        done = subprocess.run(words, input=stdin, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise RuntimeError(f"{self.name}: {' '.join(argv)[:200]}: {done.stderr.strip()}")
        return done.stdout

    def owner(self, *argv: str, check: bool = True, stdin: str | None = None) -> str:
        """Run it as who owns the service."""
        if self.scope == "system":
            return self.root(*argv, check=check, stdin=stdin)
        bus = ["XDG_RUNTIME_DIR=/run/user/1000", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus"]
        become = ["runuser", "-u", "kvfleet", "--", "env", "-C", "/home/kvfleet", *bus]
        return self.root(*become, *argv, check=check, stdin=stdin)

    def power_on(self) -> None:
        """Have the host run; one that runs is left alone."""
        subprocess.run(["podman", "--log-level", "error", "start", self.box], check=True, stdout=subprocess.DEVNULL)

    def complaint(self, *argv: str) -> str:
        """Run it as who owns the service; why it failed, empty where it did not."""
        try:
            self.owner(*argv)
        except RuntimeError as error:
            return str(error)
        return ""

    def healthy(self) -> bool:
        """Whether the endpoint answers inside the host."""
        ask = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=2)"
        return not self.complaint("python3", "-c", ask)

    def systemctl(self, *argv: str, check: bool = True) -> str:
        """Ask the systemd that has the unit."""
        return self.owner("systemctl", f"--{self.scope}", *argv, check=check)

    def write(self, path: str, text: str) -> None:
        """Write a file as who owns the service."""
        self.owner("sh", "-c", 'mkdir -p "${1%/*}" && cat >"$1"', "sh", path, stdin=text)

    def inspect(self) -> dict[str, t.Any] | None:
        """The container of the service as podman shows it; None where there is none that runs."""
        shown = self.owner("podman", "container", "inspect", "flashnext", check=False)
        found = json.loads(shown)[0] if shown.strip() not in ("", "[]") else None
        return found if found and found["State"]["Running"] else None

    def prepare(self) -> None:
        """Let a restart of the container be another boot of a machine, from its first moment."""
        boot = _BOOT.format(_BOOT_STEPS[self.scope])
        self.root("sh", "-c", 'cat >"$1" && systemctl enable --quiet "${1##*/}"', "sh", _BOOT_UNIT, stdin=boot)

    def running(self) -> Pair | None:
        """The pair on the command line of the engine that runs."""
        found = self.inspect()
        if found is None:
            return None
        words = found["Args"]
        weights, pool = (int(words[words.index(name) + 1]) for name in ("--vram-weights-mib", "--vram-kv-mib"))
        return weights, pool

    def other_image(self) -> str:
        """The tag of the image that does not run."""
        runs = (self.inspect() or {"Image": ""})["Image"]
        ids = {tag: self.owner("podman", "image", "inspect", "--format", "{{.Id}}", tag).strip() for tag in IMAGES}
        return next(tag for tag, found in ids.items() if found != runs)

    def active(self) -> bool:
        """Whether systemd has the unit up, or about to be."""
        return self.systemctl("is-active", "flashnext.service", check=False).strip() not in ("failed", "inactive")

    def engines(self) -> int:
        """The engines that run on this host, whoever started them."""
        return int(self.root("sh", "-c", "pgrep -cx radiance || true").strip() or 0)

    def target_pair(self) -> Pair:
        """What the env of the target directory states."""
        return pair_of(self.root("cat", self.env))

    def fleet_pair(self) -> Pair:
        """What the env of the fleet directory states."""
        return pair_of((state_folder() / "fleet/scripts" / f"flashnext.{self.name}.env").read_text())

    def leftovers(self) -> list[str]:
        """What a switch may have had for itself and must not leave: journal, staged files, backups, drop-ins."""
        found = self.root("find", self.state, "-mindepth", "1", "!", "-path", "*/receipts/*").split()
        stray = [path for path in found if os.path.relpath(path, self.state) not in _OWN]
        listed = self.root("find", f"{self.home}/scripts", "-mindepth", "1").split()
        stray += [path for path in listed if path not in (self.env, self.serve)]
        stray += self.root("sh", "-c", f"ls -d {self.drop_ins}/* 2>/dev/null || true").split()
        for path in (state_folder() / "fleet").rglob("*"):
            parts = path.relative_to(state_folder() / "fleet").parts
            if parts[0] != ".kvfleet" and path.name.startswith("."):
                stray.append(f"fleet/{'/'.join(parts)}")
        return stray

    def held_locks(self) -> list[str]:
        """The locks of the state directory that somebody holds."""
        test = 'for lock in "$1"/*.lock "$2"/lock; do flock -n "$lock" true || echo "$lock"; done'
        return self.root("sh", "-c", test, "sh", os.path.dirname(self.state), self.state).split()

    def records(self) -> dict[str, list[str]]:
        """The lines of the record, on the target and in the fleet directory."""
        fleet = state_folder() / "fleet/records" / f"flashnext.{self.name}.jsonl"
        return {
            "target": self.root("cat", f"{self.state}/records.jsonl").splitlines(),
            "fleet": fleet.read_text().splitlines() if fleet.exists() else [],
        }
