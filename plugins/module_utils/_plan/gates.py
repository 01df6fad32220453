# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates: bounds that must hold before a restart, each with the ledger line it came from or its label.

Hard gates are what the engine or the card cannot take. Soft gates block only what a request makes worse, and can be
accepted with a reason. A gate whose rows this ledger lacks is not judged, and a warning says so.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.gate_rules import RULES
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.situation import Finding, Situation
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Json

# Gates that another pair could mend; the others speak of the shape or the engine alone.
PAIR_GATES = (
    "pair_within_ceiling",
    "one_request_fits",
    "host_pool_holds_the_rest",
    "pool_meets_contract",
    "pool_holds_live_sessions",
    "headroom_kept",
)


class Verdict(t.NamedTuple):
    """The gates of a candidate: those in the plan, those of them that block, and the sentences beside them."""

    gates: list[Json]
    blocked: list[Finding]
    warnings: list[str]


def judge(situation: Situation, *, restart: bool = True) -> Verdict:
    """Judge a candidate. Without a restart nothing is gated: what fails today is a warning."""
    verdict = Verdict([], [], [])
    for rule in RULES:
        finding = rule(situation)
        if isinstance(finding, str):
            verdict.warnings.append(finding)
            continue
        if finding is None:
            continue
        accepted = None if finding.holds else _accepted(finding, situation)
        if not finding.holds and accepted is None and (not restart or not finding.worse):
            verdict.warnings.append(f"What runs already fails {finding.name}: {finding.says}")
            continue
        verdict.gates.append(
            {
                "name": finding.name,
                "holds": finding.holds,
                "says": finding.says,
                "from": finding.source,
                "hard": finding.hard,
                "accepted": accepted,
            }
        )
        if not finding.holds and accepted is None:
            verdict.blocked.append(finding)
        elif not finding.holds and finding.hard:
            verdict.warnings.append(
                f"{finding.name} fails by what this boot says: {finding.says} Yet it ran here before ({accepted}), so "
                "the boot that it leads to decides, and what runs now is put back where that does not hold."
            )
    return verdict


def _accepted(finding: Finding, situation: Situation) -> str | None:
    """Why a gate that fails does not block; a hard one only where that very pair and shape ran here before.

    Which engine runs is no matter of what a card holds: a release that does not take a pair never did.
    """
    ran_before = situation.request.ran_before
    if finding.hard:
        return ran_before if finding.name != "engine_takes_pair" else None
    return situation.request.accept.get(finding.name) or ran_before


def pair_holds(situation: Situation) -> bool:
    """Whether no gate that another pair could mend fails unaccepted for the candidate."""
    findings = [rule(situation) for rule in RULES]
    return all(
        finding.holds or finding.name in situation.request.accept
        for finding in findings
        if isinstance(finding, Finding) and finding.name in PAIR_GATES
    )
