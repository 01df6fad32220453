# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole switches against the rehearsal engine: real processes, real files, a real port."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import stat
import threading
import time
import urllib.request
from collections.abc import Callable
from typing import Any

from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    FORWARD,
    NEW,
    OLD,
    Service,
    env_text,
    fingerprint,
    names,
    wait_until,
)


def test_a_switch_restarts_once_and_says_what_it_did(service: Service) -> None:
    old_pid = service.pid()
    before = fingerprint(service)
    result = service.run(NEW, endpoint=service.endpoint, fingerprint=before)

    assert (result["outcome"], result["changed"], result["failed"]) == ("switched", True, False)
    assert names(result) == FORWARD
    assert service.pair() == "25844+5119"
    assert service.env.read_text() == env_text(NEW)
    assert result["actions"] == [["kill", "-TERM", str(old_pid)], [str(service.serve)]]
    assert result["says"].startswith("Switched to 25,844 + 5,119 after ")
    assert 0 < result["downtime_seconds"] < 15
    assert service.log.read_text().count("server: listening") == 2

    assert result["before"]["fingerprint"] == before
    assert result["before"]["pair"] == {"weights_mib": 24000, "kv_mib": 5120, "exact": True}
    assert result["ledger"]["status"] == "complete"
    assert result["ledger"]["fingerprint"] == fingerprint(service)
    assert [finding["name"] for finding in result["findings"]] == [
        "listening",
        "pair",
        "settled_free.card0",
        "settled_free.card1",
        "capacity",
        "shape",
    ]
    assert all(finding["holds"] for finding in result["findings"])

    assert result["diff"] == [
        {
            "before": env_text(OLD),
            "after": env_text(NEW),
            "before_header": str(service.env),
            "after_header": str(service.env),
        }
    ]


def test_the_receipt_is_the_boot_up_to_its_listening_line(service: Service) -> None:
    result = service.run(NEW)
    receipt = pathlib.Path(result["receipt"])
    text = receipt.read_text()
    assert receipt.name == result["ledger"]["fingerprint"] + ".log"
    assert stat.S_IMODE(receipt.stat().st_mode) == 0o600
    assert text.startswith("I device: ")
    assert text.splitlines()[-1].startswith("I server: listening on http://127.0.0.1:")
    assert text in service.log.read_text()


def test_the_record_holds_the_switch(service: Service) -> None:
    result = service.run(NEW)
    (entry,) = service.records()
    assert result["records"] == [entry]
    assert (entry["kind"], entry["host"], entry["service"]) == ("switched", "dankserver", "flash")
    assert (entry["attempt"], entry["to"]) == ("0123456789ab", NEW)
    assert entry["downtime_seconds"] == result["downtime_seconds"]
    assert entry["receipt"] == result["receipt"]
    assert sorted(entry["ledger"]) == ["capacity", "engine", "fingerprint", "pair", "settled"]


def test_nothing_is_left_over_and_the_state_is_private(service: Service) -> None:
    service.run(NEW)
    assert stat.S_IMODE(service.state.stat().st_mode) == 0o700
    assert sorted(path.name for path in service.state.iterdir()) == [
        "backup",
        "lock",
        "progress.jsonl",
        "receipts",
        "records.jsonl",
    ]
    assert list((service.state / "backup").iterdir()) == []
    assert not list(service.folder.glob(".flash*"))


def test_a_second_run_restarts_nothing_and_changes_nothing(service: Service) -> None:
    service.run(NEW)
    pid, everything = service.pid(), service.everything()
    result = service.run(NEW, fingerprint=fingerprint(service))
    assert (result["outcome"], result["changed"], result["failed"]) == ("unchanged", False, False)
    assert names(result) == ["lock", "precheck"]
    assert (result["actions"], result["records"], result["diff"]) == ([], [], [])
    assert result["ledger"]["pair"]["weights_mib"] == 25844
    assert service.pid() == pid
    after = service.everything()
    # Who held the lock last, and the progress of this run, are not the service's files.
    for name in ("state/flash/lock", "state/flash/progress.jsonl"):
        del everything[name], after[name]
    assert after == everything


def test_a_file_that_differs_is_installed_without_a_restart(service: Service) -> None:
    pid = service.pid()
    text = "# kvfleet.radiance: managed\n" + env_text(OLD)
    result = service.run(OLD, files=[{"dest": str(service.env), "content": text, "mode": "0640"}])
    assert (result["outcome"], result["changed"]) == ("unchanged", True)
    assert service.env.read_text() == text
    assert stat.S_IMODE(service.env.stat().st_mode) == 0o640
    assert service.pid() == pid


