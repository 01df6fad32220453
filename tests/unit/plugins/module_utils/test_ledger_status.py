# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes a ledger incomplete, refused or absent, and what it says then. The logs are synthesised."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger.refusals import REASON_CODES

LOGS = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "logs"
HEALTHY = (LOGS / "healthy-1.0.13.log").read_text(encoding="utf-8")
MIXED = (LOGS / "mixed-1.0.5.log").read_text(encoding="utf-8")
LISTENING = "I server: listening on http://127.0.0.1:8465 (8 threads, up to 64)\n"
DEVICES = "I device: AQL backend, 2 device(s) [0:gfx1201 1:gfx1201]\n"


def ledger(text: str, **options: t.Any) -> dict[str, t.Any]:
    return read_ledger(text, source={"kind": "text"}, **options)


def without(pattern: str, text: str = HEALTHY) -> str:
    kept = [line for line in text.splitlines(keepends=True) if not re.search(pattern, line)]
    assert len(kept) < len(text.splitlines())
    return "".join(kept)


def verdict(found: dict[str, t.Any]) -> tuple[str, str | None]:
    return found["status"], found["reason"] and found["reason"]["code"]


@pytest.mark.parametrize(
    ("pattern", "missing"),
    [
        (r"^  card total", ["card_total"]),
        (r"^  claimable", ["claimable"]),
        (r"^    kv cache", ["kv_cache", "capacity"]),
        (r"^  vram_kv  .*stated", ["vram_kv"]),
        (r"^  unclaimed", ["unclaimed"]),
        (r"^I model:", ["model"]),
        (r"sampler:", ["sampler"]),
        (r"^I\[1\] mover: 17596", ["slab.rank1"]),
        (r"^  host_pool .*10.08", ["pools.rank1"]),
        (r"^I chunk geometry", ["chunk"]),
        (r"^    kv_(attn|qsa_bkey)", ["kv_plan"]),
        (r"card 1 settled", ["settled.card1"]),
        (r"card \d settled", ["settled.card0", "settled.card1"]),
        (r"^I VRAM budget, per card:", ["budget_header"]),
    ],
)
def test_a_row_that_was_not_printed_is_named_and_never_filled(pattern: str, missing: list[str]) -> None:
    found = ledger(without(pattern))
    assert verdict(found) == ("incomplete", "rows_missing")
    assert found["missing"] == missing
    assert ", ".join(missing) in found["reason"]["text"]
    for name in missing:
        if name in found["budget"]["rows"]:
            assert found["budget"]["rows"][name] is None


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        ("slab slots (32 shadow)", "resident slots (32 shadow)", ["slab.rank0", "slab.rank1"]),
        ("backs 3 sequences all at 200000 tokens at once", "is enough for 3 sequences", ["capacity"]),
        ("settled at", "came to rest at", ["settled.card0", "settled.card1"]),
        ("  elastic   ", "  divisible ", ["elastic"]),
        ("stated by --vram-kv-mib", "as asked", ["kv_origin"]),
    ],
)
def test_a_reworded_line_is_missing_by_name(old: str, new: str, missing: list[str]) -> None:
    found = ledger(HEALTHY.replace(old, new))
    assert verdict(found) == ("incomplete", "rows_missing")
    assert found["missing"] == missing


def test_a_reworded_row_that_no_referee_needs_leaves_the_essential_rows() -> None:
    found = ledger(HEALTHY.replace("chunk geometry:", "chunks:").replace("slab slots", "resident slots"))
    assert (found["status"], found["essential"], found["ready"]) == ("incomplete", True, True)


@pytest.mark.parametrize("pattern", [r"card 1 settled", r"^  vram_kv  .*stated", r"^I server: listening"])
def test_without_a_pool_a_settled_line_or_listening_the_essential_rows_are_not_there(pattern: str) -> None:
    assert ledger(without(pattern))["essential"] is False


def test_the_rows_of_a_table_without_its_header_are_still_read() -> None:
    found = ledger(without(r"^I VRAM budget, per card:"))
    assert found["budget"]["rows"]["card_total"]["text"] == "31.86 GiB"
    assert found["budget"]["rows"]["unclaimed"]["text"] == "2.03 GiB"


