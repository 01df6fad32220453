# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was predicted beside what was measured, and the four numbers: asked, configured, printed, seen by a probe."""

from __future__ import annotations

import textwrap
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import pair_of
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _words

_number = _words.number


def verdict_report(
    predictions: t.Sequence[t.Mapping[str, t.Any]],
    verdicts: t.Sequence[t.Mapping[str, t.Any]],
    seen: t.Mapping[str, t.Any],
) -> list[str]:
    """The lines of both tables and of what the probes say.

    ``seen``: ``to`` (asked), ``flags`` (of the live process), ``ledger`` (of its boot), ``probes`` ({calibration,
    boundary, rates}, each absent or None where it did not run).
    """
    lines = ["predicted and measured"]
    reasons: dict[str, list[str]] = {}
    by_id = {verdict["id"]: verdict for verdict in verdicts}
    rows = []
    for item in predictions:
        verdict = by_id.get(item["id"], {})
        word = str(verdict.get("verdict") or "open")
        if word in ("killed", "void") and verdict.get("says"):
            reasons.setdefault(_words.one_line(verdict["says"]), []).append(item["id"])
        rows.append(
            [
                item["id"],
                _words.interval(item["low"], item["high"], item.get("unit")),
                _words.measured(verdict),
                word,
            ]
        )
    lines += _words.table(rows) or ["  No line of the record predicted the pair that runs."]
    for says, names in reasons.items():
        # A boot that did not come up kills them all, for one reason.
        about = names[0] if len(names) == 1 else f"{len(names)} of them"
        lines += textwrap.wrap(
            f"{about}: {says}", _words.WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )
    lines += ["", "asked = configured = printed = seen by a probe"]
    lines += _words.table(four_numbers(seen))
    lines += probe_words(seen.get("probes") or {})
    return lines


def four_numbers(seen: t.Mapping[str, t.Any]) -> list[list[str]]:
    """A row for each of the pair and the shape: what was asked, configured, printed by the engine, seen by a probe."""
    to, configured, ledger = seen["to"], pair_of(seen.get("flags") or {}), seen.get("ledger") or {}
    probes = seen.get("probes") or {}
    rows = [["", "asked", "configured", "printed", "seen by a probe"]]
    printed, probed = _printed(ledger, to), _probed(probes)
    for name in configured:
        rows.append(
            [
                name,
                _number(to.get(name)),
                _number(configured[name]),
                printed.get(name, _words.UNKNOWN),
                probed.get(name, _words.UNKNOWN),
            ]
        )
    return rows


def _printed(ledger: t.Mapping[str, t.Any], to: t.Mapping[str, t.Any]) -> dict[str, str]:
    out: dict[str, str] = {}
    rows = (ledger.get("budget") or {}).get("rows") or {}
    for name, row in (("weights_mib", "vram_weights"), ("kv_mib", "vram_kv")):
        if rows.get(row):
            out[name] = str(rows[row]["text"])
    capacity = ledger.get("capacity") or {}
    if capacity.get("sequences"):
        out["max_num_seqs"] = f"{_number(capacity['sequences'])} sequences"
    if capacity.get("tokens"):
        out["max_model_len"] = (
            f"{_number(capacity['tokens'])} tokens each, {'all backed' if capacity.get('full') else 'not all backed'}"
        )
    rows_printed = (ledger.get("sampler") or {}).get("rows")
    if rows_printed and to.get("max_num_seqs"):
        out["num_speculative_tokens"] = f"{_number(rows_printed)} sampler rows"
    return out


def _probed(probes: t.Mapping[str, t.Any]) -> dict[str, str]:
    out: dict[str, str] = {}
    boundary, calibration = probes.get("boundary") or {}, probes.get("calibration") or {}
    if boundary.get("retrieved") is not None:
        out["max_num_seqs"] = (
            f"{_number(boundary['retrieved'])} of {_number(boundary.get('asked'))} markers, "
            f"{_number(boundary.get('overlap'))} at once"
        )
    if calibration.get("limit"):
        out["max_model_len"] = f"{_number(calibration['limit'])} is the limit it refuses with"
    return out


def probe_words(probes: t.Mapping[str, t.Any]) -> list[str]:
    """A line for each probe that ran: its verdict and what it says."""
    rows = []
    for name in ("calibration", "boundary", "rates"):
        probe = probes.get(name)
        if not probe:
            continue
        if name == "calibration":
            ratio = probe.get("chars_per_token")
            says = f"{_number(ratio)} characters a token, by {probe.get('method')}" if ratio else "no ratio"
            rows.append([name, "measured" if ratio else "inconclusive", says])
        else:
            rows.append([name, str(probe.get("verdict")), _words.one_line(probe.get("says") or "")])
    return ["", "probes", *_words.table(rows)] if rows else []
