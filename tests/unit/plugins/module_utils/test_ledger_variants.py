# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One literal case for each variant of a report, in a boot that is complete otherwise. The logs are synthesised."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger

LOGS = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "logs"
HEALTHY = (LOGS / "healthy-1.0.13.log").read_text(encoding="utf-8")
DERIVED = (LOGS / "derived-1.0.4.log").read_text(encoding="utf-8")
MIXED = (LOGS / "mixed-1.0.5.log").read_text(encoding="utf-8")
UNDER = " " * 34


def ledger(text: str, **options: t.Any) -> dict[str, t.Any]:
    return read_ledger(text, source={"kind": "text"}, **options)


def with_line(text: str, pattern: str, *lines: str) -> str:
    """The text with these lines in the place of the first that begins with the pattern."""
    found = re.search(rf"(?m)^{pattern}.*\n", text)
    assert found is not None
    return text[: found.start()] + "".join(f"{line}\n" for line in lines) + text[found.end() :]


def complete(text: str, **options: t.Any) -> dict[str, t.Any]:
    found = ledger(text, **options)
    assert (found["status"], found["reason"], found["missing"]) == ("complete", None, [])
    return found


# ------------------------------------------------------------------------------------------------------------ the table


def table(**rows: str) -> str:
    """A boot with a table of these rows beside those that every table has; an empty row is left out."""
    card = {
        "card total": "15.92 GiB",
        "already held": "250.00 MiB   measured: driver context, code objects, anything else resident",
        "activation arena": "400.00 MiB   computed from the buffer plan",
        "step staging": "50.00 MiB   the step batch's block tables and media staging",
        "--gpu-headroom-mib": "96.00 MiB   left unclaimed on purpose",
        **{name.replace("_", " ") if "vram" not in name else name: row for name, row in rows.items()},
    }
    inner = ("experts", "kv cache", "unusable", "prefill staging")
    lines = [f"{'    ' if name in inner else '  '}{name}   {row}" for name, row in card.items() if row]
    begin = MIXED.index("I VRAM budget") + len("I VRAM budget, per card:\n")
    boot = MIXED[:begin] + "\n".join(lines) + "\n" + MIXED[MIXED.index("I pools:") :]
    for pool, printed in (("vram_weights", "10.64 GiB"), ("vram_kv", "3.46 GiB")):
        boot = boot.replace(
            f"  {pool:<14} {printed:>10} budget", f"  {pool:<14} {rows[pool].split('   ')[0]:>10} budget"
        )
    return boot.replace("0x7f1a20000000, 3.46 GiB", f"0x7f1a20000000, {rows['vram_kv'].split('   ')[0]}")


