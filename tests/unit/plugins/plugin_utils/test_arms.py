# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was measured becomes an arm with its conditions, and what was not does not; imports are read strictly."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _record_fields, _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _arms, _schemas
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._import_file import import_entries
from hypothesis import given
from hypothesis import strategies as st

RATES = {
    "verdict": "passed",
    "prefill_tps": 3996.4,
    "decode_tps": 121.3,
    "prefill_spread": 0.012,
    "decode_spread": 0.004,
    "prompt_tokens": 43489,
    "generated_tokens": 512,
    "draft_acceptance": 0.71,
}
LEDGER = {
    "status": "complete",
    "flags": {
        "vram-weights-mib": "25844",
        "max-num-seqs": "3",
        "max-model-len": "200000",
        "kv-cache-dtype": "fp8",
        "num-speculative-tokens": "2",
    },
    "pair": {"weights_mib": 25844, "kv_mib": 5119, "exact": True},
    "engine": {"version": "1.0.13", "version_from": "endpoint"},
    "source": {"image_digest": "sha256:aa"},
}
SERVICE = {"name": "flashnext", "stack": "dankserver"}


def measured(rates: t.Any = None, ledger: t.Any = None) -> dict[str, t.Any]:
    return _arms.measured_arms({"rates": RATES | (rates or {})}, ledger or LEDGER, SERVICE, "dankserver", "0" * 12)


def test_a_measured_rate_is_an_arm_with_its_conditions() -> None:
    (entry,) = measured()["entries"]
    own = {name: entry[name] for name in _record_fields.FIELDS["arm"]}
    at = own.pop("measured_at")
    assert own == {
        "weights_mib": 25844,
        "weights_plus_minus_mib": 0,
        "prefill_tps": 3996.4,
        "decode_tps": 121.3,
        "prefill_spread": 0.012,
        "decode_spread": 0.004,
        "prompt_tokens": 43489,
        "generated_tokens": 512,
        "kv_cache_dtype": "fp8",
        "num_speculative_tokens": 2,
        "draft_acceptance": 0.71,
        "stack": "dankserver",
        "engine_version": "1.0.13",
        "image_digest": "sha256:aa",
        "source": "probe",
    }
    assert (entry["host"], entry["service"], entry["attempt"]) == ("dankserver", "flashnext", "0" * 12)
    assert _records.MEASURED_AT.match(at)
    assert _schemas.problems(entry, "record") == []


@pytest.mark.parametrize("verdict", ["inconclusive", "failed", None])
def test_what_was_not_measured_is_no_arm(verdict: str | None) -> None:
    assert measured({"verdict": verdict}) == {"entries": [], "says": ""}
    assert _arms.measured_arms({}, LEDGER, SERVICE, "h") == {"entries": [], "says": ""}
    assert _arms.measured_arms({"rates": None}, LEDGER, SERVICE, "h") == {"entries": [], "says": ""}


def test_a_boot_that_does_not_tell_its_slab_gives_no_arm_and_says_so() -> None:
    told = measured(ledger={**LEDGER, "pair": {"exact": False}})
    assert told["entries"] == []
    assert told["says"].startswith("The rates are not kept as an arm: Neither the ledger")
    assert "weights_mib" in told["says"]


def test_a_slab_that_is_only_printed_keeps_its_rounding() -> None:
    rows = {
        "vram_weights": {"mib": 25600.0, "plus_minus_mib": 5.12, "text": "25.00 GiB"},
        "vram_kv": {"mib": 5120.0, "plus_minus_mib": 5.12, "text": "5.00 GiB"},
    }
    (entry,) = measured(ledger={**LEDGER, "pair": {"exact": False}, "budget": {"rows": rows}})["entries"]
    assert (entry["weights_mib"], entry["weights_plus_minus_mib"]) == (25600, 5.12)


