# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Predictions against a boot and its probes: held, killed, open or void."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan import make_plan, verdicts
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._plan.plan_ledgers import (
    ARMS,
    after,
    ledger,
    settled,
    size,
)


@pytest.fixture(name="plan")
def _plan():
    return make_plan(ledger(), {"arms": ARMS})


@pytest.fixture(name="boot")
def _boot(plan):
    made = after(plan, ledger(), ["215.30 MiB", "225.30 MiB"])
    made["slab"] = [
        {"rank": rank, "slots": 18898, "shadow_slots": 32, "pool_slots": 6230, "static": size("42.40 MiB")}
        for rank in (0, 1)
    ]
    made["budget"]["rows"]["unclaimed"] = size("235.30 MiB")
    return made


def judged(plan, boot, probes=None):
    return {verdict["id"]: verdict for verdict in verdicts(plan["predictions"], boot, probes)}


def test_the_boot_that_was_predicted_holds_everything_printed(plan, boot):
    found = judged(plan, boot)
    assert list(found) == [prediction["id"] for prediction in plan["predictions"]]
    assert {v["id"] for v in found.values() if v["verdict"] != "held"} == {"prefill_tps"}
    assert found["prefill_tps"]["verdict"] == "open"
    assert found["settled_free_mib.card0"]["measured"] == 215.3
    assert found["slab_slots.rank0"]["measured"] == 18898
    assert found["sampler_rows"]["measured"] == 9
    assert (found["settled_free_mib.card0"]["plus_minus"], found["sampler_rows"]["plus_minus"]) == (0.005, 0)
    assert set(found["weights_mib"]) == {"id", "verdict", "measured", "plus_minus", "says"}


def test_each_printed_number_can_kill_its_prediction(plan, boot):
    boot["settled"] = [settled(0, "205.00 MiB"), settled(1, "225.30 MiB")]
    boot["slab"][1]["slots"] = 18000
    boot["slab"][0]["pool_slots"] = 7000
    boot["sampler"] = {"rows": 12}
    boot["pair"] = {"weights_mib": 25843, "kv_mib": 5118, "exact": True}
    boot["capacity"].update(full=False, sequences=3, full_length_sessions=2.4, backing_percent=80)
    boot["budget"]["rows"]["unclaimed"] = size("1.00 GiB")
    boot["lent"] = [{"from": "kv_cache", "slots": 3138}, {"from": "kv_cache", "slots": 100}]
    found = judged(plan, boot)
    killed = {v["id"] for v in found.values() if v["verdict"] == "killed"}
    assert killed == {
        "weights_mib",
        "kv_mib",
        "sequences_backed",
        "settled_free_mib.card0",
        "unclaimed_mib",
        "slab_slots.rank1",
        "pool_slots.rank0",
        "sampler_rows",
        "lendable_slots",
    }
    assert found["sequences_backed"]["measured"] == 2.4
    assert found["lendable_slots"]["measured"] == 100
    assert "predicted 210.12 to 220.36 MiB" in found["settled_free_mib.card0"]["says"]


def test_a_rounded_print_is_judged_by_its_interval(plan, boot):
    boot["pair"] = {"weights_mib": 25845.76, "kv_mib": 5120.0, "exact": False}
    boot["budget"]["rows"].update(vram_weights=size("25.24 GiB"), vram_kv=size("5.00 GiB"))
    found = judged(plan, boot)
    assert found["weights_mib"]["verdict"] == found["kv_mib"]["verdict"] == "held"
    boot["budget"]["rows"]["vram_weights"] = size("25.23 GiB")
    assert judged(plan, boot)["weights_mib"]["verdict"] == "killed"


@pytest.mark.parametrize("status", ["refused", "incomplete", "absent"])
def test_a_boot_that_failed_kills_what_it_did_not_print(plan, status):
    boot = {"status": status, "reason": {"code": "x", "text": "DID NOT FIT by 1.00 GiB."}}
    found = judged(plan, boot)
    assert found["prefill_tps"]["verdict"] == "open"
    assert {v["verdict"] for v in found.values() if v["id"] != "prefill_tps"} == {"killed"}
    assert "DID NOT FIT by 1.00 GiB." in found["slab_slots.rank0"]["says"]
    assert found["slab_slots.rank0"]["measured"] is None


def test_an_incomplete_boot_is_still_judged_by_what_it_printed(plan, boot):
    found = judged(plan, {**boot, "status": "incomplete", "reason": {"code": "x", "text": "Died."}, "settled": []})
    assert found["slab_slots.rank0"]["verdict"] == "held"
    assert found["settled_free_mib.card0"]["verdict"] == "killed"


def test_without_a_boot_everything_is_open(plan):
    for nothing in ({}, None):
        assert {v["verdict"] for v in judged(plan, nothing).values()} == {"open"}


def test_a_complete_boot_that_lacks_a_row_leaves_it_open(plan, boot):
    boot["lent"] = []
    assert judged(plan, boot)["lendable_slots"]["verdict"] == "open"


