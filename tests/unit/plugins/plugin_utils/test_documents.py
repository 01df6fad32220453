# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documents of a fleet directory: they point to the env, tell each outcome once, and pass a Markdown linter."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import put_back
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _blocks, _documents
from pymarkdown.api import PyMarkdownApi

KINDS = ("runbook", "agents", "llms", "log")
UNIT = {"name": "flashnext", "manager": "systemd", "runtime": "podman", "image": "i", "model": "/m.rad", "port": 1}
USER = {"name": "flashnext", "manager": "systemd_user", "engine": ["/e"], "model": "/m.rad", "port": 1}


def about(service: dict[str, t.Any], record: list[t.Any], to: t.Any, making: t.Any = None) -> dict[str, t.Any]:
    """What a document is made of, and the run under ``run``."""
    return {
        "run": {"service": service, "record": record, "plan": {"to": to}, "making": making, "failure": None},
        "host": "dankserver",
        "check": making is not None,
        "undo": "ansible-playbook playbooks/rollback.yml -l dankserver -e to=previous",
    }


def document(text: str, kind: str, told: dict[str, t.Any]) -> dict[str, str]:
    return _documents.fleet_document(text, kind, told["run"], told)


def written(text: str, kind: str, told: dict[str, t.Any]) -> str:
    made = document(text, kind, told)
    assert made["objection"] == ""
    # A second run finds nothing to do.
    assert document(made["text"], kind, told)["text"] == made["text"]
    return made["text"]


@pytest.fixture(scope="module")
def linter() -> PyMarkdownApi:
    # Rows of a table and what an engine printed cannot be folded.
    return PyMarkdownApi().disable_rule_by_identifier("md013")


def findings(linter: PyMarkdownApi, text: str) -> list[str]:
    return [
        f"{found.line_number} {found.rule_id} {found.rule_description}"
        for found in linter.scan_string(text).scan_failures
    ]


@pytest.mark.parametrize("case", ["unit", "user", "process", "rolled_back", "taken_over", "hand", "dot"])
def test_the_documents_pass_a_linter(linter: PyMarkdownApi, example: t.Any, case: str) -> None:
    service = {"unit": UNIT, "user": {**USER, "per_host": True}, "dot": {**UNIT, "name": "flash."}}.get(
        case, example.service
    )
    record = [example.planned(), example.switched(), example.verdict("weights_mib", "held", 25844)]
    if case == "rolled_back":
        said = {"says": "```\n<b>*not* [this](x)</b> http://x.y\nand so on " * 9, "phase": "ready", "to": None}
        own = {"tried": example.new, "downtime_seconds": None, "serving": True}
        record = [example.planned(), example.entry("rolled_back", **said, **own)]
    to = example.old if case == "rolled_back" else example.new
    hand = "# Ours\n\nBy hand.\n\n## 2026-01-02: a thing\n\nDone.\n" if case == "hand" else ""
    for kind in KINDS:
        text = written(hand, kind, about(service, [] if case == "taken_over" else record, to))
        if text:
            assert findings(linter, text) == [], f"{kind}:\n{text}"
            assert text.startswith(hand)


def test_the_linter_finds_what_is_wrong(linter: PyMarkdownApi) -> None:
    assert findings(linter, "# A\n\ntext\n## B\n") == ["4 MD022 Headings should be surrounded by blank lines."]


def test_what_points_to_the_env_has_no_number_of_the_pair(example: t.Any) -> None:
    told = about(example.service, [example.planned(), example.switched()], example.new)
    for kind in ("runbook", "agents", "llms"):
        text = written("", kind, told)
        assert "scripts/flashnext.env" in text
        for number in ("25,844", "25844", "5,119", "5119", "200,000", "200000", "30,969", "5,062"):
            assert number not in text, kind