BACKS = (
    "backs 4 sequences all at 65536 tokens at once, which is the worst case and\n" + UNDER + "more would be unusable"
)
PART = (
    "50% backing of the 4 x 131072 worst case: 2.0 full-length\n"
    + UNDER
    + "sessions. With prefix caching a finished sequence's blocks stay held\n"
    + UNDER
    + "for reuse, so the demand is LIVE SESSIONS and not running requests"
)
TABLES = {
    "both stated": (
        {
            "claimable": "1.02 GiB",
            "static_weights": "900.00 MiB   (not charged here -- --vram-weights-mib was stated)",
            "elastic": "1.02 GiB   what --expert-vs-cache-ratio 0.75 divides",
            "experts": "0 B   0% of it",
            "kv_cache": f"3.46 GiB   339% of it -- {BACKS}",
            "vram_weights": "10.66 GiB   stated by --vram-weights-mib",
            "vram_kv": "3.46 GiB   stated by --vram-kv-mib",
            "unclaimed": "1.11 GiB   the headroom, the unusable above, and what MiB rounding",
        },
        ("stated", "stated"),
        {"unusable": None, "prefill_staging": None, "experts": "0 B", "elastic": "1.02 GiB"},
    ),
    "weights stated": (
        {
            "claimable": "4.48 GiB",
            "static_weights": "900.00 MiB   (not charged here -- --vram-weights-mib was stated)",
            "elastic": "4.48 GiB   what --expert-vs-cache-ratio 0.75 divides",
            "experts": "0 B   0% of it",
            "kv_cache": f"3.46 GiB   77% of it -- {BACKS}",
            "unusable": "1.02 GiB   neither side could take it: both are at their ceiling",
            "vram_weights": "10.66 GiB   stated by --vram-weights-mib",
            "vram_kv": "3.46 GiB   the cache's share",
            "unclaimed": "1.11 GiB   the headroom, the unusable above, and what MiB rounding",
        },
        ("stated", "derived"),
        {"unusable": "1.02 GiB", "prefill_staging": None},
    ),
    "cache stated": (
        {
            "claimable": "11.68 GiB",
            "static_weights": "900.00 MiB   off the top: every rank's own shard, and not a share of anything",
            "elastic": "10.80 GiB   what --expert-vs-cache-ratio 0.75 divides",
            "experts": "10.60 GiB   98% of it",
            "kv_cache": f"3.46 GiB   32% of it -- {BACKS}",
            "prefill_staging": "200.00 MiB   out of the experts: two buffers of one layer's non-resident experts,\n"
            + UNDER
            + "at the arena's top and lent back to the slab while steps are small",
            "vram_weights": "11.48 GiB   static + experts",
            "vram_kv": "3.46 GiB   stated by --vram-kv-mib",
            "unclaimed": "96.00 MiB   the headroom, the unusable above, and what MiB rounding",
        },
        ("derived", "stated"),
        {"unusable": None, "prefill_staging": "200.00 MiB", "experts": "10.60 GiB"},
    ),
    "both derived, of a part": (
        {
            "claimable": "15.14 GiB",
            "static_weights": "900.00 MiB   off the top: every rank's own shard, and not a share of anything",
            "elastic": "14.26 GiB   what --expert-vs-cache-ratio 0.75 divides",
            "experts": "10.70 GiB   75% of it",
            "kv_cache": f"3.56 GiB   25% of it -- {PART}",
            "vram_weights": "11.58 GiB   static + experts",
            "vram_kv": "3.56 GiB   the cache's share",
            "unclaimed": "96.60 MiB   the headroom, the unusable above, and what MiB rounding",
        },
        ("derived", "derived"),
        {"unusable": None, "vram_kv": "3.56 GiB"},
    ),
    "dense": (
        {
            "claimable": "15.14 GiB",
            "static_weights": "9.00 GiB   off the top: every rank's own shard, and not a share of anything",
            "elastic": "6.14 GiB   what --expert-vs-cache-ratio 0.75 divides",
            "experts": "0 B   0% of it -- a dense model, so there is no expert plane for this share to fill and the\n"
            + UNDER
            + "cache took everything it could address",
            "kv_cache": f"3.46 GiB   56% of it -- {BACKS}",
            "unusable": "2.68 GiB   neither side could take it: both are at their ceiling",
            "vram_weights": "9.00 GiB   static + experts",
            "vram_kv": "3.46 GiB   the cache's share",
            "unclaimed": "2.77 GiB   the headroom, the unusable above, and what MiB rounding",
        },
        ("derived", "derived"),
        {"unusable": "2.68 GiB", "experts": "0 B", "static_weights": "9.00 GiB"},
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_way_to_state_and_to_derive(name: str) -> None:
    rows, (weights, kv), literal = TABLES[name]
    found = complete(table(**rows))
    assert (found["budget"]["weights"], found["budget"]["kv"]) == (weights, kv)
    printed = {row: size and size["text"] for row, size in found["budget"]["rows"].items()}
    assert {row: printed[row] for row in literal} == literal
    part = name == "both derived, of a part"
    assert found["capacity"] == {
        "sequences": 4,
        "tokens": 131072 if part else 65536,
        "full": not part,
        "backing_percent": 50.0 if part else None,
        "full_length_sessions": 2.0 if part else None,
    }
    assert found["pair"]["exact"] is False


def test_stated_pools_are_exact_from_the_command_line() -> None:
    flags = {"vram-weights-mib": "10916", "vram-kv-mib": "3543", "tp": "1", "max-num-seqs": "4"}
    assert complete(table(**TABLES["both stated"][0]), flags=flags)["pair"] == {
        "weights_mib": 10916,
        "kv_mib": 3543,
        "exact": True,
    }


def test_the_row_of_integrated_graphics() -> None:
    rows = {
        **TABLES["both stated"][0],
        "claimable": "92.48 MiB",
        "elastic": "92.48 MiB   what --expert-vs-cache-ratio 0.75",
    }
    text = table(**rows).replace(
        "  --gpu-headroom-mib   96.00 MiB   left unclaimed on purpose",
        "  left to the host   1.02 GiB   integrated graphics: this memory is the host's; --vram-kv-mib states a pool",
    )
    # What a card settles against is the flag all the same.
    found = complete(text)
    assert found["budget"]["rows"]["headroom"]["text"] == "1.02 GiB"
    assert found["settled"][0]["headroom"]["text"] == "96.00 MiB"


def test_a_table_that_does_not_say_what_the_pool_backs() -> None:
    found = ledger(table(**{**TABLES["both stated"][0], "kv_cache": "3.46 GiB   339% of it"}))
    assert found["missing"] == ["capacity"]
    assert set(found["capacity"].values()) == {None}


def test_the_sentence_before_the_table_is_a_witness_and_no_source() -> None:
    told = (
        "I kv: the pool backs 31% of the worst case (8 sequences all at 200000 tokens), 2.5 full-length sessions. That"
    )
    assert told in DERIVED
    other = ledger(DERIVED.replace("(8 sequences all at 200000", "(6 sequences all at 200000"))
    assert (other["status"], other["reason"]["code"]) == ("incomplete", "sums_off")
    assert "6 sequences of 200000 tokens before the table and 8 of 200000 in it" in other["reason"]["text"]
    assert ledger(DERIVED.replace("-- 31% backing of", "-- about 31% of"))["missing"] == ["capacity"]


def test_a_row_below_nothing_is_no_size() -> None:
    found = ledger(HEALTHY.replace("  elastic              1.93 GiB", "  elastic         -76898304 B"))
    assert (found["status"], found["reason"]["code"]) == ("incomplete", "rows_unreadable")
    assert "elastic '-76898304 B'" in found["reason"]["text"]


def test_sizes_at_the_end_of_their_unit() -> None:
    # The unit is chosen before the rounding.
    found = complete(HEALTHY.replace("--gpu-headroom-mib   96.00 MiB", "--gpu-headroom-mib   96.00 MiB"))
    assert found["budget"]["rows"]["experts"] == {"mib": 0.0, "plus_minus_mib": 0.0, "text": "0 B"}
    at_the_end = ledger(HEALTHY.replace("  already held       342.00 MiB", "  already held      1024.00 MiB"))
    assert at_the_end["budget"]["rows"]["already_held"] == {
        "mib": 1024.0,
        "plus_minus_mib": 0.005,
        "text": "1024.00 MiB",
    }


# -------------------------------------------------------------------------------------------------------------- devices


@pytest.mark.parametrize(
    ("line", "devices"),
    [
        ("I device: AQL backend, 1 device(s) [0:gfx1201]", {"used": [0], "ignored": []}),
        ("I device: host backend, 1 device(s) [0:host]", {"used": [0], "ignored": []}),
        ("I device: AQL backend, 3 device(s) [0:gfx1201 1:gfx1201 2:gfx1036]", {"used": [0], "ignored": [1, 2]}),
    ],
)
def test_inventories(line: str, devices: dict[str, list[int]]) -> None:
    assert complete(with_line(MIXED, "I device: ", line))["devices"] == devices


def test_an_inventory_of_which_a_part_is_lost() -> None:
    for line in (
        "I device: AQL backend, 2 device(s) [0:gfx1201]",
        "I device: AQL backend, 1 device(s) [0:gfx1201 1:gfx1201]",
    ):
        assert ledger(with_line(MIXED, "I device: ", line))["missing"] == ["device_inventory"]
    using = "W device: using 2 of 3 [0:gfx1201 1:gfx1201], ignoring [3:gfx1036]: integrated graphics beside a discrete"
    assert ledger(with_line(HEALTHY, "W device: ", using))["missing"] == ["device_inventory"]


def test_later_device_lines_are_no_inventory() -> None:
    line = "I device: the 2 cards reach each other's memory directly (peer to peer)"
    found = complete(HEALTHY.replace("I vocab:", f"{line}\nI vocab:"))
    assert (found["devices"]["used"], found["source"]["boots_seen"]) == ([0, 1], 1)


# ---------------------------------------------------------------------------------------------- model, declare, chunks


def test_a_checkpoint_that_is_served_as_it_stands() -> None:
    assert complete(MIXED)["model"] == {
        "name": "small-moe.rad",
        "arch": "qwen4exp",
        "quant": "fp8",
        "layers": 24,
        "trained_context": 65536,
    }


def test_sampler_lines_that_disagree_are_none() -> None:
    assert HEALTHY.count(", 9 rows, ") == 3
    found = ledger(HEALTHY.replace(", 9 rows, ", ", 12 rows, ", 1))
    assert (found["missing"], found["sampler"]) == (["sampler"], {"rows": None})
    found = ledger(HEALTHY.replace(", 9 rows, ", ", 10 rows, "))
    assert "10 sampler rows are no multiple of 3 sequences" in found["reason"]["text"]


@pytest.mark.parametrize(
    ("line", "chunk"),
    [
        ("checkpoint interval 2048, max_tok 1024 -> prefill chunks of at most 1024", (1024, "budget")),
        ("checkpoint interval 2048, max_tok 2048 -> prefill chunks of at most 2048", (2048, "budget")),
        ("checkpoint interval 0, max_tok 4096 -> prefill chunks of at most 4096", (4096, "budget")),
        (
            "checkpoint interval 512, max_tok 4096 -> prefill chunks of at most 512 (the checkpoint interval, not the "
            "budget)",
            (512, "checkpoint_interval"),
        ),
        # Cut at its end, or in its middle.
        ("checkpoint interval 2048, max_tok 1024 -> prefill chunks of at most 102", (None, None)),
        ("checkpoint interval 512, max_tok 4096 -> prefill chunks of at most 512", (None, None)),
        ("checkpoint interval 2048, max_tok 1024 -> prefill chunks of at m", (None, None)),
    ],
)
def test_chunks(line: str, chunk: tuple[int | None, str | None]) -> None:
    geometry = "I chunk geometry: quantum 64 (attn block 4, state chunk 64), "
    found = ledger(with_line(MIXED, "I chunk geometry", geometry + line))
    assert (found["chunk"]["prefill_tokens"], found["chunk"]["bound_by"]) == chunk
    assert found["missing"] == ([] if chunk[0] else ["chunk"])


@pytest.mark.parametrize(("flags", "missing"), [(None, []), ({"tp-wire": "wht6", "tp": "2"}, ["wire"])])
def test_an_exact_wire_is_told_by_no_line_and_contradicted_by_a_flag(
    flags: dict[str, str] | None, missing: list[str]
) -> None:
    found = ledger(with_line(HEALTHY, "W tp wire"), flags=flags)
    assert found["wire"] == {"mode": "exact", "exact_rows": None}
    assert found["missing"] == missing


def test_a_piece_of_a_lossy_wire_is_no_exact_one() -> None:
    found = ledger(HEALTHY.replace("W tp wire: LOSSY (--tp", "W tp wi\nre: LOSSY (--tp"))
    assert (found["wire"]["mode"], found["missing"]) == (None, ["wire"])
    found = ledger(HEALTHY, flags={"vram-weights-mib": "24000", "vram-kv-mib": "5120", "tp-wire": "exact"})
    assert "--tp-wire is exact and the boot calls its wire lossy" in found["reason"]["text"]


# -------------------------------------------------------------------------------------------- pools, slots, loans


def test_pools_with_their_reservations() -> None:
    text = HEALTHY.replace(
        "  vram_kv          5.00 GiB budget,        0 B used,   5.00 GiB free\n",
        "    static weights            42.40 MiB @ +0\n"
        "    expert slab               23.40 GiB @ +44459622\n"
        "  vram_kv          5.00 GiB budget,   5.00 GiB used,        0 B free\n"
        "    kv_attn                    3.72 GiB @ +0\n",
    )
    assert complete(text)["host_pool"] == complete(HEALTHY)["host_pool"]


def test_pools_of_another_size_than_the_tables() -> None:
    found = ledger(HEALTHY.replace("  vram_kv          5.00 GiB budget", "  vram_kv          5.01 GiB budget", 1))
    assert (found["status"], found["reason"]["code"], found["essential"]) == ("incomplete", "sums_off", False)
    assert [check for check in found["checks"] if not check["holds"]] == [
        {
            "name": "pools_match_table",
            "holds": False,
            "difference_mib": pytest.approx(10.24),
            "tolerance_mib": 0.0,
        }
    ]


def test_what_a_host_pool_has_used_and_free_is_its_budget() -> None:
    found = ledger(HEALTHY.replace("10.11 GiB used,   5.89 GiB free", "10.11 GiB used,   5.98 GiB free"))
    assert [check["name"] for check in found["checks"] if not check["holds"]] == ["host_pool"]


@pytest.mark.parametrize(
    ("line", "slab"),
    [
        ("I mover: 6144 slab slots (0 shadow), 0 pinned pool slots, 900.00 MiB static vram", (6144, 0, 0)),
        (
            "I mover: 17548 slab slots (32 shadow), 7580 pinned pool slots, 42.40 MiB static vram, file tier open",
            (17548, 32, 7580),
        ),
        ("I mover: 0 slab slots (0 shadow), 12 pinned pool slots, 0 B static vram", (0, 0, 12)),
    ],
)
def test_slabs(line: str, slab: tuple[int, int, int]) -> None:
    text = with_line(MIXED, "I mover: 6144", line, "I mover: 1.20 GiB of pageable host memory for the units no tier")
    (row,) = complete(text)["slab"]
    assert (row["slots"], row["shadow_slots"], row["pool_slots"]) == slab


def test_a_slab_that_a_rank_prints_twice_with_two_counts_is_none() -> None:
    found = ledger(HEALTHY.replace("I[1] mover: 17596 slab", "I[0] mover: 17596 slab"))
    assert found["missing"] == ["slab.rank0", "slab.rank1"]
    assert found["slab"] == []


def test_untagged_lines_of_ranks_are_nobodys() -> None:
    found = ledger(re.sub(r"(?m)^I\[\d\] (mover|pools)", r"I \1", HEALTHY))
    assert found["missing"] == ["pools.rank0", "pools.rank1", "slab.rank0", "slab.rank1"]


def test_the_load_counts_the_ranks_where_all_lines_of_the_last_are_lost() -> None:
    text = "".join(line for line in HEALTHY.splitlines(keepends=True) if not re.match(r"[EWI]\[1\]", line))
    found = ledger(text.replace(" for 2 rank(s); ", " for 4 rank(s); "))
    assert found["tp"] == 4
    assert "slab.rank3" in found["missing"]


def test_loans_are_those_of_every_rank() -> None:
    assert [row["slots"] for row in complete(HEALTHY)["lent"]] == [3051, 3059, 503, 505]
    assert ledger(with_line(HEALTHY, "I mover: 3051 slots can"))["missing"] == ["lent.kv_cache"]
    twice = with_line(
        HEALTHY,
        "I mover: 503 slots can",
        *["I mover: 503 slots can be lent out of the activation arena (686.60 MiB), filled as it lends them"] * 2,
    )
    assert ledger(twice)["missing"] == ["lent.activation_arena"]
    none = "".join(line for line in HEALTHY.splitlines(keepends=True) if " can be lent " not in line)
    assert complete(none)["lent"] == []


# -------------------------------------------------------------------------------------------------------------- KV plan

PLAN = (
    "I kv: KV layer bundles 12/24/30/30 (96 real layers)\n"
    "    vLLM stock    size 12 ->  9 groups, 108 slots (12 padding)\n"
    "    least-waste   size 12 ->  9 groups, 108 slots (12 padding)\n"
    "    radiance      per state kind, own pool ->  4 groups,  96 slots (0 padding)\n"
    "    (none)         ?        0 layers  state      0 B        0 slots =       0 B\n"
    "    kv_attn        full    12 layers  block   16 tok  page 384.00 KiB    7000 blocks =  2.56 GiB  "
    "(112000 tokens)\n"
    "    kv_window      window  24 layers  block   16 tok  page 768.00 KiB     520 blocks = 390.00 MiB  (8320 tokens)\n"
    "    kv_state       linear  30 layers  state 30.00 MiB        8 slots = 240.00 MiB\n"
    "    kv_conv        conv    30 layers  state 768.00 KiB       4 slots =  3.00 MiB\n"
    "    pool at (nil), 3.46 GiB; groups at +0..+3390000000, checkpoints at +3391000000\n"
    "    checkpoints    linear      4 slots x 32.00 MiB = 128.00 MiB\n"
)
PLANNED = MIXED[: MIXED.index("I kv: KV layer")] + PLAN + MIXED[MIXED.index("I card 0 settled") :]


def test_every_kind_of_group() -> None:
    kv = complete(PLANNED)["kv"]
    rows = [(one["name"], one["kind"], one["layers"], one["block_tokens"], one["blocks"]) for one in kv["groups"]]
    assert rows == [
        ("kv_attn", "full", 12, 16, 7000),
        ("kv_window", "window", 24, 16, 520),
        ("kv_state", "linear", 30, None, None),
        ("kv_conv", "conv", 30, None, None),
    ]
    assert [(one["tokens"], one["slots"], one["size"]["text"]) for one in kv["groups"]] == [
        (112000, None, "2.56 GiB"),
        (8320, None, "390.00 MiB"),
        (None, 8, "240.00 MiB"),
        (None, 4, "3.00 MiB"),
    ]
    assert (kv["checkpoints"]["slots"], kv["checkpoints"]["each"]["text"]) == (4, "32.00 MiB")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    kv_window .*\n", ""),
        ("    kv_conv .*\n", ""),
        ("    kv_conv        conv ", "    kv_conv        latent "),
        ("    kv_conv        conv    30 layers", "    kv_conv        conv    31 layers"),
        ("    pool at .*\n", ""),
        ("    radiance  .*\n", ""),
        (r"7000 blocks", "7001 blocks"),
        ("    kv_state .*\n(.*\n)*    checkpoints .*\n", "    kv_state       linear  30 layers  state 30.0\n"),
    ],
)
def test_a_plan_that_lost_anything_gives_no_group(old: str, new: str) -> None:
    text = re.sub(old, new, PLANNED)
    assert text != PLANNED
    found = ledger(text)
    assert found["kv"]["groups"] == []
    assert found["missing"] == ["kv_plan"]


