# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unit and its container switched, with real processes and with stand-ins of systemctl, journalctl and podman."""

from __future__ import annotations

import os
import pathlib
import signal
import time
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import unit_seen
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import manager_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import read_request
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    NEW,
    OLD,
    wait_until,
)
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_units import RUN, UnitService

THERE = [
    "lock",
    "precheck",
    "guard",
    "drain",
    "stop",
    "release",
    "swap",
    "start",
    "ready",
    "referee",
    "receipt",
    "keep",
]
BACK = ["restore", "start", "ready"]
# More than the card has, so that each boot of it is refused.
BAD = {**OLD, "weights_mib": 26000}
REFUSAL = "SHORT BY"


def names(result: dict[str, t.Any]) -> list[str]:
    return [phase["name"] for phase in result["phases"]]


def says(result: dict[str, t.Any], phase: str) -> str:
    return next(str(entry["says"]) for entry in reversed(result["phases"]) if entry["name"] == phase)


def test_forward(unit: UnitService) -> None:
    unit.start_old()
    old = unit.pid()
    result = unit.run(NEW, endpoint=unit.endpoint)
    assert (result["outcome"], result["failed"]) == ("switched", False), result
    unit.check_whole(NEW)
    assert names(result) == THERE
    assert result["actions"] == [
        ["systemctl", "--user", "enable", "kvfleet-restore-flash.service"],
        ["systemctl", "--user", "stop", "flash.service"],
        ["systemctl", "--user", "start", "flash.service"],
    ]
    assert says(result, "precheck").startswith(f"process {old} runs 24,000 + 5,120")
    assert f"flash.service and process {old} ended " in says(result, "stop")
    assert says(result, "start") == f"flash.service in invocation {unit.told()['InvocationID']}"
    assert says(result, "keep") == f"25,844 + 5,119 runs as process {unit.pid()}"
    assert result["ledger"]["source"]["kind"] == "podman"
    assert len(result["ledger"]["source"]["container_id"]) == 64
    assert [entry["kind"] for entry in unit.records()] == ["switched"]
    assert unit.calls("systemctl start") == [
        "systemctl start flash.service",
        "systemctl start --no-block flash.service",
    ]

    again = unit.run(NEW, fingerprint=result["ledger"]["fingerprint"])
    assert (again["outcome"], again["changed"], again["failed"]) == ("unchanged", False, False)


@pytest.mark.parametrize("options", [RUN, RUN.replace("--rm ", "").replace("journald", "none")])
def test_a_refused_pair_goes_back_with_the_engines_words(unit: UnitService, options: str) -> None:
    """The container is gone with its log, or is there and has none; the journal has its words."""
    unit.serve.write_text(unit.script(options))
    unit.start_old()
    result = unit.run(BAD)
    assert (result["outcome"], result["failed"], result["code"]) == ("rolled_back", True, "engine_refused"), result
    assert REFUSAL in result["msg"]
    assert REFUSAL in result["ledger"]["reason"]["text"]
    assert names(result)[-3:] == BACK
    assert result["restored"]["ready"] is True
    unit.check_whole(OLD)
    (entry,) = unit.records()
    assert (entry["kind"], entry["phase"], entry["serving"]) == ("rolled_back", "ready", True)


def test_a_unit_that_restarts_a_refused_pair_is_held_down(unit: UnitService) -> None:
    unit.unit(restart=0.3)
    unit.start_old()
    result = unit.run(BAD)
    assert (result["outcome"], result["code"]) == ("rolled_back", "engine_refused"), result
    assert REFUSAL in result["msg"]
    unit.check_whole(OLD)
    invocation = unit.told()["InvocationID"]
    time.sleep(1)
    assert (unit.told()["InvocationID"], unit.told()["NRestarts"]) == (invocation, "0")


