# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers: what podman 4.3.1 told on the test hosts, docker's documented shape, and programs of their name."""

from __future__ import annotations

import json
import os
import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures"
HEALTHY = FIXTURES / "logs" / "healthy-1.0.13.log"
TOLD = FIXTURES / "containers"
RUNNING = TOLD / "podman-4.3.1-running.json"
RESTARTED = TOLD / "podman-4.3.1-restarted.json"
STOPPED = TOLD / "podman-4.3.1-stopped.json"
DOCKER = TOLD / "docker.json"

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
    assert parsed("docker", DOCKER) == container.Container(
        runtime="docker",
        name="flashnext",
        id="ba033ac4401106a3b513bc9d639eee123ad78ca3616b921167cd74b20e25ed39",
        image="ghcr.io/example/radiance:1.0.13",
        image_digest=None,
        log_driver="json-file",
        started_at="2026-02-06T09:41:00.98Z",
        pid=4711,
        restarts=1,
        argv=["/usr/bin/radiance", "--model", "/models/flashnext.rad", "--vram-weights-mib", "24000"]
        + ["--vram-kv-mib=5120", "--tp", "2"],
        finished_at="2026-02-06T09:40:59.500000000Z",
    )


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


@pytest.mark.parametrize(
    ("said", "denied"),
    [
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", False),
        ("Error: getting container from store: database is locked", False),
        ("permission denied while trying to connect to the Docker daemon socket", True),
        ("Error: creating tmpdir: mkdir /run/user/1000: permission denied", True),
        ("newuidmap: write to uid_map failed: Operation not permitted", True),
    ],
)
def test_a_runtime_that_cannot_be_used(put_program: PutProgram, said: str, denied: bool) -> None:
    put_program("docker", f"echo '{said}' >&2; exit 1")
    with pytest.raises(RadianceError) as caught:
        container.inspect("docker", "flashnext")
    assert caught.value.code == "runtime_unusable"
    assert said in caught.value.text
    assert ("with become" in caught.value.text) is denied
    assert ("`docker container inspect flashnext` has to be mended" in caught.value.text) is not denied


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
    folder = put_program("docker", f"[ $1 = image ] && echo '{digests}' || cat {DOCKER}")
    found = container.inspect("docker", "flashnext")
    assert found is not None
    assert found.image_digest == digest
    assert (
        (folder / "docker.calls")
        .read_text()
        .splitlines()[1]
        .endswith(" -- sha256:72297848456d5d37d1262630108ab308d3e9ec7ed1c3286a32fe09856619a782")
    )


def test_the_boot_is_read_up_to_its_listening_line(put_program: PutProgram) -> None:
    folder = put_program("podman", f"cat {HEALTHY} >&2; while :; do echo traffic; done")
    text, place = container.read_boot(parsed("podman", RUNNING))
    assert text == HEALTHY.read_text()
    assert place == {"boots_seen": 1, "boot": 0}
    assert (folder / "podman.calls").read_text() == (
        "--log-level=error logs 41d047cf14d93df835329e747f407e08af4c6fe4edcf3656d777f1a9e5586279\n"
    )


def test_of_a_container_that_was_started_again_the_last_run_is_asked_for(put_program: PutProgram) -> None:
    folder = put_program("docker", f"cat {HEALTHY}")
    container.read_boot(parsed("docker", DOCKER))
    assert (folder / "docker.calls").read_text() == (
        "logs --since 2026-02-06T09:40:59.500000000Z ba033ac4401106a3b513bc9d639eee123ad78ca3616b921167cd74b20e25ed39\n"
    )


ID = "41d047cf14d93df835329e747f407e08af4c6fe4edcf3656d777f1a9e5586279"
BEFORE = b"2026-11-29T20:37:06.255243610+01:00 stderr "
AFTER = b"2026-11-29T20:37:06.255243611+01:00 stderr "