@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        ("page 384.00 KiB", "page 384.00 MiB", "kv_sizes"),
        ("8 slots = 240.00 MiB", "8 slots = 204.00 MiB", "kv_sizes"),
        ("4 slots x 32.00 MiB", "5 slots x 32.00 MiB", "kv_sizes"),
        ("8 slots = 240.00 MiB", "40 slots = 1200.00 MiB", "kv_pool"),
        ("pool at (nil), 3.46 GiB", "pool at (nil), 3.56 GiB", "pools_match_table"),
    ],
)
def test_products_and_the_pool_that_holds_them(old: str, new: str, check: str) -> None:
    found = ledger(PLANNED.replace(old, new))
    assert check in [one["name"] for one in found["checks"] if not one["holds"]]
    assert found["reason"]["code"] == "sums_off"


def test_checkpoints_that_were_withdrawn() -> None:
    line = (
        "W checkpoint slots: 3 of 4 backed (32.00 MiB each), 1 withdrawn -- one more would take a card under the "
        "96.00 MiB --gpu-headroom-mib, the room a kernel's first launch allocates from."
    )
    text = PLANNED.replace("I card 0 settled", f"{line}\nI card 0 settled")
    assert complete(text)["kv"]["checkpoints"]["backed"] == 3
    assert complete(PLANNED)["kv"]["checkpoints"]["backed"] is None
    for broken in (text.replace("1 withdrawn", "2 withdrawn"), text.replace("3 of 4 backed", "3 of 8 backed")):
        assert ledger(broken)["missing"] == ["checkpoints_backed"]


