# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a service: one JSON object a line, only ever appended to.

It says what was planned, what happened and how each prediction fared. One copy lives on the target, beside the
journal of the switch, and one in the fleet directory. Shapes: ``schemas/record.schema.json``; the checks here are the
same rules in plain Python, because a target has nothing but the standard library.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import datetime
import fcntl
import hashlib
import json
import os
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._record_fields import COMMON, FIELDS, OPTIONAL
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import open_regular

SCHEMA = "kvfleet.radiance/record/1"
# Of one entry, in bytes. The longest of ours, a planned line, has some thousand.
LONGEST_LINE = 1 << 20

# So much of a line is shown, in characters.
_SHOWN = 400
# When they were written down is no part of them: the same one imported twice is one.
_TIMELESS = ("arm", "past_verdict")
VERDICTS = ("held", "killed", "void", "open")
ARM_SOURCES = ("probe", "import")
_SCHEMA = re.compile(r"^kvfleet\.radiance/record/[0-9]{1,9}$")
_AT = re.compile(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")
_ID = re.compile(r"^[0-9a-f]{12}$")
# A day is enough for what somebody measured before.
MEASURED_AT = re.compile(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?$")


def utc_now() -> str:
    """The present second, like ``2026-10-13T09:30:00Z``: the form of time in every file of ours."""
    now = datetime.datetime.now(datetime.timezone.utc)  # noqa: UP017  datetime.UTC is 3.11's
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def canonical(value: t.Any) -> str:
    """JSON that is the same text for the same value: sorted, without blanks, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _id_of(value: t.Mapping[str, t.Any]) -> str:
    beside = ("id", "at") if value.get("kind") in _TIMELESS else ("id",)
    rest = {name: item for name, item in value.items() if name not in beside}
    return hashlib.sha256(canonical(rest).encode("ascii")).hexdigest()[:12]


def entry(kind: str, host: str, service: str, attempt: str | None, **fields: t.Any) -> dict[str, t.Any]:
    """A checked entry of the record, stamped with the present second (UTC) and its id.

    ``attempt`` ties the lines of one plan together. Raises RadianceError ``record_invalid``.
    """
    value: dict[str, t.Any] = {
        "schema": SCHEMA,
        "at": utc_now(),
        "host": host,
        "service": service,
        "kind": kind,
        "attempt": attempt,
        **fields,
    }
    value["id"] = _id_of(value)
    check(value)
    return value


def check(value: t.Any) -> None:
    """Raise RadianceError ``record_invalid`` unless the value is a line of the record. Never quotes a field's text."""
    if not isinstance(value, dict):
        raise RadianceError("A line of the record is a JSON object.", code="record_invalid")
    schema = value.get("schema")
    if isinstance(schema, str) and schema != SCHEMA and _SCHEMA.match(schema):
        raise RadianceError(
            f"It is of schema {schema}, and this release reads {SCHEMA}. Read it with the release that wrote it.",
            code="record_invalid",
        )
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise RadianceError(
            f"{kind!r} is not a kind of record entry. There are {', '.join(FIELDS)}.", code="record_invalid"
        )
    wanted = {**COMMON, **FIELDS[kind]}
    wrong = [f"no field {name}" for name in wanted if name not in value]
    known = {**wanted, **OPTIONAL.get(kind, {})}
    wrong += [f"an unknown field {name}" for name in value if name not in known]
    wrong += [f"{name} of another type" for name in value if name in known and not _is(value[name], known[name])]
    if not wrong:
        wrong += _wrong_words(value)
    if wrong:
        raise RadianceError(f"A record entry of kind {kind} has {'; '.join(sorted(wrong))}.", code="record_invalid")


def _is(value: t.Any, types: tuple[type, ...]) -> bool:
    # True is an int to Python, but not a number of the record.
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types)


def _wrong_words(value: t.Mapping[str, t.Any]) -> list[str]:
    wrong = []
    if value["schema"] != SCHEMA:
        wrong.append(f"a schema that is not {SCHEMA}")
    if not _AT.match(value["at"]):
        wrong.append("an `at` that is not a UTC time like 2026-10-13T09:30:00Z")
    if not _ID.match(value["id"]):
        wrong.append("an id that is not 12 hexadecimal digits")
    elif value["id"] != _id_of(value):
        wrong.append("an id that does not belong to its content")
    if value.get("verdict", "open") not in VERDICTS:
        wrong.append(f"a verdict that is none of {', '.join(VERDICTS)}")
    if value.get("judged_at") is not None and not MEASURED_AT.match(value["judged_at"]):
        wrong.append("a judged_at that is neither a day nor a UTC time")
    return wrong + (_wrong_of_arm(value) if value["kind"] == "arm" else [])


def _wrong_of_arm(value: t.Mapping[str, t.Any]) -> list[str]:
    rates = [value[name] for name in ("prefill_tps", "decode_tps") if value[name] is not None]
    wrong = [] if rates else ["no rate"]
    if value["weights_mib"] < 1 or any(rate <= 0 for rate in rates):
        wrong.append("a slab or a rate that is not above 0")
    if value["source"] not in ARM_SOURCES:
        wrong.append(f"a source that is none of {', '.join(ARM_SOURCES)}")
    if value["measured_at"] is not None and not MEASURED_AT.match(value["measured_at"]):
        wrong.append("a measured_at that is neither a day nor a UTC time")
    return wrong


def scan(lines: t.Iterable[bytes | None]) -> tuple[list[dict[str, t.Any]], list[str]]:
    """The valid entries among lines, and a sentence for each line that is none (a torn write, an edit).

    None stands for a line that is longer than an entry may be.
    """
    entries: list[dict[str, t.Any]] = []
    reports: list[str] = []
    for number, line in enumerate(lines, start=1):
        if line is None:
            reports.append(f"line {number} of the record is longer than {LONGEST_LINE:,} bytes and was passed over")
            continue
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode("utf-8"))
            check(value)
        except (ValueError, RecursionError):
            reports.append(f"line {number} of the record is not JSON (a write that was cut?) and was passed over")
        except RadianceError as error:
            reports.append(f"line {number} of the record was passed over: {error.text}")
        else:
            entries.append(value)
    return entries, reports


