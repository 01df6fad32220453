# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers: what podman 4.3.1 and docker 20.10.24 told on the test hosts, and programs of their name."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures"
TOLD = FIXTURES / "containers"
RUNNING = TOLD / "podman-4.3.1-running.json"
RESTARTED = TOLD / "podman-4.3.1-restarted.json"
STOPPED = TOLD / "podman-4.3.1-stopped.json"
DOCKER = TOLD / "docker-20.10.24-restarted.json"
RESTARTING = TOLD / "docker-20.10.24-restarting.json"
UNSTARTED = TOLD / "docker-20.10.24-unstarted.json"

PutProgram = t.Callable[[str, str], pathlib.Path]


def parsed(runtime: str, path: pathlib.Path) -> container.Container:
    return container.parse_container(runtime, json.loads(path.read_text())[0])


def test_podman() -> None:
    assert parsed("podman", RUNNING) == container.Container(
        runtime="podman",
        name="flashnext",
        id="41d047cf14d93df835329e747f407e08af4c6fe4edcf3656d777f1a9e5586279",
        image="localhost/radiance:1.0.13",
        image_digest="sha256:50970a242f9532cfe1607d8a16217131a260bc65c5c82e5dfc271bc03cda08ac",
        log_driver="journald",
        started_at="2026-11-29T19:31:01.27Z",
        pid=644,
        restarts=0,
        argv=[
            *("/run/podman-init", "--", "/usr/bin/radiance", "--model", "/models/flashnext.rad"),
            *("--host", "127.0.0.1", "--port", "8000", "--tp", "2", "--host-pool-mib", "16384"),
            *("--vram-weights-mib", "24000", "--vram-kv-mib", "5120", "--max-num-seqs", "3"),
            *("--max-model-len", "200000", "--kv-cache-dtype", "fp8", "--num-speculative-tokens", "2"),
        ],
        finished_at=None,
    )


def test_the_flags_of_the_engine_behind_an_init() -> None:
    flags = parsed("podman", RUNNING).flags
    assert (flags["vram-weights-mib"], flags["vram-kv-mib"], flags["port"]) == ("24000", "5120", "8000")
    assert len(flags) == 11


def test_the_flags_do_not_have_the_key_of_the_command_line() -> None:
    restarted = parsed("podman", RESTARTED)
    assert "hush-hush-1234" in restarted.argv
    assert "api-key" not in restarted.flags
    assert "hush-hush-1234" not in restarted.flags.values()


def test_podman_tells_when_a_container_ended_before_it_was_started_again() -> None:
    restarted, stopped = parsed("podman", RESTARTED), parsed("podman", STOPPED)
    assert restarted.pid > 0
    assert restarted.finished_at is not None
    assert restarted.finished_at[:22] < restarted.started_at
    assert len(restarted.finished_at) == len("2026-11-29T19:37:06.255243610Z")
    assert (stopped.pid, stopped.id) == (0, restarted.id)
    assert stopped.finished_at is not None
    assert stopped.finished_at > restarted.finished_at


def test_docker() -> None:
    identity = "38eb64933667c6c4f55bc0e0744d944fdbc1ac230fb7a138f1c2b6f6c0a65e4b"
    assert parsed("docker", DOCKER) == container.Container(
        runtime="docker",
        name="kept",
        id=identity,
        image="localhost/radiance:1.0.13",
        image_digest=None,
        log_driver="json-file",
        started_at="2026-11-29T23:15:01.91Z",
        pid=12095,
        restarts=0,
        argv=[
            *("/usr/bin/radiance", "--model", "/models/flashnext.rad", "--host", "127.0.0.1", "--tp", "2"),
            *("--host-pool-mib", "16384", "--vram-kv-mib", "5120", "--max-num-seqs", "3", "--max-model-len", "200000"),
            *("--kv-cache-dtype", "fp8", "--num-speculative-tokens", "2", "--vram-weights-mib", "24000"),
            *("--port", "8200", "--api-key", "hush-hush-1234"),
        ],
        finished_at="2026-11-29T23:15:01.625675904Z",
        log_path=f"/var/lib/docker/containers/{identity}/{identity}-json.log",
        log_options={"max-size": "10m"},
    )


def test_docker_says_of_a_container_that_it_waits_to_start_again_that_it_is_running() -> None:
    assert json.loads(RESTARTING.read_text())[0]["State"]["Running"] is True
    waits = parsed("docker", RESTARTING)
    assert (waits.pid, waits.restarting, waits.exit_code, waits.restarts) == (0, True, 1, 6)


def test_docker_says_why_it_could_not_start_a_container() -> None:
    unstarted = parsed("docker", UNSTARTED)
    assert (unstarted.pid, unstarted.finished_at, unstarted.started_at) == (0, None, "")
    assert unstarted.error == (
        "failed to initialize logging driver: compression cannot be enabled when max file count is 1"
    )