@pytest.mark.parametrize(
    ("flags", "missing"),
    [(None, ["checkpoints"]), ({"checkpoint-slots": "4"}, ["checkpoints"]), ({"checkpoint-slots": "0"}, [])],
)
def test_checkpoints_are_owed_where_there_is_a_state_to_keep(flags: dict[str, str] | None, missing: list[str]) -> None:
    assert ledger(with_line(PLANNED, "    checkpoints "), flags=flags)["missing"] == missing


def test_checkpoints_that_the_prefix_cache_counts_otherwise() -> None:
    cache = (
        "I prefix cache: 1 paged group(s) at 16-token blocks; linear checkpoints every 2048 tokens "
        "(30.75 MiB x 8 slots)"
    )
    assert ledger(PLANNED.replace("I card 0", f"{cache}, retention 'tip-only'\nI card 0"))["missing"] == ["checkpoints"]
    fits = f"{cache}, retention 'tip-only'\n".replace("x 8", "x 4")
    assert complete(PLANNED.replace("I card 0", f"{fits}I card 0"))["kv"]["checkpoints"]["slots"] == 4


def test_a_table_and_a_plan_that_contradict_each_other() -> None:
    found = ledger(
        DERIVED.replace(
            "31% backing of the 8 x 200000 worst case: 2.5", "93% backing of the 8 x 200000 worst case: 7.4"
        )
    )
    assert (found["status"], found["reason"]["code"]) == ("incomplete", "sums_off")
    assert "the KV plan holds 0.31 of 8 x 200000 tokens" in found["reason"]["text"]
    found = ledger(DERIVED.replace("worst case: 2.5 full", "worst case: 5.5 full"))
    assert "5.5 full-length sessions are not 31 % of 8" in found["reason"]["text"]