def read(path: str) -> list[dict[str, t.Any]]:
    """The valid entries of a record in their order; an absent file has none."""
    return read_with_reports(path)[0]


def read_with_reports(path: str) -> tuple[list[dict[str, t.Any]], list[str]]:
    """As read, with a sentence for each line that was passed over."""
    try:
        handle = open_regular(path)
    except FileNotFoundError:
        return [], []
    try:
        return scan(_lines(handle))
    finally:
        os.close(handle)


def missing(
    present: t.Sequence[t.Mapping[str, t.Any]], entries: t.Sequence[dict[str, t.Any]]
) -> list[dict[str, t.Any]]:
    """Those of ``entries`` whose id is not among ``present``, each once, in their order."""
    known = {value["id"] for value in present}
    out = []
    for value in entries:
        if value["id"] not in known:
            known.add(value["id"])
            out.append(value)
    return out


def append(path: str, entries: t.Sequence[dict[str, t.Any]]) -> list[str]:
    """Append the entries that are not there yet, under a lock and synced to the disk. The folder must exist.

    Returns sentences about lines that were found broken. A last line that was cut (no newline) is closed first, so
    that it costs one line and not two. Every entry is checked before the first is written. Where they cannot all be
    written, the file is as it was, and that is an OSError.
    """
    for value in entries:
        check(value)
        if len(canonical(value)) > LONGEST_LINE:
            raise RadianceError(
                f"An entry of kind {value['kind']} is longer than {LONGEST_LINE:,} bytes.", code="record_invalid"
            )
    if not entries:
        return []
    existed = os.path.exists(path)
    handle = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        present, reports = scan(_lines(handle))
        new = missing(present, entries)
        if new:
            size = os.fstat(handle).st_size
            closing = b"\n" if size and os.pread(handle, 1, size - 1) != b"\n" else b""
            try:
                _durable.write_all(handle, closing + b"".join(_line_of(value) for value in new))
                os.fsync(handle)
            except OSError:
                # A full disk: all of them or none, so that the next run finds a whole record.
                os.ftruncate(handle, size)
                raise
    finally:
        os.close(handle)
    if not existed:
        _durable.sync_folder(os.path.dirname(os.path.realpath(path)))
    return reports


class Added(t.NamedTuple):
    """``entries``: the whole record with the ``new`` ones; ``reports``: sentences about lines that were passed over."""

    entries: list[dict[str, t.Any]]
    new: list[dict[str, t.Any]]
    reports: list[str]


def add(path: str, entries: t.Sequence[dict[str, t.Any]], check_mode: bool) -> Added:
    """Append what is not there yet, and make the folder of a first record; in check mode tell what would be.

    Raises RadianceError ``record_invalid`` and ``record_unreachable``.
    """
    try:
        present, reports = read_with_reports(path)
        for value in entries:
            check(value)
        new = missing(present, entries)
        if new and check_mode:
            present = present + new
        elif new:
            os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
            append(path, new)
            present = read(path)
    except OSError as error:
        raise RadianceError(
            f"The record {path} cannot be read or written: {error.strerror}. Nothing was added to it; what is missing "
            "there is added by the next run that can.",
            code="record_unreachable",
        ) from error
    return Added(present, new, reports)


def shown(value: t.Mapping[str, t.Any]) -> str:
    """A line as a diff has it: of a plan, which has thousands of characters, the beginning."""
    line = canonical(value)
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]} … ({len(line):,} characters)"


def _line_of(value: t.Mapping[str, t.Any]) -> bytes:
    return canonical(value).encode("ascii") + b"\n"


def _lines(handle: int) -> t.Iterator[bytes | None]:
    """The lines of an open record; None for one that is too long, of which no more than that is kept in memory."""
    os.lseek(handle, 0, os.SEEK_SET)
    rest, too_long = b"", False
    while True:
        part = os.read(handle, LONGEST_LINE)
        if not part:
            break
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield None if too_long or len(line) > LONGEST_LINE else line
            too_long = False
        if len(rest) > LONGEST_LINE:
            rest, too_long = b"", True
    if rest or too_long:
        yield None if too_long else rest
