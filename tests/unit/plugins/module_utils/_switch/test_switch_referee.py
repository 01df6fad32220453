# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import pair_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import pair_text
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import referee
from hypothesis import given
from hypothesis import strategies as st

TO = {
    "weights_mib": 25844,
    "kv_mib": 5119,
    "max_num_seqs": 3,
    "max_model_len": 200000,
    "kv_cache_dtype": "fp8",
    "num_speculative_tokens": 2,
}
BACKED = {"id": "sequences_backed", "quantity": "sequences_backed", "low": 3, "high": 3}


def size(mib: float, plus_minus: float, text: str) -> dict[str, t.Any]:
    return {"mib": mib, "plus_minus_mib": plus_minus, "text": text}


LEDGER: dict[str, t.Any] = {
    "ready": True,
    "flags": {
        "vram-weights-mib": "25844",
        "vram-kv-mib": "5119",
        "max-num-seqs": "3",
        "max-model-len": "200000",
        "kv-cache-dtype": "fp8",
        "num-speculative-tokens": "2",
    },
    "devices": {"used": [0, 1], "ignored": [2]},
    "budget": {
        "rows": {"vram_weights": size(25845.76, 5.12, "25.24 GiB"), "vram_kv": size(5120.0, 5.12, "5.00 GiB")},
    },
    "pair": {"weights_mib": 25844, "kv_mib": 5119, "exact": True},
    "capacity": {"sequences": 3, "tokens": 200000, "full": True, "backing_percent": None},
    "settled": [
        {
            "card": card,
            "free": size(215.3, 0.005, "215.30 MiB"),
            "floor": size(209.19, 0.005, "209.19 MiB"),
            "line": f"card {card} settled at 215.30 MiB free against 209.19 MiB",
        }
        for card in (0, 1)
    ],
}


def judge(**changed: t.Any) -> dict[str, dict[str, t.Any]]:
    ledger = {**copy.deepcopy(LEDGER), **changed}
    return {row["name"]: row for row in referee.judge({"to": TO, "predictions": [BACKED]}, ledger)}


def holds(**changed: t.Any) -> bool:
    return all(row["holds"] for row in judge(**changed).values())


def test_the_boot_that_was_asked_for_holds() -> None:
    findings = judge()
    assert list(findings) == ["listening", "pair", "settled_free.card0", "settled_free.card1", "capacity", "shape"]
    assert holds()
    assert findings["pair"]["says"] == "the boot printed the pair 25,844 + 5,119 that was asked"
    assert findings["settled_free.card1"]["says"] == ("card 1 settled at 215.30 MiB free against a floor of 209.19 MiB")


def test_a_boot_that_does_not_listen() -> None:
    assert judge(ready=False)["listening"]["holds"] is False


@pytest.mark.parametrize(
    ("free", "ok"),
    [
        (size(209.19, 0.005, "209.19 MiB"), True),
        # 209.18 may be 209.185, and the floor 209.185: beyond the rounding begins at 209.17.
        (size(209.18, 0.005, "209.18 MiB"), True),
        (size(209.17, 0.005, "209.17 MiB"), False),
        (size(0.0, 0.0, "0 B"), False),
    ],
)
def test_settled_free_is_judged_beyond_its_rounding(free: dict[str, t.Any], ok: bool) -> None:
    settled = copy.deepcopy(LEDGER["settled"])
    settled[1]["free"] = free
    finding = judge(settled=settled)["settled_free.card1"]
    assert finding["holds"] is ok
    assert finding["line"] == "card 1 settled at 215.30 MiB free against 209.19 MiB"


def test_how_much_is_missing_is_said() -> None:
    settled = copy.deepcopy(LEDGER["settled"])
    settled[0]["free"] = size(120.0, 0.005, "120.00 MiB")
    assert judge(settled=settled)["settled_free.card0"]["says"] == (
        "card 0 settled at 120.00 MiB free against a floor of 209.19 MiB, 89.19 MiB short"
    )


