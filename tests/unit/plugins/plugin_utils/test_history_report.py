# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record as a person reads it: limits beside measurements, what was refuted stays, and 100 columns."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._history_report import history_report

UNDO = "ansible-playbook playbooks/rollback.yml -l dankserver -e service=flashnext -e to=previous"


def told(example: t.Any, record: t.Any, **service: t.Any) -> list[str]:
    lines = history_report(record, {**example.service, **service}, "dankserver", {"undo": UNDO})
    assert max(map(len, lines)) <= 100, max(lines, key=len)
    return lines


def row(lines: list[str], start: str) -> str:
    """The only row that starts so, with one blank between its cells."""
    (found,) = [line for line in lines if line.startswith(f"  {start}")]
    return " ".join(found.split())


def test_an_empty_record_says_so(example: t.Any) -> None:
    assert told(example, []) == [
        "flashnext on dankserver",
        "  The record on the host, joined with the one in the fleet directory.",
        "",
        "No resize is on record.",
        "",
        "No arm is known: nothing was measured yet, and none was declared or imported.",
    ]


@pytest.mark.parametrize(("check", "word"), [(False, "added"), (True, "would add")])
def test_the_head_says_where_the_record_is_from_and_what_was_imported(example: t.Any, check: bool, word: str) -> None:
    imported = {"file": "arms.yml", "added": 5, "of": 6, "kinds": ["arm"]}
    about = {"unread": "Permission denied.", "imported": imported, "check": check}
    assert history_report([], example.service, "dankserver", about)[:4] == [
        "flashnext on dankserver",
        "  The record in the fleet directory alone, because the one on the host cannot be read: Permission",
        "    denied.",
        f"  {word} 5 of 6 arms of arms.yml",
    ]


def test_predictions_stand_beside_what_was_measured(example: t.Any) -> None:
    record = [
        example.planned("aaaaaaaaaaaa"),
        example.rolled_back("aaaaaaaaaaaa"),
        example.verdict("weights_mib", "held", 25844, "aaaaaaaaaaaa"),
        example.verdict("settled_free_mib.card0", "killed", 149.19, "aaaaaaaaaaaa"),
        example.planned("bbbbbbbbbbbb"),
        example.switched("bbbbbbbbbbbb"),
        example.verdict("weights_mib", "held", 25844, "bbbbbbbbbbbb"),
        example.verdict("settled_free_mib.card0", "held", 215.3, "bbbbbbbbbbbb"),
    ]
    lines = told(example, record)
    first = lines.index(f"{record[0]['at']}  attempt aaaaaaaaaaaa, rolled back in phase referee")
    back = f"to={record[5]['id']} returns to it"
    second = lines.index(f"{record[4]['at']}  attempt bbbbbbbbbbbb, switched after 41 s; {back}")
    command = "  ansible-playbook playbooks/rollback.yml -l dankserver -e service=flashnext -e to=ID"
    assert lines[lines.index("to return to one:") + 1] == command
    # What was refuted stays where it was refuted, with its limits and its reason, whatever held since.
    failed, good = lines[first:second], lines[second:]
    assert row(failed, "settled_free_mib.card0  ") == "settled_free_mib.card0 210.12 to 220.36 MiB 149.19 killed"
    assert row(good, "settled_free_mib.card0  ") == "settled_free_mib.card0 210.12 to 220.36 MiB 215.30 held"
    assert row(good, "prefill_tps") == "prefill_tps 3,876.10 to 4,115.90 t/s – open"
    assert "  settled_free_mib.card0: measured 149.19" in failed
    assert "  rolled back: card 0 settled at 149.19 MiB free" in failed
    assert "  24,000 + 5,120 → 25,844 + 5,119 MiB a card, 3 x 200,000 tokens, fp8, speculation depth 2" in failed
    assert "  held 1 of 2 here, 1 of 2 so far" in failed
    assert "  held 2 of 2 here, 3 of 4 so far" in good
    assert row(lines, "quantity") == "quantity held killed void share held last killed"
    (settled,) = [line for line in lines if line.startswith("  settled_free_mib ")]
    assert settled.split() == ["settled_free_mib", "1", "1", "0", "50%", record[3]["at"]]


def test_an_attempt_that_was_refused_says_when_and_why(example: t.Any) -> None:
    planned = example.planned()
    refused = example.entry("refused", phase="precheck", says="The runtime does not have the image x:2.")
    lines = told(example, [planned, refused])
    head = f"{planned['at']}  attempt 0123456789ab"
    assert f"{head}, refused in phase precheck, before anything was stopped" in lines
    assert "  The runtime does not have the image x:2." in lines
    # Nothing has ended it: that is said where it is so, and no more where it was tried again and held.
    assert f"{head}, no end of it is on record" in told(example, [planned])
    again = [planned, refused, example.switched()]
    assert f"{head}, switched after 41 s; to={again[2]['id']} returns to it" in told(example, again)
    assert not any("refused" in line for line in told(example, again))


