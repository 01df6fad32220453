# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each program that reads env files makes of one, asked of the real programs of the machine that this runs on.

    env_readers.py [FILE]

Holds them to env_cases.py, and ends with status 1 where one differs. Prints what each makes of the FILE, as JSON.

The shells start from an empty environment. systemd runs a command with EnvironmentFile=; podman and docker create a
container, which is never started, and tell its environment. docker is asked where DOCKER_IMAGE names an image for it.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

import env_cases

Values = dict[str, str]
Reader = Callable[[str], Values]
# What the programs set of themselves, with a file or without.
OWN = frozenset(["_", "PWD", "OLDPWD", "SHLVL", "PATH", "TERM", "HOME", "HOSTNAME", "LANG", "LOGNAME", "container"])
# What systemctl --user and a rootless podman have to be told.
USER = {name: os.environ[name] for name in ("XDG_RUNTIME_DIR", "HOME", "PATH") if name in os.environ}


class Refused(Exception):
    """A reader ended in an error, or complained."""


def run(*argv: str) -> bytes:
    """What a command prints. Raises Refused with its words where it fails or complains."""
    done = subprocess.run(argv, check=False, capture_output=True, timeout=120, env=USER)
    said = done.stderr.decode("utf-8", "replace").strip()
    # bash tells of a NUL that it drops.
    if done.returncode or (said and "ignored null byte" not in said):
        raise Refused(said or f"status {done.returncode}")
    return done.stdout


def pairs(items: list[str]) -> Values:
    """NAME=value by its name, without what is there anyway."""
    found = dict(item.partition("=")[::2] for item in items if item)
    return {name: value for name, value in found.items() if name not in OWN}


def environment(text: bytes) -> Values:
    """What ``env -0`` prints."""
    return pairs(text.decode("utf-8", "surrogateescape").split("\0"))


def shell(name: str) -> Reader:
    """A shell that sources the file."""

    def read(path: str) -> Values:
        script = 'set -e -a; . "$1"; exec /usr/bin/env -0'
        return environment(run("/usr/bin/env", "-i", "PATH=/usr/bin:/bin", name, "-c", script, name, path))

    return read


def systemd(path: str) -> Values:
    """A unit with this EnvironmentFile=, of the user where that is not root."""
    scope = "--system" if os.geteuid() == 0 else "--user"
    command = ["systemd-run", scope, "--quiet", "--wait", "--pipe", "--collect"]
    without = environment(run(*command, "/usr/bin/env", "-0"))
    found = environment(run(*command, f"--property=EnvironmentFile={path}", "/usr/bin/env", "-0"))
    return {name: value for name, value in found.items() if name not in without}


def container(program: str) -> Reader:
    """A container with this --env-file."""

    def read(path: str) -> Values:
        with tempfile.TemporaryDirectory() as folder:
            root = [os.environ["DOCKER_IMAGE"]] if program == "docker" else ["--rootfs", folder]
            number = run(program, "create", "--env-file", path, *root, "/true").decode().strip()
            try:
                told = json.loads(run(program, "container", "inspect", number))
            finally:
                run(program, "rm", number)
        return pairs(told[0]["Config"]["Env"])

    return read


def readers() -> dict[str, Reader]:
    """Those that are there, by their names."""
    found = {name: shell(name) for name in ("sh", "bash", "zsh") if shutil.which(name)}
    if os.path.isdir("/run/systemd/system"):
        found["systemd"] = systemd
    if shutil.which("podman"):
        found["podman"] = container("podman")
    if "DOCKER_IMAGE" in os.environ:
        found["docker"] = container("docker")
    return found


def told(read: Reader, text: bytes) -> Values | str:
    """What a reader makes of this text: values, or why it refuses them."""
    with tempfile.NamedTemporaryFile(suffix=".env") as file:
        file.write(text)
        file.flush()
        os.chmod(file.name, 0o644)
        try:
            return read(file.name)
        except Refused as error:
            return f"refused: {error}"


def differences(name: str, read: Reader) -> Iterator[str]:
    """Where a reader does not do what env_cases.py says."""
    # What it takes stands in one file: a container takes its time.
    taken = [case for case in env_cases.CASES if case.told(name) is not None]
    text = b"".join(case.text for case in taken) + env_cases.KEPT
    wanted = {key: value for case in taken for key, value in (case.told(name) or {}).items()} | env_cases.KEPT_VALUES
    found = told(read, text)
    if found != wanted:
        yield f"{name} made {short(found)} of what it takes, not {short(wanted)}"
    for case in env_cases.CASES:
        if case.told(name) is None:
            found = told(read, case.text)
            # systemd does not start the unit, or leaves that line out.
            if not isinstance(found, str):
                yield f"{name} made {short(found)} of {short(case.text)}, which it refuses"


def short(value: object) -> str:
    """Without what makes it long."""
    return repr(value).replace(50 * "x", "").replace("xxxx", "")


def main(paths: list[str]) -> int:
    there = readers()
    found = [says for name, read in there.items() for says in differences(name, read)]
    print("\n".join(found), file=sys.stderr)
    for path in paths:
        text = pathlib.Path(path).read_bytes()
        print(json.dumps({name: told(read, text) for name, read in there.items()}))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
