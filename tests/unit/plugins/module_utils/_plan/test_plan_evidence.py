# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ledger that was damaged, edited or made by another program is refused in words, or planned from: no traceback."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import ledger, size

GONE = object()
DAMAGE = (GONE, None, 0, -1, -76898304.5, float("nan"), float("inf"), 10**30, True, "", "x", "0", "²", [], [1], {})
REQUEST = {
    "shape": {"max_num_seqs": 4, "kv_cache_dtype": "bf16"},
    "live_sessions": {"sessions": 1},
    "host_pool_mib": 20000,
    "on_gate": "report",
}


def whole() -> dict[str, t.Any]:
    """The default boot with every row that the planner reads."""
    boot = ledger(flags={"checkpoint-slots": "8"})
    rows = {"card_total": "31.86 GiB", "claimable": "1.93 GiB", "activation_arena": "897.00 MiB"}
    boot["budget"]["rows"].update({name: size(text) for name, text in rows.items()})
    return boot


def places(value: t.Any, here: tuple[t.Any, ...] = ()) -> t.Iterator[tuple[t.Any, ...]]:
    """Every place in a value but its root; of a list only the first item, which stands for the others."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*here, key)
        yield from places(item, (*here, key))


def damaged(place: tuple[t.Any, ...], value: t.Any) -> dict[str, t.Any]:
    """The default boot with one place of it changed or taken away."""
    boot = whole()
    inner: t.Any = boot
    for key in place[:-1]:
        inner = inner[key]
    if value is GONE:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return boot


def test_no_damage_to_a_ledger_is_a_traceback_or_a_number_without_end() -> None:
    planned = refused = 0
    for number, place in enumerate(places(whole())):
        # Each place meets every kind of damage at some neighbour, and a third of them itself.
        for value in DAMAGE[number % 3 :: 3]:
            try:
                json.dumps(make_plan(damaged(place, value), REQUEST, alternatives=False), allow_nan=False)
                planned += 1
            except RadianceError as error:
                assert error.code and error.text
                refused += 1
    assert planned > 100 and refused > 300


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("settled", 0, "free", "mib"), -73.34, "settled[0].free.mib is -73.34"),
        (("settled", 1, "free", "mib"), float("nan"), "settled[1].free.mib is nan"),
        (("settled", 0, "floor"), None, "settled[0].floor is missing"),
        (("kv", "groups", 0, "page", "mib"), "0.025", "kv.groups[0].page.mib is '0.025'"),
        (("kv", "groups", 0, "block_tokens"), 0, "kv.groups[0].block_tokens is 0"),
        (("kv", "groups", 2, "slots"), None, "kv.groups[2] is {"),
        (("slab", 1, "rank"), 0, "slab is 0, which is there 2 times"),
        (("tp",), 10**30, "tp is a number of more than 12 digits"),
        (("flags",), ["--tp", "2"], "flags is ['--tp', '2']"),
        (("flags", "host-pool-mib"), 16384, "flags.host-pool-mib is 16384"),
    ],
)
def test_a_value_of_another_kind_is_refused_with_its_place(place: tuple[t.Any, ...], value: t.Any, said: str) -> None:
    with pytest.raises(RadianceError) as refused:
        make_plan(damaged(place, value), {})
    assert refused.value.code == "ledger_unreadable"
    assert said in refused.value.text


def test_a_card_that_never_settled_is_named_and_not_left_out() -> None:
    boot = whole()
    del boot["settled"][1]
    with pytest.raises(RadianceError) as refused:
        make_plan(boot, {})
    assert (refused.value.code, "no settled line for card 1" in refused.value.text) == ("no_settled_line", True)
    boot["devices"] = {"used": [0], "ignored": [1]}
    assert make_plan(boot, {})["ceiling"]["card"] == 0


def test_two_groups_of_one_name_are_two_groups() -> None:
    needed = make_plan(ledger(), {"pair": "keep"})["contract"]["needed_mib"]
    boot = ledger(model={"arch": "other"})
    boot["kv"]["groups"][1]["name"] = boot["kv"]["groups"][0]["name"]
    assert make_plan(boot, {"pair": "keep"})["contract"]["needed_mib"] == pytest.approx(needed, abs=1)


def test_a_count_of_zero_on_the_command_line_tells_nothing() -> None:
    # The engine does not start with it, so the boot's own line is what counts.
    plan = make_plan(ledger(flags={"max-num-seqs": "0", "max-model-len": "9" * 5000}), {})
    assert (plan["from"]["max_num_seqs"], plan["from"]["max_model_len"]) == (3, 200000)