def test_what_was_printed_in_gib_is_told_with_its_rounding(example: t.Any) -> None:
    line = example.verdict("settled_free_mib.card0", "held", 2058.24)
    for rounding, text in (({"plus_minus": 5.12}, " 2,058.24 ± 5.12 held"), ({}, " 2,058.24 held")):
        lines = told(example, [example.planned(), example.switched(), {**line, **rounding}])
        assert row(lines, "settled_free_mib.card0  ").endswith(text)


def test_one_reason_for_several_predictions_is_told_once(example: t.Any) -> None:
    names = ("weights_mib", "settled_free_mib.card0")
    killed = [{**example.verdict(name, "killed", None), "says": "The boot did not print it."} for name in names]
    lines = told(example, [example.planned(), example.rolled_back(), *killed])
    assert [line for line in lines if "did not print it" in line] == [
        "  weights_mib, settled_free_mib.card0: The boot did not print it."
    ]


def test_a_roll_back_says_where_it_returned_to(example: t.Any) -> None:
    back = example.entry("rollback", to=example.old, returns_to="0123456789ab", says="returning to 24,000 + 5,120")
    assert "  returning to 24,000 + 5,120" in told(example, [example.planned(), back, example.switched()])


def test_the_last_probe_of_an_attempt_is_told(example: t.Any) -> None:
    boundary = {"verdict": "passed", "says": "3 of 3 markers came back " * 8}
    probed = example.entry("probed", calibration=None, boundary=boundary, rates=None)
    lines = told(example, [example.planned(), example.switched(), probed])
    assert any(line.startswith("  boundary passed: 3 of 3 markers came back") for line in lines)


def test_arms_have_their_conditions_and_those_of_another_stack_are_counted(example: t.Any) -> None:
    declared = {
        "weights_mib": 24000,
        "prefill_tps": 3290,
        "prompt_tokens": 43500,
        "kv_cache_dtype": "fp8",
        "stack": "cards",
    }
    probed = example.arm(
        25844,
        prefill_tps=3996.4,
        decode_tps=121.3,
        prompt_tokens=43489,
        kv_cache_dtype="fp8",
        num_speculative_tokens=2,
        draft_acceptance=0.71,
        stack="cards",
        engine_version="1.0.13",
        image_digest="sha256:0f3a9d5c7be2418690fd3c2b7a4e1d8065c94f7be3a2108d6c5b4e3f2a190817",
    )
    imported = example.arm(22208, decode_tps=94.1, source="import", measured_at=None, stack="another machine " * 5)
    lines = told(example, [probed, imported], arms=[declared], stack="cards")
    assert row(lines, "2026-10-13") == "2026-10-13 25,844 3,996 121.3 43,489 fp8 2 0.71 probe 3"
    by_slab = {line.split()[1]: " ".join(line.split()) for line in lines if line.startswith("  –")}
    assert by_slab["24,000"] == "– 24,000 3,290 – 43,500 fp8 – – inventory 2"
    assert by_slab["22,208"] == "– 22,208 – 94.1 – – – – import 1"
    assert lines.index("  stack 2: cards") > lines.index("  stack 1: " + ("another machine " * 5).strip())
    assert "stack 3: cards; engine 1.0.13; image sha256:0f3a9d5c7be2418690fd3c2b7a4e1d" in " ".join(
        " ".join(lines).split()
    )
    assert "  1 of 3 are not of the declared stack, cards: no plan of this service uses them." in lines


def test_what_was_imported_is_marked_and_counted_apart(example: t.Any) -> None:
    def past(quantity: str, verdict: str, measured: t.Any, at: t.Any, says: str = "") -> dict[str, t.Any]:
        told_of = {"quantity": quantity, "low": 4200, "high": 4500, "unit": "t/s", "measured": measured}
        return dict(example.entry("past_verdict", **told_of, verdict=verdict, says=says, judged_at=at))

    record = [example.planned(), example.switched(), example.verdict("prefill_tps", "held", 4000.0)]
    record += [
        past("prefill_tps", "killed", 3584, "2026-10-13", "another kernel"),
        past("prefill_tps", "held", 4379, None),
    ]
    lines = told(example, record)
    begin = lines.index("imported: predicted and judged before this record")
    assert [" ".join(line.split()) for line in lines[begin + 1 : begin + 9]] == [
        "judged quantity predicted measured verdict",
        "– prefill_tps 4,200 to 4,500 t/s 4,379 held",
        "2026-10-13 prefill_tps 4,200 to 4,500 t/s 3,584 killed",
        "prefill_tps: another kernel",
        "",
        "score of what was imported, in no share above",
        "quantity held killed void share held last killed",
        "prefill_tps 1 1 0 50% 2026-10-13",
    ]
    score = lines.index("score by quantity")
    assert [" ".join(line.split()) for line in lines[score + 2 : begin - 1]] == ["prefill_tps 1 0 0 100%"]
