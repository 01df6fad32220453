# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boundary probe watches what the cards hold."""

from __future__ import annotations

import pathlib
import threading

from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.endpoint_server import Call
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_endpoint import Small
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_probes import bound


def cards_in(folder: pathlib.Path, gtt: int, integrated_gtt: int = 600) -> str:
    """Two cards as the driver shows them, the second one integrated graphics; GTT in MiB."""
    for card, total, used, host in (("card0", 32_624, 30_000, gtt), ("card1", 2_048, 511, integrated_gtt)):
        device = folder / card / "device"
        device.mkdir(parents=True, exist_ok=True)
        for name, mib in (("vram_total", total), ("vram_used", used), ("gtt_used", host)):
            part = device / f"part{threading.get_ident()}"
            part.write_text(f"{mib * 1024 * 1024}\n")
            part.replace(device / f"mem_info_{name}")
    (folder / "card0-DP-1").mkdir(exist_ok=True)
    return str(folder)


def test_memory_that_moves_to_the_host_fails_however_right_the_answers_are(tmp_path: pathlib.Path) -> None:
    small = Small(together=3)

    def spill(call: Call, number: int) -> bool:
        cards_in(tmp_path, gtt=15_200)
        return False

    small.instead = spill
    found = bound(small, card_folder=cards_in(tmp_path, gtt=620))
    assert (found["retrieved"], found["verdict"], found["cause"]) == (3, "failed", "spill")
    assert found["memory"]["grown_mib"] == 14_580
    assert found["memory"]["cards"][0] == {
        "card": "card0",
        "counted": True,
        "vram_mib": {"before": 30_000, "most": 30_000, "after": 30_000},
        "gtt_mib": {"before": 620, "most": 15_200, "after": 15_200},
    }
    assert "GTT of a card grew by 14,580 MiB" in found["says"]


def test_a_spill_that_is_over_again_was_one(tmp_path: pathlib.Path) -> None:
    small = Small(together=3)

    def spill(call: Call, number: int) -> bool:
        cards_in(tmp_path, gtt=15_200 if number < 3 else 620)
        return False

    small.instead = spill
    small.decode_tps = 256.0
    found = bound(small, card_folder=cards_in(tmp_path, gtt=620))
    assert found["cause"] == "spill"
    assert found["memory"]["cards"][0]["gtt_mib"] == {"before": 620, "most": 15_200, "after": 620}


def test_what_integrated_graphics_use_is_no_spill(tmp_path: pathlib.Path) -> None:
    small = Small(together=3)

    def draw(call: Call, number: int) -> bool:
        cards_in(tmp_path, gtt=860, integrated_gtt=3_000)
        return False

    small.instead = draw
    found = bound(small, card_folder=cards_in(tmp_path, gtt=620))
    assert (found["verdict"], found["cause"], found["critical"]) == ("passed", None, False)
    assert [card["counted"] for card in found["memory"]["cards"]] == [True, False]
    assert found["memory"]["grown_mib"] == 240


def test_a_host_that_shows_no_card(tmp_path: pathlib.Path) -> None:
    (tmp_path / "card0" / "device").mkdir(parents=True)
    (tmp_path / "card0" / "device" / "mem_info_vram_used").write_text("garbage")
    found = bound(Small(together=3), card_folder=str(tmp_path))
    assert (found["verdict"], found["memory"]) == ("passed", None)