def test_a_flag_beyond_the_shape_asks_for_a_restart(service: Service) -> None:
    expect = {"to": OLD, "flags": {"host-pool-mib": "16384"}}
    assert service.run(expect=expect, check_mode=True)["outcome"] == "unchanged"
    expect = {"to": OLD, "flags": {"host-pool-mib": "20480"}}
    assert service.run(expect=expect, check_mode=True)["outcome"] == "switched"


def test_check_mode_says_the_same_and_writes_nothing(service: Service) -> None:
    pid, everything = service.pid(), service.everything()
    hooks: dict[str, Any] = {"before_drain": ["/bin/true", "out"], "after_ready": ["/bin/true", "in"]}
    would = service.run(NEW, check_mode=True, fingerprint=fingerprint(service), **hooks)
    assert (service.pid(), service.everything()) == (pid, everything)
    assert not service.state.exists()

    did = service.run(NEW, fingerprint=fingerprint(service), **hooks)
    for key in ("changed", "outcome", "diff", "actions"):
        assert would[key] == did[key], key
    assert would["actions"][0] == ["/bin/true", "out"]

    everything = service.everything()
    would = service.run(NEW, check_mode=True)
    assert (would["outcome"], would["changed"], would["actions"]) == ("unchanged", False, [])
    assert service.everything() == everything


def rotated_while_loading(service: Service, rotate: Callable[[], object]) -> dict[str, Any]:
    """Switch to the new pair while the log is taken from under its boot."""
    service.world(load_speedup=60, stop_seconds=0)
    old = service.pid()

    def loads() -> bool:
        with contextlib.suppress(AssertionError):
            return service.pid() != old and "load:" in service.log.read_text().rpartition("I device:")[2]
        return False

    def turn() -> None:
        wait_until(loads)
        rotate()

    other = threading.Thread(target=turn)
    other.start()
    result = service.run(NEW, endpoint=service.endpoint, ready_timeout=10)
    other.join()
    return result


def test_a_log_that_is_renamed_and_made_anew_under_the_boot_costs_nothing(service: Service) -> None:
    def rotate() -> None:
        service.log.rename(f"{service.log}.1")
        service.log.touch()

    result = rotated_while_loading(service, rotate)
    assert (result["outcome"], result["ledger"]["status"]) == ("switched", "complete")
    assert "server: listening" in pathlib.Path(result["receipt"]).read_text()


def test_a_log_that_is_cut_to_nothing_under_the_boot_costs_nothing(service: Service) -> None:
    result = rotated_while_loading(service, lambda: os.truncate(service.log, 0))
    assert (result["outcome"], result["ledger"]["status"]) == ("switched", "complete")
    assert "server: listening" in pathlib.Path(result["receipt"]).read_text()


def test_a_plan_of_another_boot_is_refused_and_names_both(service: Service) -> None:
    pid, runs = service.pid(), fingerprint(service)
    result = service.run(NEW, fingerprint="0123456789ab")
    assert (result["code"], result["outcome"], result["changed"]) == ("plan_is_stale", "unchanged", False)
    assert "0123456789ab" in result["msg"] and runs in result["msg"]
    assert (service.pid(), service.env.read_text()) == (pid, env_text(OLD))


def test_the_second_of_two_runs_is_refused_and_says_who_holds_the_lock(service: Service) -> None:
    service.run()
    with (service.state / "lock").open("r+") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        holder.truncate()
        holder.write(json.dumps({"pid": 4711, "service": "flash", "at": "2026-10-13T09:30:00Z"}))
        holder.flush()
        progress = (service.state / "progress.jsonl").read_bytes()
        result = service.run(NEW)
    assert (result["code"], result["changed"]) == ("switch_locked", False)
    assert "process 4711, which switches flash since 2026-10-13T09:30:00Z" in result["msg"]
    # The lines of the run that goes on are not ours to cut.
    assert (service.state / "progress.jsonl").read_bytes() == progress


def test_two_services_on_one_card_are_not_switched_at_once(service: Service) -> None:
    service.run(cards=[0, 1])
    with (service.folder / "state" / "card1.lock").open("r+") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert service.run(NEW, cards=[0, 1])["code"] == "switch_locked"
        assert service.run(NEW, cards=[0], check_mode=True)["outcome"] == "switched"


