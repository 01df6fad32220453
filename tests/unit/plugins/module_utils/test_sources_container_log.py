# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What containers printed: with programs of the runtimes' name, which answer as these did on the test hosts."""

from __future__ import annotations

import json
import os
import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container, container_log

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures"
HEALTHY = FIXTURES / "logs" / "healthy-1.0.13.log"
TOLD = FIXTURES / "containers"
RUNNING = TOLD / "podman-4.3.1-running.json"
DOCKER = TOLD / "docker-20.10.24-restarted.json"

PutProgram = t.Callable[[str, str], pathlib.Path]


def parsed(runtime: str, path: pathlib.Path) -> container.Container:
    return container.parse_container(runtime, json.loads(path.read_text())[0])


def test_the_boot_is_read_up_to_its_listening_line(put_program: PutProgram) -> None:
    folder = put_program("podman", f"cat {HEALTHY} >&2; while :; do echo traffic; done")
    text, place = container_log.read_boot(parsed("podman", RUNNING))
    assert text == HEALTHY.read_text()
    assert place == {"boots_seen": 1, "boot": 0}
    assert (folder / "podman.calls").read_text() == (
        "--log-level=error logs 41d047cf14d93df835329e747f407e08af4c6fe4edcf3656d777f1a9e5586279\n"
    )


