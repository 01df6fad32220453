# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the run of one service comes to next: whether there is anything to do, and what its probes ask for."""

from __future__ import annotations

import typing as t

Run = t.Mapping[str, t.Any]


def to_do(run: Run, request: t.Mapping[str, t.Any], env_path: str, serve_path: str) -> bool:
    """Whether the switch has anything to do: a restart, drift that is decided, or other bytes on the target.

    That the process runs what its files say is what drift has looked at.
    """
    if run["plan"]["restart"] or request.get("drift") is not None:
        return True
    there, files = run["target_texts"], run["target_files"]
    return bool(there.get(env_path) != files["env"] or there.get(serve_path) != files["serve"])


def probed_shape(run: Run) -> dict[str, t.Any]:
    """The pair and shape that the probes ask the new boot for.

    A pool that was accepted below the contract is asked to hold what it was predicted to back, and not all sequences.
    Of a pair that ran before, and whose figures nobody knew, its boot says it.
    """
    to = run["plan"]["to"]
    predicted = [item["low"] for item in run["plan"]["predictions"] if item["quantity"] == "sequences_backed"]
    capacity = ((run.get("switched") or {}).get("ledger") or {}).get("capacity") or {}
    backed = predicted[0] if predicted else capacity.get("full_length_sessions") or to["max_num_seqs"]
    return {**to, "max_num_seqs": max(1, int(backed))}
