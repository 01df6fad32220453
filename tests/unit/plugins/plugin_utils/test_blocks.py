# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocks of ours in files of somebody else: every other byte stays, in whatever order and with whatever line ends."""

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._blocks import HASH, body_of, found, placed, with_row
from hypothesis import given
from hypothesis import strategies as st

HEAD = ["| service | runbook |", "|---|---|"]


def begin(name: str) -> str:
    return f"<!-- BEGIN kvfleet.radiance: managed; {name} -->"


def end(name: str) -> str:
    return f"<!-- END kvfleet.radiance: managed; {name} -->"


def row(name: str, says: str = "x") -> str:
    return f"| {name} | {says} |"


def with_services(text: str, *names: str) -> str:
    for name in names:
        text = with_row(text, "services", row(name), f"| {name} |", HEAD)
    return text


def test_a_block_goes_to_the_end_of_a_file_and_stays_where_somebody_moves_it() -> None:
    text = placed("# Fleet\n\nBy hand.\n", "flash", ["one"])
    assert text == f"# Fleet\n\nBy hand.\n\n{begin('flash')}\n\none\n\n{end('flash')}\n"
    assert placed(text, "flash", ["one"]) == text
    moved = f"{begin('flash')}\n\none\n\n{end('flash')}\nBy hand."
    assert placed(moved, "flash", ["two", "three"]) == f"{begin('flash')}\n\ntwo\nthree\n\n{end('flash')}\nBy hand."


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "{block}\n"),
        ("a", "a\n\n{block}\n"),
        ("a\n", "a\n\n{block}\n"),
        ("a\n\n\n", "a\n\n\n{block}\n"),
        ("a\r\nb", "a\r\nb\r\n\r\n{block}\r\n"),
        ("a\r\nb\n", "a\r\nb\n\r\n{block}\r\n"),
    ],
)
def test_a_file_keeps_its_line_ends(before: str, after: str) -> None:
    block = f"{begin('flash')}\n\none\n\n{end('flash')}"
    if "\r" in before:
        block = block.replace("\n", "\r\n")
    assert placed(before, "flash", ["one"]) == after.format(block=block)


def test_blocks_are_in_the_order_of_their_names() -> None:
    text = placed(placed(placed("", "m", ["1"]), "z", ["2"]), "a", ["3"])
    assert [block.name for block in found(text)] == ["a", "m", "z"]
    assert [block.name for block in found(placed(text, "n", ["4"]))] == ["a", "m", "n", "z"]
    text = placed(text, "first", ["5"], before=0)
    assert [block.name for block in found(text)] == ["first", "a", "m", "z"]


def test_a_file_of_shell_comments_has_blocks_too() -> None:
    text = placed("A=1\n# B by hand\nB=2\n", "flash env", ["C=3"], HASH)
    assert text == (
        "A=1\n# B by hand\nB=2\n\n# BEGIN kvfleet.radiance: managed; flash env\nC=3\n"
        "# END kvfleet.radiance: managed; flash env\n"
    )
    assert body_of(text, found(text, HASH)[0]) == ["C=3"]
    # Markers of another kind of comment are text.
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (f"a\n{begin('x')}\nb\n", 2, "the block 'x' begins there and has no END"),
        (f"a\nb\n{end('x')}\n", 3, "the block 'x' ends there and has no BEGIN before it"),
        (f"{begin('x')}\n{begin('y')}\n{end('y')}\n", 1, "the block 'x' begins there and has no END"),
        (f"{begin('x')}\n{end('y')}\n", 2, "the block 'y' ends there and has no BEGIN before it"),
        (f"{begin('x')}\n{end('x')}\n{begin('x')}\n{end('x')}", 3, "the block 'x' begins there a second time"),
        (f"{begin('x')}\n{end('x')[:-4]}\n", 2, "is no whole marker"),
        (f"{begin('x').replace(': managed', '')}\nb\n{end('x')}\n", 1, "is no whole marker"),
    ],
)
def test_a_damaged_marker_is_refused_by_line_and_name(text: str, line: int, says: str) -> None:
    with pytest.raises(RadianceError) as caught:
        placed(text, "other", ["one"])
    assert caught.value.code == "marker_damaged"
    assert caught.value.text.startswith(f"line {line}: ")
    assert says in caught.value.text


