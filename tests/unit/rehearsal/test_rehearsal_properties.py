# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds of the stand-in's arithmetic whatever is asked of it."""

from __future__ import annotations

from engine.card_split import Card, split
from engine.expert_slots import class_sizes, place, total_slots
from engine.sizes import MIB
from engine.tokenizer import Tokenizer
from engine.world import World
from hypothesis import given, settings
from hypothesis import strategies as st

_MIB = st.integers(0, 40_000).map(lambda mib: mib * MIB)
_TOKENIZER = Tokenizer()


@settings(max_examples=60, deadline=None)
@given(_MIB, _MIB, st.integers(1, 4), st.integers(0, 3))
def test_every_slot_has_one_place_or_none(weights: int, host: int, tp: int, rank: int) -> None:
    world = World()
    slots = place(world, tp, rank, weights, host)
    assert slots.slab + slots.pool + sum(count for _size, count in slots.left) == total_slots(world)
    assert slots.slab_bytes <= max(0, weights) and slots.pool_bytes <= host
    if slots.left:
        assert host - slots.pool_bytes < max(class_sizes(world, tp)), "the pool ends where the next unit does not fit"


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([0, 20_000, 24_000, 26_000]),
    st.sampled_from([0, 600, 5_120]),
    st.floats(0.01, 0.99),
    st.integers(0, 4_000),
    st.booleans(),
)
def test_a_split_gives_away_nothing_twice(weights: int, kv: int, ratio: float, headroom: int, buffers: bool) -> None:
    card = Card(
        total=32_624 * MIB,
        held=342 * MIB,
        headroom=headroom * MIB,
        arena=897 * MIB,
        staging=188 * MIB,
        statics=42 * MIB,
        stated_weights=weights * MIB,
        stated_kv=kv * MIB,
        ratio=ratio,
        kv_ceiling=5_118 * MIB,
        expert_ceiling=34_305 * MIB,
        largest_layer=699 * MIB,
        prefill_staging=buffers,
    )
    cut = split(card)
    spent = card.held + card.headroom + card.arena + card.staging + card.stated_weights + card.stated_kv
    assert cut.claimable == card.total - spent
    if cut.claimable < 0:
        return
    pools = cut.weights_pool + cut.kv_pool + cut.staging_buffers
    assert cut.unclaimed == card.total - card.held - card.arena - card.staging - pools
    # Rounding the weights up may take up to 1 MiB of the headroom.
    assert cut.unclaimed > card.headroom - MIB
    if not weights and not kv:
        assert cut.experts + cut.kv + cut.unusable + cut.staging_buffers == cut.elastic


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_any_text_comes_back(text: str) -> None:
    assert "".join(_TOKENIZER.pieces(_TOKENIZER.encode(text))) == text


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("ab Z9-.\n"), max_size=200), st.integers(0, 200))
def test_a_head_of_a_text_has_nearly_a_head_of_its_tokens(text: str, cut: int) -> None:
    whole, head = list(_TOKENIZER.encode(text)), list(_TOKENIZER.encode(text[:cut]))
    same = next((at for at, pair in enumerate(zip(whole, head)) if pair[0] != pair[1]), min(len(whole), len(head)))
    # Only what touches the cut may differ: the last word, or the blanks that end there.
    tail = "".join(_TOKENIZER.pieces(head[same:]))
    assert tail == "" or len(tail) <= 4 or tail.isspace()