def test_the_runbook_shows_what_the_boots_printed(example: t.Any) -> None:
    settled = {"card": 0, "line": "card 0 settled at 215.30 MiB free against 209.19 MiB"}
    switched = example.entry(
        "switched",
        to=example.new,
        downtime_seconds=1.0,
        receipt=None,
        ledger={"fingerprint": "9c25fe3f372b", "settled": [settled]},
    )
    text = written("", "runbook", about(UNIT, [example.planned(), switched], example.new))
    assert (
        f"The boot `9c25fe3f372b`, which proved the pair in force, printed:\n\n```text\n{settled['line']}\n```" in text
    )
    assert "By `pair_within_ceiling`:\n\n```text\ncard 0 settled at 2.01 GiB free against 209.19 MiB" in text
    assert "podman logs flashnext 2>&1 | grep -aE 'settled at|backs|slab slots|sampler:'\n" in text
    assert "[scripts/flashnext.env](../../scripts/flashnext.env)" in text
    assert "ansible-playbook playbooks/resize.yml -l dankserver -e service=flashnext -e fill=true" in text
    # A pair that somebody else put there since is not proved by that boot.
    assert "9c25fe3f372b" not in written("", "runbook", about(UNIT, [example.planned(), switched], example.old))


@pytest.mark.parametrize(
    ("service", "command"),
    [
        (USER, "journalctl --user -u flashnext.service -b -o cat | grep -aE"),
        ({**UNIT, "runtime": "docker", "container": "next"}, "docker logs next 2>&1 | grep -aE"),
        (
            {**USER, "manager": "process", "log": "/l", "pid_file": "/p"},
            "grep -aE 'settled at|backs|slab slots|sampler:' /l",
        ),
    ],
)
def test_the_bare_lines_are_read_where_the_service_prints_them(service: t.Any, command: str, example: t.Any) -> None:
    assert command in written("", "runbook", about(service, [], example.new))


def test_services_are_rows_of_one_table_and_lines_of_one_list(example: t.Any) -> None:
    agents, llms = "# Fleet\n", "# Fleet\n"
    for name in ("next", "flash", "zulu", "alpha"):
        told = about({**UNIT, "name": name}, [], example.new)
        agents, llms = written(agents, "agents", told), written(llms, "llms", told)
    rows = [line for line in agents.splitlines() if line.startswith("|")]
    assert [row.split(" ")[1] for row in rows[2:]] == ["alpha", "flash", "next", "zulu"]
    assert [line.split("]")[0] for line in llms.splitlines() if line.startswith("-")] == [
        "- [alpha",
        "- [flash",
        "- [next",
        "- [zulu",
    ]
    assert agents.count("| service | host |") == 1
    # A service that moves to another host keeps its row.
    moved = {**about({**UNIT, "name": "next"}, [], example.new), "host": "other"}
    assert written(agents, "agents", moved) == agents.replace("| next | dankserver |", "| next | other |")


def test_a_pool_below_the_contract_is_said_wherever_the_pair_is_pointed_to(example: t.Any) -> None:
    contract = {**example.plan["contract"], "backing": "one_request"}
    told = about(example.service, [example.planned(contract=contract), example.switched()], example.new)
    for kind in ("agents", "llms"):
        assert "the pool backs one request: less than the contract" in written("", kind, told)