def test_the_older_of_two_boots_never_stands_in_for_the_later() -> None:
    half = HEALTHY[: HEALTHY.index("  vram_weights ") + 10]
    found = ledger(HEALTHY + half)
    assert verdict(found) == ("incomplete", "not_ready")
    assert (found["source"]["boots_seen"], found["source"]["boot"]) == (2, 1)
    assert found["budget"]["rows"]["vram_weights"] is None
    assert found["budget"]["rows"]["card_total"]["text"] == "31.86 GiB"
    assert ledger(HEALTHY + half, boot=-2)["status"] == "complete"
    assert verdict(ledger(HEALTHY + half, boot=2)) == ("absent", "boot_not_in_log")


def test_a_boot_that_still_loads_says_how_far_it_is() -> None:
    at = HEALTHY.index("I load: one pass")
    found = ledger(HEALTHY[:at])
    assert verdict(found) == ("incomplete", "not_ready")
    assert "25 % read" in found["reason"]["text"]
    assert "'load: 12.00 GiB of 48.00 GiB read, 6.1 GB/s, at container offset 12884901888'" in found["reason"]["text"]


def test_a_boot_that_died_after_its_ledger_does_not_count() -> None:
    text = without(r"^I server: listening") + "hipErrorOutOfMemory\n"
    found = ledger(text)
    assert verdict(found) == ("incomplete", "not_ready")
    assert "the last thing that it printed is 'hipErrorOutOfMemory'" in found["reason"]["text"]
    assert found["missing"] == ["listening"]
    assert found["essential"] is False


def test_a_log_whose_head_was_cut() -> None:
    text = HEALTHY[HEALTHY.index("    kv cache ") :]
    found = ledger(text)
    assert verdict(found) == ("incomplete", "log_cut")
    assert found["missing"][:4] == ["device_inventory", "model", "sampler", "budget_header"]
    assert found["budget"]["rows"]["vram_kv"]["text"] == "5.00 GiB"
    assert found["budget"]["rows"]["card_total"] is None


def test_a_log_level_that_hides_the_table() -> None:
    text = "".join(line for line in HEALTHY.splitlines(keepends=True) if line.startswith(("W", "E")))
    found = ledger(text)
    assert verdict(found) == ("incomplete", "table_hidden")
    assert "RADIANCE_LOG" in found["reason"]["text"]
    assert [row["card"] for row in found["settled"]] == [0, 1]


@pytest.mark.parametrize("text", ["", "\n"])
def test_no_text(text: str) -> None:
    assert ledger(text)["status"] == "absent"


@pytest.mark.parametrize(
    "text",
    [
        "INFO 01-02 03:04:05 [worker.py:1] Available KV cache memory: 6.87 GiB\n",
        "W server: scheduler refused request 7: too long\nI prefix cache: reset, 3 entries dropped\n",
        "Error: no such container\n",
        "W hello\nI world\n",
    ],
)
def test_another_programs_text_is_no_boot(text: str) -> None:
    found = ledger(text)
    assert verdict(found) == ("absent", "no_boot")
    assert found["missing"] == []
    assert found["pair"] == {"weights_mib": None, "kv_mib": None, "exact": False}


@pytest.mark.parametrize(
    ("old", "new", "quoted"),
    [("31.86 GiB", "31,86 GiB", "'31,86 GiB'"), ("897.00 MiB   computed", "1,024 MiB   computed", "'1,024 MiB'")],
)
def test_a_figure_in_another_form_is_quoted_not_read(old: str, new: str, quoted: str) -> None:
    found = ledger(HEALTHY.replace(old, new))
    assert verdict(found) == ("incomplete", "rows_unreadable")
    assert quoted in found["reason"]["text"]


@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        ("  already held       342.00 MiB", "  already held       372.00 MiB", "card_total"),
        ("  elastic              1.93 GiB", "  elastic              1.95 GiB", "claimable"),
        ("  unclaimed            2.03 GiB", "  unclaimed            2.07 GiB", "unclaimed"),
        ("against 209.19 MiB (", "against 209.22 MiB (", "settled_floor.card0"),
    ],
)
def test_a_sum_that_is_off(old: str, new: str, check: str) -> None:
    assert old in HEALTHY
    found = ledger(HEALTHY.replace(old, new))
    assert verdict(found) == ("incomplete", "sums_off")
    assert check in [one["name"] for one in found["checks"] if not one["holds"]]