# -------------------------------------------------------------------------------------------------------------- settled


def settled(line: str) -> dict[str, t.Any]:
    return ledger(with_line(MIXED, "I card 0 settled", line))


@pytest.mark.parametrize(
    ("line", "holds"),
    [
        ("settled at 90.00 MiB free against the 96.00 MiB --gpu-headroom-mib asked to keep. The difference is the "
         "allocations. Raise --gpu-headroom-mib by at least 6.00 MiB so the budget is resolved", True),
        ("settled at 90.00 MiB free against the 96.00 MiB --gpu-headroom-mib asked to keep. The difference is the "
         "allocations. Raise --gpu-headroom-mib by at least 9.00 MiB so the budget is resolved", False),
        ("settled at 2.01 GiB free against the 96.00 MiB --gpu-headroom-mib asked to keep, so 1.92 GiB is unused. On "
         "a model", True),
        ("settled at 2.01 GiB free against the 96.00 MiB --gpu-headroom-mib asked to keep, so 1.29 GiB is unused. On "
         "a model", False),
        ("settled at 2.01 GiB free, against the 160.00 MiB --gpu-headroom-mib asked to keep", False),
        ("settled at 2.01 GiB free against 209.19 MiB (the 96.00 MiB --gpu-headroom-mib and 113.19 MiB kept for the "
         "static region)", True),
        ("settled at 2.01 GiB free against 290.19 MiB (the 96.00 MiB --gpu-headroom-mib and 113.19 MiB kept for the "
         "static region)", False),
    ],
)  # fmt: skip
def test_what_a_settled_line_says_of_itself(line: str, holds: bool) -> None:
    found = settled(f"I card 0 {line}")
    (check,) = [one for one in found["checks"] if one["name"] == "settled_floor.card0"]
    assert check["holds"] is holds
    assert (found["status"], found["essential"]) == (("complete", True) if holds else ("incomplete", False))