def test_each_outcome_is_told_once_with_its_verdicts(example: t.Any) -> None:
    record = [example.planned("a" * 12), example.rolled_back("a" * 12)]
    record.append(example.verdict("weights_mib", "killed", 12, "a" * 12))
    text = written("# Log\n\nOld things.\n", "log", about(example.service, record, example.old))
    assert text.startswith("# Log\n\nOld things.\n\n<!-- BEGIN kvfleet.radiance: managed; flashnext ")
    assert "flashnext on dankserver, rolled back\n" in text
    assert "It was undone in phase referee:\n\n```text\ncard 0 settled at 149.19 MiB free\n```" in text
    assert "- `weights_mib`: 25,844 MiB, killed, 12\n" in text
    first = text
    record += [example.planned("b" * 12), example.switched("b" * 12)]
    text = written(text, "log", about(example.service, record, example.new))
    assert text.startswith(first)
    assert text.count("<!-- BEGIN") == 2
    assert "- `prefill_tps`: 3,876.10 to 4,115.90 t/s, open\n" in text
    # A verdict that lands later changes its own line; what somebody wrote into the entry stays.
    text = text.replace("Record ", "We were glad of it. Record ").replace(
        "- `settled_free_mib.card0`: 210.12 to 220.36 MiB, open\n", ""
    )
    record.append(example.verdict("prefill_tps", "held", 4000.0, "b" * 12))
    record.append(example.verdict("settled_free_mib.card0", "held", 215.3, "b" * 12))
    head, tail = text.rsplit("t/s, open", 1)
    assert written(text, "log", about(example.service, record, example.new)) == f"{head}t/s, held, 4,000{tail}"


def test_what_ends_a_probation_is_an_outcome_of_its_own(example: t.Any) -> None:
    record = [example.planned(), example.switched()]
    text = written("", "log", about(example.service, record, example.new))
    record.append(example.rolled_back())
    after = written(text, "log", about(example.service, record, example.old))
    assert after.startswith(text)
    assert "flashnext on dankserver, rolled back" in after


def test_an_entry_that_somebody_took_out_does_not_come_back(example: t.Any) -> None:
    record = []
    text = ""
    for attempt in ("a" * 12, "b" * 12):
        record += [example.planned(attempt), example.switched(attempt)]
        text = written(text, "log", about(example.service, record, example.new))
    first = _blocks.found(text)[0]
    lines = text.split("\n")
    pruned = "\n".join([*lines[: first.begin], *lines[first.end + 1 :]])
    assert written(pruned, "log", about(example.service, record, example.new)) == pruned
    # A log that is declared late begins with the last outcome.
    assert written("", "log", about(example.service, record, example.new)).count("<!-- BEGIN") == 1


def test_what_crashed_was_started_and_went_from_nowhere_to_nowhere(example: t.Any) -> None:
    record = [example.planned(to=example.old, changes=[]), example.switched(to=example.old)]
    text = written("", "log", about(example.service, record, example.old))
    assert "Started on 24,000 + 5,120 MiB a card" in text
    assert "From " not in text


@pytest.mark.parametrize(
    ("hand", "before"),
    [
        ("# Log\n\n### 2026-02-01 b\n\nx\n\n### 2026-01-01 a\n\ny\n", "### 2026-02-01 b"),
        ("# Log\n\nNewest entries first.\n\n### 2026-01-01 a\n\ny\n", "### 2026-01-01 a"),
        ("# Log\n\n### 2026-01-01 a\n\nx\n\n### 2026-02-01 b\n\ny\n", None),
    ],
)
def test_the_newest_is_where_the_order_of_the_file_has_it(example: t.Any, hand: str, before: str | None) -> None:
    record: list[t.Any] = []
    text = hand
    for attempt in ("a" * 12, "b" * 12):
        record += [example.planned(attempt), example.switched(attempt)]
        text = written(text, "log", about(example.service, record, example.new))
    ids = [f"flashnext {entry['id']}" for entry in record if entry["kind"] == "switched"]
    assert [block.name for block in _blocks.found(text)] == (ids if before is None else ids[::-1])
    assert f"### {record[-1]['at']}: flashnext" in text
    if before is None:
        assert text.startswith(hand)
    else:
        head, tail = hand.split(before)
        assert text.startswith(head + "<!-- BEGIN")
        assert text.endswith(f"-->\n\n{before}{tail}")


def test_check_mode_shows_the_entry_of_the_plan_that_would_run(example: t.Any) -> None:
    planned = example.planned()
    told = about(example.service, [], example.new, planned)
    text = document("", "log", told)["text"]
    assert "flashnext on dankserver, planned" in text
    assert "- `weights_mib`: 25,844 MiB, open" in text


