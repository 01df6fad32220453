# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The entries of a fleet's log: one for each outcome of a resize, where the order of that file has its newest.

An entry is written once. Later runs fill in verdicts that were open, and leave every other line of it as they find it.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _blocks, _env_text, _history, _markdown, _words

Entry = t.Mapping[str, t.Any]

_DATED = re.compile(r"(?P<level>#{1,6})\s.*?(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})")
_NEWEST_FIRST = re.compile(r"newest (?:\w+ )?(?:first|on top|at the top)|latest first|reverse chronological", re.I)


def with_outcomes(text: str, name: str, record: t.Sequence[Entry], making: Entry | None = None) -> str:
    """``text`` with an entry for each attempt that came to an end after the last one that the log tells of.

    A log that tells of none of this service yet gets the last outcome alone: what was before is in the record, and an
    entry that somebody took out does not come back. ``making`` is a plan that would run (check mode).
    """
    attempts = [attempt for attempt in _history.attempts(record) if _history.ended_by(attempt)]
    if making is not None:
        attempts.append([making])
    there = {block.name for block in _blocks.found(text)}
    told = [number for number, attempt in enumerate(attempts) if there & {_id(name, entry) for entry in attempt}]
    for attempt in attempts[told[-1] if told else -1 :]:
        if _id(name, _end(attempt)) not in there:
            level, before = _place(text)
            text = _blocks.placed(text, _id(name, _end(attempt)), _entry(name, attempt, level), before=before)
    for attempt in attempts:
        text = _with_verdicts(text, name, attempt)
    return text


def _end(attempt: t.Sequence[Entry]) -> Entry:
    return _history.ended_by(attempt) or attempt[0]


def _id(name: str, entry: Entry) -> str:
    return f"{name} {entry['id']}"


def _entry(name: str, attempt: t.Sequence[Entry], level: str) -> list[str]:
    planned, ended = attempt[0], _end(attempt)
    words = {"switched": "switched", "rolled_back": "rolled back", "planned": "planned"}
    on = "" if name.endswith(f" on {planned['host']}") else f" on {planned['host']}"
    plan = planned["plan"]
    lines = [f"{level} {ended['at']}: {_markdown.plain(name + on)}, {words[ended['kind']]}", ""]
    pairs = f"From {_words.pair_words(plan['from'])} to {_words.pair_words(plan['to'])}."
    lines += _markdown.wrapped(pairs if plan["changes"] else f"Started on {_words.pair_words(plan['to'])}.")
    if ended["kind"] == "rolled_back":
        says = _markdown.wrapped(_words.one_line(ended["says"]))
        lines += ["", f"It was undone in phase {ended['phase']}:", "", *_markdown.fenced(*says)]
    lines += ["", f"Record {ended['id']}; predicted, and what came of it:", ""]
    return lines + [_verdict_line(item) for item in _history.judged(attempt)]


def _verdict_line(item: t.Mapping[str, t.Any]) -> str:
    _name, said, verdict = _env_text.prediction_rows([item])[0]
    return f"{_verdict_key(item)} {said}, {verdict}"


def _verdict_key(item: t.Mapping[str, t.Any]) -> str:
    return f"- `{item['id']}`:"


def _with_verdicts(text: str, name: str, attempt: t.Sequence[Entry]) -> str:
    """The verdict lines of an attempt's entries as the record has them now. A line that somebody took out stays out."""
    names = {_id(name, entry) for entry in attempt}
    for block in _blocks.found(text):
        if block.name in names:
            body = _blocks.body_of(text, block)
            for item in _history.judged(attempt):
                key = _verdict_key(item)
                body = [_verdict_line(item) if line.startswith(key) else line for line in body]
            text = _blocks.with_body(text, block, body)
    return text


def _place(text: str) -> tuple[str, int]:
    """The level of heading that entries of this log have, and the line before which a new one goes."""
    lines = text.split("\n")
    dated = [(number, read) for number, line in enumerate(lines) if (read := _DATED.match(line))]
    if not dated:
        return "##", _blocks.after_last(text)
    first, level = dated[0][0], dated[0][1]["level"]
    days = [read["day"] for _number, read in dated]
    above = "\n".join(lines[:first])
    if not _NEWEST_FIRST.search(above) and days[0] <= days[-1]:
        return level, _blocks.after_last(text)
    around = [block.begin for block in _blocks.found(text) if block.begin <= first <= block.end]
    return level, min([first, *around])