def test_the_arms_of_a_plan_are_the_declared_ones_and_then_those_on_record() -> None:
    declared = {"weights_mib": 24000, "prefill_tps": 3290}
    (entry,) = measured({"decode_tps": None})["entries"]
    service = {**SERVICE, "arms": [declared]}
    # A record from before there were arms has none.
    assert _arms.known_arms(service, []) == [declared]
    first, second = _arms.known_arms(service, [entry])
    assert first == declared
    assert second == {
        "weights_mib": 25844,
        "prefill_tps": 3996.4,
        "prompt_tokens": 43489,
        "kv_cache_dtype": "fp8",
        "stack": "dankserver",
        "at": entry["measured_at"],
        "engine_version": "1.0.13",
        "image_digest": "sha256:aa",
    }


SEED = """\
- {weights_mib: 22208, prefill_tps: 3397, prompt_tokens: 43500, kv_cache_dtype: fp8}
- {weights_mib: 24000, prefill_tps: 3290, prompt_tokens: 43500, kv_cache_dtype: fp8}
- {weights_mib: 25600, prefill_tps: 3584, prompt_tokens: 43500, kv_cache_dtype: fp8}
- {weights_mib: 26071, prefill_tps: 4379, prompt_tokens: 43500, kv_cache_dtype: fp8}
- {weights_mib: 26071, decode_tps: 124.1, prompt_tokens: 51500, generated_tokens: 512, kv_cache_dtype: fp8}
- {weights_mib: 22208, decode_tps: 94.1, prompt_tokens: 51500, kv_cache_dtype: bf16, at: 2026-10-13}
"""


def load(tmp_path: pathlib.Path, text: str, name: str = "arms.yml") -> list[dict[str, t.Any]]:
    file = tmp_path / name
    file.write_text(text)
    return import_entries(str(file), "flashnext", "dankserver")


def test_the_published_arms_can_be_imported(tmp_path: pathlib.Path) -> None:
    entries = load(tmp_path, SEED)
    shown = [(e["weights_mib"], e["prefill_tps"], e["decode_tps"], e["kv_cache_dtype"]) for e in entries]
    assert shown == [
        (22208, 3397, None, "fp8"),
        (24000, 3290, None, "fp8"),
        (25600, 3584, None, "fp8"),
        (26071, 4379, None, "fp8"),
        (26071, None, 124.1, "fp8"),
        (22208, None, 94.1, "bf16"),
    ]
    assert {entry["source"] for entry in entries} == {"import"}
    assert entries[5]["measured_at"] == "2026-10-13"
    for entry in entries:
        assert _schemas.problems(entry, "record") == []