def test_a_settled_line_in_other_words_tells_its_floor() -> None:
    found = settled("I card 0 settled at 2.01 GiB free against 209.19 MiB, as asked")
    (row,) = found["settled"]
    assert (row["free"]["text"], row["floor"]["text"], row["headroom"]) == ("2.01 GiB", "209.19 MiB", None)


def test_a_card_that_settles_twice_in_two_ways_did_not_settle() -> None:
    line = "I card 0 settled at 3.01 GiB free, against the 96.00 MiB --gpu-headroom-mib asked to keep"
    found = ledger(MIXED.replace("I serving on", f"{line}\nI serving on"))
    assert (found["missing"], found["settled"], found["essential"]) == (["settled.card0"], [], False)


def test_a_card_on_which_no_rank_runs() -> None:
    line = "I card 3 settled at 3.01 GiB free, against the 96.00 MiB --gpu-headroom-mib asked to keep"
    found = ledger(MIXED.replace("I serving on", f"{line}\nI serving on"))
    assert "card 3 settled, on which no rank runs" in found["reason"]["text"]


# ----------------------------------------------------------------------------------------- flags of another process


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"max-num-seqs": "4"}, "--max-num-seqs is 4 and the boot says 3"),
        ({"max-model-len": "131072"}, "--max-model-len is 131072 and the boot says 200000"),
        ({"max-model-len": "0", "max-num-seqs": "3"}, None),
        ({"max-model-len": "200k"}, None),
    ],
)
def test_a_shape_of_another_process(flags: dict[str, str], says: str | None) -> None:
    pools = {"tp": "2", "vram-weights-mib": "24000", "vram-kv-mib": "5120"}
    found = ledger(HEALTHY, flags={**pools, **flags})
    if says is None:
        assert found["status"] == "complete"
    else:
        assert (found["status"], found["reason"]["code"]) == ("incomplete", "sums_off")
        assert says in found["reason"]["text"]


