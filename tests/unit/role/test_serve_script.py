# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rendered serve script, run by sh: which words the engine or its container runtime gets."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _templates

ODD = ["--volume", "/srv/it's my $HOME:/models", '--annotation=say="a `date` $(date)" \\ *', "--device", "/dev/kfd"]
BASE: dict[str, t.Any] = {"model": "/models/next.rad", "port": 8000, "flags": {"tp": "2", "no-warmup": ""}}
CONTAINER = {**BASE, "manager": "systemd_user", "image": "localhost/radiance@sha256:0a", "container_options": ODD}
ENV = """\
VRAM_WEIGHTS_MIB=25844
VRAM_KV_MIB=5119
MAX_NUM_SEQS=3
MAX_MODEL_LEN=200000
KV_CACHE_DTYPE=fp8
NUM_SPECULATIVE_TOKENS=2
MODEL=/models/next.rad
PORT=8000
HOST=127.0.0.1
TP=2
IMAGE=localhost/radiance@sha256:0a
"""
# fmt: off
PAIR = [
    "--vram-weights-mib", "25844", "--vram-kv-mib", "5119", "--max-num-seqs", "3", "--max-model-len", "200000",
    "--kv-cache-dtype", "fp8", "--num-speculative-tokens", "2",
]
FLAGS = ["--model", "/models/next.rad", "--port", "8000", "--host", "127.0.0.1", "--tp", "2", "--no-warmup"]
# fmt: on
# Stands in for a runtime, or an engine: keeps its words and the locale that it was given. Its container is there for so
# many looks as RECORD.taken has lines: the daemon is removing it, and does not do so twice.
RECORDER = """\
#!/bin/sh
{ printf '%s\\0' "${0##*/}" "LC_ALL=${LC_ALL-}" "$@"; printf '\\n'; } >>"$RECORD"
case $1 in
    rm) exit 1 ;;
    container) [ -s "$RECORD.taken" ] && sed -i 1d "$RECORD.taken" ;;
esac
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A target directory with the serve scripts of four services, each rendered by the role's template."""
    top = tmp_path_factory.mktemp("a target")
    programs = top / "bin"
    (top / "scripts").mkdir()
    programs.mkdir()
    for name in ("podman", "docker", "engine"):
        (programs / name).write_text(RECORDER)
        (programs / name).chmod(0o755)
    (top / "key").write_text("it's a key\n")
    services = [
        {**BASE, "name": "process", "engine": ["engine"], "log": "/l", "pid_file": "/p"},
        {**BASE, "name": "unit", "manager": "systemd", "engine": [str(programs / "engine"), "a b"]},
        {**CONTAINER, "name": "podman", "runtime": "podman", "api_key_file": str(top / "key")},
        {**CONTAINER, "name": "docker", "runtime": "docker", "container": "fn"},
    ]
    for service in services:
        (top / "scripts" / f"{service['name']}.env").write_text(ENV)
        script = top / "scripts" / f"serve-{service['name']}.sh"
        script.write_text(_templates.serve_script(service, "alpha", 60))
        script.chmod(0o755)
    return top


def calls(folder: pathlib.Path, name: str) -> list[list[str]]:
    """What a serve script runs: the words of each program, its name and its locale first."""
    record = folder / f"{name}.record"
    record.unlink(missing_ok=True)
    environment = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "RECORD": str(record), "HOME": "/not/evaluated"}
    subprocess.run([str(folder / "scripts" / f"serve-{name}.sh")], env=environment, check=True, timeout=30)
    return [line.split("\0")[:-1] for line in record.read_text().splitlines()]


def test_a_plain_process_is_the_engine_itself(folder: pathlib.Path) -> None:
    assert calls(folder, "process") == [["engine", "LC_ALL=", *FLAGS, *PAIR]]


def test_a_unit_without_a_container_is_the_engine_with_a_plain_locale(folder: pathlib.Path) -> None:
    assert calls(folder, "unit") == [["engine", "LC_ALL=C", "a b", *FLAGS, *PAIR]]


def test_podman_gets_every_word_as_it_was_declared(folder: pathlib.Path) -> None:
    # fmt: off
    assert calls(folder, "podman") == [[
        "podman", "LC_ALL=C", "run", "--rm", "--replace", "--name", "podman", "--init", "--network", "host",
        "--stop-timeout", "60", *ODD, "localhost/radiance@sha256:0a", *FLAGS, "--api-key", "it's a key", *PAIR,
    ]]
    # fmt: on


@pytest.mark.parametrize("key", [None, "", "\n"])
def test_without_its_key_nothing_is_started(folder: pathlib.Path, key: str | None) -> None:
    path, kept = folder / "key", (folder / "key").read_text()
    path.unlink()
    if key is not None:
        path.write_text(key)
    try:
        with pytest.raises(subprocess.CalledProcessError):
            calls(folder, "podman")
    finally:
        path.write_text(kept)
    assert not (folder / "podman.record").exists()


# fmt: off
DOCKER_LOOKS = ["docker", "LC_ALL=C", "container", "inspect", "fn"]
DOCKER_RUNS = [
    "docker", "LC_ALL=C", "run", "--rm", "--name", "fn", "--init", "--network", "host",
    "--stop-timeout", "60", *ODD, "localhost/radiance@sha256:0a", *FLAGS, *PAIR,
]
# fmt: on


def test_docker_starts_where_nothing_was_left_behind(folder: pathlib.Path) -> None:
    assert calls(folder, "docker") == [DOCKER_LOOKS, DOCKER_RUNS]


def test_docker_first_removes_what_was_left_behind_and_waits_until_its_name_is_free(folder: pathlib.Path) -> None:
    (folder / "docker.record.taken").write_text("once\n")
    assert calls(folder, "docker") == [
        DOCKER_LOOKS,
        ["docker", "LC_ALL=C", "rm", "--force", "fn"],
        DOCKER_LOOKS,
        DOCKER_RUNS,
    ]


def test_the_scripts_are_clean_and_ours(folder: pathlib.Path) -> None:
    scripts = sorted((folder / "scripts").glob("*.sh"))
    assert len(scripts) == 4
    for script in scripts:
        assert "# kvfleet.radiance: managed; " in script.read_text()
        subprocess.run(["sh", "-n", str(script)], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", *map(str, scripts)], check=True)