def test_the_same_arms_in_json_and_with_points_are_the_same_arms(tmp_path: pathlib.Path) -> None:
    first = load(tmp_path, "- {weights_mib: 22208, prefill_tps: 3397, decode_tps: 94.1}")
    again = load(tmp_path, json.dumps([{"decode_tps": 94.1, "prefill_tps": 3397.0, "weights_mib": 22208}], indent="\t"))
    assert first[0]["id"] == again[0]["id"]
    # The time at which it was written down makes no other arm, and the time at which it was measured does.
    later = {**first[0], "at": "2031-01-01T00:00:00Z"}
    _records.check(later)
    assert (
        load(tmp_path, "- {weights_mib: 22208, prefill_tps: 3397, decode_tps: 94.1, at: 2026-10-13}")[0]["id"]
        != later["id"]
    )
    path = str(tmp_path / "record.jsonl")
    _records.append(path, [*first, *again])
    _records.append(path, [later])
    assert _records.read(path) == first


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("weights_mib: 06144, prefill_tps: 1", "weights_mib is '06144'"),
        ("weights_mib: 6_144, prefill_tps: 1", "weights_mib is '6_144'"),
        ("weights_mib: '25600', prefill_tps: 1", "weights_mib is '25600'"),
        ("weights_mib: 25600.5, prefill_tps: 1", "weights_mib is 25600.5"),
        ("weights_mib: 25600.0, prefill_tps: 1", "weights_mib is 25600.0"),
        ("weights_mib: 0, prefill_tps: 1", "weights_mib is 0"),
        ("weights_mib: 25600, prefill_tps: 1e3", "prefill_tps is '1e3'"),
        ("weights_mib: 25600, prefill_tps: '3584'", "prefill_tps is '3584'"),
        ("weights_mib: 25600, prefill_tps: 0", "prefill_tps is 0"),
        ("weights_mib: 25600, prefill_tps: -3.5", "prefill_tps is -3.5"),
        ("weights_mib: 25600, prefill_tps: .inf", "prefill_tps is '.inf'"),
        ("weights_mib: 25600, prefill_tps: yes", "prefill_tps is 'yes'"),
        ("weights_mib: 25600", "a slab and a rate"),
        ("prefill_tps: 3584", "a slab and a rate"),
        ("weights_mib: 25600, prefill: 3584", "prefill is not known here"),
        ("weights_mib: 25600, prefill_tps: 1, prompt_tokens: 43.5k", "prompt_tokens is '43.5k'"),
        ("weights_mib: 25600, prefill_tps: 1, draft_acceptance: 71", "draft_acceptance is 71"),
        ("weights_mib: 25600, prefill_tps: 1, kv_cache_dtype: fp16", "bf16 or fp8"),
        ("weights_mib: 25600, prefill_tps: 1, engine_version: v1.0.13", "engine_version is 'v1.0.13'"),
        ("weights_mib: 25600, prefill_tps: 1, stack: 13", "stack is 13"),
        ("weights_mib: 25600, prefill_tps: 1, at: 13.10.2026", "at is '13.10.2026'"),
    ],
)
def test_anything_loose_is_refused_with_the_number_of_the_item(tmp_path: pathlib.Path, item: str, said: str) -> None:
    with pytest.raises(RadianceError) as refused:
        load(tmp_path, f"- {{weights_mib: 24000, prefill_tps: 3290}}\n- {{{item}}}\n")
    assert refused.value.code == "import_unreadable"
    assert "arm 2 of 2" in refused.value.text
    assert said in refused.value.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no list of arms"),
        ("[]", "is no list of arms"),
        ("weights_mib: 25600", "is no list of arms"),
        ("arms: []", "is no list of arms"),
        ("arms: [{weights_mib: 1, prefill_tps: 1}]\nrates: [1]", "holds no lists `arms` and `verdicts` alone"),
        ("- 25600", "arm 1 of 1: 25600 is no arm"),
        ("- {weights_mib: 1, weights_mib: 2, prefill_tps: 1}", "weights_mib is there twice"),
        ('[{"weights_mib": 1, "weights_mib": 2}]', "weights_mib is there twice"),
        ('[{"weights_mib": true, "prefill_tps": 1}]', "weights_mib is True"),
        ('[{"weights_mib": 1, "prefill_tps": NaN}]', "prefill_tps is 'NaN'"),
        ("- {weights_mib: 1", "is neither YAML nor JSON"),
        ("- !!python/object/apply:os.getcwd []", "is neither YAML nor JSON"),
        ("- &a [*a]", "arm 1 of 1"),
        ("- {weights_mib: 1, at: !!timestamp soon}", "is neither YAML nor JSON"),
        ("- {weights_mib: !!int '1:30', prefill_tps: 1}", "weights_mib is '1:30'"),
        ("- {weights_mib: 1, prefill_tps: !!float .inf}", "prefill_tps is '.inf'"),
        (r'[{"weights_mib": 1, "prefill_tps": 1, "stack": "\ud800"}]', r"stack has the character '\ud800'"),
        ("- {weights_mib: 1, prefill_tps: 1, stack: " + "x" * 4001 + "}", "stack has 4,001 characters"),
        # Many names in less than a second, and a sentence that can be read.
        ("- {" + ", ".join(f"k{number}: 1" for number in range(3000)) + "}", " … Nothing was added."),
    ],
)
def test_a_file_that_holds_no_arms_is_refused(tmp_path: pathlib.Path, text: str, said: str) -> None:
    with pytest.raises(RadianceError) as refused:
        load(tmp_path, text)
    assert refused.value.code == "import_unreadable"
    assert said in refused.value.text


