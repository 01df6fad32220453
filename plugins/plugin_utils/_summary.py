# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One word a host: what a run came to."""

from __future__ import annotations

import os
import textwrap
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import hidden
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _words

SCHEMA = "kvfleet.radiance/summary/1"
GOOD = ("switched", "unchanged")
# From the word that outweighs all others to the one that says the least.
WORDS = ("not_reached", "not_serving", "rolled_back", "drift", "refused", "inconclusive", "switched", "unchanged")

# What a host has come to, for the one who runs it again: an order to list them in.
STATES = ("done", "failed", "not_started", "undone")
# The code of a service that was not begun, because it might not have ended in time.
NOT_AFTER = "not_after"

# What Ansible says of a command that could not run, or did not read what it was given; its status is an errno then.
_NOT_RUN = "Error executing command."
# A sentence has this many columns, however wide the names before it are.
_LEAST = 60


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
    """``{service, word, says}`` of a service whose run came to its end.

    ``code`` beside them where a failure has one, and ``undo``, the command, where another pair serves now.
    """
    service = str(run["service"]["name"])
    failure_found = run.get("failure")
    if failure_found:
        return {"service": service, **_told(failure_found)}
    to = _words.pair(run["plan"]["to"])
    doubts = [
        f"{name}: {_words.one_line(probe.get('says') or probe['verdict'])}"
        for name, probe in (run.get("probes") or {}).items()
        if probe and probe.get("verdict", "passed") != "passed"
    ]
    if run.get("probes"):
        lost = [name for name in ("boundary", "rates") if not run["probes"].get(name)]
        doubts += [f"{name}: the host did not answer when it was to be probed." for name in lost]
    way_back = {"undo": str(run["undo"])} if run.get("undo") and run.get("making") else {}
    if doubts:
        says = f"{to} is kept. {' '.join(doubts)}{_handed_over(run, ' ')}"
        return {"service": service, "word": "inconclusive", "says": says, **way_back}
    if run.get("making"):
        image = (run.get("options") or {}).get("image")
        started = bool(run.get("down"))
        stays = started and not run["plan"]["changes"]
        says = to if stays else f"{_words.pair(run['plan']['from'])} → {to}"
        says += f", image {image}" if image else ""
        says += ", started: it did not run" if started else ""
        return {"service": service, "word": "switched", "says": says + _handed_over(run, ", "), **way_back}
    return {"service": service, "word": "unchanged", "says": f"{to}, nothing to change"}


def _handed_over(run: t.Mapping[str, t.Any], after: str) -> str:
    """Who was stopped for it, behind ``after``, and a line for each with the command back; empty where nobody was."""
    others = (run.get("switched") or {}).get("others") or []
    stopped = [str(other["service"]) for other in others if other["stance"] == "handed_over"]
    if not stopped:
        return ""
    commands = [run["hands_back"][name] for name in stopped if name in run.get("hands_back", {})]
    says = f"{after}{' and '.join(stopped)} stopped for it"
    return "\n".join([f"{says}; this hands the cards back:" if commands else says, *commands])


def _told(found: t.Mapping[str, str]) -> dict[str, str]:
    return {name: found[name] for name in ("word", "says", "code") if name in found}


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
        # What could not be read of a host that does not answer is no refusal of its own.
        lost = failed["word"] == "not_reached" and known["word"] in ("refused", "drift")
        services.append({"service": name, **_told(failed if lost else known)})
    word = worst([item["word"] for item in services])
    # What refuses the command itself is the same for each of them.
    says = "; ".join(dict.fromkeys(item["says"] for item in services if item["word"] == word))
    return {"word": word, "says": says, "services": services}


