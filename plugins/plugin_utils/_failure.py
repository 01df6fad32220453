# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a service was left alone, or did not come to a good end: one word and a sentence."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _drift, _words

# The code of a switch that ended without saying how.
INTERRUPTED = "interrupted"
# Reasons of a ledger that is not complete by which the service does not serve.
_NOT_SERVING = ("not_ready", "container_absent", "unit_inactive")


def refusal(error: RadianceError) -> dict[str, str]:
    """The word, the sentence and the code of what refuses a plan."""
    return failure({"msg": error.text, "code": error.code})


def failure(result: t.Mapping[str, t.Any], lost: str = "") -> dict[str, str]:
    """The word and the sentence of a failed task, from its result, and its code where it has one.

    ``lost`` is why the host does not answer any more, where it does not.
    """
    lines = str(result.get("msg") or "no reason was given").splitlines()
    says = "\n".join(_words.one_line(line) for line in lines if line.strip())
    # A filter's refusal comes wrapped in what Ansible was doing with it.
    says = re.split(r"The (?:filter|test|lookup) plugin '[^']*' failed: ", says)[-1].removeprefix("Task failed: ")
    if lost or result.get("unreachable"):
        why = _words.one_line(lost).removeprefix("Task failed: ") or says
        return {"word": "not_reached", "says": f"the host does not answer: {why}"}
    word = _word(result)
    code = result.get("code")
    return {"word": word, "says": says, **({"code": str(code)} if code else {})}


def _word(result: t.Mapping[str, t.Any]) -> str:
    outcome = result.get("outcome")
    if outcome == "rolled_back":
        return "rolled_back"
    if outcome == "failed":
        return "not_serving"
    # A log that is lost, cut or unknown says nothing of the service; a boot that ended or does not listen yet does.
    ledger = result.get("ledger") or {}
    reason = ledger.get("reason") or {}
    if not outcome and (ledger.get("status") == "refused" or reason.get("code") in _NOT_SERVING):
        return "not_serving"
    return "drift" if result.get("code") == "drift" else "refused"


def interrupted(failed: t.Mapping[str, str], look: t.Mapping[str, t.Any]) -> dict[str, str]:
    """The failure of a switch that was interrupted, once ``look`` (of boot_ledger_info) has told what runs since.

    Where a boot serves, the service is not down; which pair it comes to is the next run's to say.
    """
    ledger = look.get("ledger") or {}
    serves = "code" not in look and not look.get("last_boot") and ledger.get("ready") and ledger.get("flags")
    if (failed["word"], failed.get("code")) != ("not_serving", INTERRUPTED) or not serves:
        return dict(failed)
    pair = _words.pair(_drift.running_pair(ledger))
    return {**failed, "word": "inconclusive", "says": f"{failed['says']} It serves, on {pair}."}