@pytest.mark.parametrize(
    ("flags", "holds"),
    [
        ({"vram-weights-mib": "24000", "vram-kv-mib": "5120"}, True),
        ({"vram-weights-mib": "24007", "vram-kv-mib": "5125"}, True),
        ({"vram-weights-mib": "24008", "vram-kv-mib": "5120"}, False),
        ({"vram-weights-mib": "24000", "vram-kv-mib": "5126"}, False),
        ({"vram-weights-mib": "24000", "tp": "2"}, False),
        ({"tp": "2"}, False),
    ],
)
def test_flags_of_another_process_contradict_the_table(flags: dict[str, str], holds: bool) -> None:
    found = ledger(HEALTHY, flags=flags)
    (check,) = [one for one in found["checks"] if one["name"] == "flags_match_table"]
    assert check["holds"] is holds
    assert verdict(found) == (("complete", None) if holds else ("incomplete", "sums_off"))


def test_flags_that_state_a_derived_pool_contradict_the_table() -> None:
    found = ledger(MIXED, flags={"vram-weights-mib": "10895", "vram-kv-mib": "3543"})
    assert verdict(found) == ("incomplete", "sums_off")
    found = ledger(MIXED, flags={"vram-weights-mib": "0", "vram-kv-mib": "3543"})
    assert found["status"] == "complete"
    assert found["pair"] == {"weights_mib": pytest.approx(10895.36), "kv_mib": 3543, "exact": False}


def test_a_flag_that_the_engine_reads_in_its_own_way_proves_nothing() -> None:
    found = ledger(HEALTHY, flags={"vram-weights-mib": "24000", "vram-kv-mib": "5G"})
    assert found["pair"] == {"weights_mib": 24000, "kv_mib": 5120.0, "exact": False}


