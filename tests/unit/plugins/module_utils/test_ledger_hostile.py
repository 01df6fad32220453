# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a log goes through before it is read: each case with what must come of it. The logs are synthesised."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger

LOGS = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "logs"
HEALTHY = (LOGS / "healthy-1.0.13.log").read_text(encoding="utf-8")
MIXED = (LOGS / "mixed-1.0.5.log").read_text(encoding="utf-8")
STAMP = "2026-10-13T03:04:05.123456789+02:00"


def ledger(text: str, **options: t.Any) -> dict[str, t.Any]:
    return read_ledger(text, source={"kind": "text"}, **options)


PLAIN = ledger(HEALTHY)


def alike(text: str, **options: t.Any) -> bool:
    """Whether a text gives the ledger of the healthy boot; the fingerprint may tell them apart."""
    assert PLAIN["status"] == "complete"
    return {**ledger(text, **options), "fingerprint": ""} == {**PLAIN, "fingerprint": ""}


def verdict(found: dict[str, t.Any]) -> tuple[str, str | None]:
    return found["status"], found["reason"] and found["reason"]["code"]


def each_line(added: t.Callable[[str], str], text: str = HEALTHY) -> str:
    return "".join(f"{added(line)}\n" for line in text.split("\n")[:-1])


# ------------------------------------------------------------------------------------- what terminals and runtimes add


@pytest.mark.parametrize(
    "prefix",
    [
        f"{STAMP} ",  # podman and docker logs -t
        "2026-10-13T01:04:05.123456789Z ",
        "radiance-1  | ",  # compose
        f"radiance-1  | {STAMP} ",
        "3f2a9c0b1d4e ",  # podman pod logs
        "Oct 13 03:04:05 host9 radiance[4711]: ",  # journalctl, in its forms
        "Oct 03 03:04:05.123456 host9 radiance[4711]: ",
        "2026-10-13T03:04:05+0200 host9 radiance[4711]: ",
        "2026-10-13T03:04:05.123456+02:00 host9 radiance[4711]: ",
        "Tue 2026-10-13 03:04:05 CEST host9 radiance[4711]: ",
        "[ 1234.567890] host9 radiance[4711]: ",
        "1791853445.123456 host9 radiance[4711]: ",
    ],
)
def test_what_stands_before_every_line(prefix: str) -> None:
    assert alike(each_line(lambda line: prefix + line))


def test_a_prefix_that_is_not_known_is_named() -> None:
    found = ledger(each_line(lambda line: f"[42027] 2.24.418.070 {line}"))
    assert verdict(found) == ("absent", "no_boot")
    assert "behind '[42027] 2.24.418.070 ', which is not known here" in found["reason"]["text"]
    # The rows of a report may come without it.
    found = ledger(re.sub(r"(?m)^(?=[EWI])", "[42027] 2.24.418.070 ", HEALTHY))
    assert verdict(found) == ("incomplete", "rows_unreadable")
    assert "behind '[42027] 2.24.418.070 ', which is not known here" in found["reason"]["text"]


def test_rows_of_a_report_are_no_sign_of_a_log_level() -> None:
    found = ledger(HEALTHY[HEALTHY.index("    kv cache ") : HEALTHY.index("I[0] pools:")])
    assert verdict(found) == ("incomplete", "log_cut")
    assert "card_total" in found["reason"]["text"]


def test_a_reason_names_as_many_rows_as_a_person_reads() -> None:
    found = ledger(HEALTHY.replace("I[1] mover: ", "I[999] mover: "))
    assert len(found["missing"]) == 1998
    assert found["reason"]["text"].count("rank") == 24
    assert ", and 1,974 more." in found["reason"]["text"]


