# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fleets that are lost in every way before anything starts: real runs, each host with its word, and none hidden."""

from __future__ import annotations

import json
import pathlib
import re
import stat
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.tests.unit.playbooks.fleets import Fleet


def script(path: pathlib.Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def failing(said: str) -> list[str]:
    """The hosts that the recap has as failed."""
    return re.findall(r"(\S+) : ok=\d+ changed=\d+ unreachable=0 failed=1 ", said.rpartition("PLAY RECAP")[2])


@pytest.fixture
def fleet(tmp_path: pathlib.Path) -> Fleet:
    """Four hosts: one is down, one wants a password for sudo, one declares no service, one names what is nowhere."""
    fleet = Fleet(tmp_path, ["down", "locked", "bare", "unset"])
    # Ansible that cannot write what it has to send tells of that instead.
    silent = script(tmp_path / "ssh", "[ -t 0 ] || cat >/dev/null; echo 'no route to host' >&2; exit 255")
    fleet.hosts["down"] |= {"ansible_connection": "ssh", "ansible_ssh_executable": silent, "ansible_host": "127.0.0.1"}
    sudo = script(tmp_path / "sudo", "echo 'sudo: a password is required' >&2; exit 1")
    fleet.hosts["locked"] |= {"ansible_become": True, "ansible_become_user": "nobody", "ansible_become_exe": sudo}
    del fleet.hosts["bare"]["endpoint_services"]
    fleet.hosts["unset"]["endpoint_services"] = "{{ nonesuch }}"
    tell = script(
        tmp_path / "tell",
        f'cat > "{tmp_path}/told"; echo "$1" > "{tmp_path}/words"; echo "no such channel" >&2; exit 3',
    )
    fleet.vars["endpoint_notify"] = [tell, "$HOME; ops"]
    return fleet


def test_every_host_that_is_lost_has_its_word_and_the_end_is_told(fleet: Fleet) -> None:
    code, said = fleet.play("resize", ANSIBLE_ANY_ERRORS_FATAL="true")
    assert code != 0
    summary = fleet.summary()
    words = {line["host"]: line["word"] for line in summary["hosts"]}
    assert words == {"down": "not_reached", "locked": "refused", "bare": "refused", "unset": "refused"}
    assert summary["failed"] == ["down", "locked", "bare", "unset"]
    assert summary["done"] == summary["not_started"] == summary["undone"] == []
    says = {line["host"]: line["says"] for line in summary["hosts"]}
    assert says["down"].endswith("no route to host")
    assert "password" in says["locked"]
    assert "declares no endpoint_services" in says["bare"]
    assert "'nonesuch' is undefined" in says["unset"]
    assert "failed down, locked, bare, unset" in said
    assert failing(said) == ["bare", "down", "locked", "unset"]
    # Told word by word, and what becomes of it changes nothing.
    assert json.loads((fleet.path / "told").read_text()) == summary
    assert (fleet.path / "words").read_text() == "$HOME; ops\n"
    assert "tell ended with 3, and may not have taken the summary: no such channel" in said

    (fleet.path / "told").unlink()
    _code, said = fleet.play("resize", "--check", "-l", "bare")
    assert "tell is not run" in said
    assert not (fleet.path / "told").exists()


def test_plans_that_cannot_be_made_are_one_line_each(fleet: Fleet) -> None:
    code, said = fleet.play("plan", "-e", f"plan_file={fleet.path}/plan.json")
    assert code != 0
    assert "0 planned, 4 not" in said
    for line in (
        "down flashnext not_reached: the host does not answer: ",
        "bare – refused: bare declares no endpoint_services",
    ):
        assert line in said
    assert "plan.json is not written: it holds the plans of every host, or none." in said
    assert failing(said) == ["bare", "down", "locked", "unset"]
    assert not (fleet.path / "plan.json").exists()
    assert not (fleet.path / "told").exists()


def test_ways_back_are_listed_while_the_host_is_down(fleet: Fleet) -> None:
    shape = {"max_num_seqs": 3, "max_model_len": 200000, "kv_cache_dtype": "fp8", "num_speculative_tokens": 2}
    own: dict[str, t.Any] = {"downtime_seconds": 41.2, "receipt": None, "ledger": None, "image": None}
    entry = _records.entry(
        "switched", "down", "flashnext", "0123456789ab", to={"weights_mib": 25844, "kv_mib": 5119, **shape}, **own
    )
    (fleet.path / "fleet/records").mkdir(parents=True)
    (fleet.path / "fleet/records/flashnext.down.jsonl").write_text(f"{json.dumps(entry)}\n")
    code, said = fleet.play("rollback", "-e", "to=list", "-l", "down")
    assert code == 0, said
    assert "The record in the fleet directory alone; the host's cannot be read: " in said
    row = f"{entry['id']} {entry['at']} 25,844 + 5,119 3 x 200,000, fp8, depth 2 – runs now, by the record"
    assert row in said
    assert not (fleet.path / "fleet/.kvfleet").exists()
