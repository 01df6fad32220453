# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record for a person to read, in 100 columns: predicted beside measured over time, the score, the arms."""

from __future__ import annotations

import textwrap
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _plan
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _arms, _commands, _history, _words

Entry = t.Mapping[str, t.Any]

_COLUMNS = 100
_COUNTED = ("held", "killed")
_IMPORTED = {"arm": "arms", "past_verdict": "verdicts"}


def history_report(
    record: t.Sequence[Entry], service: t.Mapping[str, t.Any], host: str, about: t.Mapping[str, t.Any] | None = None
) -> list[str]:
    """The lines: a head, each attempt, the score by quantity, what was imported of the time before, the arms.

    ``about`` says where the record is from: ``unread`` is why the one on the host could not be read, where it could
    not; ``imported`` is ``{file, added, of, kinds}``, how many lines of how many of a file were put on record, or in
    ``check`` mode would be, and which kinds of them the file has; ``undo`` is the command that returns to the previous
    pair.
    """
    lines = [f"{service['name']} on {host}", *_wrapped(_origin(about or {}))]
    lines += _over_time(record)
    lines += _returns(record, (about or {}).get("undo"))
    lines += _score(record)
    lines += _past(record)
    return lines + _arm_lines(record, service)


def _origin(about: t.Mapping[str, t.Any]) -> list[str]:
    notes = ["The record on the host, joined with the one in the fleet directory."]
    if about.get("unread"):
        notes = [
            f"The record in the fleet directory alone, because the one on the host cannot be read: {about['unread']}"
        ]
    imported = about.get("imported")
    if imported:
        word = "would add" if about.get("check") else "added"
        what = " and ".join(word for kind, word in _IMPORTED.items() if kind in imported["kinds"])
        notes.append(f"{word} {imported['added']} of {imported['of']} {what} of {imported['file']}")
    return notes


def _wrapped(sentences: t.Iterable[str], indent: str = "  ") -> list[str]:
    lines: list[str] = []
    for sentence in sentences:
        lines += textwrap.wrap(
            _words.one_line(sentence),
            _COLUMNS,
            initial_indent=indent,
            subsequent_indent=indent + "  ",
            break_on_hyphens=False,
        )
    return lines


def _over_time(record: t.Sequence[Entry]) -> list[str]:
    attempts = _history.attempts(record)
    if not attempts:
        return ["", "No resize is on record."]
    lines: list[str] = []
    so_far = {word: 0 for word in _COUNTED}
    for attempt in attempts:
        planned, predictions = attempt[0], _history.judged(attempt)
        for word in _COUNTED:
            so_far[word] += sum(item["verdict"] == word for item in predictions)
        outcome, why = _came_to(attempt)
        lines += ["", f"{planned['at']}  attempt {planned['attempt']}, {outcome}"]
        plan = planned["plan"]
        lines += _wrapped([_from_to(plan["from"], plan["to"])])
        lines += _wrapped(entry["says"] for entry in attempt if entry["kind"] == "rollback")
        rows = [["predicted", "", "measured", "verdict"]]
        for item in predictions:
            interval = _words.interval(item["low"], item["high"], item.get("unit"))
            rows.append([item["id"], interval, _words.measured(item), item["verdict"]])
        lines += _words.table(rows)
        lines += _wrapped(why)
        reasons: dict[str, list[str]] = {}
        for item in predictions:
            if item["verdict"] in ("killed", "void") and item["says"]:
                reasons.setdefault(item["says"], []).append(item["id"])
        lines += _wrapped(f"{', '.join(names)}: {says}" for says, names in reasons.items())
        lines += _probe_lines(attempt)
        total = sum(so_far.values())
        here = [sum(item["verdict"] == word for item in predictions) for word in _COUNTED]
        lines.append(f"  held {here[0]} of {sum(here)} here, {so_far['held']} of {total} so far")
    return lines


def _came_to(attempt: t.Sequence[Entry]) -> tuple[str, list[str]]:
    """How an attempt ended, in a few words, and why where it did not hold."""
    ended, refused = _history.ended_by(attempt), _history.refused(attempt)
    if ended is None:
        if refused is None:
            return "no end of it is on record", []
        return f"refused in phase {refused['phase']}, before anything was stopped", [refused["says"]]
    if ended["kind"] == "rolled_back":
        return f"rolled back in phase {ended['phase']}", [f"rolled back: {ended['says']}"]
    took = ended["downtime_seconds"]
    after = "" if took is None else f" after {_words.number(round(took))} s"
    return f"switched{after}; to={ended['id']} returns to it", []


def _returns(record: t.Sequence[Entry], undo: str | None) -> list[str]:
    """The command that returns to a switch of the record."""
    if not undo or not any(entry["kind"] == "switched" for entry in record):
        return []
    return ["", "to return to one:", f"  {_commands.beside(undo, 'rollback')} -e to=ID"]


