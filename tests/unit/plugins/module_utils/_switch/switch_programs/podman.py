# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has of podman, as far as a switch asks it: containers run the rehearsal engine. In ``host/``::

gone_images      names of images that podman does not have (any more)
images.json      NAME: {digest, engine}, of images that are not the one that all others are
engine.json      the command line of a container's entry point
containers/      NAME.json, ID.log and ID.exit
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time

from host import TICK, alive, called, end, fails, load, path, put, remove, some_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

DIGEST = "sha256:" + "5d" * 32


def podman(words: list[str]) -> None:
    while words[0].startswith("--"):
        words.pop(0)
    if words[0] == "run":
        run(words[1:])
    if fails("podman"):
        end(125, "Error: database is locked")
    if words[:2] == ["container", "inspect"]:
        print(json.dumps([inspect(container(words[-1]))]))
    elif words[:2] == ["image", "inspect"]:
        if words[-1] in (load("gone_images") or []):
            end(125, f"Error: {words[-1]}: image not known")
        digest = image(words[-1]).get("digest", DIGEST)
        name = words[-1].partition("@")[0].rpartition(":")[0] or words[-1].partition("@")[0]
        print(json.dumps([{"Id": "7a" * 32, "Digest": digest, "RepoDigests": [f"{name}@{digest}"], "Config": {}}]))
    elif words[0] == "logs":
        logs(container(words[-1]))
    elif words[0] == "ps":
        for name in sorted(os.listdir(path("containers"))):
            if name.endswith(".json"):
                print(name[:-5])
    else:
        end(125, f"Error: unrecognized command `podman {words[0]}`")


def image(name: str) -> dict[str, t.Any]:
    """What is told of an image apart; its digest is a name of it too."""
    known: dict[str, dict[str, t.Any]] = load("images.json") or {}
    by_digest = (told for told in known.values() if told.get("digest") == name.rpartition("@")[2])
    return known.get(name) or next(by_digest, {})


def container(name: str) -> dict[str, t.Any]:
    for entry in os.listdir(path("containers")):
        if entry.endswith(".json"):
            found: dict[str, t.Any] | None = load("containers", entry)
            if found and name in (found["name"], found["id"]):
                return found
    end(125, f'Error: no such container "{name}"')


def inspect(found: dict[str, t.Any]) -> dict[str, t.Any]:
    runs = alive(found["pid"])
    return {
        "Id": found["id"],
        "Name": found["name"],
        "Path": "/usr/bin/radiance",
        "Args": found["args"],
        "Image": "7a" * 32,
        "ImageDigest": found["digest"],
        "RestartCount": 0,
        "Config": {"Image": found["image"]},
        "HostConfig": {"LogConfig": {"Type": found["driver"]}},
        "State": {
            "Running": runs,
            "Paused": False,
            "Pid": found["pid"] if runs else 0,
            "StartedAt": found["started"],
            "FinishedAt": "0001-01-01T00:00:00Z",
        },
    }


def logs(found: dict[str, t.Any]) -> None:
    if found["driver"] in ("none", "passthrough"):
        end(125, "Error: this container is using the '{}' log driver, cannot read logs".format(found["driver"]))
    with open(path("containers", found["id"] + ".log"), encoding="utf-8") as file:
        sys.stderr.write(file.read())


def run(words: list[str]) -> t.NoReturn:
    options = {}
    while words[0].startswith("-"):
        name = words.pop(0)
        options[name] = words.pop(0) if name in ("--name", "--log-driver") else ""
    name, reference, args = options["--name"], words[0], words[1:]
    old = load("containers", name + ".json")
    if old is not None:
        if "--replace" not in options:
            end(125, f'Error: the container name "{name}" is already in use')
        if alive(old["pid"]):
            os.kill(old["pid"], signal.SIGKILL)
        while not os.path.exists(path("containers", old["id"] + ".exit")):
            time.sleep(TICK)
        remove("containers", name + ".json")
    found: dict[str, t.Any] = {
        "id": some_id(64),
        "name": name,
        "image": reference,
        "digest": image(reference).get("digest", DIGEST),
        "args": args,
        "driver": options.get("--log-driver", "journald"),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime()) + "123456789Z",
        "pid": 0,
    }
    log, ended = path("containers", found["id"] + ".log"), path("containers", found["id"] + ".exit")
    with open(log, "wb"):
        pass
    stop: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    conmon = os.fork()
    if conmon == 0:
        keep(found, "--rm" in options)
    if "-d" in options:
        print(found["id"], flush=True)
        os._exit(0)
    sent = False
    with open(log, "rb") as source:
        while True:
            over = os.path.exists(ended)
            copied = source.read()
            if found["driver"] != "passthrough":
                sys.stderr.buffer.write(copied)
                sys.stderr.flush()
            if over:
                os._exit(load("containers", found["id"] + ".exit"))
            pid = (load("containers", name + ".json") or found)["pid"]
            if stop and not sent and pid:
                sent = True
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            time.sleep(TICK)


def keep(found: dict[str, t.Any], is_removed: bool) -> t.NoReturn:
    """What stays with a container when its client is killed."""
    import subprocess

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    for number in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    with open(path("containers", found["id"] + ".log"), "ab") as log:
        engine = subprocess.Popen(
            [*(image(found["image"]).get("engine") or load("engine.json")), *found["args"]],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    put({**found, "pid": engine.pid}, "containers", found["name"] + ".json")
    status = engine.wait()
    if is_removed:
        remove("containers", found["name"] + ".json")
        remove("containers", found["id"] + ".log")
    put(status if status >= 0 else 128 - status, "containers", found["id"] + ".exit")
    os._exit(0)


def main(name: str) -> None:
    words = sys.argv[1:]
    called(name, words)
    podman(words)