REFUSALS = [
    (
        "E unknown option '--expert-vs-cache-ratio'\nusage: radiance --model FILE [options]\n",
        "unknown_option",
        ["'--expert-vs-cache-ratio'", "Take it off the command line"],
    ),
    ("E unknown option '-x y'\n", "unknown_option", ["'-x"]),
    (
        "E unrecognized argument: --vram-kv-mib (removed in 1.3)\n",
        "unknown_option",
        ["'--vram-kv-mib'"],
    ),
    (
        "E --max-num-seqs takes a whole number, not 'three'\n",
        "bad_command_line",
        ["--max-num-seqs takes a whole number, not 'three'"],
    ),
    ("E --model is required\n", "bad_command_line", ["--model is required"]),
    (DEVICES + "E no usable device\n", "no_device", ["no usable device"]),
    (
        DEVICES + "E --tp 4 needs 4 devices of one architecture; 2 are usable [0:gfx1201 1:gfx1201]\n",
        "no_device",
        ["--tp 4 needs 4 devices", "lower --tp"],
    ),
    (
        DEVICES
        + "E VRAM does not cover the fixed costs before a single pool is sized:\n"
        + "  card total          31.86 GiB\n"
        + "  already held       342.00 MiB   (driver context, code objects, anything else on the card)\n"
        + "  --gpu-headroom-mib  96.00 MiB\n"
        + "  activation arena   897.00 MiB   (buffer plan + kernel scratch)\n"
        + "  step staging       187.70 MiB   (block tables + media staging)\n"
        + "  --vram-weights-mib  27.34 GiB   (stated)\n"
        + "  --vram-kv-mib        5.00 GiB   (stated)\n"
        + "  ------------------------------\n"
        + "  SHORT BY             1.97 GiB\n"
        + "Lower --gpu-headroom-mib, lower --max-num-batched-tokens (the arena scales with it), or free the card.\n",
        "vram_short",
        ["31.86 GiB", "897.00 MiB", "27.34 GiB", "SHORT BY 1.97 GiB", "Lower the pair by 2,023 MiB"],
    ),
    (
        DEVICES
        + "E[1] VRAM budgets do not fit:\n"
        + "  vram_weights    27.34 GiB\n"
        + "  vram_kv          5.00 GiB\n"
        + "  ------------------------\n"
        + "  total           32.34 GiB\n"
        + "  card total      31.86 GiB\n"
        + "  OVER BY        494.48 MiB\n"
        + "Lower --vram-weights-mib / --vram-kv-mib, or raise --gpu-headroom-mib\n",
        "pools_over_card",
        ["32.34 GiB", "31.86 GiB", "OVER BY 494.48 MiB", "Lower the pair's sum by 495 MiB"],
    ),
    (
        DEVICES
        + "E[0] VRAM pool budgets are empty -- state --vram-weights-mib / --vram-kv-mib, or let the card be split:\n"
        + "  vram_weights resolved to 0 MiB\n  vram_kv resolved to 0 MiB\n",
        "pools_empty",
        ["0 MiB", "State --vram-weights-mib"],
    ),
    (
        DEVICES
        + "E[0] pool allocation refused:\n"
        + "  vram_weights    23.44 GiB budget,  20.00 GiB used,   3.44 GiB free\n"
        + "    REFUSED slab: vram_weights wanted 4.00 GiB, 3.44 GiB available -- short by 573.44 MiB\n",
        "pool_allocation_refused",
        ["short by 573.44 MiB"],
    ),
    (
        DEVICES
        + "E vram_kv does not fit its fixed costs:\n"
        + "  linear/conv state  329.39 MiB  (3 sequences)\n"
        + "  checkpoints        448.00 MiB  (8 x 56.00 MiB)\n"
        + "  ------------------------------\n"
        + "  fixed              777.39 MiB\n"
        + "  --vram-kv-mib      512.00 MiB\n"
        + "  SHORT BY           265.39 MiB\n"
        + "Lower --max-seqs or the checkpoint slot count, or raise --vram-kv-mib.\n",
        "kv_fixed_costs",
        ["512.00 MiB", "777.39 MiB", "(3 sequences)", "SHORT BY 265.39 MiB", "Raise --vram-kv-mib by 266 MiB"],
    ),
    (
        DEVICES
        + "E KV group 'kv_attn': a 778.00 MiB KV pool leaves 0 blocks (26.00 KiB a page) after the fixed linear/conv "
        + "costs of 777.99 MiB. Raise --vram-kv-mib, lower --expert-vs-cache-ratio, or lower --max-seqs.\n",
        "kv_no_blocks",
        ["778.00 MiB", "'kv_attn'", "777.99 MiB", "Raise --vram-kv-mib"],
    ),
    (
        DEVICES + "E KV pool: the carve reserved 5.00 GiB of address space and the card would not back it\n",
        "kv_pool_refused",
        ["5.00 GiB", "free the card"],
    ),
    (
        DEVICES
        + "placement plan  rank 0/2  strategy expert_tiered  x\n"
        + "  pool                budget          used\n"
        + "  DID NOT FIT\n"
        + "    11777 x expert (moe): the host pool is full and no --weights-disk-tier was given\n",
        "weights_do_not_fit",
        ["DID NOT FIT", "11777 x expert", "--host-pool-mib"],
    ),
    (
        DEVICES + "E[0] mover: no VRAM for the 'experts' slab: 18898 slots of 1.37 MiB\n",
        "slab_no_vram",
        ["18,898 slots of 1.37 MiB", "Lower --vram-weights-mib"],
    ),
    (
        DEVICES + "E[0] mover: no pinned host memory for the 'experts' pool: 12000 slots of 1.37 MiB\n",
        "host_pool_no_memory",
        ["12,000 slots", "memlock"],
    ),
    (
        DEVICES + "E --max-num-batched-tokens is 32 but this model's chunk geometry needs at least 64: one chunk\n",
        "chunk_geometry",
        ["is 32", "Raise --max-num-batched-tokens to 64"],
    ),
    (
        DEVICES
        + "radiance: qwen4exp: the QSA score plane would be 1200 MiB -- --max-num-batched-tokens 8192 by "
        + "--max-ctx 400000 / compress ratio 4. Lower either.\n"
        + "E[0] qwen4exp: rad_arch_declare returned invalid argument\n",
        "model_unusable",
        ["1200 MiB"],
    ),
    (
        without(r"^I server: listening") + "E server: cannot bind 127.0.0.1:8465\n",
        "cannot_bind",
        ["127.0.0.1 port 8465"],
    ),
    (
        DEVICES + "radiance: fatal: hipErrorOutOfMemory\n",
        "engine_fatal",
        ["itself: hipErrorOutOfMemory. The last message"],
    ),
    (
        (DEVICES + "E[1] kernel 7 was lost\nI load: rank 0\n\nradiance: fatal: device\n") * 2,
        "engine_fatal",
        ["itself: device. The last error before it was 'kernel 7 was lost'."],
    ),
]