def test_a_card_without_a_settled_line_is_no_consent() -> None:
    finding = judge(settled=LEDGER["settled"][:1])["settled"]
    assert (finding["holds"], finding["says"]) == (False, "this boot printed no settled line for 1")
    assert judge(settled=[])["settled"]["holds"] is False


def test_another_pair_than_asked() -> None:
    rows = {**LEDGER["budget"]["rows"], "vram_weights": size(24002.56, 5.12, "23.44 GiB")}
    finding = judge(budget={"rows": rows})["pair"]
    assert finding["holds"] is False
    assert finding["says"] == "vram_weights is 23.44 GiB for 25,844 MiB asked"
    assert finding["printed"] == {"weights_mib": 24002.56, "kv_mib": 5120.0}
    finding = judge(pair={"weights_mib": 25843, "kv_mib": 5119, "exact": True})["pair"]
    assert finding["says"] == "the command line of this boot says 25,843 MiB for 25,844 MiB asked"


def test_the_pair_from_the_command_line_does_where_its_rows_were_reworded() -> None:
    assert holds(budget={"rows": {"vram_weights": None, "vram_kv": None}})
    finding = judge(budget={"rows": {}}, pair={"weights_mib": None, "kv_mib": None, "exact": False})["pair"]
    assert (finding["holds"], finding["says"]) == (False, "this boot did not print its pools")


def test_a_release_that_splits_the_card_itself_has_no_pair_to_judge() -> None:
    to = {**TO, "weights_mib": None, "kv_mib": None}
    assert "pair" not in [row["name"] for row in referee.judge({"to": to}, LEDGER)]


def test_capacity_counts_only_where_full_backing_was_predicted_and_is_printed() -> None:
    short = {"sequences": 3, "tokens": 200000, "full": False, "backing_percent": 66}
    finding = judge(capacity=short)["capacity"]
    assert (finding["holds"], finding["says"]) == (False, "the pool does not back 3 sequences in full, but 66 %")
    unprinted = {"sequences": None, "tokens": None, "full": None, "backing_percent": None}
    assert "capacity" not in judge(capacity=unprinted)
    for predictions in ([], [{**BACKED, "low": 1, "high": 1}]):
        findings = referee.judge({"to": TO, "predictions": predictions}, {**LEDGER, "capacity": short})
        assert "capacity" not in [row["name"] for row in findings]


def test_the_shape_is_judged_as_far_as_the_command_line_tells_it() -> None:
    flags = {**LEDGER["flags"], "max-model-len": "131072"}
    finding = judge(flags=flags)["shape"]
    assert (finding["holds"], finding["says"]) == (False, "--max-model-len is 131072, asked is 200000")
    assert "shape" not in judge(flags={})
    del flags["max-model-len"]
    assert judge(flags=flags)["shape"]["holds"] is True


def test_what_a_process_runs_in_the_form_of_a_plan() -> None:
    assert pair_of(LEDGER["flags"]) == TO
    assert pair_of({}) == dict.fromkeys(TO)
    # What is no plain count stays as it is written: of another script, too long for one, with a sign.
    for text in ("9" * 5000, "٣", "²", "+3", "06144"):
        assert pair_of({"vram-kv-mib": text})["kv_mib"] == text
    assert referee.differences(TO, LEDGER["flags"]) == []
    assert referee.differences({"kv_mib": 5119}, {}) == ["--vram-kv-mib is not given, asked is 5119"]
    assert referee.differences({"kv_mib": None}, {}) == []


def test_a_pair_is_named_as_far_as_it_is_known() -> None:
    assert pair_text(TO) == "25,844 + 5,119"
    assert pair_text({"weights_mib": 24002.56, "kv_mib": None}) == "24,002.56 + –"
    assert pair_text(None) == "– + –"
    assert pair_text(pair_of({})) == "– + –"
    # The engine reads 24G as 24; a process that somebody started so is still to be named.
    assert pair_text(pair_of({"vram-weights-mib": "24G", "vram-kv-mib": "5120"})) == "24G + 5,120"