def test_a_file_that_is_too_large_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RadianceError, match="it has more than 1,048,576 bytes"):
        load(tmp_path, SEED.ljust((1 << 20) + 1))


def test_a_file_that_is_not_there_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RadianceError, match=r"none\.yml cannot be read: No such file"):
        import_entries(str(tmp_path / "none.yml"), "flashnext", "dankserver")


VERDICTS = """
arms:
  - {weights_mib: 24000, prefill_tps: 3290}
verdicts:
  - {quantity: prefill_tps, predicted: {low: 4200, high: 4500.0}, measured: 4379, unit: t/s, verdict: held,
     at: 2026-10-13}
  - {quantity: settled_free_mib, predicted: 330, measured: 215.3, unit: MiB, verdict: killed, says: "others took it"}
  - {quantity: prefill_tps, predicted: 5000, verdict: void}
"""


def test_past_verdicts_are_lines_of_their_own_and_the_same_whenever_imported(tmp_path: pathlib.Path) -> None:
    entries = load(tmp_path, VERDICTS)
    assert [entry["kind"] for entry in entries] == ["arm", "past_verdict", "past_verdict", "past_verdict"]
    shown = [(e["quantity"], e["low"], e["high"], e["measured"], e["verdict"], e["judged_at"]) for e in entries[1:]]
    assert shown == [
        ("prefill_tps", 4200, 4500, 4379, "held", "2026-10-13"),
        ("settled_free_mib", 330, 330, 215.3, "killed", None),
        ("prefill_tps", 5000, 5000, None, "void", None),
    ]
    assert [entry["says"] for entry in entries[1:]] == ["", "others took it", ""]
    for entry in entries:
        assert _schemas.problems(entry, "record") == []
        _records.check({**entry, "at": "2031-01-01T00:00:00Z"})
    assert [entry["id"] for entry in load(tmp_path, VERDICTS)] == [entry["id"] for entry in entries]


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("predicted: 1, measured: 1, verdict: held", "quantity is None"),
        ("quantity: 'a b', predicted: 1, measured: 1, verdict: held", "quantity is 'a b'"),
        (
            "quantity: q, predicted: 1, measured: 1, verdict: open",
            "verdict is 'open'. It is one of held, killed, void.",
        ),
        ("quantity: q, predicted: 1, measured: 1", "verdict is None"),
        ("quantity: q, measured: 1, verdict: held", "predicted is None"),
        ("quantity: q, predicted: 1, verdict: held", "measured is None"),
        ("quantity: q, predicted: '1', measured: 1, verdict: held", "predicted is '1'"),
        ("quantity: q, predicted: {low: 1}, measured: 1, verdict: held", "predicted has low. Write a number, or"),
        ("quantity: q, predicted: {low: 2, high: 1}, measured: 1, verdict: held", "low 2 above high 1"),
        ("quantity: q, predicted: {low: 1, high: 2}, measured: 3, verdict: held", "measured 3 is not from 1 to 2, and"),
        ("quantity: q, predicted: 1, measured: 1, verdict: held, unit: 5", "unit is 5"),
        ("quantity: q, predicted: 1, measured: 1, verdict: held, at: yesterday", "at is 'yesterday'"),
        ("quantity: q, predicted: 1, measured: 1, verdict: held, why: x", "why is not known here. A verdict takes"),
    ],
)
def test_a_loose_verdict_is_refused_with_its_number(tmp_path: pathlib.Path, item: str, said: str) -> None:
    good = "{quantity: q, predicted: 1, measured: 1, verdict: held}"
    with pytest.raises(RadianceError) as refused:
        load(tmp_path, f"verdicts:\n  - {good}\n  - {{{item}}}\n")
    assert refused.value.code == "import_unreadable"
    assert "verdict 2 of 2" in refused.value.text
    assert said in refused.value.text


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")))
def test_no_text_gives_anything_but_arms_or_a_refusal(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        entries = import_entries(str(file), "flashnext", "dankserver")
    except RadianceError as error:
        assert error.code == "import_unreadable"
    else:
        for entry in entries:
            _records.check(entry)