@pytest.mark.parametrize(("text", "code", "says"), REFUSALS, ids=[f"{case[1]}-{i}" for i, case in enumerate(REFUSALS)])
def test_a_refused_boot_says_why_with_numbers_and_a_way_out(text: str, code: str, says: list[str]) -> None:
    for found in (ledger(text), ledger(text, bounded=True), ledger(HEALTHY + text)):
        assert verdict(found) == ("refused", code)
        assert code in REASON_CODES
        assert (found["missing"], found["ready"], found["essential"]) == ([], False, False)
        for part in says:
            assert part in found["reason"]["text"]


def test_an_error_that_the_boot_survived_is_a_warning() -> None:
    level = "E RADIANCE_LOG='loud' is not error|warn|info|debug|trace; using info\n"
    found = ledger(level + HEALTHY.replace("I prefix cache:", "E cannot create /data/kvcache\nI prefix cache:"))
    assert found["status"] == "complete"
    assert [w["text"][:13] for w in found["warnings"] if w["level"] == "E"] == ["RADIANCE_LOG=", "cannot create"]


def test_every_code_that_is_given_is_on_the_public_list() -> None:
    package = pathlib.Path(read_ledger.__code__.co_filename).parent
    source = (package / "ledger.py").read_text() + (package / "refusals.py").read_text()
    used = set(re.findall(r'"(?:absent|incomplete)", "(\w+)"', source)) | set(
        re.findall(r'_reason\(\s*"(\w+)"', source)
    )
    used |= set(re.findall(r'_Form\(\s*"(\w+)"', source))
    assert len(used) > 15
    assert used <= set(REASON_CODES)


def test_an_error_in_words_that_are_not_known_is_quoted() -> None:
    found = ledger(DEVICES + "E the moon is in the wrong house\nI load: rank 0\n")
    assert verdict(found) == ("incomplete", "not_ready")
    assert "Its last error line is 'the moon is in the wrong house'." in found["reason"]["text"]


def test_lines_of_another_rank_may_fall_into_a_report() -> None:
    lines = HEALTHY.splitlines(keepends=True)
    strays = [line for line in lines if line.startswith("W[1] VRAM budgets")]
    at = next(number for number, line in enumerate(lines) if line.startswith("  static weights"))
    pools = next(number for number, line in enumerate(lines) if line.startswith("  host_pool"))
    mixed = [line for line in lines if line not in strays]
    mixed[at:at] = strays
    mixed[pools:pools] = ["I[1] declare: 1 ops, 1 weights, 1 buffers, 1 KV groups\n"]
    found = ledger("".join(mixed))
    assert found["status"] == "complete"
    assert found["budget"] == ledger(HEALTHY)["budget"]
    assert found["host_pool"] == ledger(HEALTHY)["host_pool"]


def test_the_cards_of_a_boot() -> None:
    two = MIXED.replace("1 device(s) [0:gfx1201]", "2 device(s) [0:gfx1201 1:gfx1201]")
    assert ledger(two)["devices"] == {"used": [0], "ignored": [1]}
    assert ledger(two.replace("card 0 settled", "card 1 settled"))["devices"] == {"used": [1], "ignored": [0]}
    lost = without(r"card 1 settled")
    assert ledger(lost)["devices"] == {"used": [0, 1], "ignored": [2]}


@pytest.mark.parametrize(
    ("text", "flags", "tp"),
    [
        (HEALTHY, None, 2),
        (without(r"^.\[1\]"), None, 2),
        (without(r"^.\[1\]"), {"tp": "3"}, 3),
        (MIXED, None, 1),
        (DEVICES, None, None),
        (DEVICES, {"tp": "two"}, None),
    ],
)
def test_how_many_ranks(text: str, flags: dict[str, str] | None, tp: int | None) -> None:
    assert ledger(text, flags=flags)["tp"] == tp


def test_untagged_lines_are_rank_0_at_one_rank() -> None:
    found = ledger(MIXED.replace("I chunk geometry", "W something\nI chunk geometry"))
    assert found["warnings"] == [{"level": "W", "rank": 0, "text": "something"}]


