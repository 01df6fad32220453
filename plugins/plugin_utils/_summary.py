# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One word a host: what a run came to."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _env_text, _words

SCHEMA = "kvfleet.radiance/summary/1"
GOOD = ("switched", "unchanged")
# From the word that outweighs all others to the one that says the least.
WORDS = ("not_reached", "not_serving", "rolled_back", "drift", "refused", "inconclusive", "switched", "unchanged")

# Codes of failures which mean that no boot of the engine serves, whatever was asked.
_NOT_SERVING = ("absent", "incomplete", "refused", "not_running", "not_serving", "not_listening", "ledger")


def failure(result: t.Mapping[str, t.Any], task: str = "", reached: bool = True) -> dict[str, str]:
    """The word and the sentence of a failed task, from its result and its name."""
    says = _env_text.one_line(str(result.get("msg") or "no reason was given"))
    return {"word": _word(result, task, reached), "says": says}


def _word(result: t.Mapping[str, t.Any], task: str, reached: bool) -> str:
    if not reached or result.get("unreachable"):
        return "not_reached"
    outcome = result.get("outcome")
    if outcome == "rolled_back":
        return "rolled_back"
    if outcome == "failed":
        return "not_serving"
    ledger = result.get("ledger")
    if isinstance(ledger, dict) and ledger.get("status") in ("absent", "incomplete", "refused") and not outcome:
        return "not_serving"
    return "drift" if "drift" in task.lower() else "refused"


def worst(words: t.Sequence[str]) -> str:
    """The word for a host with several services."""
    return min(words, key=WORDS.index) if words else "unchanged"


def summary(hosts: t.Sequence[str], outcomes: t.Mapping[str, t.Any], check: bool = False) -> dict[str, t.Any]:
    """``{schema, check, good, hosts: [{host, word, says, services}]}`` for the hosts of a run.

    ``outcomes`` maps a host to ``{word, says, services: [{service, word, says}]}``; one that is missing was not
    reached (an earlier host had no good outcome, or its connection was lost).
    """
    lines = []
    for host in hosts:
        found = outcomes.get(host) or {"word": "not_reached", "says": "the run ended before this host", "services": []}
        lines.append({"host": host, "word": found["word"], "says": found["says"], "services": list(found["services"])})
    return {
        "schema": SCHEMA,
        "check": check,
        "good": all(line["word"] in GOOD for line in lines),
        "hosts": lines,
    }


def summary_report(content: t.Mapping[str, t.Any]) -> list[str]:
    """The summary as lines: host, word, sentence."""
    head = "would be" if content["check"] else "outcome"
    return [head, *_words.table([[line["host"], line["word"], line["says"]] for line in content["hosts"]])]