def test_debug_lines_may_fall_anywhere() -> None:
    lines = HEALTHY.splitlines(keepends=True)
    end = next(number for number, line in enumerate(lines) if line.startswith("I server: listening"))
    spoken = "".join(f"D[1] planner.cpp:412  slab 9, card total 99.00 GiB\nT kv.cpp:7  x\n{one}" for one in lines[:end])
    found = complete(spoken + "".join(lines[end:]))
    assert {**found, "fingerprint": ""} == {**complete(HEALTHY), "fingerprint": ""}


# ------------------------------------------------------------------------------------------------------------- refusals

DEVICES = "I device: AQL backend, 2 device(s) [0:gfx1201 1:gfx1201]\n"
REFUSALS = [
    (
        "E /m/x.rad carries no model dimensions (n_layers=0 n_embd=0 n_vocab=0)",
        "model_unusable",
        "carries no model dimensions",
    ),
    ("E the plugins under /usr/lib/radiance did not load (above)", "model_unusable", "did not load"),
    (
        "E[1] qwen4exp: 1 device band(s) resolved to no kernel -- a request that lands in one of them cannot run:\n"
        "    moe_down [1, 64) on gfx1036",
        "model_unusable",
        "1 device band(s)",
    ),
    (
        "E 3 weight(s) of /m/x.rad are not in a form the engine serves as it stands -- x",
        "model_unusable",
        "3 weight(s)",
    ),
    (
        "radiance: qwen4exp: an expert is 5 blocks of 128, which 6 ranks cannot each take a whole block of in both",
        "model_unusable",
        "5 blocks of 128",
    ),
    (
        "E VRAM does not cover the fixed costs before a single pool is sized:\n"
        "  card total          31.86 GiB\n"
        "  --gpu-headroom-mib  31.00 GiB\n"
        "  ------------------------------\n"
        "  SHORT BY           512.00 MiB\n",
        "vram_short",
        "SHORT BY 512.00 MiB. Lower --max-num-batched-tokens, or free the card.",
    ),
    (
        "E VRAM does not cover the fixed costs before a single pool is sized:\n"
        "  card total          31.86 GiB\n"
        "  --vram-kv-mib       32.00 GiB   (stated)\n"
        "  ------------------------------\n"
        "  SHORT BY           512.00 MiB\n",
        "vram_short",
        "and the stated --vram-kv-mib 32.00 GiB, SHORT BY 512.00 MiB. Lower the pair by 513 MiB",
    ),
    (
        "placement plan  rank 1/2  strategy expert_tiered  auto\n  DID NOT FIT\n"
        "    12 x expert (1.64 MiB): neither VRAM nor the host pool has room",
        "weights_do_not_fit",
        "12 x expert (1.64 MiB): neither VRAM nor the host pool has room",
    ),
    (
        "E placement: the file tier needs 134.55 MiB of pinned staging (x) and --host-pool-mib is 0 B. Raise it",
        "weights_do_not_fit",
        "134.55 MiB of pinned staging",
    ),
    (
        "E placement: layer_offload needs --vram-weights-mib; there is nothing to spill against",
        "weights_do_not_fit",
        "layer_offload needs --vram-weights-mib",
    ),
    (
        "E[0] mover: the weight budget is 23.44 GiB and the slab already took 23.43 GiB of it, leaving 10.00 MiB",
        "slab_no_vram",
        "leaving 10.00 MiB",
    ),
    ("E[0] mover: no VRAM for the 42.40 MiB of statically placed weights", "slab_no_vram", "the 42.40 MiB of"),
    (
        "E the checkpoint interval resolves to 2016 (from --checkpoint-interval 2000, rounded up to the chunk quantum) "
        "and that is not a multiple of the attention block size 64. Choose",
        "chunk_geometry",
        "resolves to 2016",
    ),
    ("E[0] KV group 'kv_attn': 3.72 GiB did not fit the KV pool", "kv_pool_refused", "3.72 GiB did not fit"),
    (
        "E[0] linear checkpoint slot 7 (58720256 B) did not fit the KV pool: 0 B of 5368709120 B left",
        "kv_pool_refused",
        "linear checkpoint slot 7",
    ),
    (
        "E --expert-vs-cache-ratio is the WEIGHTS share of what is claimed and must be strictly between 0 and 1",
        "bad_command_line",
        "--expert-vs-cache-ratio",
    ),
    ("E --kv-cache-dtype takes bf16 or fp8, not 'q8'", "bad_command_line", "takes bf16 or fp8, not 'q8'"),
    ("E --port must be in [0, 65535], not 70000", "bad_command_line", "[0, 65535]"),
    ("E --draft-model is not implemented. Use", "bad_command_line", "--draft-model"),
    ("E --max-n 9 is above the 8 requests the queue admits", "bad_command_line", "--max-n 9"),
]


