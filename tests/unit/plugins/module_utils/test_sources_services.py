# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ledger of the boot that runs in a container or under a unit, and the reasons why there is none."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures"
HEALTHY = FIXTURES / "logs" / "healthy-1.0.13.log"
TOLD = FIXTURES / "containers"
RUNNING = TOLD / "podman-4.3.1-running.json"
RESTARTED = TOLD / "podman-4.3.1-restarted.json"
STOPPED = TOLD / "podman-4.3.1-stopped.json"
NONE = "Error: inspecting object: no such container"

PutProgram = t.Callable[[str, str], pathlib.Path]


def podman(put_program: PutProgram, told: pathlib.Path, log: str = f"cat {HEALTHY} >&2") -> pathlib.Path:
    return put_program("podman", f"case $1 in container) cat {told} ;; --log-level=error) {log} ;; esac")


def unit(put_program: PutProgram, tmp_path: pathlib.Path, journal: str = f"cat {HEALTHY}", **values: object) -> None:
    shown = {
        "Id": "flashnext.service",
        "LoadState": "loaded",
        "ActiveState": "active",
        "SubState": "running",
        "Result": "success",
        "MainPID": 0,
        "ExecMainCode": 0,
        "ExecMainStatus": 0,
        "InvocationID": "9ab33127a628458496da25cd04d0713b",
        **values,
    }
    (tmp_path / "shown").write_text("".join(f"{name}={value}\n" for name, value in shown.items()))
    put_program("systemctl", f"cat {tmp_path}/shown")
    put_program("journalctl", journal)


@pytest.fixture
def main_process() -> t.Iterator[t.Callable[..., int]]:
    """``main_process(word, ...)`` starts a process with these words on its command line, and gives its number."""
    started = []

    def start(*words: str) -> int:
        argv = [sys.executable, "-c", "import time; time.sleep(60)", *words]
        started.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL))
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_container(put_program: PutProgram) -> None:
    podman(put_program, RUNNING)
    ledger = read_boot("podman", name="flashnext").ledger
    assert (ledger["status"], ledger["reason"], ledger["ready"]) == ("complete", None, True)
    assert ledger["pair"] == {"weights_mib": 24000, "kv_mib": 5120, "exact": True}
    assert ledger["flags"]["max-model-len"] == "200000"
    assert ledger["source"] == {
        "kind": "podman",
        "name": "flashnext",
        "log_driver": "journald",
        "container_id": "41d047cf14d93df835329e747f407e08af4c6fe4edcf3656d777f1a9e5586279",
        "image": "localhost/radiance:1.0.13",
        "image_digest": "sha256:50970a242f9532cfe1607d8a16217131a260bc65c5c82e5dfc271bc03cda08ac",
        "started_at": "2026-11-29T19:31:01.27Z",
        "boots_seen": 1,
        "boot": 0,
    }


def test_traffic_does_not_change_the_fingerprint_and_a_restart_does(
    put_program: PutProgram, tmp_path: pathlib.Path
) -> None:
    podman(put_program, RUNNING)
    before = read_boot("podman", name="flashnext").ledger["fingerprint"]
    podman(put_program, RUNNING, f"cat {HEALTHY}; echo I server: listening on http://x:1; cat {HEALTHY}")
    assert read_boot("podman", name="flashnext").ledger["fingerprint"] == before
    told = json.loads(RUNNING.read_text())
    told[0]["State"]["StartedAt"] = "2026-11-29T19:41:01.271146746Z"
    (tmp_path / "later.json").write_text(json.dumps(told))
    podman(put_program, tmp_path / "later.json")
    assert read_boot("podman", name="flashnext").ledger["fingerprint"] != before


def test_a_key_on_the_command_line_is_not_in_the_ledger(put_program: PutProgram) -> None:
    podman(put_program, RESTARTED)
    ledger = read_boot("podman", name="kept").ledger
    assert ledger["flags"]["model"] == "/models/kept.rad"
    assert "hush-hush" not in json.dumps(ledger)


