# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first hour of an operator, in the order in which it happens: look, be refused, resize, ask again."""

from __future__ import annotations

import fcntl
import json
import os
import platform

from rehearsals import Checkout

OLD = {"VRAM_WEIGHTS_MIB": "24000", "VRAM_KV_MIB": "5120"}
# What a first resize changes in the fleet directory: env, gates, what runs them, record, documents; no serve script.
WRITTEN = {
    *("scripts/flashnext.env", "tests/flashnext.bats", "records/flashnext.jsonl"),
    *("tests/run.sh", "AGENTS.md", "llms.txt", "docs/runbooks/flashnext.md", "docs/log.md"),
}
# The diffs of check mode, for the run that follows.
foreseen: dict[str, list[str]] = {}
NEW = {"VRAM_WEIGHTS_MIB": "25844", "VRAM_KV_MIB": "5119"}


def pair(env: dict[str, str]) -> dict[str, str]:
    return {key: env[key] for key in OLD}


def test_check_mode_shows_the_plan_and_touches_nothing(used: Checkout) -> None:
    first = used.rehearse("--check", "--diff")
    assert first.code == 0, first.text
    assert "30,969" in first.text
    assert "25,844" in first.text
    before, boots = used.files(), used.boots()
    second = used.rehearse("--check", "--diff")
    assert second.code == 0, second.text
    assert used.files() == before
    # One engine was there from the beginning to the end, started by ./rehearse itself on the old pair.
    assert len(second.pids) == 1
    assert used.boots() == boots + 1
    assert pair(used.target_env()) == OLD
    assert "+VRAM_WEIGHTS_MIB=25844" in second.text
    assert "-VRAM_WEIGHTS_MIB=24000" in second.text
    assert used.record() == []
    foreseen.update(used.fleet_diffs(second.text))
    assert set(foreseen) == WRITTEN


def test_a_pair_beyond_the_ceiling_is_refused_before_any_restart(used: Checkout) -> None:
    before = used.files(own=False)
    run = used.rehearse("-e", "weights_mib=26000", "-e", "kv_mib=5120")
    assert run.code != 0
    for said in ("31,120", "30,969", "25,849", "25,843", "settled at 2.01 GiB free against 209.19 MiB"):
        assert said in run.words, run.text
    assert len(run.pids) == 1
    assert pair(used.target_env()) == OLD
    assert used.files(own=False) == before
    assert host_word(used) == "refused"


def test_a_first_run_switches_and_proves_it(used: Checkout) -> None:
    used.commit_fleet()
    run = used.rehearse("--diff")
    assert run.code == 0, run.text
    # Two minutes where the machine has nothing else to do.
    assert run.seconds < 120 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    for said in ("30,969", "2,058", "209.19", "29,120", "switched", "3 of 3"):
        assert said in run.words, f"{said}: {run.text}"
    assert pair(used.fleet_env()) == NEW
    assert pair(used.target_env()) == NEW
    assert len(run.pids) == 2
    assert "settled at 215.30 MiB free" in used.log()
    assert host_word(used) == "switched"
    # The diffs show every file that git shows; check mode had shown the same of values, gates and what points there.
    shown = used.fleet_diffs(run.text)
    assert used.changed_in_fleet() == set(shown) == WRITTEN
    for name in ("tests/run.sh", "AGENTS.md", "llms.txt"):
        assert foreseen[name] == shown[name]
    # Their comments name the plan, and the run's say what came of it.
    for name in ("scripts/flashnext.env", "tests/flashnext.bats"):
        plain = [[line for line in lines[name] if line[1:2] != "#"] for lines in (foreseen, shown)]
        assert plain[0] == plain[1]
    assert "+VRAM_WEIGHTS_MIB=25844" in shown["scripts/flashnext.env"]
    assert "+## Radiance endpoints" in shown["AGENTS.md"]
    assert (used.state / "api.key").read_text().strip() not in run.text


def test_every_prediction_has_a_verdict(used: Checkout) -> None:
    planned = [entry for entry in used.record() if entry["kind"] == "planned"]
    judged = [entry for entry in used.record() if entry["kind"] == "verdict"]
    predicted = {item["id"] for item in planned[-1]["plan"]["predictions"]}
    verdicts = {entry["prediction"]: entry["verdict"] for entry in judged}
    assert predicted
    assert set(verdicts) == predicted
    assert set(verdicts.values()) == {"held"}


