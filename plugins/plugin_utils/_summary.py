# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One word a host: what a run came to."""

from __future__ import annotations

import re
import textwrap
import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _env_text, _words

SCHEMA = "kvfleet.radiance/summary/1"
GOOD = ("switched", "unchanged")
# From the word that outweighs all others to the one that says the least.
WORDS = ("not_reached", "not_serving", "rolled_back", "drift", "refused", "inconclusive", "switched", "unchanged")

# Reasons of a ledger that is not complete by which the service does not serve.
_NOT_SERVING = ("not_ready", "container_absent", "unit_inactive")


def failure(result: t.Mapping[str, t.Any], task: str = "", reached: bool = True) -> dict[str, str]:
    """The word and the sentence of a failed task, from its result and its name."""
    lines = str(result.get("msg") or "no reason was given").splitlines()
    says = "\n".join(_env_text.one_line(line) for line in lines if line.strip())
    # A filter's refusal comes wrapped in what Ansible was doing with it.
    says = re.split(r"The (?:filter|test|lookup) plugin '[^']*' failed: ", says)[-1]
    word = _word(result, task, reached)
    return {"word": word, "says": "the host does not answer" if word == "not_reached" else says}


def _word(result: t.Mapping[str, t.Any], task: str, reached: bool) -> str:
    if not reached or result.get("unreachable"):
        return "not_reached"
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
    return "drift" if "drift" in task.lower() or result.get("code") == "drift" else "refused"


def boot_tried(run: t.Mapping[str, t.Any]) -> bool:
    """Whether the switch of a run tried a boot on its plan, so that predictions can be judged.

    One that was refused, or failed, before it started anything tried none; what it starts after ``restore`` is the old
    pair.
    """
    if not run.get("failure"):
        return True
    for phase in (run.get("switched") or {}).get("phases") or []:
        if phase["name"] in ("start", "restore"):
            return bool(phase["name"] == "start")
    return False


def service_outcome(run: t.Mapping[str, t.Any]) -> dict[str, str]:
    """``{service, word, says}`` of a service whose run came to its end."""
    service = str(run["service"]["name"])
    failure_found = run.get("failure")
    if failure_found:
        return {"service": service, "word": failure_found["word"], "says": failure_found["says"]}
    to = _words.pair(run["plan"]["to"])
    doubts = [
        f"{name}: {_env_text.one_line(probe.get('says') or probe['verdict'])}"
        for name, probe in (run.get("probes") or {}).items()
        if probe and probe.get("verdict", "passed") != "passed"
    ]
    if doubts:
        return {"service": service, "word": "inconclusive", "says": f"{to} is kept. {' '.join(doubts)}"}
    if run.get("making"):
        image = (run.get("options") or {}).get("image")
        says = f"{_words.pair(run['plan']['from'])} → {to}" + (f", image {image}" if image else "")
        return {"service": service, "word": "switched", "says": says}
    return {"service": service, "word": "unchanged", "says": f"{to}, nothing to change"}


def host_outcome(
    run: t.Mapping[str, t.Any],
    done: t.Sequence[t.Mapping[str, str]] = (),
    failed: t.Mapping[str, str] | None = None,
) -> dict[str, t.Any]:
    """``{word, says, services}`` of a host: the worst of its services, and of the task that failed, where one did."""
    services = [dict(item) for item in done]
    if failed is not None:
        name = str((run.get("service") or {}).get("name") or "")
        known = run.get("failure") or failed
        services.append({"service": name, "word": known["word"], "says": known["says"]})
    word = worst([item["word"] for item in services])
    says = "; ".join(item["says"] for item in services if item["word"] == word)
    return {"word": word, "says": says, "services": services}


def all_good(outcomes: t.Sequence[t.Mapping[str, t.Any] | None]) -> bool:
    """Whether every host is planned or has come to a good end, so that a further one may start."""
    return all(outcome is not None and outcome.get("word") in ("planned", *GOOD) for outcome in outcomes)


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
        if found["word"] == "planned":
            found = {
                **found,
                "word": "not_reached",
                "says": "planned, and not started: another host has no good outcome",
            }
        lines.append({"host": host, "word": found["word"], "says": found["says"], "services": list(found["services"])})
    return {
        "schema": SCHEMA,
        "check": check,
        "good": all(line["word"] in GOOD for line in lines),
        "hosts": lines,
    }


def summary_report(content: t.Mapping[str, t.Any]) -> list[str]:
    """The summary as lines: host, word, sentence."""
    lines = ["would be" if content["check"] else "outcome"]
    rows = [[line["host"], line["word"], ""] for line in content["hosts"]]
    column = sum(max([len(row[n]) for row in rows], default=0) + 2 for n in range(2)) + 2
    for row, line in zip(_words.table(rows), content["hosts"], strict=True):
        first, *rest = line["says"].split("\n")
        # What stands on a line of its own is a choice or a command, to be copied as it is.
        parts = [*textwrap.wrap(first, 116 - column, break_long_words=False, break_on_hyphens=False), *rest] or [""]
        lines += [(row.ljust(column) + parts[0]).rstrip(), *[" " * column + part for part in parts[1:]]]
    return lines