def test_a_unit_that_goes_round_is_switched(unit: UnitService) -> None:
    """It is met before its container is there, with it, or between two starts; each time it is no other's."""
    unit.unit(restart=0.3)
    unit.serve.write_text(unit.script().replace("exec podman", "sleep 0.5\nexec podman"))
    unit.env.write_text(unit.env.read_text().replace("24000", "26000"))
    unit.systemctl("start")
    wait_until(lambda: int(unit.told()["NRestarts"]) >= 1)
    result = unit.run(NEW)
    assert (result["outcome"], result["failed"]) == ("switched", False), result
    unit.check_whole(NEW)


def test_a_unit_that_waits_for_its_next_start_is_stopped_first(unit: UnitService) -> None:
    unit.unit(restart=600)
    unit.env.write_text(unit.env.read_text().replace("24000", "26000"))
    unit.systemctl("start")
    wait_until(lambda: unit.told()["SubState"] == "auto-restart")
    result = unit.run(NEW)
    assert (result["outcome"], result["failed"], says(result, "stop")) == ("switched", False, "nothing runs"), result
    assert unit.calls("systemctl stop") == ["systemctl stop --no-block flash.service"]
    unit.check_whole(NEW)


def test_a_boot_is_known_by_its_invocation_before_its_process_is(unit: UnitService) -> None:
    """As a switch has noted it that died right after the start."""
    unit.start_old()
    manager = manager_of(read_request(unit.options(NEW)).manager)
    noted = {"before": "", "invocation": None, "pid": None, "ticks": None}
    found = manager.current()
    assert found is not None and found.pid == unit.pid()
    mine = {**noted, "invocation": unit.told()["InvocationID"]}
    other = {**noted, "invocation": "f" * 32}
    earlier = {**noted, "before": unit.told()["InvocationID"]}
    assert [manager.lives(boot) for boot in (noted, mine, other, earlier)] == [True, True, False, False]
    assert [manager.owns(boot, found) for boot in (noted, mine, other, earlier)] == [True, True, False, False]
    assert manager.owns({**other, "pid": found.pid, "ticks": found.started_ticks}, found)

    unit.systemctl("kill", "--signal=SIGKILL")
    wait_until(lambda: unit.told()["ActiveState"] == "failed")
    assert [manager.lives(boot) for boot in (noted, mine)] == [False, False]
    assert manager.lives({**mine, "pid": found.pid, "ticks": found.started_ticks})
    assert manager.exit_status(mine) == "signal 9"


def test_a_container_whose_client_was_killed_is_the_service(unit: UnitService) -> None:
    unit.start_old()
    old = unit.pid()
    unit.systemctl("kill", "--signal=SIGKILL")
    wait_until(lambda: unit.told()["ActiveState"] == "failed")
    assert unit.serves()
    result = unit.run(NEW)
    assert (result["outcome"], result["failed"]) == ("switched", False), result
    assert says(result, "precheck").startswith(f"process {old} runs 24,000 + 5,120")
    assert f"process {old} ended" in says(result, "stop")
    unit.check_whole(NEW)


def test_an_engine_that_ignores_the_stop_is_killed(unit: UnitService) -> None:
    unit.world(load_speedup=2000, stop_seconds=600 * 2000)
    unit.start_old()
    old = unit.pid()
    unit.world(load_speedup=2000, stop_seconds=0)
    result = unit.run(NEW, stop_timeout=0.5)
    assert (result["outcome"], result["failed"]) == ("switched", False), result
    assert says(result, "stop") == (
        f"flash.service did not end within 0.5 s of systemctl stop, and process {old} was killed"
    )
    unit.check_whole(NEW)


def test_a_unit_whose_output_goes_elsewhere_is_followed_by_its_container(unit: UnitService) -> None:
    unit.unit(output=False)
    unit.start_old()
    result = unit.run(NEW)
    assert (result["outcome"], result["failed"]) == ("switched", False), result
    assert result["findings"] and all(finding["holds"] for finding in result["findings"])
    assert "server: listening" in pathlib.Path(result["receipt"]).read_text()
    unit.check_whole(NEW)