def test_a_lock_that_cannot_be_opened_is_told_before_anything_happens(service: Service) -> None:
    (service.folder / "state" / "card0.lock").mkdir(parents=True)
    result = service.run(NEW, cards=[0])
    assert (result["code"], result["changed"]) == ("state_dir_unusable", False)
    assert "card0.lock cannot be opened: it is no regular file. Nothing was changed." in result["msg"]
    assert service.pair() == "24000+5120"


def slow_request(service: Service) -> threading.Thread:
    """A request that runs for some seconds."""
    body = json.dumps({"prompt": "one two three", "max_tokens": 100_000, "ignore_eos": True}).encode()

    def ask() -> None:
        request = urllib.request.Request(
            f"{service.endpoint}/v1/completions", body, {"Content-Type": "application/json"}
        )
        with contextlib.suppress(OSError):  # it is cut when the engine stops
            urllib.request.urlopen(request, timeout=30).read()

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    wait_until(lambda: json.load(urllib.request.urlopen(f"{service.endpoint}/load"))["running"] == 1)
    return thread


def test_running_requests_refuse_the_switch_before_anything_is_stopped(service: Service) -> None:
    slow_request(service)
    pid = service.pid()
    told = service.folder / "told"
    result = service.run(
        NEW,
        endpoint=service.endpoint,
        drain_timeout=0.5,
        before_drain=["/bin/true"],
        after_ready=["/usr/bin/touch", str(told)],
    )
    assert (result["code"], result["outcome"], result["changed"]) == ("traffic_still_running", "unchanged", False)
    assert "1 request(s) were still running or waiting after 0.5 s" in result["msg"]
    assert "drain_timeout (the role's endpoint_timeouts.drain)" in result["msg"]
    assert (service.pid(), service.env.read_text()) == (pid, env_text(OLD))
    # What before_drain took out of the gateway, after_ready gives back.
    assert told.exists()
    assert not (service.state / "journal.json").exists()
    assert list((service.state / "backup").iterdir()) == []
    assert not list(service.folder.glob(".flash*"))


def test_drain_timeout_0_cuts_what_runs(service: Service) -> None:
    slow_request(service)
    result = service.run(NEW, endpoint=service.endpoint, drain_timeout=0, stop_timeout=1)
    assert result["outcome"] == "switched"


def test_the_key_is_read_on_the_target_and_printed_nowhere(service: Service) -> None:
    key = "sk-hunter2hunter2"
    service.kill_all()
    service.serve.write_text(service.serve.read_text().rstrip() + f" --api-key {key}\n")
    service.log.unlink()
    service.start_old()
    pid = service.pid()

    result = service.run(NEW, endpoint=service.endpoint)
    assert (result["code"], result["outcome"], service.pid()) == ("load_unreadable", "unchanged", pid)
    assert "it asks for a key; give api_key_file" in result["msg"]
    key_file = service.folder / "key"
    result = service.run(NEW, endpoint=service.endpoint, api_key_file=str(key_file))
    assert (result["code"], service.pid()) == ("api_key_file_unreadable", pid)

    key_file.write_text(f"{key}\n")
    result = service.run(NEW, endpoint=service.endpoint, api_key_file=str(key_file))
    assert result["outcome"] == "switched"
    assert "no request is running or waiting" in result["phases"][2]["says"]
    assert key not in json.dumps(result)
    for path in service.state.rglob("*"):
        assert not path.is_file() or key.encode() not in path.read_bytes(), path


def test_a_hook_that_fails_stops_nothing(service: Service) -> None:
    pid = service.pid()
    result = service.run(NEW, before_drain=["/bin/sh", "-c", "echo gateway says no; exit 3"])
    assert (result["code"], result["outcome"]) == ("hook_failed", "unchanged")
    assert "status 3 and says: gateway says no" in result["msg"]
    assert service.pid() == pid


def test_a_gateway_that_does_not_take_the_service_back_is_a_warning(service: Service) -> None:
    result = service.run(NEW, after_ready=["/bin/false"])
    assert result["outcome"] == "switched"
    assert result["warnings"] == ["The hook after_ready (/bin/false) ended with status 1."]


def test_a_service_that_does_not_run_is_started(service: Service) -> None:
    service.kill_all()
    result = service.run(NEW)
    assert (result["outcome"], result["before"], result["downtime_seconds"]) == ("switched", None, None)
    assert result["actions"] == [[str(service.serve)]]
    assert service.pair() == "25844+5119"