def test_a_container_that_does_not_run_and_what_it_is(put_program: PutProgram) -> None:
    podman(put_program, STOPPED)
    ledger = read_boot("podman", name="kept").ledger
    assert (ledger["status"], ledger["reason"]["code"]) == ("absent", "container_absent")
    assert "does not run: it ended at 2026-11-29T" in ledger["reason"]["text"]
    assert ledger["source"]["image"] == "localhost/radiance:1.0.13"
    assert ledger["settled"] == []


def test_a_wrong_name_and_what_is_there(put_program: PutProgram) -> None:
    put_program("podman", f"[ $1 = ps ] && echo flashnext && exit; echo '{NONE} flashnex' >&2; exit 125")
    reason = read_boot("podman", name="flashnex").ledger["reason"]
    assert reason["code"] == "container_absent"
    assert "no container 'flashnex'; it has 1: flashnext." in reason["text"]


def test_a_host_without_containers(put_program: PutProgram) -> None:
    put_program("podman", f"[ $1 = ps ] && exit; echo '{NONE} flashnext' >&2; exit 125")
    assert "it has none" in read_boot("podman", name="flashnext").ledger["reason"]["text"]


def test_a_host_that_does_not_tell_of_its_containers(put_program: PutProgram) -> None:
    put_program("podman", f"[ $1 = ps ] && exit 125; echo '{NONE} flashnext' >&2; exit 125")
    text = read_boot("podman", name="flashnext").ledger["reason"]["text"]
    assert text.startswith("podman has no container 'flashnext'. Start the service")
    assert "it has" not in text


def test_a_log_that_the_runtime_cannot_read(put_program: PutProgram) -> None:
    podman(put_program, RUNNING, "echo 'Error: cannot read logs' >&2; exit 125")
    ledger = read_boot("podman", name="flashnext").ledger
    assert (ledger["status"], ledger["reason"]["code"]) == ("absent", "log_unreadable")
    assert "Error: cannot read logs" in ledger["reason"]["text"]
    assert ledger["source"]["log_driver"] == "journald"


def test_a_boot_that_still_loads(put_program: PutProgram) -> None:
    podman(put_program, RUNNING, f"head -n 20 {HEALTHY}")
    ledger = read_boot("podman", name="flashnext").ledger
    assert (ledger["status"], ledger["reason"]["code"]) == ("incomplete", "not_ready")


@pytest.mark.parametrize("source", ["podman", "docker", "journald"])
def test_an_older_boot_is_not_known_of_a_service(source: str) -> None:
    reason = read_boot(source, name="flashnext", boot=-2).ledger["reason"]
    assert reason["code"] == "boot_not_in_log"
    assert "Boot -2 was asked for" in reason["text"]


def test_what_cannot_be_asked_is_an_error(put_program: PutProgram) -> None:
    put_program("podman", "echo 'Error: cannot set up namespace' >&2; exit 125")
    with pytest.raises(RadianceError) as caught:
        read_boot("podman", name="flashnext")
    assert caught.value.code == "runtime_unusable"


def test_a_unit_whose_main_process_is_the_engine(
    put_program: PutProgram, tmp_path: pathlib.Path, main_process: t.Callable[..., int]
) -> None:
    pid = main_process("--model", "/m.rad", "--vram-weights-mib", "24000", "--vram-kv-mib", "5120", "--api-key", "hush")
    unit(put_program, tmp_path, MainPID=pid)
    ledger = read_boot("journald", name="flashnext", scope="user").ledger
    assert ledger["status"] == "complete"
    assert ledger["flags"] == {"model": "/m.rad", "vram-weights-mib": "24000", "vram-kv-mib": "5120"}
    assert ledger["pair"] == {"weights_mib": 24000, "kv_mib": 5120, "exact": True}
    assert (ledger["source"]["kind"], ledger["source"]["name"]) == ("journald", "flashnext.service")
    assert ledger["source"]["started_at"].endswith("Z")
    assert read_boot("journald", name="flashnext", scope="user").ledger["fingerprint"] == ledger["fingerprint"]
    unit(put_program, tmp_path, MainPID=pid, InvocationID="7a35230bbe324740a9229ac215670c00")
    assert read_boot("journald", name="flashnext", scope="user").ledger["fingerprint"] != ledger["fingerprint"]