@pytest.mark.parametrize("forgets", [True, False])
def test_a_unit_that_ends_at_once_is_no_start(unit: UnitService, forgets: bool) -> None:
    unit.unit(forgets=forgets)
    unit.start_old()
    detached = {"dest": str(unit.serve), "content": "#!/bin/sh\nexit 0\n", "mode": None}
    began = time.monotonic()
    result = unit.run(NEW, files=[*unit.options(NEW)["files"], detached], ready_timeout=300)
    assert (result["outcome"], result["code"]) == ("rolled_back", "start_failed"), result
    assert time.monotonic() - began < 200
    assert "has to stay in the foreground" in result["msg"] and "without -d" in result["msg"]
    unit.check_whole(OLD)
    assert unit.serve.read_text() == unit.script()


def test_a_container_that_was_started_detached_does_not_stay(unit: UnitService) -> None:
    unit.start_old()
    detached = {"dest": str(unit.serve), "content": unit.script(RUN + " -d"), "mode": None}
    result = unit.run(NEW, files=[*unit.options(NEW)["files"], detached])
    assert (result["outcome"], result["code"]) == ("rolled_back", "start_failed"), result
    assert "without -d" in result["msg"]
    unit.check_whole(OLD)


def test_a_container_that_ends_is_told_while_its_unit_is_down(unit: UnitService) -> None:
    unit.start_old()
    wait_until(unit.serves)
    os.kill(unit.pid(), signal.SIGKILL)
    wait_until(lambda: unit.told()["ActiveState"] == "failed")
    result = unit.run(NEW, endpoint=unit.endpoint)
    assert (result["outcome"], result["failed"]) == ("switched", False), result
    assert says(result, "stop") == "nothing runs"
    unit.check_whole(NEW)


def refused(service: UnitService, **more: t.Any) -> dict[str, t.Any]:
    """A switch that has to be refused without a change."""
    service.start_old()
    before = (service.pid(), service.env.read_text())
    result = service.run(NEW, **more)
    assert (result["outcome"], result["failed"], result["changed"]) == ("unchanged", True, False), result
    assert (service.pid(), service.env.read_text()) == before
    assert service.serves()
    return result


def test_a_unit_that_is_not_there(unit: UnitService) -> None:
    result = refused(unit, unit="other.service")
    assert result["code"] == "start_unusable"
    assert "other.service is not-found in the systemd of the user" in result["msg"]
    assert "systemctl --user daemon-reload" in result["msg"]


def test_a_unit_of_another_script(unit: UnitService) -> None:
    result = refused(unit, start=["/opt/other.sh"])
    assert result["code"] == "start_unusable"
    assert f"flash.service runs {unit.serve}, and these files are for /opt/other.sh" in result["msg"]


def test_a_unit_whose_file_systemd_has_not_read(unit: UnitService) -> None:
    unit.unit(outdated=True)
    result = refused(unit)
    assert result["code"] == "start_unusable"
    assert "the file of flash.service has changed since systemd read it" in result["msg"]
    assert "Run systemctl --user daemon-reload first" in result["msg"]


def test_a_user_whose_services_end_with_the_session(unit: UnitService) -> None:
    unit.tell("linger", "no")
    result = refused(unit)
    assert result["code"] == "start_unusable"
    assert "the user does not linger" in result["msg"]
    assert "loginctl enable-linger" in result["msg"]
    unit.tell("linger", "yes")
    assert unit.run(NEW)["outcome"] == "switched"


@pytest.mark.parametrize("image", ["localhost/radiance:1.0.13", "localhost/radiance:2"])
def test_an_image_that_is_gone_is_missed_before_the_stop(unit: UnitService, image: str) -> None:
    """The one that runs, without which there is no way back, and the new pair's."""
    unit.tell("gone_images", [image])
    result = refused(unit, image="localhost/radiance:2")
    assert result["code"] == "image_missing"
    assert f"does not have the image {image}" in result["msg"]