def test_a_process_that_is_not_ours_is_neither_stopped_nor_doubled(service: Service) -> None:
    pid = service.pid()
    result = service.run(NEW, path=str(service.folder / "other.log"))
    assert result["code"] == "foreign_process"
    assert f"names process {pid}" in result["msg"]
    service.pid_file.unlink()
    result = service.run(NEW, endpoint=service.endpoint)
    assert result["code"] == "port_taken"
    assert service.serves()


def test_a_reused_pid_is_not_taken_for_the_service(service: Service) -> None:
    service.kill_all()
    service.pid_file.write_text(f"{os.getpid()}\n")
    past = time.time() - 7 * 86400
    os.utime(service.pid_file, (past, past))
    assert service.run(NEW)["outcome"] == "switched"


def test_options_that_cannot_be_meant_are_refused(service: Service) -> None:
    for more, code in (
        ({"service": "../etc"}, "option_unusable"),
        ({"service": "flash\n"}, "option_unusable"),
        ({"path": "flash.log"}, "option_unusable"),
        ({"start": ["serve.sh"]}, "option_unusable"),
        ({"ready_timeout": -1}, "option_unusable"),
        ({"expect": {}}, "expect_unusable"),
        ({"expect": {"to": {"weights": 1}}}, "expect_unusable"),
        ({"expect": {"to": NEW, "prediction": []}}, "expect_unusable"),
        ({"expect": {"to": NEW, "predictions": ["kv_mib"]}}, "expect_unusable"),
        ({"expect": {"to": NEW, "flags": ["host-pool-mib"]}}, "expect_unusable"),
        ({"expect": {"to": {"weights_mib": "06144"}}}, "not_a_whole_number"),
        ({"expect": None, "fingerprint": "0123456789ab"}, "expect_unusable"),
    ):
        result = service.run(NEW, check_mode=True, **{"files": [], **more})
        assert result["code"] == code, more


def test_without_expect_and_without_a_journal_nothing_is_done(service: Service) -> None:
    pid = service.pid()
    result = service.run()
    assert (result["outcome"], result["changed"], result["recovered"]) == ("unchanged", False, None)
    assert (service.pid(), result["actions"]) == (pid, [])


def test_files_that_no_pair_is_expected_of_are_written_whatever_runs(service: Service) -> None:
    pid = service.pid()
    _written_alone(service, "running.env")
    assert service.pid() == pid
    service.kill_all()
    _written_alone(service, "stopped.env")
    assert not service.serves()


def _written_alone(service: Service, name: str) -> None:
    mine = service.folder / name
    mine.write_text("# mine\nHF_TOKEN=hush-hush-hush\n")
    mine.chmod(0o640)
    there = [{"dest": str(mine), "content": "# mine\nHF_TOKEN=********\nSLAB=1\n", "src": None, "mode": None}]
    told = service.run(files=there, check_mode=True)
    assert (told["changed"], mine.read_text()) == (True, "# mine\nHF_TOKEN=hush-hush-hush\n")
    assert "hush" not in str(told)
    done = service.run(files=there)
    assert (done["outcome"], done["changed"], done["actions"]) == ("unchanged", True, [])
    assert done["says"] == "1 file(s) were written; nothing restarts for them."
    assert (mine.read_text(), mine.stat().st_mode & 0o777) == ("# mine\nHF_TOKEN=hush-hush-hush\nSLAB=1\n", 0o640)
    assert service.run(files=there)["changed"] is False


def test_a_file_that_the_start_names_is_looked_for_before_the_stop(service: Service, tmp_path: pathlib.Path) -> None:
    pid, gone = service.pid(), tmp_path / "gone"
    need = {"path": str(gone / "a.env"), "option": "--env-file", "stated_in": "x", "read": True}
    for check_mode in (True, False):
        result = service.run(NEW, check_mode=check_mode, needs=[need])
        assert (result["code"], result["msg"], service.pid()) == (
            "start_unusable",
            f"--env-file {gone}/a.env of x: it is not on the target. Without it neither this pair nor the old one "
            "could be started. Nothing was stopped or changed. Put it there, or take --env-file out.",
            pid,
        )
    gone.mkdir()
    assert "it is no regular file" in service.run(NEW, needs=[{**need, "path": str(gone)}])["msg"]
    assert service.run(NEW, needs=[{**need, "path": str(gone), "read": False}])["outcome"] == "switched"