def test_podman_says_with_what_a_container_ended() -> None:
    stopped = parsed("podman", STOPPED)
    assert (stopped.exit_code, stopped.out_of_memory, stopped.restarting, stopped.error) == (143, False, False, "")
    assert parsed("podman", RUNNING).exit_code is None


@pytest.mark.parametrize(
    ("told", "utc"),
    [
        ("2026-11-29T19:31:01.271146746Z", "2026-11-29T19:31:01.27Z"),
        ("2026-11-29T20:31:01.999999999+01:00", "2026-11-29T19:31:01.99Z"),
        ("2026-11-29T14:01:01-05:30", "2026-11-29T19:31:01.00Z"),
        ("2027-01-01T00:30:00.5+02:00", "2026-12-31T22:30:00.50Z"),
        ("0001-01-01T00:00:00Z", None),
        ("", None),
    ],
)
def test_times_in_utc(told: str, utc: str | None) -> None:
    assert container.utc(told) == utc


def test_inspect_asks_for_containers_alone(put_program: PutProgram) -> None:
    folder = put_program("podman", f"cat {RUNNING}")
    found = container.inspect("podman", "flashnext")
    assert found is not None
    assert found.pid == 644
    assert (folder / "podman.calls").read_text() == "container inspect -- flashnext\n"


@pytest.mark.parametrize(
    ("runtime", "said", "status"),
    [
        ("podman", "Error: inspecting object: no such container flashnex", 125),
        ("docker", "Error: No such container: flashnex", 1),
        ("docker", "Error response from daemon: No such container: flashnex", 1),
    ],
)
def test_no_such_container(put_program: PutProgram, runtime: str, said: str, status: int) -> None:
    put_program(runtime, f"echo '[]'; echo '{said}' >&2; exit {status}")
    assert container.inspect(runtime, "flashnex") is None


NO_DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"


@pytest.mark.parametrize(
    ("said", "way_out"),
    [
        (NO_DAEMON, f"{NO_DAEMON} Start docker on the host"),
        (
            "Error: getting container from store: database is locked.",
            "locked. Read again; if it is the same, `docker container inspect flashnext` has to be mended",
        ),
        ("permission denied while trying to connect to the Docker daemon socket", "socket. Run as the user"),
        ("Error: creating tmpdir: mkdir /run/user/1000: permission denied", "which is root with become."),
        ("newuidmap: write to uid_map failed: Operation not permitted", "which is root with become."),
    ],
)
def test_a_runtime_that_cannot_be_used(put_program: PutProgram, said: str, way_out: str) -> None:
    put_program("docker", f"echo '{said}' >&2; exit 1")
    with pytest.raises(RadianceError) as caught:
        container.inspect("docker", "flashnext")
    assert caught.value.code == "runtime_unusable"
    assert said in caught.value.text
    assert way_out in caught.value.text


@pytest.mark.parametrize("out", ["", "[]", "[{}]", "[null]", "{}", '[{"State": {"Running": true}}]'])
def test_a_runtime_that_tells_another_shape(put_program: PutProgram, out: str) -> None:
    put_program("podman", f"echo '{out}'")
    with pytest.raises(RadianceError) as caught:
        container.inspect("podman", "flashnext")
    assert caught.value.code == "runtime_unusable"


def test_a_short_word_is_not_taken_for_the_beginning_of_an_id(put_program: PutProgram) -> None:
    put_program("podman", f"cat {RUNNING}")
    assert container.inspect("podman", "41d") is None
    assert container.inspect("podman", "41d047cf14d9") is not None


@pytest.mark.parametrize(
    ("digests", "digest"),
    [
        (
            '["ghcr.io/example/radiance@sha256:aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999"]',
            "sha256:aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999",
        ),
        ("[]", None),
        ("null", None),
        ("not json", None),
    ],
)
def test_docker_tells_the_digest_of_the_image(put_program: PutProgram, digests: str, digest: str | None) -> None:
    told = f'[{{"Id": "sha256:cfd2", "RepoDigests": {digests}}}]'
    folder = put_program("docker", f"[ $1 = image ] && echo '{told}' || cat {DOCKER}")
    found = container.inspect("docker", "kept")
    assert found is not None
    assert found.image_digest == digest
    assert (
        (folder / "docker.calls")
        .read_text()
        .splitlines()[1]
        .endswith(" -- sha256:cfd2f8f8f524a5f0df8d8692104bdb947591ef69265fe41598fd24009a578f48")
    )


def test_the_names_of_what_is_there(put_program: PutProgram) -> None:
    put_program("podman", "echo other; echo flashnext")
    assert container.names("podman") == ["flashnext", "other"]


def test_the_names_of_a_runtime_that_does_not_tell_are_not_known(put_program: PutProgram) -> None:
    put_program("podman", "echo flashnext; exit 125")
    assert container.names("podman") is None
    put_program("podman", "exit 0")
    assert container.names("podman") == []