def _from_to(before: t.Mapping[str, t.Any], to: t.Mapping[str, t.Any]) -> str:
    """Both pairs, and the shape once where it stays."""
    if _words.shape(before) == _words.shape(to):
        return f"{_words.pair(before)} → {_words.pair_words(to)}"
    return f"{_words.pair_words(before)} → {_words.pair_words(to)}"


def _probe_lines(attempt: t.Sequence[Entry]) -> list[str]:
    probed = next((entry for entry in reversed(attempt) if entry["kind"] == "probed"), None)
    if probed is None:
        return []
    said = []
    for name in ("boundary", "rates"):
        probe = probed[name]
        if probe:
            said.append(f"{name} {probe.get('verdict')}: {probe.get('says') or ''}")
    return _wrapped(said)


def _score(record: t.Sequence[Entry]) -> list[str]:
    return _score_table("score by quantity", _plan.score(record))


def _score_table(title: str, score: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    if not score:
        return []
    rows = [["quantity", "held", "killed", "void", "share held", "last killed"]]
    for item in score:
        share = _words.UNKNOWN if item["share"] is None else f"{item['share']:.0%}"
        counts = [_words.number(item[name]) for name in ("held", "killed", "void")]
        rows.append([item["quantity"], *counts, share, item["last_killed"] or ""])
    return ["", title, *_words.table(rows)]


def _past(record: t.Sequence[Entry]) -> list[str]:
    """What was predicted and judged before this record began, and a score of its own: we did not judge it."""
    past = [entry for entry in record if entry["kind"] == "past_verdict"]
    if not past:
        return []
    past.sort(key=lambda entry: (entry["judged_at"] or "", entry["quantity"]))
    rows = [["judged", "quantity", "predicted", "measured", "verdict"]]
    for entry in past:
        interval = _words.interval(entry["low"], entry["high"], entry["unit"])
        measured = _words.number(entry["measured"])
        rows.append([_day(entry["judged_at"]), entry["quantity"], interval, measured, entry["verdict"]])
    lines = ["", "imported: predicted and judged before this record", *_words.table(rows)]
    lines += _wrapped(f"{entry['quantity']}: {entry['says']}" for entry in past if entry["says"])
    # Each counts by itself: no attempt ties two of them together.
    alone = [
        {**entry, "at": entry["judged_at"] or _words.UNKNOWN, "prediction": entry["id"], "kind": "verdict"}
        for entry in past
    ]
    return lines + _score_table("score of what was imported, in no share above", _plan.score(alone))


def _arm_lines(record: t.Sequence[Entry], service: t.Mapping[str, t.Any]) -> list[str]:
    arms = [(arm, "inventory") for arm in _arms.known_arms(service, [])]
    arms += [({**entry, "at": entry["measured_at"]}, str(entry["source"])) for entry in _arms.on_record(record)]
    if not arms:
        return ["", "No arm is known: nothing was measured yet, and none was declared or imported."]
    rows = [["measured", "slab", "prefill", "decode", "prompt", "dtype", "depth", "drafts", "from", "stack"]]
    stacks: list[str] = []
    for arm, source in sorted(arms, key=lambda one: (str(one[0].get("at") or ""), int(one[0]["weights_mib"]))):
        stack = _stack(arm)
        if stack and stack not in stacks:
            stacks.append(stack)
        rows.append(
            [
                _day(arm.get("at")),
                _words.number(int(arm["weights_mib"])),
                _rate(arm.get("prefill_tps")),
                _rate(arm.get("decode_tps")),
                _words.number(arm.get("prompt_tokens")),
                str(arm.get("kv_cache_dtype") or _words.UNKNOWN),
                _words.number(arm.get("num_speculative_tokens")),
                _words.number(arm.get("draft_acceptance")),
                source,
                str(stacks.index(stack) + 1) if stack else _words.UNKNOWN,
            ]
        )
    lines = ["", "arms: slab in MiB a card, prefill and decode in tokens a second"]
    lines += _words.table(rows)
    lines += _wrapped(f"stack {number}: {stack}" for number, stack in enumerate(stacks, start=1))
    declared = service.get("stack")
    others = sum(arm.get("stack") != declared for arm, _source in arms) if declared else 0
    if others:
        lines += _wrapped(
            [f"{others} of {len(arms)} are not of the declared stack, {declared}: no plan of this service uses them."]
        )
    return lines


def _stack(arm: t.Mapping[str, t.Any]) -> str:
    """What an arm was measured on, as far as it is known: the declared name, the release, the image."""
    told = (("", "stack"), ("engine ", "engine_version"), ("image ", "image_digest"))
    return "; ".join(f"{word}{arm[name]}" for word, name in told if arm.get(name))


def _rate(value: t.Any) -> str:
    """A rate as far as it tells: decode to a tenth, prefill whole."""
    if value is None:
        return _words.UNKNOWN
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}"


def _day(at: t.Any) -> str:
    """The day of a time of the record."""
    return str(at)[:10] if at else _words.UNKNOWN
