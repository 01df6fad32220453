# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the programs of a host share: its folder ``host/`` beside ``programs/``, which holds what it knows::

calls            each call: the program's name and its words
fails.NAME       so many calls of a program that asks only do fail; -1: all of them
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

# A program is started some fifty times a switch, so that each import counts.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

HOST = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "host")
TICK = 0.02


def path(*names: str) -> str:
    return os.path.join(HOST, *names)


def load(*names: str) -> t.Any:
    try:
        with open(path(*names), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def put(value: t.Any, *names: str) -> None:
    new = f"{path(*names)}.{os.getpid()}"
    with open(new, "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(new, path(*names))


def remove(*names: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path(*names))


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def some_id(length: int) -> str:
    return os.urandom(length // 2).hex()


def fails(name: str) -> bool:
    """Whether this call is one of those that are to fail."""
    left = load("fails." + name) or 0
    if left > 0:
        put(left - 1, "fails." + name)
    return bool(left)


def end(status: int, says: str) -> t.NoReturn:
    sys.stderr.write(says + "\n")
    sys.exit(status)


def called(name: str, words: list[str]) -> None:
    with open(path("calls"), "a", encoding="utf-8") as file:
        file.write("{} {}\n".format(name, " ".join(words)))