def test_only_root_starts_a_unit_of_the_system(unit: UnitService, monkeypatch: pytest.MonkeyPatch) -> None:
    unit.unit(scope="system")
    unit.user = []
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    result = refused(unit, manager="systemd")
    assert result["code"] == "start_unusable"
    assert "only root starts flash.service of the system" in result["msg"]


def test_a_unit_that_runs_another_container(unit: UnitService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_seen, "_PATIENCE", 0.5)
    result = refused(unit, name="other")
    assert result["code"] == "foreign_process"
    assert "podman of this user has no running container called other" in result["msg"]


def test_a_boot_that_systemd_ends_at_the_limit_of_the_unit_is_a_failure_of_its_own(unit: UnitService) -> None:
    # The limit counts for a boot that loads; the old pair comes up in time.
    unit.unit(timeout_start=0.3)
    unit.start_old()
    loads = unit.host / "loads"
    stuck = f'rm -f {loads}\nif [ "$VRAM_KV_MIB" = 5119 ]; then touch {loads}; exec sleep 60; fi\n'
    unit.serve.write_text(unit.script().replace("exec podman", f"{stuck}exec podman"))
    result = unit.run(NEW)
    assert (result["outcome"], result["code"]) == ("rolled_back", "start_timeout")
    assert (
        "systemd ended flash.service because its start took longer than the unit's own limit, TimeoutStartSec "
        "(1min 30s). That tells nothing of whether the pair fits. Give the unit TimeoutStartSec=infinity, since a "
        "switch has its own ready_timeout, have it read (systemctl --user daemon-reload), and run this again."
    ) in result["msg"]
    assert unit.pair() == "24000+5120"
    assert any(
        "flash.service is of Type=notify with TimeoutStartSec=1min 30s: systemd ends a boot" in text
        for text in result["warnings"]
    )


@pytest.mark.parametrize(("times", "outcome"), [(1, "switched"), (2, "rolled_back")])
def test_a_runtime_that_has_not_let_go_of_the_name_is_asked_once_more(
    unit: UnitService, times: int, outcome: str
) -> None:
    unit.start_old()
    left = unit.folder / "left"
    left.write_text("x" * times)
    says = 'Error: creating container storage: the container name "flash" is already in use by 1a2b'
    once = (
        f'left=$(cat {left})\n[ -z "$left" ] || {{ printf %s "${{left#x}}" >{left}; echo \'{says}\' >&2; exit 125; }}'
    )
    unit.serve.write_text(unit.script().replace("exec podman", f"{once}\nexec podman"))
    result = unit.run(NEW)
    assert result["outcome"] == outcome
    starts = [phase["name"] for phase in result["phases"]].count("start")
    assert starts == (2 if outcome == "switched" else 3)
    assert unit.pair() == ("25844+5119" if outcome == "switched" else "24000+5120")
    if outcome == "rolled_back":
        assert result["code"] == "container_in_the_way"
        assert "The runtime had not let go of the container before: Error: creating container storage" in result["msg"]


def test_an_environment_file_that_systemd_would_miss_is_looked_for_before_the_stop(unit: UnitService) -> None:
    unit.start_old()
    gone, pid = unit.folder / "gone.env", unit.pid()
    optional = "/etc/none (ignore_errors=yes)\n/etc/none.d/*.env (ignore_errors=no)"
    unit.unit(env_files=f"{optional}\n{gone} (ignore_errors=no)")
    result = unit.run(NEW)
    assert (result["code"], unit.pid()) == ("start_unusable", pid)
    assert f"EnvironmentFile {gone} of flash.service: it is not on the target." in result["msg"]
    gone.touch()
    assert unit.run(NEW)["outcome"] == "switched"