@pytest.mark.parametrize("client", ["/usr/bin/podman", "docker", "/usr/bin/conmon"])
def test_a_unit_whose_main_process_is_the_client_of_a_runtime(
    put_program: PutProgram, tmp_path: pathlib.Path, main_process: t.Callable[..., int], client: str
) -> None:
    pid = main_process(client, "run", "--name", "flashnext", "image", "--model", "/m.rad", "--vram-kv-mib", "5120")
    unit(put_program, tmp_path, MainPID=pid)
    ledger = read_boot("journald", name="flashnext").ledger
    assert (ledger["status"], ledger["flags"], ledger["pair"]["exact"]) == ("complete", {}, False)


def test_a_unit_without_a_main_process(put_program: PutProgram, tmp_path: pathlib.Path) -> None:
    unit(put_program, tmp_path, SubState="exited")
    ledger = read_boot("journald", name="flashnext").ledger
    assert (ledger["status"], ledger["source"]["started_at"]) == ("complete", None)


def test_a_unit_that_failed(put_program: PutProgram, tmp_path: pathlib.Path) -> None:
    failed = {"ActiveState": "failed", "SubState": "failed", "Result": "exit-code"}
    unit(put_program, tmp_path, ExecMainCode=1, ExecMainStatus=2, **failed)
    ledger = read_boot("journald", name="flashnext", scope="user").ledger
    assert (ledger["status"], ledger["reason"]["code"]) == ("absent", "unit_inactive")
    assert "it is failed (failed), with the result exit-code and status 2." in ledger["reason"]["text"]
    assert "systemctl --user start flashnext.service" in ledger["reason"]["text"]


@pytest.mark.parametrize(("scope", "other"), [("system", "scope: user"), ("user", "scope: system")])
def test_a_unit_that_does_not_exist(put_program: PutProgram, tmp_path: pathlib.Path, scope: str, other: str) -> None:
    unit(put_program, tmp_path, LoadState="not-found", ActiveState="inactive", SubState="dead", InvocationID="")
    reason = read_boot("journald", name="flashnext", scope=scope).ledger["reason"]
    assert reason["code"] == "unit_inactive"
    assert f"The manager of the {scope} has no unit flashnext.service." in reason["text"]
    assert other in reason["text"]


def test_a_journal_without_the_boot(put_program: PutProgram, tmp_path: pathlib.Path) -> None:
    unit(put_program, tmp_path, journal="exit 0")
    reason = read_boot("journald", name="flashnext").ledger["reason"]
    assert reason["code"] == "log_empty"
    assert "9ab33127a628458496da25cd04d0713b" in reason["text"]
    assert "passthrough" in reason["text"]


def test_a_journal_that_may_not_be_read(put_program: PutProgram, tmp_path: pathlib.Path) -> None:
    unit(put_program, tmp_path, journal="echo 'No journal files were opened' >&2; exit 1")
    ledger = read_boot("journald", name="flashnext").ledger
    assert (ledger["status"], ledger["reason"]["code"]) == ("absent", "journal_unreadable")


REFUSED = "E unknown option '--expert-vs-cache-ratio'"


@pytest.mark.parametrize(("restarts", "said"), [(0, ""), (1, " once."), (1234, " 1,234 times: it loops.")])
def test_a_boot_that_does_not_listen_says_how_often_it_was_tried(
    put_program: PutProgram, tmp_path: pathlib.Path, restarts: int, said: str
) -> None:
    told = json.loads(RUNNING.read_text())
    told[0]["RestartCount"] = restarts
    (tmp_path / "told.json").write_text(json.dumps(told))
    podman(put_program, tmp_path / "told.json", f'echo "{REFUSED}"')
    unit(put_program, tmp_path, journal=f'echo "{REFUSED}"', NRestarts=restarts)
    for source, by in (("podman", "podman"), ("journald", "systemd")):
        reason = read_boot(source, name="flashnext").ledger["reason"]
        assert reason["code"] == "unknown_option"
        assert reason["text"].endswith(f" {by} has restarted it{said}" if said else "with 1.3).")


def test_a_good_boot_says_nothing_of_its_restarts(put_program: PutProgram, tmp_path: pathlib.Path) -> None:
    unit(put_program, tmp_path, NRestarts=7)
    assert read_boot("journald", name="flashnext").ledger["reason"] is None