@pytest.mark.parametrize(("text", "code", "says"), REFUSALS)
def test_refusals(text: str, code: str, says: str) -> None:
    before = "" if code == "bad_command_line" else DEVICES
    found = ledger(f"{before}{text}\n")
    assert (found["status"], found["reason"]["code"]) == ("refused", code)
    assert says in found["reason"]["text"]


SURVIVED = [
    "W the static (non-expert) weights alone want 4.00 GiB of the 3.00 GiB this card has to give. Every expert will",
    "W placement: the non-routed weights alone need 4.00 GiB against a 3.00 GiB weight budget; falling through to",
    "W this device has no virtual memory management, so the KV cache holds its whole carve and the expert slab has",
    "W kv group 'kv_attn' holds 1000 tokens but the context limit is 65536: ONE request longer than 1000 tokens is",
    "W kv tiers: --prefix-cache-disk-mib needs --prefix-cache-dir to say WHERE. The disk tier is off.",
    "W activation arena: a level would not bind; nothing is lent",
    "W --checkpoint-slots 4 ignored: this model declares no linear-attention state, so there is nothing to snapshot",
    "W no chat template in this container; /v1/chat/completions will answer 501 and /v1/completions is the endpoint",
    "E cannot create /data/kvcache",
]


@pytest.mark.parametrize("line", SURVIVED)
def test_what_a_boot_says_and_survives(line: str) -> None:
    found = complete(MIXED.replace("I serving on", f"{line}\nI serving on"))
    assert found["warnings"] == [{"level": line[0], "rank": 0, "text": line[2:]}]
