# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _plan_file
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._handover import (
    card_others,
    handover_notes,
    refuse_taken,
)
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._request import request_objection
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._service import gone_words

DAY = {
    "name": "day",
    "manager": "systemd",
    "runtime": "podman",
    "image": "localhost/radiance:1.0.13",
    "model": "/models/day.rad",
    "port": 8000,
    "cards": [0, 1],
    "api_key_file": "/srv/day.key",
}
NIGHT = {
    "name": "night",
    "engine": ["/usr/bin/radiance"],
    "log": "/srv/night.log",
    "pid_file": "/srv/night.pid",
    "model": "/m",
    "port": 8001,
    "cards": [1],
}
ELSEWHERE = {**NIGHT, "name": "elsewhere", "cards": [2]}
UNDO = "ansible-playbook playbooks/rollback.yml -l box -e service=day -e to=previous"


def others(service: dict[str, t.Any], **request: t.Any) -> list[dict[str, t.Any]]:
    return card_others(service, [DAY, NIGHT, ELSEWHERE], "box", "/srv/radiance", request)


def test_those_that_have_a_card_of_it_are_told_as_the_switch_takes_them() -> None:
    assert others(NIGHT) == [
        {
            "service": "day",
            "manager": "systemd",
            "unit": "day.service",
            "start": ["/srv/radiance/scripts/serve-day.sh"],
            "source": "podman",
            "name": "day",
            "cards": [1],
            "endpoint": "http://127.0.0.1:8000",
            "api_key_file": "/srv/day.key",
            "reserved": False,
        }
    ]
    assert others(DAY) == [
        {
            "service": "night",
            "manager": "process",
            "start": ["/srv/radiance/scripts/serve-night.sh"],
            "pid_file": "/srv/night.pid",
            "path": "/srv/night.log",
            "source": "file",
            "cards": [1],
            "endpoint": "http://127.0.0.1:8001",
            "reserved": False,
        }
    ]
    assert others(ELSEWHERE) == []


def reserved(service: dict[str, t.Any], *items: dict[str, t.Any], **request: t.Any) -> list[bool]:
    return [other["reserved"] for other in others({**service, "reserved_for_others_mib": list(items)}, **request)]


def test_a_part_is_reserved_where_it_is_on_each_card_that_both_have() -> None:
    wide = {**NIGHT, "cards": [0, 1]}
    one = {"card": 1, "mib": 2048, "reason": "night"}
    assert reserved(NIGHT, one) == [True]
    assert reserved(wide, one) == [False]
    assert reserved(wide, one, {"card": 0, "mib": "0"}) == [False]
    assert reserved(wide, one, {"card": 0, "mib": "512"}) == [True]
    with pytest.raises(RadianceError) as error:
        reserved(NIGHT, {"card": 1, "mib": "02048"})
    assert error.value.code == "not_a_whole_number"


def test_a_command_reserves_instead_of_the_inventory_and_a_reviewed_plan_instead_of_both(
    example: t.Any, tmp_path: pathlib.Path
) -> None:
    one = {"card": 1, "mib": 2048, "reason": "night"}
    assert reserved(NIGHT, reserved_for_others_mib=[one]) == [True]
    for asked, kept in (({"reserved_for_others_mib": [one]}, True), ({}, False)):
        run = {"service": {"name": "night"}, "plan": example.plan, "options": asked}
        (tmp_path / "plan.json").write_text(json.dumps(_plan_file.plan_file({"box": [run]})))
        found = reserved(NIGHT, one, plan=str(tmp_path / "plan.json"), reserved_for_others_mib=[one])
        assert found == [kept]


def test_taken_cards_are_refused_unless_they_are_handed_over() -> None:
    told = [
        {
            "service": "night",
            "stance": "in_the_way",
            "both_run": False,
            "says": "night runs on card 1, and day does not run.",
        },
        {"service": "idle", "stance": "beside", "both_run": False, "says": "idle runs on card 0 too."},
    ]
    plan = {"from": {"weights_mib": 24000, "kv_mib": 5120}, "to": {"weights_mib": 24000, "kv_mib": 5120}}
    refuse_taken(DAY, told, plan, True)
    refuse_taken(DAY, told[1:], plan, False)
    with pytest.raises(RadianceError) as refused:
        refuse_taken(DAY, told, plan, False)
    assert (refused.value.code, refused.value.text) == (
        "cards_taken",
        "night runs on card 1, and day does not run. Nothing was changed. Stop night; or keep free what "
        "it takes (reserved_for_others_mib, for each of these cards); or have its cards handed over: -e service=day "
        "-e handover=true drains and stops night, and starts it again if this does not hold.",
    )
    assert handover_notes(DAY, told, plan, True, UNDO) == [
        "night runs on card 1, and day does not run. It is drained and stopped for day, and stays stopped where that "
        "holds. To hand the cards back: ansible-playbook playbooks/resize.yml -l box -e service=night -e handover=true",
        "idle runs on card 0 too.",
    ]
    assert handover_notes(DAY, told, plan, False, UNDO) == [item["says"] for item in told]
    # A command of the inventory may name no service: without a name it would hand the cards to the one that has them.
    own = "./rehearse --play rollback -e to=previous"
    assert handover_notes(DAY, told, plan, True, own)[0].endswith(
        ": ./rehearse --play resize -e service=night -e handover=true"
    )


def test_beside_one_that_runs_as_well_a_pair_that_is_no_larger_has_room() -> None:
    told = [{"service": "night", "stance": "in_the_way", "both_run": True, "says": "night runs on card 1 too."}]
    now, more = {"weights_mib": 24000, "kv_mib": 5120}, {"weights_mib": 24001, "kv_mib": 5120}
    same = {"from": now, "to": {"weights_mib": 23120, "kv_mib": 6000}}
    refuse_taken(DAY, told, same, False)
    assert handover_notes(DAY, told, same, True, UNDO) == ["night runs on card 1 too."]
    for to in (more, {"weights_mib": None, "kv_mib": None}):
        with pytest.raises(RadianceError, match="^night runs on card 1 too"):
            refuse_taken(DAY, told, {"from": now, "to": to}, False)


def test_a_service_that_does_not_run_is_told_how_it_gets_its_cards() -> None:
    read = {"msg": "podman has no container 'day'.", "code": "container_absent"}
    said = gone_words(DAY, "/s.sh", read, others(DAY))
    assert said.endswith(
        "Where night is to give up its cards for it: -e service=day -e handover=true stops night and starts day in its "
        "place."
    )
    assert "No whole receipt of an earlier boot of day is on the host" in gone_words(
        DAY, "/s.sh", read, others(DAY), True
    )
    assert gone_words(DAY, "/s.sh", read).endswith("systemctl reset-failed day.service; systemctl start day.service")


def test_a_handover_is_to_one_service() -> None:
    two = [DAY, {**DAY, "name": "night"}]
    assert request_objection({"handover": "true"}, two, "box") == (
        "handover=true: say which service gets the cards, with service=NAME."
    )
    assert request_objection({"handover": "true", "service": "day"}, two, "box") == ""
    both = {"handover": "true", "service": "day", "after_stop": "undo"}
    assert request_objection(both, two, "box").startswith("handover=true with after_stop=undo: a run does not hand ")
    assert request_objection({**both, "after_stop": "leave"}, two, "box") == ""
    assert request_objection({"handover": "maybe", "service": "day"}, two, "box").startswith("handover is 'maybe'.")
