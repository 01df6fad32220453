# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One gate of an env: how a value is held to it here, and the lines of shell that hold it to it in bats."""

from __future__ import annotations

import re
import typing as t

# Of ten digits and more a shell may make another number, without a word.
_WHOLE = re.compile("0|[1-9][0-9]{0,8}")
# A depth of 0 is one; a 0 of any other key leaves it to the engine, and nothing would be held to its gate.
MAY_BE_NONE = ("NUM_SPECULATIVE_TOKENS",)


class Gate(t.NamedTuple):
    """One bound. ``says`` is a sentence without its end, ``because`` the lines that it comes from.

    ``measure`` is what of the keys is held to ``bound``: pair, pool, rows, sequences; number, dtype and shape speak of
    each key alone, and have no bound, a list of words, or one bound a key. ``label`` is empty, personal reserve, or
    accepted.
    """

    name: str
    keys: tuple[str, ...]
    measure: str
    bound: t.Any
    says: str
    because: tuple[str, ...]
    label: str = ""


class _Measure(t.NamedTuple):
    """How a quantity is worked out, by a shell and by Python, what it is called, and whether it is bound from above."""

    shell: str
    value: t.Callable[..., int]
    noun: str
    unit: str
    upper: bool


MEASURES = {
    "pair": _Measure("{} + {}", lambda weights, kv: weights + kv, "the pair", "MiB", True),
    "pool": _Measure("{}", lambda kv: kv, "the pool", "MiB", False),
    "rows": _Measure("{} * ({} + 1)", lambda seqs, depth: seqs * (depth + 1), "a full decode step", "rows", True),
    "sequences": _Measure("{}", lambda seqs: seqs, "a full decode step", "rows", True),
}


def failure(gate: Gate, values: t.Mapping[str, str | None]) -> list[str]:
    """What to say where an env with these values does not pass: nothing where it does."""
    texts = [values[key] or "" for key in gate.keys]
    if gate.measure == "dtype":
        holds, found = texts[0] in gate.bound, f"{gate.keys[0]} is {texts[0]!r}"
    elif gate.measure == "shape":
        holds = all(_is_at_most(text, bound) for text, bound in zip(texts, gate.bound, strict=True))
        found = f"it has {', '.join(texts)}"
    elif not all(_is_whole(key, text) for key, text in zip(gate.keys, texts, strict=True)):
        # Each gate of numbers would say so; the one that is about it is enough.
        holds, found = gate.measure != "number", f"it has {', '.join(map(repr, texts))}"
    elif gate.measure == "number":
        return []
    else:
        measure = MEASURES[gate.measure]
        value = measure.value(*map(int, texts))
        holds = value <= gate.bound if measure.upper else value >= gate.bound
        found = f"{measure.noun} has {value:,} {measure.unit}"
    return [] if holds else [f"{gate.name}: {gate.says}; {found} in the rendered env. {'; '.join(gate.because)}"]


def _is_at_most(text: str, bound: int | str) -> bool:
    if isinstance(bound, str):
        return text == bound
    return re.fullmatch("[0-9]{1,18}", text) is not None and int(text) <= bound


def _is_whole(key: str, text: str) -> bool:
    return _WHOLE.fullmatch(text) is not None and (text != "0" or key in MAY_BE_NONE)


def code(gate: Gate, keys: t.Sequence[str]) -> list[str]:
    """The test in shell, for bats, which shows what it printed where it fails."""
    if gate.measure == "dtype":
        return [
            f'echo "{keys[0]} is ${{{keys[0]}-}}."',
            f'case "${{{keys[0]}-}}" in {" | ".join(gate.bound)}) ;; *) false ;; esac',
        ]
    if gate.measure == "number":
        some = [name for key, name in zip(gate.keys, keys, strict=True) if key not in MAY_BE_NONE]
        return [
            f"for name in {' '.join(keys)}; do",
            '  echo "$name is ${!name-}."',
            "  case \"${!name-}\" in '' | *[!0-9]* | 0?* | ??????????*) false ;; esac",
            "done",
            *(f'[ "${{{name}-}}" != 0 ]' for name in some),
        ]
    if gate.measure == "shape":
        return [
            *(f'echo "{key} is ${{{key}-}}."' for key in keys),
            *(
                f'[ "${{{key}-}}" = {bound} ]' if isinstance(bound, str) else f'[ "${{{key}-}}" -le {bound} ]'
                for key, bound in zip(keys, gate.bound, strict=True)
            ),
        ]
    measure = MEASURES[gate.measure]
    return [
        f"{gate.measure}=$(({measure.shell.format(*keys)}))",
        f'echo "{measure.noun.capitalize()} has ${gate.measure} {measure.unit}."',
        f'[ "${gate.measure}" {"-le" if measure.upper else "-ge"} {gate.bound} ]',
    ]