def test_a_unit_between_two_boots_of_a_loop_tells_why_the_last_one_ended(
    put_program: PutProgram, tmp_path: pathlib.Path
) -> None:
    unit(
        put_program,
        tmp_path,
        journal=f'echo "{REFUSED}"',
        ActiveState="activating",
        SubState="auto-restart",
        Result="exit-code",
        NRestarts=12,
    )
    reason = read_boot("journald", name="flashnext").ledger["reason"]
    assert reason["code"] == "unit_inactive"
    assert "Its last boot: This engine does not know the option '--expert-vs-cache-ratio'" in reason["text"]
    assert reason["text"].endswith("systemd has restarted it 12 times: it loops.")


def test_a_container_that_has_come_up_meanwhile(put_program: PutProgram) -> None:
    put_program("podman", f"[ $1 = ps ] && echo flashnext && exit; echo '{NONE} flashnext' >&2; exit 125")
    assert "has one by now" in read_boot("podman", name="flashnext").ledger["reason"]["text"]


def test_a_log_that_was_removed_points_to_the_receipt(put_program: PutProgram) -> None:
    podman(put_program, RUNNING, "echo 'Error: initial journal cursor' >&2; exit 125")
    assert "read the boot's receipt" in read_boot("podman", name="flashnext").ledger["reason"]["text"]


DOCKER = TOLD / "docker-20.10.24-restarted.json"
RESTARTING = TOLD / "docker-20.10.24-restarting.json"
UNSTARTED = TOLD / "docker-20.10.24-unstarted.json"


def docker(put_program: PutProgram, told: pathlib.Path, log: str) -> None:
    put_program("docker", f"case $1 in container) cat {told} ;; image) echo '[]' ;; logs) {log} ;; esac")


def test_a_container_of_docker_between_two_boots_of_a_loop_tells_why_the_last_one_ended(
    put_program: PutProgram,
) -> None:
    docker(put_program, RESTARTING, f'[ "$2 $3" = "--since 2026-11-29T23:15:03.39Z" ] && echo "{REFUSED}"')
    ledger = read_boot("docker", name="looping").ledger
    assert (ledger["status"], ledger["reason"]["code"]) == ("absent", "container_absent")
    text = ledger["reason"]["text"]
    assert "it ended at 2026-11-29T23:15:03Z with status 1. docker waits to start it again" in text
    assert "Its last boot: This engine does not know the option '--expert-vs-cache-ratio'" in text
    assert text.endswith("docker has restarted it 6 times: it loops.")


def test_a_container_that_ended_well_tells_nothing_of_its_last_boot(put_program: PutProgram) -> None:
    podman(put_program, STOPPED)
    text = read_boot("podman", name="kept").ledger["reason"]["text"]
    assert "Start its service" in text
    assert "last boot" not in text


def test_a_container_that_docker_could_not_start(put_program: PutProgram) -> None:
    docker(put_program, UNSTARTED, "exit 1")
    text = read_boot("docker", name="unstarted").ledger["reason"]["text"]
    assert "it was never started (failed to initialize logging driver: compression cannot" in text


@pytest.mark.parametrize(("driver", "told"), [("gelf", True), ("json-file", False)])
def test_a_copy_of_what_docker_sends_away_may_lack_lines(
    put_program: PutProgram, tmp_path: pathlib.Path, driver: str, told: bool
) -> None:
    inspected = json.loads(DOCKER.read_text())
    inspected[0]["HostConfig"]["LogConfig"]["Type"] = driver
    (tmp_path / "told.json").write_text(json.dumps(inspected))
    # As the daemon did it: it sent each second line in vain.
    docker(put_program, tmp_path / "told.json", f"sed -n 'p;n' {HEALTHY}; tail -n 1 {HEALTHY}")
    ledger = read_boot("docker", name="kept").ledger
    assert ledger["status"] == "incomplete"
    assert ("have their receiver up when the container starts" in ledger["reason"]["text"]) is told
    docker(put_program, tmp_path / "told.json", f"cat {HEALTHY}")
    assert read_boot("docker", name="kept").ledger["reason"] is None