def test_a_dense_model_has_no_slab() -> None:
    dense = without(r"mover", MIXED).replace("    experts            9.77 GiB", "    experts                 0 B")
    found = ledger(dense)
    assert "slab.rank0" not in found["missing"]
    assert "slab.rank0" in ledger(without(r"^I mover: 6144", MIXED))["missing"]


DERIVED = (LOGS / "derived-1.0.4.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(("pool", "holds"), [("26101.90 MiB", True), ("26102.10 MiB", False)])
def test_a_sum_has_a_whole_mib_of_room_for_each_derived_pool(pool: str, holds: bool) -> None:
    text = DERIVED.replace("static weights       4.20 GiB", "static weights    4300.00 MiB")
    text = text.replace("experts           21.30 GiB", "experts        21800.00 MiB")
    text = text.replace("vram_weights        25.50 GiB   static", f"vram_weights     {pool}   static")
    (check,) = [one for one in ledger(text)["checks"] if one["name"] == "vram_weights"]
    assert check["tolerance_mib"] == pytest.approx(2.015)
    assert check["holds"] is holds


def test_no_sum_is_made_with_a_row_that_was_printed_and_not_read() -> None:
    found = ledger(DERIVED.replace("prefill staging  200.00 MiB", "prefill staging  200,00 MiB"))
    names = [one["name"] for one in found["checks"]]
    assert names[:5] == ["card_total", "claimable", "vram_weights", "vram_kv", "pools_match_table"]
    assert verdict(found) == ("incomplete", "rows_unreadable")


def test_a_bounded_text_holds_one_boot_whatever_is_asked() -> None:
    assert ledger(HEALTHY, bounded=True, boot=5)["status"] == "complete"


def test_only_info_lines_begin_a_boot_or_end_it() -> None:
    found = ledger(without(r"^I server: listening") + "W server: listening on http://127.0.0.1:1 (1 threads)\n")
    assert (found["ready"], found["reason"]["code"]) == (False, "not_ready")
    assert ledger(HEALTHY + "W" + DEVICES[1:])["source"]["boots_seen"] == 1


def test_colours_are_taken_off() -> None:
    coloured = re.sub(r"(?m)^(W(?:\[\d\])?) ", "\x1b[33m\\1\x1b[0m ", HEALTHY)
    assert coloured.count("\x1b[33m") == HEALTHY.count("\nW")
    assert ledger(coloured) == ledger(HEALTHY)


def test_running_text_behind_a_row_is_no_row() -> None:
    text = HEALTHY.replace(" " * 34 + "more would be unusable", " " * 34 + "vram_kv 9.00 GiB")
    assert text != HEALTHY
    assert ledger(text)["budget"] == ledger(HEALTHY)["budget"]


def test_a_settled_line_of_a_card_that_is_not_there() -> None:
    found = ledger(MIXED.replace("card 0 settled", "card 7 settled"))
    assert found["devices"]["used"] == [0]
    assert found["missing"] == ["settled.card0"]


def test_without_the_inventory_the_essential_rows_cannot_be_judged() -> None:
    found = ledger(without(r"^I device:"))
    assert (found["ready"], found["essential"]) == (True, False)
    assert verdict(found) == ("incomplete", "log_cut")
    assert found["missing"] == ["device_inventory"]


def test_a_boot_that_listens_was_not_refused() -> None:
    found = ledger(HEALTHY.replace("I serving on", "E placement: something was tried first\nI serving on"))
    assert found["status"] == "complete"


def test_the_start_joins_the_fingerprint_and_colours_do_not() -> None:
    def fingerprint(text: str = HEALTHY, **source: t.Any) -> str:
        found = read_ledger(text, source=source)["fingerprint"]
        assert re.match("^[0-9a-f]{12}$", found)
        return t.cast("str", found)

    assert fingerprint(started_at="2026-10-13T03:04:05Z") != fingerprint(started_at="2026-10-13T03:04:06Z")
    assert fingerprint(container_id="a") != fingerprint(container_id="b")
    assert fingerprint(inode=1, offset=0) != fingerprint(inode=2, offset=0)
    assert fingerprint(name="a", kind="file") == fingerprint(name="b", kind="receipt")
    assert fingerprint(HEALTHY.replace("\nW", "\n\x1b[33mW")) == fingerprint()
    assert fingerprint(HEALTHY + "I more\n") == fingerprint()