def test_another_engine_or_image_voids(plan, boot):
    boot["engine"]["version"] = "1.0.14"
    assert {v["verdict"] for v in judged(plan, boot).values()} == {"void"}
    boot["engine"]["version"] = None
    assert judged(plan, boot)["weights_mib"]["verdict"] == "held"
    source = {**ledger()["source"], "image_digest": "sha256:aa"}
    imaged = make_plan(ledger(source=source), {})
    assert imaged["predictions"][0]["stack"] == "1.0.13 sha256:aa"
    other = {**boot, "source": {**source, "image_digest": "sha256:bb"}}
    assert judged(imaged, other)["weights_mib"]["verdict"] == "void"
    assert judged(imaged, {**boot, "source": source})["weights_mib"]["verdict"] == "held"


@pytest.mark.parametrize(
    ("rates", "verdict", "measured"),
    [
        ({"verdict": "passed", "prefill_tps": 3996.0, "prompt_tokens": 43501}, "held", 3996),
        ({"verdict": "passed", "prefill_tps": 3875.0, "prompt_tokens": 43501}, "killed", 3875),
        ({"verdict": "passed", "prefill_tps": 4116.5, "prompt_tokens": 43501}, "killed", 4116.5),
        ({"verdict": "inconclusive", "prefill_tps": 9000.0, "says": "cached"}, "open", None),
        ({"verdict": "passed", "prefill_tps": None}, "open", None),
        ({"verdict": "passed", "prefill_tps": 900.0, "prompt_tokens": 2000}, "open", 900),
        ({"skipped": "check mode"}, "open", None),
    ],
)
def test_a_rate_counts_only_when_it_was_measured(plan, boot, rates, verdict, measured):
    found = judged(plan, boot, {"rates": rates})["prefill_tps"]
    assert (found["verdict"], found["measured"]) == (verdict, measured)


def test_as_many_sequences_of_a_shorter_context_are_not_what_was_predicted(plan, boot):
    # An engine that cuts the window to what the model was trained for backs as many, and each is shorter.
    shorter = {**boot, "capacity": {**boot["capacity"], "tokens": 131072}}
    found = judged(plan, shorter)["sequences_backed"]
    assert (found["verdict"], found["measured"]) == ("killed", 3)
    assert "3 sequences all at 131,072 tokens" in found["says"] and "predicted at 200,000 tokens" in found["says"]


@pytest.mark.parametrize(
    "probes",
    [
        {"rates": {"verdict": "passed", "prefill_tps": value, "prompt_tokens": 43500}}
        for value in ("4000", True, float("nan"), float("inf"), -1.0, [4000])
    ]
    + [{"rates": "passed"}, {"rates": [1], "boundary": 5}],
)
def test_a_probe_that_returned_no_number_measured_nothing(plan, boot, probes):
    assert judged(plan, boot, probes)["prefill_tps"]["verdict"] == "open"


def test_a_boundary_that_counted_in_words_still_kills(plan, boot):
    found = judged(plan, boot, {"boundary": {"verdict": "failed", "retrieved": "two", "says": "lost"}})
    assert (found["sequences_backed"]["verdict"], found["sequences_backed"]["measured"]) == ("killed", None)


@pytest.mark.parametrize(
    ("section", "value"),
    [("settled", {"card": 0}), ("budget", {"rows": {"unclaimed": "1 GiB"}}), ("slab", [{"slots": 1}]), ("lent", 3)],
)
def test_a_ledger_that_cannot_be_read_judges_nothing(plan, boot, section, value):
    with pytest.raises(RadianceError) as refused:
        judged(plan, {**boot, section: value})
    assert refused.value.code == "ledger_unreadable"


def test_a_lost_marker_kills_what_the_ledger_backs(plan, boot):
    probes = {"boundary": {"asked": 3, "retrieved": 2, "verdict": "failed", "says": "reply 2 lost its marker"}}
    found = judged(plan, boot, probes)["sequences_backed"]
    assert (found["verdict"], found["measured"]) == ("killed", 2)
    assert "lost its marker" in found["says"]
    probes["boundary"].update(verdict="inconclusive")
    assert judged(plan, boot, probes)["sequences_backed"]["verdict"] == "held"


@pytest.mark.parametrize(
    ("predicted", "verdict"), [(25840, "killed"), (25841, "held"), (25850, "held"), (25851, "killed")]
)
def test_both_ends_of_a_print_count(predicted, verdict):
    # 25.24 GiB is 25,845.76 ± 5.12 MiB.
    prediction = {"id": "weights_mib", "quantity": "weights_mib", "card": None, "rank": None, "unit": "MiB"}
    boot = {"status": "complete", "pair": {"exact": False}, "budget": {"rows": {"vram_weights": size("25.24 GiB")}}}
    found = verdicts([{**prediction, "low": predicted, "high": predicted}], boot)
    assert (found[0]["verdict"], found[0]["plus_minus"]) == (verdict, 5.12)


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [(2058.296, 2058.304, "2,058.30 MiB"), (2057.5, 2058.5, "2,057.50 to 2,058.50 MiB")],
)
def test_an_interval_whose_ends_read_alike_is_told_as_one_number(low, high, says):
    boot = {"status": "complete", "pair": {"exact": False}, "budget": {"rows": {"unclaimed": size("2.01 GiB")}}}
    prediction = {"id": "unclaimed_mib", "quantity": "unclaimed_mib", "card": None, "rank": None, "unit": "MiB"}
    found = verdicts([{**prediction, "low": low, "high": high}], boot)[0]["says"]
    assert found == f"The ledger says 2.01 GiB; predicted {says}."
