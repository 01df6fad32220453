# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reading a boot costs: time against grep over the same bytes, and peak memory. Needs grep; podman is asked too.

    python3 tests/bench/ledger.py [--mib 1024] [--repeat 5] [--container-mib 512] [--folder FOLDER]

The logs are written into a folder of their own, which is removed at the end. A row has the best of the repetitions,
with the files in the page cache, and without the start of Python. ``grep`` is ``grep -c`` of one fixed string, the
listening line's; ``boots`` is ``grep -c`` for the lines that may begin a boot, which is what has to be found. A machine
that is busy with other things shows larger ratios. The exit status is 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOOT = (ROOT / "tests" / "unit" / "fixtures" / "logs" / "healthy-1.0.13.log").read_bytes()
MIB = 1024 * 1024
LONG_LINE_MIB = 100
# The goals: files against grep, an old container against a young one, memory.
TIMES_GREP, TIMES_YOUNG, PEAK_MIB = 2.0, 1.2, 64
REQUEST = b"I request %d: %d prompt tokens (%d cached), %d output tokens, %s\n"
LABEL = "kvfleet.bench"

READ = """
import sys, time
sys.path.insert(0, sys.argv[1])
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
began = time.perf_counter()
ledger = read_boot(sys.argv[2], **{sys.argv[3]: sys.argv[4]}).ledger
seconds = time.perf_counter() - began
with open("/proc/self/status") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
print(ledger["status"], seconds, peak)
"""


class Cost(t.NamedTuple):
    """Seconds, and peak memory in MiB."""

    seconds: float
    peak: float


def read(source: str, option: str, value: str) -> Cost:
    """One reading, in a process of its own."""
    argv = [sys.executable, "-c", READ, str(ROOT / "collections"), source, option, value]
    status, seconds, peak = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
    if status != "complete":
        raise SystemExit(f"{value} was read as {status}")
    return Cost(float(seconds), int(peak) / 1024)


def best(costs: t.Sequence[Cost]) -> Cost:
    """The shortest time, and the highest peak."""
    return Cost(min(cost.seconds for cost in costs), max(cost.peak for cost in costs))


