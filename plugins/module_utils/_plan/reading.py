# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Strict readers of what a request holds: plain digits, known names, one of a few words.

Each raises RadianceError with the text quoted: ``not_a_whole_number``, ``not_a_number``, ``request_unreadable``.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import whole_number

_AT_LEAST_ONE = ("weights_mib", "kv_mib", "max_num_seqs", "max_model_len")
_PLAIN_DECIMAL = re.compile(r"^(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$")


def plain_number(value: object, name: str) -> float:
    """A measured figure: a number, or text of plain decimal digits with an optional decimal point."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    if isinstance(value, str) and _PLAIN_DECIMAL.match(value):
        return float(value)
    raise RadianceError(
        f"{name} is {value!r}, which is not a number in plain decimal digits. Write it like 3397 or 109.8.",
        code="not_a_number",
    )


def unreadable(text: str) -> RadianceError:
    """A refusal of something that cannot be read: unknown names, wrong kinds."""
    return RadianceError(text, code="request_unreadable")


def reason_missing(what: str, option: str) -> RadianceError:
    """A refusal of something that wants a reason and has none."""
    return RadianceError(f"{what}, and {option} has no reason: say why in {option}.", code="reason_missing")


def known(raw: object, names: t.Sequence[str], where: str) -> dict[str, t.Any]:
    """A dictionary with these names only; a key with the value None counts as not given."""
    if not isinstance(raw, t.Mapping):
        raise unreadable(f"{where} is {raw!r}; it takes a dictionary of {', '.join(names)}.")
    for name in raw:
        if name not in names:
            raise unreadable(f"{where} names {name!r}; it takes {', '.join(names)}.")
    return {str(name): value for name, value in raw.items() if value is not None}


def list_of(raw: object, name: str) -> list[t.Any]:
    """A list."""
    if not isinstance(raw, (list, tuple)):
        raise unreadable(f"{name} is {raw!r}; it takes a list.")
    return list(raw)


def text_of(given: t.Mapping[str, t.Any], name: str) -> str | None:
    """Text that is not blank, or None."""
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise unreadable(f"{name} is {value!r}, which is not text. Put it in quotes.")
    return value.strip() or None


def reason_of(given: t.Mapping[str, t.Any], name: str) -> str | None:
    """A reason, or None: the word that stands for one in the commands that are printed is none."""
    reason = text_of(given, name)
    return None if reason in ("WHY", "WHO") else reason


def choice_of(given: t.Mapping[str, t.Any], name: str, choices: t.Sequence[str], default: str) -> str:
    """One of a few words."""
    value = given.get(name, default)
    if value not in choices:
        raise unreadable(f"{name} is {value!r}; it takes {' or '.join(choices)}.")
    return str(value)


def count_of(value: object, name: str, where: str) -> int:
    """A count or a size; 0 is refused where the engine takes it for "derive it".

    A command says what is asked of pair and shape by its bare name, and so is it called here.
    """
    called = name if where in ("pair", "shape") else f"{where}.{name}"
    count = whole_number(value, called)
    if count == 0 and name in _AT_LEAST_ONE:
        raise RadianceError(
            f"{called} is {value!r}: at 0 the engine derives it instead. Write a number of at least 1.",
            code="not_a_whole_number",
        )
    return count