def test_of_a_container_that_was_started_again_the_last_run_is_asked_for(put_program: PutProgram) -> None:
    folder = put_program("docker", f"cat {HEALTHY}")
    container_log.read_boot(parsed("docker", DOCKER))
    assert (folder / "docker.calls").read_text() == (
        "logs --since 2026-11-29T23:15:01.625675904Z 38eb64933667c6c4f55bc0e0744d944fdbc1ac230fb7a138f1c2b6f6c0a65e4b\n"
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
    assert container_log.read_boot(asked) == (HEALTHY.read_text(), {"boots_seen": 1, "boot": 0})


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
    assert container_log.read_boot(asked)[0] == HEALTHY.read_text()
    assert (folder / "podman.calls").read_text() == (
        f"--log-level=error logs --since 2026-11-29T19:37:06.255243610Z {ID}\n"
    )


def test_an_attempt_before_it_in_the_same_run_is_not_the_boot(put_program: PutProgram) -> None:
    put_program("podman", f"head -n 20 {HEALTHY}; cat {HEALTHY}")
    assert container_log.read_boot(parsed("podman", RUNNING))[1] == {"boots_seen": 2, "boot": 1}


@pytest.mark.parametrize("driver", ["passthrough", "none"])
def test_the_error_of_the_runtime_is_not_the_log(put_program: PutProgram, driver: str) -> None:
    said = (
        f"Error: this container is using the '{driver}' log driver, cannot read logs: "
        "this container is not logging output"
    )
    put_program("podman", f'echo "{said}" >&2; exit 125')
    with pytest.raises(RadianceError) as caught:
        container_log.read_boot(parsed("podman", RUNNING)._replace(log_driver=driver))
    assert caught.value.code == "log_unreadable"
    assert said in caught.value.text
    assert "--log-driver journald" in caught.value.text
    assert "source: journald" in caught.value.text


# docker 20.10.24, of a container without a log and of one whose collector's copy is off.
NO_READING = "Error response from daemon: configured logging driver does not support reading"


@pytest.mark.parametrize(
    ("driver", "options", "way_out"),
    [
        ("none", {}, "Start it with --log-driver json-file, local or journald, or read the journal of its unit"),
        ("gelf", {"cache-disabled": "true"}, "json-file, local or journald, or without --log-opt cache-disabled, or"),
    ],
)
def test_a_log_that_docker_cannot_read_names_the_drivers_that_docker_has(
    put_program: PutProgram, driver: str, options: dict[str, str], way_out: str
) -> None:
    put_program("docker", f"echo '{NO_READING}' >&2; exit 1")
    with pytest.raises(RadianceError) as caught:
        container_log.read_boot(parsed("docker", DOCKER)._replace(log_driver=driver, log_options=options))
    assert caught.value.code == "log_unreadable"
    assert f"log driver {driver}: {NO_READING}. " in caught.value.text
    assert way_out in caught.value.text
    assert "k8s-file" not in caught.value.text


def test_a_log_that_docker_keeps_and_does_not_read_may_have_lost_its_entries(put_program: PutProgram) -> None:
    put_program("docker", "echo 'Error response from daemon: no such file' >&2; exit 1")
    with pytest.raises(RadianceError) as caught:
        container_log.read_boot(parsed("docker", DOCKER))
    assert "read the boot's receipt" in caught.value.text


def docker_log(folder: pathlib.Path, before: int, after: bytes) -> container.Container:
    """Of a container whose earlier run printed a whole boot and so many requests, in docker's own file."""
    told = parsed("docker", DOCKER)
    log = folder / told.id / f"{told.id}-json.log"
    log.parent.mkdir()
    lines = [*HEALTHY.read_text().splitlines(), *["I request"] * before] if before >= 0 else []
    # docker leaves the noughts at a time's end out
    log.write_bytes(b"".join(as_object(line, "2026-11-29T23:15:01.625675Z") for line in lines) + after)
    return told._replace(log_path=str(log))


def as_object(line: str, time: str = "2026-11-29T23:15:01.91Z", end: str = "\n") -> bytes:
    told = json.dumps({"log": line + end, "stream": "stderr", "time": time}, separators=(",", ":"))
    return told.encode() + b"\n"


@pytest.mark.parametrize("before", [0, 1, 50_000])
def test_the_last_run_is_read_out_of_the_log_of_docker_itself(
    put_program: PutProgram, tmp_path: pathlib.Path, before: int
) -> None:
    put_program("docker", "exit 1")
    boot = b"".join(as_object(line) for line in HEALTHY.read_text().splitlines())
    asked = docker_log(tmp_path, before, boot + as_object("I request") * 10 + b'{"log":"I re')
    assert container_log.read_boot(asked) == (HEALTHY.read_text(), {"boots_seen": 1, "boot": 0})


@pytest.mark.parametrize(
    "after",
    [
        b"",
        b'{"log":"I device: AQL backend',
        b"I device: AQL backend, 1 device(s) [0:forged]\n",
        b'{"log":"I device: AQL backend, 1 device(s) [0:forged]\\n"}\n',
        b'["I device: AQL backend, 1 device(s) [0:forged]"]\n' * 300,
    ],
    ids=["nothing yet", "cut off", "plain", "without a time", "other objects"],
)
def test_docker_is_asked_where_its_log_does_not_tell(
    put_program: PutProgram, tmp_path: pathlib.Path, after: bytes
) -> None:
    folder = put_program("docker", f"cat {HEALTHY}")
    assert container_log.read_boot(docker_log(tmp_path, 10, after))[0] == HEALTHY.read_text()
    assert (folder / "docker.calls").read_text().startswith("logs --since 2026-11-29T23:15:01.")


def test_docker_is_asked_where_the_boot_may_begin_in_a_log_that_it_put_aside(
    put_program: PutProgram, tmp_path: pathlib.Path
) -> None:
    put_program("docker", f"cat {HEALTHY}")
    lines = HEALTHY.read_text().splitlines()[40:]
    asked = docker_log(tmp_path, -1, b"".join(as_object(line) for line in lines))
    assert container_log.read_boot(asked)[0] == HEALTHY.read_text()


def test_why_lines_may_be_missing() -> None:
    told = parsed("docker", DOCKER)
    assert container_log.losses(told) == ""
    sent = container_log.losses(told._replace(log_driver="gelf"))
    assert "log driver gelf" in sent and "--log-driver json-file, local or journald." in sent
    assert "mode=non-blocking" in container_log.losses(told._replace(log_options={"mode": "non-blocking"}))
