# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A boot that does not hold: the old pair serves again, nothing else keeps the new one, and the text says why."""

from __future__ import annotations

import json

import pytest
from rehearsals import Checkout
from test_whole_in_order import OLD, host_word, pair


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        # What a card settles at is the referee's finding; a refused boot ends in phase ready with the engine's words.
        ("settle_short", ["referee", "settled_free", "209.19"]),
        ("refuse_boot", ["ready", "25,844"]),
        ("never_ready", ["ready"]),
    ],
)
def test_a_fault_rolls_back(fresh: Checkout, fault: str, said: list[str]) -> None:
    # An engine that never gets ready is given 15 seconds instead of the rehearsal's 60.
    patience = {"endpoint_timeouts": {"drain": 30, "stop": 15, "release": 15, "ready": 15, "probe": 120}}
    run = fresh.rehearse("--faults", fault, "-e", json.dumps(patience))
    assert run.code != 0
    for text in ("rolled_back", "24,000", *said):
        assert text in run.words, f"{text}: {run.text}"
    assert host_word(fresh) == "rolled_back"
    # The old pair, in the file that starts it, in the fleet directory, and in a third engine that came to listen.
    assert pair(fresh.target_env()) == OLD
    assert pair(fresh.fleet_env()) == OLD
    assert len(run.pids) == 3
    killed = [e for e in fresh.record() if e["kind"] == "verdict" and e["verdict"] == "killed"]
    assert killed, fresh.kinds()
    back = [e for e in fresh.record() if e["kind"] == "rolled_back"]
    assert [e["serving"] for e in back] == [True]
    assert "switched" not in fresh.kinds()
    # The log tells of it, with what was killed; nothing else points to a pair that does not run.
    log = fresh.one("fleet/docs/log.md").read_text()
    assert "flashnext on rehearsal, rolled back" in log
    told = {line.split("`")[1] for line in log.splitlines() if line.startswith("- `") and ", killed" in line}
    assert told == {e["prediction"] for e in killed}
    assert not (fresh.state / "fleet/docs/runbooks").exists()