def restarted_with_log(log: pathlib.Path, earlier: int, later: bytes) -> container.Container:
    """Of a container whose earlier run ended at 19:37:06.255243610 UTC, with so many requests in its log."""
    lines = HEALTHY.read_bytes().splitlines(keepends=True)
    log.parent.mkdir(exist_ok=True)
    with open(log, "wb") as file:
        file.writelines(BEFORE + b"F " + line for line in [*lines, *[b"I request\n"] * earlier])
        file.write(BEFORE + b"P cut off\n" + later)
    told = parsed("podman", RUNNING)
    return told._replace(log_path=str(log), log_driver="k8s-file", finished_at="2026-11-29T19:37:06.255243610Z")


@pytest.mark.parametrize("earlier", [0, 1, 100_000])
def test_the_last_run_is_read_out_of_the_log_of_podman_itself(
    put_program: PutProgram, tmp_path: pathlib.Path, earlier: int
) -> None:
    put_program("podman", "exit 1")
    boot = b"".join(AFTER + b"F " + line for line in HEALTHY.read_bytes().splitlines(keepends=True))
    asked = restarted_with_log(tmp_path / ID / "ctr.log", earlier, boot + AFTER + b"F I request\n")
    assert container.read_boot(asked) == (HEALTHY.read_text(), {"boots_seen": 1, "boot": 0})


@pytest.mark.parametrize("case", ["another's", "missing", "plain", "nothing yet", "no time", "a pipe"])
def test_podman_is_asked_where_its_log_does_not_tell(
    put_program: PutProgram, tmp_path: pathlib.Path, case: str
) -> None:
    folder = put_program("podman", f"cat {HEALTHY}")
    log = tmp_path / ("another" if case == "another's" else ID) / "ctr.log"
    later = b"" if case == "nothing yet" else AFTER + b"F I device: AQL backend, 1 device(s) [0:forged]\n"
    asked = restarted_with_log(log, 10, later)
    if case == "plain":
        log.write_bytes(b"I a plain line\n" * 10 + later)
    elif case == "no time":
        log.write_bytes(log.read_bytes().replace(b"2026-11-29", b"2026-99-99"))
    elif case in ("missing", "a pipe"):
        log.unlink()
    if case == "a pipe":
        os.mkfifo(log)
    assert container.read_boot(asked)[0] == HEALTHY.read_text()
    assert (folder / "podman.calls").read_text() == (
        f"--log-level=error logs --since 2026-11-29T19:37:06.255243610Z {ID}\n"
    )


def test_an_attempt_before_it_in_the_same_run_is_not_the_boot(put_program: PutProgram) -> None:
    put_program("podman", f"head -n 20 {HEALTHY}; cat {HEALTHY}")
    assert container.read_boot(parsed("podman", RUNNING))[1] == {"boots_seen": 2, "boot": 1}


@pytest.mark.parametrize("driver", ["passthrough", "none"])
def test_the_error_of_the_runtime_is_not_the_log(put_program: PutProgram, driver: str) -> None:
    said = (
        f"Error: this container is using the '{driver}' log driver, cannot read logs: "
        "this container is not logging output"
    )
    put_program("podman", f'echo "{said}" >&2; exit 125')
    with pytest.raises(RadianceError) as caught:
        container.read_boot(parsed("podman", RUNNING)._replace(log_driver=driver))
    assert caught.value.code == "log_unreadable"
    assert said in caught.value.text
    assert "--log-driver journald" in caught.value.text
    assert "source: journald" in caught.value.text


def test_the_names_of_what_is_there(put_program: PutProgram) -> None:
    put_program("podman", "echo other; echo flashnext")
    assert container.names("podman") == ["flashnext", "other"]


def test_the_names_of_a_runtime_that_does_not_tell_are_not_known(put_program: PutProgram) -> None:
    put_program("podman", "echo flashnext; exit 125")
    assert container.names("podman") is None
    put_program("podman", "exit 0")
    assert container.names("podman") == []
