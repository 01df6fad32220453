# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan that somebody reviewed is exactly what runs, or nothing."""

from __future__ import annotations

import json

from rehearsals import Checkout
from test_whole_in_order import OLD, host_word, pair

REVIEWED = {"VRAM_WEIGHTS_MIB": "25000", "VRAM_KV_MIB": "5120"}


def test_a_plan_file_is_what_runs(used: Checkout) -> None:
    plan = used.path / "reviewed.json"
    run = used.rehearse("--play", "plan", "-e", "weights_mib=25000", "-e", "kv_mib=5120", "-e", f"plan_file={plan}")
    assert run.code == 0, run.text
    content = json.loads(plan.read_text())
    assert content["schema"] == "kvfleet.radiance/plan-file/1"
    assert content["plans"][0]["plan"]["to"]["weights_mib"] == 25000
    assert pair(used.target_env()) == OLD

    run = used.rehearse("-e", f"plan={plan}")
    assert run.code == 0, run.text
    assert pair(used.target_env()) == REVIEWED
    assert host_word(used) == "switched"


def test_once_carried_out_it_changes_nothing(used: Checkout) -> None:
    boots = used.boots()
    run = used.rehearse("-e", f"plan={used.path / 'reviewed.json'}")
    assert run.code == 0, run.text
    # The boot with which each rehearsal begins, and no other.
    assert (host_word(used), used.boots(), pair(used.target_env())) == ("unchanged", boots + 1, REVIEWED)


def test_after_a_restart_to_another_pair_it_is_refused(used: Checkout) -> None:
    assert used.rehearse("-e", "weights_mib=24500", "-e", "kv_mib=5120").code == 0
    boots, now = used.boots(), pair(used.target_env())
    assert now == {"VRAM_WEIGHTS_MIB": "24500", "VRAM_KV_MIB": "5120"}
    run = used.rehearse("-e", f"plan={used.path / 'reviewed.json'}")
    assert run.code != 0
    assert "the service was restarted since" in run.words, run.text
    assert (host_word(used), used.boots(), pair(used.target_env())) == ("refused", boots + 1, now)