@pytest.mark.parametrize(
    "text",
    [
        re.sub(r"(?m)^([EW](?:\[\d\])?) ", "\x1b[33m\\1\x1b[0m ", HEALTHY),  # a terminal
        each_line(lambda line: f"\x1b[0m{line}\x1b[K"),
        each_line(lambda line: f"\x1b]0;radiance\x07{line}"),  # a title
        each_line(lambda line: f"\x9b1m{line}\x9b0m"),  # the same in one character
        HEALTHY.replace("\n", "\r\n"),
        each_line(lambda line: f"read 10% |#  |\rread 90% |## |\r{line}"),
        each_line(lambda line: f"{line}\r"),
        each_line(lambda line: f"{line}   \t"),
        "\ufeff" + HEALTHY,
        "\x00" * 5000 + HEALTHY,  # truncated under its writer
        HEALTHY.replace("\n", "\n\x00\x00"),
        HEALTHY.replace("\n", "\n\n"),
        "Last login: Thu Oct 13 03:04:05 from 10.0.0.7\n* Welcome *\n" + HEALTHY,
        "\x7fELF\x02\x01\x01\x00\x00\ufffd\ufffd\n" + HEALTHY.replace("I vocab", "\ufffd\ufffd(\x01\nI vocab"),
    ],
    ids=range(14),
)
def test_what_is_no_text_of_the_engine(text: str) -> None:
    assert alike(text)


# ------------------------------------------------------------------------------------------ cuts, holes, interleaving


def test_two_boots_that_run_into_each_other() -> None:
    other = MIXED.replace("I device: AQL", "I load: rank 0, movI device: AQL", 1)
    found = ledger(HEALTHY[: HEALTHY.index("I[0] sampler: ")] + other)
    assert (found["source"]["boots_seen"], found["ready"]) == (1, True)
    assert verdict(found) == ("incomplete", "rows_unreadable")
    assert "behind 'load: rank 0, mov', which is not known here" in found["reason"]["text"]


@pytest.mark.parametrize(
    ("line", "other", "missing"),
    [
        ("I model: qwen3.8-flash-next  arch=qwen4exp", "I model: another  arch=qwen4exp", "model"),
        ("Steps of at most 25 rows are exact", "Steps of at most 12 rows are exact", "wire"),
    ],
)
def test_a_line_of_another_boot_beside_its_own(line: str, other: str, missing: str) -> None:
    (own,) = [one for one in HEALTHY.splitlines(keepends=True) if line in one]
    assert ledger(HEALTHY.replace(own, own + own))["status"] == "complete"
    found = ledger(HEALTHY.replace(own, own + own.replace(line, other)))
    assert verdict(found) == ("incomplete", "rows_missing")
    assert found["missing"] == [missing]


def test_a_table_that_ends_in_a_row() -> None:
    found = ledger(HEALTHY[: HEALTHY.index("  vram_weights        23") + 10])
    assert verdict(found) == ("incomplete", "not_ready")
    assert {"vram_weights", "vram_kv", "unclaimed"} <= set(found["missing"])


def test_a_table_without_its_first_line() -> None:
    found = ledger(HEALTHY.replace("I VRAM budget, per card:\n", ""))
    assert verdict(found) == ("incomplete", "rows_missing")
    assert found["missing"] == ["budget_header"]
    assert found["budget"]["rows"]["unclaimed"]["text"] == "2.03 GiB"
    assert found["essential"] is True


def test_a_hole_in_the_middle() -> None:
    found = ledger(HEALTHY.replace(HEALTHY[HEALTHY.index("  elastic ") : HEALTHY.index("I[1] pools:")], ""))
    assert verdict(found) == ("incomplete", "rows_missing")
    assert found["missing"][:5] == ["elastic", "experts", "kv_cache", "vram_weights", "vram_kv"]
    assert "pools.rank0" in found["missing"]


def test_a_message_that_is_cut_at_4095_bytes() -> None:
    begin, end = HEALTHY.index("I kv: KV layer"), HEALTHY.index("I prefix cache:")
    more = "".join(
        f"    kv_more{number:<7} full    13 layers  block    4 tok  page  1.00 KiB      100 blocks = 100.00 KiB  "
        "(400 tokens)\n"
        for number in range(60)
    )
    plan = HEALTHY[begin:end].replace("    (none) ", more + "    (none) ")
    cut = plan.encode()[: 2 + 4095].decode() + "\n"  # the two are the level
    found = ledger(HEALTHY[:begin] + cut + HEALTHY[end:])
    assert found["kv"]["groups"] == []
    assert found["missing"] == ["kv_plan", "checkpoints"]


