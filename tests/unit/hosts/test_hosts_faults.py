# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fault injector of the test hosts says of its samples, and that docs/faults.md is the page of its faults.

The injector itself needs real hosts: ``tests/run.sh faults``.
"""

from __future__ import annotations

import importlib
import pathlib
import sys
import typing as t

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture
def injector(monkeypatch: pytest.MonkeyPatch) -> t.Iterator[t.Callable[[str], t.Any]]:
    """Import a module of the injector; none of them is left for other tests."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(_ROOT / "extensions/hosts/faults"))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(_ROOT / "extensions/hosts/faults") in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def _samples(*good_at: tuple[float, bool]) -> list[dict[str, t.Any]]:
    return [{"at": at, "good": good, "wrong": False, "says": ""} for at, good in good_at]


def test_the_page_names_the_faults_that_are_injected_and_no_other(injector: t.Callable[[str], t.Any]) -> None:
    catalogue = injector("catalogue")
    text = (_ROOT / "docs/faults.md").read_text(encoding="utf-8")
    cells = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert [cell for cell in dict.fromkeys(cells) if cell != "fault"] == [
        *(fault.name for fault in catalogue.FAULTS),
        *catalogue.UNTESTED,
    ]


def test_every_phase_of_a_switch_is_one_in_which_the_module_is_killed(injector: t.Callable[[str], t.Any]) -> None:
    catalogue = injector("catalogue")
    names = [*(fault.name for fault in catalogue.FAULTS), *catalogue.UNTESTED]
    design = (_ROOT / "docs/design.md").read_text(encoding="utf-8")
    forward, back = design.split("Phases: ")[1].split(".")[0].split("; on the way back ")
    for phase in forward.replace(" (units only)", "").split(", "):
        assert f"module killed in {phase}" in names
    for phase in back.split(", "):
        assert f"module killed in {phase} of the way back" in names


def test_an_outage_is_from_the_last_good_answer_to_the_next(injector: t.Callable[[str], t.Any]) -> None:
    without = injector("judging").without_service
    assert without(_samples((0.0, True), (0.2, True), (0.4, True))) == 0.0
    assert without(_samples((0.0, True), (0.2, False), (5.0, False), (5.2, True), (5.4, True))) == 5.2
    assert without(_samples((0.0, True), (1.0, False), (2.0, True), (3.0, False), (4.5, True))) == 4.5


def test_an_outage_that_does_not_end_lasts_to_the_last_sample(injector: t.Callable[[str], t.Any]) -> None:
    without = injector("judging").without_service
    assert without(_samples((0.0, True), (1.0, False), (9.0, False))) == 9.0
    assert without(_samples((1.0, False), (9.0, False))) == 8.0


def test_a_slow_answer_is_no_outage(injector: t.Callable[[str], t.Any]) -> None:
    assert injector("judging").without_service(_samples((0.0, True), (2.5, True))) == 0.0


def test_a_line_has_what_was_measured_and_what_is_not_as_it_has_to_be(injector: t.Callable[[str], t.Any]) -> None:
    row = {"seconds": 7.25, "after": "the old pair", "next": "switched a | b", "bad": ["2 engines"]}
    text = injector("judging").page([("x", "system"), ("y", "user")], {("x", "system"): row}, {"z": "a test"})
    lines = [line for line in text.splitlines() if line.startswith(("| x", "| y", "| z"))]
    assert lines == [
        "| x | system | 7.2 s | the old pair; **2 engines** | switched a \\| b |",
        "| y | user | not injected yet | | |",
        "| z | a test |",
    ]


def test_a_play_is_told_by_its_summary(injector: t.Callable[[str], t.Any], tmp_path: pathlib.Path) -> None:
    plays = injector("plays")
    play = plays.Play.__new__(plays.Play)
    play.log = tmp_path / "log"
    play.log.write_text(
        "TASK [kvfleet.radiance.endpoint : Tell what became of it] ****\nok: [dankserver-a] => \n"
        "    msg: 'The switch to 1 + 2 of 2026-01-02T03:04:05Z was interrupted in phase\n        swap: the old pair "
        "was restored.'\n\n"
        "TASK [kvfleet.radiance.endpoint : Show the summary] ****\nok: [dankserver-a] => \n    msg: |-\n"
        "        outcome\n          dankserver-a  switched  25,600 + 5,120 \u2192 25,000 + 5,120\n"
        "          dankserver-b  unchanged  nothing\n\n"
        "PLAY RECAP ****\ndankserver-a : ok=59   changed=4    unreachable=0\ndankserver-b : ok=5   changed=1    x\n"
    )
    assert play.says("dankserver-a") == (
        "The switch to 1 + 2 was interrupted in phase swap: the old pair was restored. "
        "switched 25,600 + 5,120 \u2192 25,000 + 5,120"
    )
    assert play.says("dankserver-b") == "unchanged nothing"
    assert play.changed() == 5
