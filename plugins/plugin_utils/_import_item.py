# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every item of an import file is held to. All raise ValueError with a sentence."""

from __future__ import annotations

import typing as t
import unicodedata

from ansible_collections.kvfleet.radiance.plugins.module_utils import _records

Json = dict[str, t.Any]
_LONGEST = 4000
# Control characters and halves of a character.
_UNSEEN = ("Cc", "Cs")


def known(item: t.Any, what: str, names: t.Sequence[str], example: str) -> Json:
    """Each of ``names`` with what the item has of it, or None. ``what`` is the item with its article, as `an arm`."""
    noun = what.split()[-1]
    if not isinstance(item, dict):
        raise ValueError(f"{item!r} is no {noun}. Write it like {example}.")
    unknown = [name for name in item if name not in names]
    if unknown:
        raise ValueError(f"{', '.join(unknown)} is not known here. {what.capitalize()} takes {', '.join(names)}.")
    return {name: item.get(name) for name in names}


def require_text(given: t.Mapping[str, t.Any], *names: str) -> None:
    """Each of these is text that a person can read, or is not there."""
    for name in names:
        if given[name] is not None and not (isinstance(given[name], str) and given[name].strip()):
            raise ValueError(f"{name} is {given[name]!r}, which is no text. Put it in quotes.")
        text = given[name] or ""
        if len(text) > _LONGEST:
            raise ValueError(f"{name} has {len(text):,} characters, and takes up to {_LONGEST:,}. Shorten it.")
        unseen = next((sign for sign in text if sign not in "\n\t" and unicodedata.category(sign) in _UNSEEN), None)
        if unseen is not None:
            raise ValueError(f"{name} has the character {unseen!r}, which nothing shows. Take it out.")


def require_time(at: t.Any) -> None:
    """A day, or a UTC time to the second, or not there."""
    if at is not None and not (isinstance(at, str) and _records.MEASURED_AT.match(at)):
        raise ValueError(f"at is {at!r}. Write a day, 2026-10-13, or a UTC time, 2026-10-13T09:30:00Z.")


def is_number(value: t.Any) -> bool:
    """Whether it is a number; YAML's true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_number(value: float) -> float:
    """A whole number as an int, so that 3584 and 3584.0 are one."""
    return int(value) if float(value).is_integer() else value