def test_after_a_failure_the_pair_that_ran_before_is_in_force(example: t.Any) -> None:
    # The last switch put that very pair there, so the runbook knows its gates; it knows nothing of what failed.
    record = [example.planned(to=example.old), example.switched(to=example.old)]
    told = about(UNIT, record, example.new)
    told["run"]["plan"]["from"] = example.old
    assert "The next resize says which apply here" in written("", "runbook", told)
    told["run"]["failure"] = {"word": "rolled_back"}
    assert "The next resize says which apply here" not in written("", "runbook", told)


def test_a_file_that_cannot_be_kept_is_named_and_left(example: t.Any) -> None:
    damaged = "# Fleet\n<!-- BEGIN kvfleet.radiance: managed; services -->\n| mine |\n"
    made = document(damaged, "agents", about(UNIT, [], example.new))
    assert made["text"] == damaged
    assert made["objection"].startswith("AGENTS.md: line 2: the block 'services' begins there and has no END.")
    made = document("na\ufffdve\n", "llms", about(UNIT, [], example.new))
    assert made == {
        "text": "na\ufffdve\n",
        "masked": "",
        "objection": "llms.txt: line 1 is not UTF-8 text. Nothing was changed. Convert the file first.",
    }


def test_what_goes_through_ansible_has_no_secret_and_gets_it_back(example: t.Any) -> None:
    key = "-----BEGIN PRIVATE KEY----- comes first in `key.pem`\n"
    for hand in ("# Fleet\n\nHF_TOKEN=hunter2\nHF_TOKEN=hunter3\n", f"# Fleet\n\n- a\n{key}\nhunter2 and\n- a\n"):
        made = document(hand, "agents", about(UNIT, [], example.new))
        assert made["text"].startswith(hand + "\n<!-- BEGIN") and "hunter" in made["text"]
        assert "hunter" not in made["masked"]
        assert put_back(made["masked"], hand) == made["text"]
        again = document(made["text"], "agents", about(UNIT, [], example.new))
        assert (again["text"], put_back(again["masked"], made["text"])) == (made["text"], made["text"])


def test_what_an_outcome_says_of_a_secret_is_none_of_the_file(example: t.Any) -> None:
    back = {**example.rolled_back(), "says": "it ended: unknown option --api-key ********"}
    told = about(UNIT, [example.planned(), back], example.new)
    made = document("", "log", told)
    assert (made["objection"], made["masked"]) == ("", made["text"])
    assert "--api-key …" in made["text"]


def test_names_and_paths_that_mean_something_to_markdown(linter: PyMarkdownApi, example: t.Any) -> None:
    paths = {"runbook": "docs/The [q] (1).md", "env": "a b|c*.env"}
    told = about({**UNIT, "per_host": True, "paths": paths}, [example.planned(), example.switched()], example.new)
    told["host"] = "web|1*"
    texts = {kind: written("", kind, told) for kind in KINDS}
    assert all(findings(linter, text) == [] for text in texts.values())
    assert (
        "\n| flashnext on web\\|1\\* | web\\|1\\* | [a b\\|c\\*.env](a%20b%7Cc%2A.env) | "
        "[tests/flashnext.web\\|1\\*.bats](tests/flashnext.web%7C1%2A.bats) | "
        "[docs/The \\[q\\] (1).md](docs/The%20%5Bq%5D%20%281%29.md) |\n"
    ) in texts["agents"]
    line = "\n- [flashnext on web\\|1\\*](docs/The%20%5Bq%5D%20%281%29.md): radiance endpoint on web\\|1\\*"
    assert line in texts["llms"]
    assert "| runs as | `flashnext.service` of the system on `web\\|1*`, container `flashnext` |" in texts["runbook"]
    assert "playbooks/plan.yml -l 'web|1*' -e service=flashnext" in texts["runbook"]
    assert ": flashnext on web\\|1\\* on dankserver, switched\n" in texts["log"]