def outcomes(hosts: t.Iterable[str], hostvars: t.Mapping[str, t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
    """Each host with what it has come to so far, which is empty for one that was lost before it came to anything.

    ``hostvars`` are Ansible's, of which no other variable is worked out. There are none where a play is only listed.
    """
    return {str(host): hostvars.get(host, {}).get("endpoint_outcome") or {} for host in hosts}


def all_good(outcomes: t.Sequence[t.Mapping[str, t.Any] | None]) -> bool:
    """Whether every host is planned or has come to a good end, so that a further one may start.

    The count is of the whole fleet; a batch of Ansible's is only those that run side by side.
    """
    return all((outcome or {}).get("word") in ("planned", *GOOD) for outcome in outcomes)


def worst(words: t.Sequence[str]) -> str:
    """The word for a host with several services."""
    return min(words, key=WORDS.index) if words else "unchanged"


def summary(hosts: t.Sequence[str], outcomes: t.Mapping[str, t.Any], check: bool = False) -> dict[str, t.Any]:
    """``{schema, check, good, done, failed, not_started, undone, hosts: [{host, word, says, services}]}`` of a run.

    ``outcomes`` maps a host to ``{word, says, services: [{service, word, says}]}``; one that is missing was not
    reached (an earlier host had no good outcome, or its connection was lost). ``done`` and the like are names of hosts.
    """
    states: dict[str, list[str]] = {state: [] for state in STATES}
    lines = []
    for host in hosts:
        found, state = _ended(outcomes.get(host))
        states[state].append(host)
        lines.append({"host": host, "word": found["word"], "says": found["says"], "services": list(found["services"])})
    good = all(line["word"] in GOOD for line in lines)
    return {"schema": SCHEMA, "check": check, "good": good, **states, "hosts": lines}


def _ended(outcome: t.Mapping[str, t.Any] | None) -> tuple[dict[str, t.Any], str]:
    """What a host has come to, in words for the end of the run, and its state."""
    found = dict(outcome or {"word": "", "services": []})
    if found["word"] == "begun":
        says = "lost in the middle of its switch; run this again, which finishes the switch or restores the old pair"
        return {**found, "word": "not_reached", "says": says}, "failed"
    if found["word"] in ("", "planned"):
        says = "the run ended before this host"
        if found["word"]:
            says = "planned, and not started: another host has no good outcome"
        return {**found, "word": "not_reached", "says": says}, "not_started"
    if "undone" in found:
        return found, "undone" if found["undone"] else "failed"
    bad = [item for item in found["services"] if item["word"] not in GOOD]
    if bad and all(item.get("code") == NOT_AFTER for item in bad):
        return found, "not_started"
    return found, "done" if found["word"] in GOOD else "failed"


def summary_report(content: t.Mapping[str, t.Any]) -> list[str]:
    """The summary as lines: host, word, sentence; where not all is good, who is to be run again, and what undoes it."""
    lines = ["would be" if content["check"] else "outcome"]
    rows = [[line["host"], line["word"], ""] for line in content["hosts"]]
    column = sum(max([len(row[n]) for row in rows], default=0) + 2 for n in range(2)) + 2
    for row, line in zip(_words.table(rows), content["hosts"], strict=True):
        first, *rest = line["says"].split("\n")
        # What stands on a line of its own is a choice or a command, to be copied as it is.
        parts = [
            *textwrap.wrap(first, max(_words.WIDTH - column, _LEAST), break_long_words=False, break_on_hyphens=False),
            *rest,
        ] or [""]
        lines += [(row.ljust(column) + parts[0]).rstrip(), *[" " * column + part for part in parts[1:]]]
    if content["good"]:
        return lines
    if len(content["hosts"]) > 1:
        names = [[state.replace("_", " "), ", ".join(content[state])] for state in STATES if content[state]]
        lines += _words.table(names, indent="")
    if not content["check"]:
        undo = [item["undo"] for line in content["hosts"] for item in line["services"] if "undo" in item]
        lines += ["what was switched stays; this undoes it:", *(f"  {command}" for command in undo)] if undo else []
    return lines


def notify_words(result: t.Mapping[str, t.Any], argv: t.Sequence[str]) -> str:
    """A warning where the command that is told of a run did not take it, from its result; empty where it did."""
    if not result.get("failed") and result.get("rc") == 0:
        return ""
    if result.get("msg") == _NOT_RUN and isinstance(result.get("rc"), int):
        return f"warning: {argv[0]} could not take the summary: {os.strerror(result['rc'])}"
    said = str(result.get("stderr") or result.get("msg") or "").strip().splitlines() or ["it said nothing"]
    ended = f"ended with {result['rc']}" if result.get("rc") else "did not end well"
    return f"warning: {argv[0]} {ended}, and may not have taken the summary: {textwrap.shorten(hidden(said[-1]), 200)}"