SIZES = st.builds(
    lambda hundredths: size(hundredths / 100, 0.005, f"{hundredths / 100:.2f} MiB"), st.integers(0, 10_000_000)
)


@given(free=SIZES, floor=SIZES)
def test_more_free_memory_never_turns_a_consent_into_a_refusal(free: dict[str, t.Any], floor: dict[str, t.Any]) -> None:
    def verdict(mib: float) -> bool:
        settled = copy.deepcopy(LEDGER["settled"])
        settled[0].update(free={**free, "mib": mib}, floor=floor)
        return bool(judge(settled=settled)["settled_free.card0"]["holds"])

    assert verdict(floor["mib"]) is True
    assert verdict(free["mib"]) <= verdict(free["mib"] + 1.0)


ASKED = {"to": TO, "predictions": [BACKED], "image": "radiance@sha256:0b", "image_digest": "sha256:0b"}


def of(image: str, digest: str | None, **changed: t.Any) -> dict[str, t.Any]:
    return {**copy.deepcopy(LEDGER), "source": {"image": image, "image_digest": digest}, **changed}


@pytest.mark.parametrize(
    ("image", "digest", "ok"),
    [
        ("radiance@sha256:0b", "sha256:0b", True),
        ("localhost/radiance:1.2.4", "sha256:0b", True),
        ("radiance@sha256:0b", None, True),
        ("localhost/radiance:1.0.13", "sha256:0a", False),
        ("localhost/radiance:1.0.13", None, False),
    ],
)
def test_the_boot_is_of_the_image_that_was_asked_for(image: str, digest: str | None, ok: bool) -> None:
    findings = {row["name"]: row for row in referee.judge(ASKED, of(image, digest), True)}
    assert findings["image"]["holds"] is ok
    if not ok:
        assert findings["image"]["says"] == f"the image is {image}, asked is radiance@sha256:0b"


def test_without_a_container_or_a_request_no_image_is_judged() -> None:
    assert "image" not in [row["name"] for row in referee.judge(ASKED, LEDGER)]
    assert "image" not in judge(source={"image": "x", "image_digest": None})


def test_only_another_image_may_word_its_rows_otherwise() -> None:
    reworded = of("radiance@sha256:0b", "sha256:0b", settled=[])
    assert [row["holds"] for row in referee.judge(ASKED, reworded, True) if row["name"] == "settled"] == [True]
    assert [row["holds"] for row in referee.judge(ASKED, reworded) if row["name"] == "settled"] == [False]
    unprinted = of("x", "sha256:0b", budget={"rows": {}}, pair={})
    (pair,) = (row for row in referee.judge(ASKED, unprinted, True) if row["name"] == "pair")
    assert (pair["holds"], pair["printed"]) == (True, None)
    # What is printed is judged in any release.
    short = copy.deepcopy(LEDGER["settled"])
    short[0]["free"] = size(100.0, 0.005, "100.00 MiB")
    found = referee.judge(ASKED, of("x", "sha256:0b", settled=short), True)
    assert [row["holds"] for row in found if row["name"] == "settled_free.card0"] == [False]


def test_the_engines_own_split_is_told_and_not_judged() -> None:
    short = copy.deepcopy(LEDGER["settled"])
    short[0]["free"] = size(209.15, 0.005, "209.15 MiB")
    split = {**ASKED, "to": {**TO, "weights_mib": None, "kv_mib": None}}
    found = {row["name"]: row for row in referee.judge(split, of("x", "sha256:0b", settled=short), True)}
    assert found["settled_free.card0"]["holds"] is True
    assert found["settled_free.card0"]["says"].endswith(", 0.04 MiB short, by the engine's own split")