def test_the_record_tells_the_resize(used: Checkout) -> None:
    kinds = used.kinds()
    assert kinds[:2] == ["planned", "switched"]
    assert kinds.count("probed") == 1
    entries = used.record()
    assert [entry["to"] for entry in entries if entry["kind"] == "switched"][0]["weights_mib"] == 25844
    probed = [entry for entry in entries if entry["kind"] == "probed"][0]
    assert probed["boundary"]["retrieved"] == 3
    assert probed["boundary"]["overlap"] == 3
    assert probed["rates"]["verdict"] == "passed"
    planned = entries[0]
    assert "prices" not in planned["plan"] and "arms" not in planned["request"]
    assert len(json.dumps(planned)) < 12_000
    # What was measured is an arm, on the target too, with what it was measured on.
    (arm,) = [entry for entry in entries if entry["kind"] == "arm"]
    assert (arm["weights_mib"], arm["weights_plus_minus_mib"], arm["kv_cache_dtype"]) == (25844, 0, "fp8")
    assert (arm["prefill_tps"], arm["prompt_tokens"]) == (
        probed["rates"]["prefill_tps"],
        probed["rates"]["prompt_tokens"],
    )
    assert (arm["stack"], arm["engine_version"], arm["source"]) == ("rehearsal x20", "1.0.13", "probe")
    assert (arm["attempt"], arm["num_speculative_tokens"]) == (planned["attempt"], 2)
    assert (
        json.dumps(arm, sort_keys=True, separators=(",", ":"))
        in used.one("target/.kvfleet/*/records.jsonl").read_text()
    )


def test_a_second_run_brings_back_what_the_host_lost_of_its_record_and_changes_nothing_else(used: Checkout) -> None:
    used.commit_fleet()
    before, record = used.files(own=False), used.one("target/.kvfleet/flashnext/records.jsonl").read_bytes()
    used.one("target/.kvfleet/flashnext/records.jsonl").unlink()
    run = used.rehearse()
    assert run.code == 0, run.text
    assert "unchanged" in run.text
    assert len(run.pids) == 1
    assert used.changed_in_fleet() == set()
    assert used.files(own=False) == before
    assert used.one("target/.kvfleet/flashnext/records.jsonl").read_bytes() == record
    assert host_word(used) == "unchanged"


def test_check_mode_after_it_has_nothing_to_show(used: Checkout) -> None:
    before = used.files()
    run = used.rehearse("--check", "--diff")
    assert run.code == 0, run.text
    assert "+VRAM_WEIGHTS_MIB" not in run.text
    assert used.files() == before


def test_a_switch_that_is_refused_before_the_stop_is_on_record_with_its_reason(used: Checkout) -> None:
    with used.one("target/.kvfleet/flashnext/lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = used.rehearse("-e", "weights_mib=25000", "-e", "kv_mib=5119", "-e", "probes=none")
    assert host_word(used) == "refused", run.text
    assert len(run.pids) == 1
    assert pair(used.target_env()) == NEW
    planned, refused = used.record()[-2:]
    assert (planned["kind"], refused["kind"], refused["phase"]) == ("planned", "refused", "lock")
    assert refused["attempt"] == planned["attempt"]
    assert "is held by" in refused["says"] and "Nothing was changed." in refused["says"]


def test_the_log_for_a_report_has_the_figures_and_nothing_of_this_machine(used: Checkout) -> None:
    logs = used.state / "logs"
    collect = ("--play", "collect", "-e", f"log_dir={logs}")
    run = used.rehearse(*collect, "--check")
    assert run.code == 0, run.text
    assert "would write" in run.text
    assert not logs.exists()
    before = used.files()
    run = used.rehearse(*collect)
    assert run.code == 0, run.text
    assert "ledger complete" in run.text
    text = used.one("logs/rehearsal-flashnext.boot.log").read_text()
    assert text.splitlines()[-1].startswith("I server: listening on http://127.0.0.1:")
    settled = [line for line in text.splitlines() if "settled at" in line]
    assert len(settled) == 2
    assert set(settled) <= set(used.log().splitlines())
    for private in (str(used.path), "flashnext", platform.node()):
        assert private not in text
    assert used.files() == before


def host_word(checkout: Checkout) -> str:
    """The word of the only host in summary.json."""
    (line,) = json.loads(checkout.one("fleet/.kvfleet/summary.json").read_text())["hosts"]
    return str(line["word"])
