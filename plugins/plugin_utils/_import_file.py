# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator measured and judged before: a file of it, read strictly, to lines of the record.

The file, YAML or JSON, is a list of arms, or holds ``arms`` and ``verdicts``, each a list.
"""

from __future__ import annotations

import collections
import json
import pathlib
import re
import typing as t

import yaml
from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import read_regular
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _arm_import, _verdict_import

Json = dict[str, t.Any]

_LARGEST_BYTES = 1 << 20
_LONGEST_SAID = 600
# What the file may hold, by the name of its list: the kind of line, one of them in words, and what makes its fields.
_LISTS: dict[str, tuple[str, str, t.Callable[[t.Any], Json]]] = {
    "arms": ("arm", "arm", _arm_import.arm_fields),
    "verdicts": ("past_verdict", "verdict", _verdict_import.verdict_fields),
}


class _Twice(ValueError):
    """A key that an item has twice."""


class _Loader(yaml.SafeLoader):
    """YAML in which only plain decimal numbers are numbers: 06144, 6_144, 1e3, 1:30 and yes stay the text they are.

    A tag that says otherwise is refused: it would have another reader read them.
    """

    yaml_implicit_resolvers: dict[str, t.Any] = {}
    yaml_constructors: t.ClassVar[dict[t.Any, t.Any]] = {
        tag: make
        for tag, make in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in ("str", "seq", "null")
    }


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Json:
    loader.flatten_mapping(node)
    return _once(
        [(loader.construct_object(key), loader.construct_object(value, deep=True)) for key, value in node.value]
    )


def _once(pairs: t.Sequence[tuple[t.Any, t.Any]]) -> Json:
    names = [str(name) for name, _value in pairs]
    for name, number in collections.Counter(names).items():
        if number > 1:
            raise _Twice(f"{name} is there twice")
    return {str(name): value for name, value in pairs}


_INT, _FLOAT = re.compile(r"-?(?:0|[1-9][0-9]{0,11})"), re.compile(r"-?(?:0|[1-9][0-9]{0,11})\.[0-9]{1,12}")
_DIGITS = list("-0123456789")
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(f"^{_INT.pattern}$"), _DIGITS)
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(f"^{_FLOAT.pattern}$"), _DIGITS)
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|)$"), ["~", "n", ""])
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _plain(pattern: re.Pattern[str], read: t.Callable[[str], float]) -> t.Callable[[str], float | str]:
    return lambda text: read(text) if pattern.fullmatch(text) else text


def _scalar(read: t.Callable[[str], float | str]) -> t.Callable[[_Loader, yaml.ScalarNode], float | str]:
    return lambda loader, node: read(str(loader.construct_scalar(node)))


_Loader.add_constructor("tag:yaml.org,2002:int", _scalar(_plain(_INT, int)))
_Loader.add_constructor("tag:yaml.org,2002:float", _scalar(_plain(_FLOAT, float)))


def import_entries(path: str, service: str, host: str) -> list[Json]:
    """The lines of the record for what the file ``path`` holds.

    Raises RadianceError ``import_unreadable``, naming the file, the item by its number from 1, and what is wrong.
    """
    entries = []
    for name, items in _lists(path).items():
        kind, word, fields = _LISTS[name]
        for number, item in enumerate(items, start=1):
            try:
                entries.append(_records.entry(kind, host, service, None, **fields(item)))
            except (ValueError, RadianceError) as error:
                raise RadianceError(
                    f"import={path}: {word} {number} of {len(items)}: {_short(str(error))} Nothing was added.",
                    code="import_unreadable",
                ) from None
    return entries


def _short(text: str) -> str:
    """What a person reads of a sentence that quotes an item as long as the file."""
    return text if len(text) <= _LONGEST_SAID else f"{text[:_LONGEST_SAID]} …"


def import_or_objection(path: str, service: str, host: str) -> Json:
    """``{entries}`` of ``import_entries``, or ``{objection}``, why the file is not taken."""
    try:
        return {"entries": import_entries(path, service, host)}
    except RadianceError as error:
        return {"objection": error.text}


def _lists(path: str) -> dict[str, list[t.Any]]:
    file = pathlib.Path(path).expanduser()
    try:
        content = _parse(read_regular(str(file), _LARGEST_BYTES).decode("utf-8"))
    except OSError as error:
        wrong = f"cannot be read: {error.strerror}"
    except yaml.MarkedYAMLError as error:
        where = f" at line {error.problem_mark.line + 1}" if error.problem_mark else ""
        wrong = f"is neither YAML nor JSON: {error.problem}{where}"
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        wrong = f"is no list of arms: {' '.join(str(error).split())}"
    else:
        lists: Json = content if isinstance(content, dict) else {"arms": content}
        if set(lists) <= set(_LISTS) and lists and all(isinstance(one, list) and one for one in lists.values()):
            return {name: lists[name] for name in _LISTS if name in lists}
        wrong = (
            "is no list of arms, and holds no lists `arms` and `verdicts` alone. Write one arm an item, like "
            f"- {_arm_import.EXAMPLE}"
        )
    raise RadianceError(f"import={path}: {file.absolute()} {wrong}.", code="import_unreadable")


def _parse(text: str) -> t.Any:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(
                text,
                object_pairs_hook=_once,
                parse_int=_plain(_INT, int),
                parse_float=_plain(_FLOAT, float),
                parse_constant=str,
            )
        except json.JSONDecodeError:
            # A list of YAML's own may begin like that too.
            pass
    return yaml.load(text, Loader=_Loader)