def test_two_ranks_in_each_others_reports() -> None:
    rows = re.findall(r"(?m)^  (?:vram_weights|vram_kv|host_pool) .* budget,.*\n", HEALTHY)
    assert len(rows) == 6
    both = HEALTHY.index("I[0] pools:"), HEALTHY.index("W[0] VRAM budgets total")
    mixed = "".join(one + other for one, other in zip(rows[:3], rows[3:]))
    found = ledger(HEALTHY[: both[0]] + "I[0] pools:\nI[1] pools:\n" + mixed + HEALTHY[both[1] :])
    # Whose row is whose cannot be told.
    assert found["host_pool"] == []
    assert found["missing"] == ["pools.rank0", "pools.rank1"]


def test_lines_of_ranks_in_any_order() -> None:
    lines = HEALTHY.splitlines(keepends=True)
    tagged = [number for number, line in enumerate(lines) if re.match(r"[EWI]\[\d\] (?!pools)", line)]
    for one, other in zip(tagged[::2], tagged[1::2]):
        lines[one], lines[other] = lines[other], lines[one]
    assert lines != HEALTHY.splitlines(keepends=True)
    found, plain = ledger("".join(lines)), ledger(HEALTHY)
    assert {**found, "fingerprint": "", "warnings": []} == {**plain, "fingerprint": "", "warnings": []}


def test_every_line_twice() -> None:
    found = ledger(each_line(lambda line: f"{line}\n{line}", MIXED))
    # The inventory begins a boot; all else says the same again.
    assert found["source"]["boots_seen"] == 2
    assert (found["status"], found["pair"]["weights_mib"]) == ("complete", pytest.approx(10895.36))


@pytest.mark.parametrize("row", ["card total", "claimable", "vram_kv", "unclaimed"])
def test_a_row_twice_with_two_figures_is_neither(row: str) -> None:
    text = HEALTHY.replace("  elastic   ", f"  {row:<18}  9.00 GiB   again\n  elastic   ")
    found = ledger(text)
    assert verdict(found) == ("incomplete", "rows_unreadable")
    assert found["budget"]["rows"][row.replace(" ", "_")] is None
    assert "9.00 GiB" in found["reason"]["text"]


# --------------------------------------------------------------------------------------------------- figures and units


@pytest.mark.parametrize("figure", ["31,86 GiB", "31.86 GB", "31.86GiB", "32,624 MiB", "32624 MiB", "34208743424 bytes",
                                    "31.860 GiB", "3.186e1 GiB", "+31.86 GiB", "٣١.٨٦ GiB", "031.86 GiB"])  # fmt: skip
def test_a_figure_in_another_form(figure: str) -> None:
    found = ledger(HEALTHY.replace("  card total          31.86 GiB", f"  card total         {figure}"))
    assert verdict(found) == ("incomplete", "rows_unreadable")
    assert f"card_total {figure!r}" in found["reason"]["text"]
    assert found["budget"]["rows"]["card_total"] is None


def test_bytes_are_exact() -> None:
    found = ledger(HEALTHY.replace("  card total          31.86 GiB", "  card total    34208743424 B"))
    assert found["budget"]["rows"]["card_total"] == {
        "mib": 32624.0,
        "plus_minus_mib": 0.0,
        "text": "34208743424 B",
    }


def test_a_locale_with_a_decimal_comma() -> None:
    found = ledger(re.sub(r"(?<=\d)\.(?=\d\d [KMGT]iB)", ",", HEALTHY))
    assert verdict(found) == ("incomplete", "rows_unreadable")
    assert "LC_ALL=C" in found["reason"]["text"]
    assert [row for row in found["budget"]["rows"].values() if row] == [
        {"mib": 0.0, "plus_minus_mib": 0.0, "text": "0 B"}
    ]
    assert (found["settled"], found["slab"], found["host_pool"]) == ([], [], [])


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        ("backs 3 sequences all at 200000 tokens", "backs 3 sequences all at 200,000 tokens", ["capacity"]),
        ("17548 slab slots", "17,548 slab slots", ["slab.rank0"]),
        ("150031 blocks", "150 031 blocks", ["kv_plan"]),
        ("), 9 rows", "), 9_0 rows", ["sampler"]),
    ],
)
def test_counts_have_no_separators(old: str, new: str, missing: list[str]) -> None:
    found = ledger(HEALTHY.replace(old, new))
    assert (found["status"], found["missing"]) == ("incomplete", missing)


