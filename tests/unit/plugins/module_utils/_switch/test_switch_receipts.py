# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Receipts on the target: saved by a switch and on demand, and what the switch itself reads when the log is gone."""

from __future__ import annotations

import os
import pathlib
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.journal import Journal
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import read_request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    NEW,
    OLD,
    Service,
)


def read(service: Service) -> dict[str, t.Any]:
    return read_boot(
        "file", path=str(service.log), pid_file=str(service.pid_file), receipts=str(service.state / "receipts")
    ).ledger


def saved(service: Service) -> list[str]:
    folder = service.state / "receipts"
    return sorted(path.suffix for path in folder.iterdir()) if folder.exists() else []


def test_a_receipt_on_demand_changes_nothing_else(service: Service) -> None:
    pid, whole = service.pid(), read(service)
    would = service.run(save_receipt=True, check_mode=True)
    assert (would["failed"], would["changed"], would["outcome"]) == (False, True, "unchanged")
    assert saved(service) == []
    first = service.run(save_receipt=True)
    assert (first["failed"], first["changed"], first["receipt"]) == (False, True, would["receipt"])
    assert saved(service) == [".json", ".log"]
    assert pathlib.Path(first["receipt"]).name == f"{whole['fingerprint']}.log"
    for check_mode in (True, False):
        again = service.run(save_receipt=True, check_mode=check_mode)
        assert (again["failed"], again["changed"], again["receipt"]) == (False, False, first["receipt"])
    assert service.pid() == pid
    assert (service.records(), first["actions"]) == ([], [])


def test_what_plan_and_switch_read_when_the_log_was_emptied(service: Service) -> None:
    whole = read(service)
    assert service.run(save_receipt=True)["changed"] is True
    os.truncate(service.log, 0)
    planned = read(service)
    assert (planned["source"]["kind"], planned["fingerprint"]) == ("receipt", whole["fingerprint"])
    unchanged = service.run(OLD, fingerprint=planned["fingerprint"])
    assert (unchanged["failed"], unchanged["outcome"], unchanged["changed"]) == (False, "unchanged", False)
    assert unchanged["ledger"]["source"]["kind"] == "receipt"
    assert "its ledger is that of its receipt" in unchanged["warnings"][0]
    switched = service.run(NEW, fingerprint=planned["fingerprint"])
    assert (switched["outcome"], service.pair()) == ("switched", "25844+5119")


def test_the_receipt_of_a_switch_stands_in(service: Service) -> None:
    switched = service.run(NEW)
    assert saved(service) == [".json", ".log"]
    service.log.rename(f"{service.log}.1")
    service.log.touch()
    found = read(service)
    assert (found["status"], found["source"]["kind"]) == ("complete", "receipt")
    assert found["fingerprint"] == switched["ledger"]["fingerprint"]
    assert found["settled"] == switched["ledger"]["settled"]


def test_a_lost_log_without_a_receipt_saves_none(service: Service) -> None:
    os.truncate(service.log, 0)
    for check_mode in (True, False):
        result = service.run(save_receipt=True, check_mode=check_mode)
        assert (result["failed"], result["code"], result["changed"]) == (True, "receipt_impossible", False)
        assert "The log is empty." in result["msg"]


def test_a_damaged_receipt_is_saved_anew(service: Service) -> None:
    first = service.run(save_receipt=True)
    pathlib.Path(first["receipt"]).write_text("E no usable device\n")
    again = service.run(save_receipt=True)
    assert (again["changed"], again["receipt"]) == (True, first["receipt"])
    assert "is not used" in again["warnings"][0]
    assert service.run(save_receipt=True)["changed"] is False


def test_an_interrupted_switch_comes_first(service: Service) -> None:
    state = State(str(service.folder / "state"), "flash")
    state.make()
    manager = read_request(service.options()).manager
    Journal.begin(state, manager=manager, expect={"to": NEW})
    journal = pathlib.Path(state.journal)
    before = journal.read_text()
    for check_mode in (True, False):
        result = service.run(save_receipt=True, check_mode=check_mode)
        assert (result["code"], result["changed"]) == ("switch_interrupted", False)
    assert journal.read_text() == before
    assert (saved(service), service.pair()) == ([], "24000+5120")


def test_a_receipt_is_not_asked_for_beside_a_switch(service: Service) -> None:
    result = service.run(NEW, save_receipt=True)
    assert (result["failed"], result["code"]) == (True, "option_unusable")
