# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches against the rehearsal engine that do not hold: what brings the old pair back, and what is said of it."""

from __future__ import annotations

import os
import stat

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


def rolled_back(service: Service, result: dict[str, object], phase: str) -> None:
    """What holds after every roll-back, whatever its cause."""
    assert (result["outcome"], result["failed"], result["changed"]) == ("rolled_back", True, True)
    tail = ["restore", "start", "ready"]
    assert names(result) == FORWARD[: FORWARD.index(phase) + 1] + tail
    assert service.pair() == "24000+5120"
    assert service.serves()
    assert service.env.read_text() == env_text(OLD)
    assert f"The switch to 25,844 + 5,119 ended in phase {phase}: " in str(result["msg"])
    assert "The old pair 24,000 + 5,120 serves again after " in str(result["msg"])
    assert not (service.state / "journal.json").exists()
    (entry,) = service.records()
    assert (entry["kind"], entry["phase"], entry["serving"]) == ("rolled_back", phase, True)
    assert (entry["tried"], entry["to"]) == (NEW, OLD)
    assert result["restored"]["pair"] == {"weights_mib": 24000, "kv_mib": 5120, "exact": True}  # type: ignore[index]


def test_a_boot_that_settles_short_is_rolled_back_with_line_and_numbers(service: Service) -> None:
    service.arm("settle_short")
    result = service.run(NEW, endpoint=service.endpoint)
    rolled_back(service, result, "referee")
    assert result["code"] == "referee_refused"
    wrong = [finding for finding in result["findings"] if not finding["holds"]]
    assert [finding["name"] for finding in wrong] == ["settled_free.card0", "settled_free.card1"]
    for finding in wrong:
        assert finding["line"] in service.log.read_text()
        assert f"{finding['says']} (the line: {finding['line']})" in result["msg"]
        assert finding["says"].endswith(" MiB short")
    assert result["ledger"]["pair"]["weights_mib"] == 25844


def test_a_refused_boot_is_rolled_back_with_the_engines_own_words(service: Service) -> None:
    service.arm("refuse_boot")
    result = service.run(NEW)
    rolled_back(service, result, "ready")
    assert result["code"] == "engine_refused"
    assert result["ledger"]["status"] == "refused"
    assert result["ledger"]["reason"]["text"] in result["msg"]


def test_a_boot_that_never_listens_is_rolled_back_with_its_last_line(service: Service) -> None:
    service.arm("never_ready")
    result = service.run(NEW, ready_timeout=3, stop_timeout=1)
    rolled_back(service, result, "ready")
    assert result["code"] == "never_ready"
    assert "Not ready after 3 s (ready_timeout)" in result["msg"]
    last = result["msg"].partition("Its last line: ")[2].partition(". The old pair")[0]
    assert last and last in service.log.read_text()


def test_a_start_that_is_no_engine_is_rolled_back(service: Service) -> None:
    pointer = "See 'docker run --help'."
    broken = f'#!/bin/sh\necho no engine here >&2\necho "{pointer}" >&2\nexit 7\n'
    files = [
        {"dest": str(service.env), "content": env_text(NEW)},
        {"dest": str(service.serve), "content": broken},
    ]
    serve = service.serve.read_bytes()
    result = service.run(NEW, files=files)
    rolled_back(service, result, "ready")
    assert result["code"] == "engine_exited"
    assert "with status 7" in result["msg"]
    assert "Its last line: no engine here" in result["msg"]
    assert service.serve.read_bytes() == serve
    assert stat.S_IMODE(service.serve.stat().st_mode) == 0o755


def test_a_boot_that_never_began_has_no_ledger(service: Service) -> None:
    before = fingerprint(service)
    files = [
        {"dest": str(service.env), "content": env_text(NEW)},
        {"dest": str(service.serve), "content": "#!/no/such/shell\n"},
    ]
    result = service.run(NEW, files=files)
    rolled_back(service, result, "start")
    assert result["code"] == "start_failed"
    # The old boot's ledger must not stand where the new one's is judged.
    assert (result["before"]["fingerprint"], result["ledger"]) == (before, None)


def test_a_file_that_was_not_there_is_gone_again_after_a_roll_back(service: Service) -> None:
    service.arm("refuse_boot")
    added = service.folder / "added.txt"
    files = [
        {"dest": str(service.env), "content": env_text(NEW)},
        {"dest": str(added), "content": "new"},
    ]
    rolled_back(service, service.run(NEW, files=files), "ready")
    assert not added.exists()


def test_when_the_old_pair_does_not_come_back_it_says_how_to_bring_it_back(service: Service) -> None:
    service.arm("refuse_boot", "refuse_boot")
    result = service.run(NEW)
    assert (result["outcome"], result["failed"]) == ("failed", True)
    assert "THE SERVICE IS DOWN" in result["msg"]
    assert service.env.read_text() == env_text(OLD)
    assert [entry["serving"] for entry in service.records()] == [False]
    assert result["downtime_seconds"] is None

    # The commands that it names do bring it back, and the next run sees that and closes the matter.
    (command,) = result["by_hand"]
    assert os.system(command) == 0
    wait_until(lambda: service.pair() == "24000+5120" and service.serves())
    pid = service.pid()
    result = service.run()
    assert (result["outcome"], result["failed"]) == ("rolled_back", False)
    assert "interrupted" in result["recovered"]
    assert service.pid() == pid
    assert not (service.state / "journal.json").exists()


def test_the_next_run_starts_the_old_pair_when_nobody_did(service: Service) -> None:
    service.arm("refuse_boot", "refuse_boot")
    assert service.run(NEW)["outcome"] == "failed"
    result = service.run()
    assert (result["outcome"], result["failed"], service.pair()) == ("rolled_back", False, "24000+5120")
    assert service.serves()


def test_the_old_pair_comes_back_although_the_journal_cannot_be_written(service: Service) -> None:
    # A folder where the next journal is written is to us what a full disk is, from the start of the new pair on.
    blocked = service.state / ".journal.json.new"
    serve = service.serve.read_text()
    files = [
        {"dest": str(service.env), "content": env_text(NEW)},
        {"dest": str(service.serve), "content": serve.replace("set -a", f"sleep 1; mkdir {blocked}; set -a")},
    ]
    result = service.run(NEW, files=files)
    assert (result["outcome"], service.pair(), service.serves()) == ("rolled_back", "24000+5120", True)
    assert "ended in phase referee" in result["msg"]
    assert service.env.read_text() == env_text(OLD)
    assert service.records()[-1]["kind"] == "rolled_back"
    assert not (service.state / "journal.json").exists()