def test_pools_that_were_stated_come_off_before_what_is_claimable() -> None:
    begin, end = MIXED.index("  card total"), MIXED.index("I pools:")
    table = (
        "  card total          29.59 GiB\n"
        "  already held       342.00 MiB   measured: driver context, code objects, anything else resident\n"
        "  activation arena   897.00 MiB   computed from the buffer plan\n"
        "  step staging       187.70 MiB   the step batch's block tables and media staging\n"
        "  --gpu-headroom-mib   96.00 MiB   left unclaimed on purpose\n"
        "  claimable          774.46 MiB\n"
        "  static weights      42.40 MiB   (not charged here -- --vram-weights-mib was stated)\n"
        "  elastic            774.46 MiB   what --expert-vs-cache-ratio 0.75 divides\n"
        "    experts                 0 B   0% of it\n"
        "    kv cache           3.91 GiB   516% of it -- 50% backing of the 4 x 131072 worst case: 2.0 full-length\n"
        "  vram_weights        23.44 GiB   stated by --vram-weights-mib\n"
        "  vram_kv              3.91 GiB   stated by --vram-kv-mib\n"
        "  unclaimed          870.46 MiB   the headroom, the unusable above, and what MiB rounding\n"
    )
    text = MIXED[:begin] + table + MIXED[end:].replace("10.64 GiB budget", "23.44 GiB budget")
    text = text.replace("3.46 GiB", "3.91 GiB")
    found = ledger(text, flags={"vram-weights-mib": "24000", "vram-kv-mib": "4000"})
    assert verdict(found) == ("complete", None)
    assert found["budget"]["rows"]["claimable"]["mib"] + found["pair"]["weights_mib"] + found["pair"]["kv_mib"] == (
        pytest.approx(28774.46)
    )
    # In a table of derived pools the same rows contradict each other.
    derived = text.replace("stated by --vram-weights-mib", "static + experts").replace(
        "stated by --vram-kv-mib", "the cache's share"
    )
    assert verdict(ledger(derived)) == ("incomplete", "sums_off")


# ---------------------------------------------------------------------------------------------- boots, and what follows


def test_a_crash_loop_tells_how_often_and_why() -> None:
    refused = HEALTHY[: HEALTHY.index("I VRAM budget")] + (
        "E VRAM does not cover the fixed costs before a single pool is sized:\n  SHORT BY             1.97 GiB\n"
    )
    found = ledger(HEALTHY + refused * 3)
    assert verdict(found) == ("refused", "vram_short")
    assert found["reason"]["text"].endswith("The log holds 4 boots, and this is number 4.")
    assert (found["source"]["boots_seen"], found["source"]["boot"]) == (4, 3)
    died = HEALTHY[: HEALTHY.index("I[0] mover")] + "Memory access fault by GPU node-1\n"
    found = ledger(died * 5)
    assert verdict(found) == ("incomplete", "not_ready")
    assert "'Memory access fault by GPU node-1'" in found["reason"]["text"]
    assert found["reason"]["text"].endswith("The log holds 5 boots, and this is number 5.")


def test_one_boot_alone_is_not_counted() -> None:
    assert "boots" not in ledger(HEALTHY[: HEALTHY.index("I[0] mover")])["reason"]["text"]


ENGINE_LINES = sorted({line for line in (HEALTHY + MIXED).split("\n") if line})


@pytest.mark.parametrize("line", ENGINE_LINES)
def test_a_client_that_repeats_any_line_of_the_engine(line: str) -> None:
    inventory = line.startswith("I device: AQL")
    after = f"W server: scheduler refused request 7: {line}\n" + f'{{"prompt": "{line}"}}\n'
    assert alike(f"{HEALTHY}{after}{line}\n", bounded=True)
    assert alike(HEALTHY + after + ("" if inventory else f"{line}\n"))


def test_a_client_that_repeats_a_whole_boot() -> None:
    assert alike(HEALTHY + MIXED, bounded=True)
    quoted = "".join(f"W request 7 failed: {line}\n" for line in MIXED.split("\n"))
    assert alike(HEALTHY + quoted)
    # In a bare text nothing but an inventory at the start of a line can tell one boot from the next.
    assert ledger(HEALTHY + MIXED)["source"]["boots_seen"] == 2
    assert ledger(HEALTHY + MIXED, boot=0)["pair"]["kv_mib"] == 5120.0