def test_rows_of_several_services_are_one_table_in_the_order_of_their_names() -> None:
    table = [*HEAD, row("alpha"), row("flash"), row("flash-2"), row("zulu")]
    text = with_services("# Fleet\n", "flash", "zulu", "alpha", "flash-2")
    assert body_of(text, found(text)[0]) == ["", *table, ""]
    assert with_services(text, "alpha", "zulu") == text
    changed = with_row(text, "services", row("flash", "y"), "| flash |", HEAD)
    assert changed == text.replace(row("flash"), row("flash", "y"))


def test_a_table_may_be_laid_out_and_extended_by_hand() -> None:
    body = [
        "",
        "| service  | runbook |",
        "| -------- | :-----: |",
        "| flash    | x       |",
        "| whisper  | by hand |",
        "",
    ]
    text = "\n".join([begin("services"), *body, end("services"), ""])
    assert with_services(text, "flash") == text
    text = with_services(text, "zulu", "alpha", "speech")
    assert body_of(text, found(text)[0]) == [*body[:3], row("alpha"), body[3], row("speech"), body[4], row("zulu"), ""]


def test_lines_of_several_services_are_one_list() -> None:
    text = "# Fleet\n"
    for name in ("b", "a"):
        text = with_row(text, "services", f"- [{name}](x.md)", f"- [{name}](", [])
    assert body_of(text, found(text)[0]) == ["", "- [a](x.md)", "- [b](x.md)", ""]


def test_half_a_line_end_at_the_end_of_a_file_is_made_whole() -> None:
    assert placed("a\r\nb\r", "flash", ["x"]).startswith("a\r\nb\r\n\r\n<!-- BEGIN")
    assert placed("a\r\nb", "flash", ["x"]).startswith("a\r\nb\r\n\r\n<!-- BEGIN")


_NAMES = st.sampled_from(["alpha", "flash", "flash on up", "zulu"])
_HAND = st.text(st.sampled_from("ab |-#<!>\n\r\tü"), max_size=40)


@given(st.lists(_HAND, min_size=1, max_size=4), st.lists(_NAMES, min_size=3, max_size=3, unique=True), st.data())
def test_what_hands_wrote_around_the_blocks_survives_byte_for_byte(
    hands: list[str], names: list[str], data: st.DataObject
) -> None:
    # Hand text, a block, hand text, …, and whatever follows, with or without a line end.
    text = hands[0]
    for hand, name in zip(hands[1:], names, strict=False):
        text = placed(text, name, ["old", name]) + hand
    name, body = data.draw(_NAMES), data.draw(st.lists(st.sampled_from(["", "new", "| a |"]), max_size=3))
    after = placed(text, name, body)
    assert placed(after, name, body) == after
    assert _around(after, name) == _around(text, name)
    assert [block.name for block in found(after) if block.name != name] == [
        block.name for block in found(text) if block.name != name
    ]


def _around(text: str, name: str) -> list[str]:
    """The lines outside a block, but blank ones: a new block may bring some along, and takes none away."""
    lines = text.split("\n")
    for block in found(text):
        if block.name == name:
            lines[block.begin : block.end + 1] = []
    return [line.removesuffix("\r") for line in lines if line.strip()]


@given(_HAND, _HAND, st.sampled_from(["\n", "\r\n"]))
def test_a_block_that_is_there_changes_nothing_outside_itself(before: str, after: str, line_end: str) -> None:
    block = [begin("flash"), "old", end("flash")]
    head, tail = before + line_end if before else "", line_end + after
    changed = placed(head + line_end.join(block) + tail, "flash", ["new"])
    assert changed.startswith(head + begin("flash"))
    assert changed.endswith(end("flash") + tail)