def grep(pattern: str, path: pathlib.Path) -> float:
    """The time of one ``grep -c``, its start included: it is too short to matter."""
    began = time.perf_counter()
    argv = ["grep", "-cE", pattern, str(path)]
    subprocess.run(argv, check=True, stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"})
    return time.perf_counter() - began


def traffic(size: int) -> t.Iterator[bytes]:
    """So many bytes of lines for requests, a block again and again."""
    rows = (
        (n, 43_000 + n * 7 % 5_000, n * 64 % 40_000, 500 + n % 300, b"stop" if n % 5 else b"length")
        for n in range(14_000)
    )
    block = b"".join(REQUEST % row for row in rows)
    for _whole in range(size // len(block)):
        yield block
    rest = block[: size % len(block)]
    yield rest[: rest.rfind(b"\n") + 1]


def at_start(mib: int) -> t.Iterator[bytes]:
    yield BOOT
    yield from traffic(mib * MIB)


def at_end(mib: int) -> t.Iterator[bytes]:
    yield from traffic(mib * MIB)
    yield BOOT


def long_line(_mib: int) -> t.Iterator[bytes]:
    """Within the boot, so that it has to be passed over and what comes behind it be read."""
    head, tail = BOOT.split(b"I VRAM budget", 1)
    yield head + b"I "
    for _piece in range(LONG_LINE_MIB):
        yield b"request" * (MIB // 7)
    yield b"\nI VRAM budget" + tail


def records(mib: int) -> t.Iterator[bytes]:
    """A log as podman's k8s-file driver writes it."""
    record = b"2026-11-29T19:40:32.741234567+00:00 stderr F "
    for part in at_start(mib * 6 // 10):
        yield b"".join(record + line for line in part.splitlines(keepends=True))


def files(folder: pathlib.Path, mib: int, repeat: int) -> bool:
    """Print a row for each kind of file; whether all goals are met."""
    good = True
    print(f"{'file':28} {'MiB':>6} {'read/grep':>10} {'read/boots':>11} {'peak MiB':>9}   read s  grep s  boots s")
    kinds: list[tuple[str, t.Callable[[int], t.Iterator[bytes]], str]] = [
        ("boot at the start", at_start, "^(I device: |E )"),
        ("boot at the end", at_end, "^(I device: |E )"),
        ("a line of 100 MB in the boot", long_line, "^(I device: |E )"),
        ("records of k8s-file", records, " F (I device: |E )"),
    ]
    for name, parts, beginning in kinds:
        path = folder / "boot.log"
        with open(path, "wb") as file:
            file.writelines(parts(mib))
        # In turns, so that what else the machine does is not on one side.
        turns = [
            (grep("server: listening on", path), grep(beginning, path), read("file", "path", str(path)))
            for _turn in range(repeat)
        ]
        fixed, boots = min(turn[0] for turn in turns), min(turn[1] for turn in turns)
        cost = best([turn[2] for turn in turns])
        ratio = cost.seconds / fixed
        good = good and ratio <= TIMES_GREP and cost.peak <= PEAK_MIB
        print(
            f"{name:28} {path.stat().st_size / MIB:6,.0f} {ratio:10.2f} {cost.seconds / boots:11.2f} {cost.peak:9.1f}"
            f"   {cost.seconds:6.3f}  {fixed:6.3f}  {boots:6.3f}"
        )
        path.unlink()
    return good


def podman(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["podman", "--log-level", "error", *words], capture_output=True, text=True, check=False)


def image() -> str:
    """An image of this machine that has a shell; none is fetched."""
    told = os.environ.get("BENCH_IMAGE") or "localhost/kvfleet-host"
    found = podman("images", "--format", "{{.Repository}}:{{.Tag}}", "--filter", f"reference={told}").stdout.split()
    return found[0] if found else ""


@contextlib.contextmanager
def container(image_name: str, folder: pathlib.Path, mib: int) -> t.Iterator[str]:
    """A container that printed a boot, and so much traffic after it."""
    folder.mkdir()
    log, done = folder / "printed.log", folder / "done"
    with open(log, "wb") as file:
        file.writelines(at_start(mib))
    name = f"kvfleet-bench-{os.getpid()}-{folder.name}"
    script = "cat /bench/printed.log >&2; touch /bench/done; exec sleep 3600"
    try:
        began = podman(
            *("run", "--detach", "--name", name, "--label", LABEL, "--network", "none", "--log-driver", "k8s-file"),
            *("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", *runtime()),
            *("--volume", f"{folder}:/bench", "--entrypoint", "sh", image_name, "-c", script),
        )
        if began.returncode:
            raise RuntimeError(began.stderr.strip()[-300:])
        end = time.monotonic() + 300
        while not done.exists():
            if time.monotonic() > end:
                raise RuntimeError("the container did not print its log in 300 s")
            time.sleep(0.1)
        yield name
    finally:
        podman("rm", "--force", "--time", "0", "--ignore", name)


def runtime() -> list[str]:
    """crun wants rights that root of a machine that is a container itself has not."""
    return ["--runtime", "runc"] if os.geteuid() == 0 and shutil.which("runc") else []


def containers(folder: pathlib.Path, mib: int, repeat: int) -> bool:
    """Print a row for a young and for an old container; whether the goal is met, or nothing could be tried."""
    if not shutil.which("podman"):
        print("podman: not tried, it is not on this machine")
        return True
    name = image()
    if not name:
        print(
            "podman: not tried, no image with a shell is here. `extensions/hosts/hosts.sh build` makes one; "
            "BENCH_IMAGE names another"
        )
        return True
    try:
        with container(name, folder / "young", 0) as young, container(name, folder / "old", mib) as old:
            turns = [(read("podman", "name", young), read("podman", "name", old)) for _turn in range(4 * repeat)]
    except RuntimeError as error:
        print(f"podman: not tried, a container does not run here: {error}")
        return True
    fresh, aged = best([turn[0] for turn in turns]), best([turn[1] for turn in turns])
    print(f"\n{'container':28} {'MiB':>6} {'old/young':>10} {'':>11} {'peak MiB':>9}   read s")
    for word, size, cost in (("young", 0, fresh), ("old", mib, aged)):
        ratio = cost.seconds / fresh.seconds
        print(f"{word:28} {size:6,} {ratio:10.2f} {'':>11} {cost.peak:9.1f}   {cost.seconds:6.3f}")
    return aged.seconds <= TIMES_YOUNG * fresh.seconds and aged.peak <= PEAK_MIB


def main() -> int:
    """Exit status 0 where all goals are met."""
    parser = argparse.ArgumentParser(description="What reading a boot costs, against grep over the same bytes.")
    parser.add_argument("--mib", type=int, default=1024, help="size of a log file")
    parser.add_argument("--container-mib", type=int, default=512, help="what an old container has printed")
    parser.add_argument("--repeat", type=int, default=5, help="the best of so many")
    parser.add_argument("--folder", default=None, help="where the logs are written")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kvfleet-bench-", dir=asked.folder) as made:
        folder = pathlib.Path(made)
        free = shutil.disk_usage(folder).free // MIB
        needed = max(asked.mib, 3 * asked.container_mib) + 1024
        if free < needed:
            parser.error(f"{made} has {free:,} MiB free, and {needed:,} are needed")
        good = files(folder, asked.mib, asked.repeat)
        good = containers(folder, asked.container_mib, asked.repeat) and good
    goals = f"read/grep <= {TIMES_GREP:g}, old/young <= {TIMES_YOUNG:g}, peak <= {PEAK_MIB} MiB"
    print(f"\ngoals: {goals}: {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
