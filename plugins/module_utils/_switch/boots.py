# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Following one boot by what it prints, to its listening line or its end.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import SIZE_PATTERN, parse_size
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import receipt
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import Process
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.drain import healthy
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import BootText, Ledger, Manager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Phase
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State

# A boot takes minutes, or it is refused at once.
_FIRST_POLL = 0.02
# A line is due after so many seconds, or after so many percent of the load; not two of them at once.
_TELL_EVERY = 10.0
_TELL_PERCENT = 5
_TELL_PAUSE = 2.0
# What a runtime says where the end of one container and the start of the next, of the same name, have met.
_NAME_TAKEN = re.compile(
    r"^(?:Error|docker: Error).*(?:has already been removed|already been removed|name .* is already in use|"
    r"removal of container .* is already in progress)",
    re.MULTILINE | re.IGNORECASE,
)
_LOAD = re.compile(rf"load: ({SIZE_PATTERN}) of ({SIZE_PATTERN}) read, ([0-9]{{1,5}}(?:\.[0-9]{{1,3}})? GB/s)")
# Of a terminal's commands no part is shown, whoever may have put them into what the engine prints.
_COMMANDS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0a-\x1f\x7f-\x9f]")
# More than any machine's memory, in MiB: not how much of a model is read.
_MOST_MIB = 1e9


def last_line(text: str) -> str:
    """The last line with anything on it, for a message; docker's pointer to its help comes after its reason."""
    lines = [line for line in text.splitlines() if line.strip() and "'docker run --help'" not in line]
    return _COMMANDS.sub("", lines[-1]).strip()[:300] if lines else "(nothing was printed)"


class Load(t.NamedTuple):
    """How far the weights are loaded; ``says`` like ``loading 62 % (18.60 GiB of 30.00 GiB, 5.1 GB/s)``."""

    percent: int
    says: str


def load_progress(text: str) -> Load | None:
    """By the last load line, None before there is one, and where its figures cannot be."""
    found = _LOAD.findall(text)
    if not found:
        return None
    read, whole, speed = parse_size(found[-1][0]), parse_size(found[-1][1]), found[-1][2]
    if not 0 < whole.mib < _MOST_MIB or read.mib > whole.mib:
        return None
    percent = round(100 * read.mib / whole.mib)
    return Load(percent, f"loading {percent} % ({read.text} of {whole.text}, {speed})")


def is_due(silent: float, percent: int, shown: int) -> bool:
    """Whether a line of progress is due: ``silent`` seconds after the last one, which showed ``shown`` percent."""
    return silent >= _TELL_EVERY or (silent >= _TELL_PAUSE and abs(percent - shown) >= _TELL_PERCENT)


def await_ready(
    manager: Manager,
    boot: t.Mapping[str, t.Any],
    phase: Phase,
    *,
    timeout: float,
    endpoint: str | None,
) -> Reading:
    """Follow the boot until it listens and, with ``endpoint``, /health answers. Returns its reading.

    ``boot`` is the journal's. Raises RadianceError ``engine_refused``, ``engine_exited`` or ``never_ready`` with
    ``result={"ledger": ...}``, as soon as it is certain.
    """
    text = manager.text(boot)
    try:
        return _follow(manager, boot, text, phase, timeout, endpoint)
    finally:
        text.close()


def serves(manager: Manager, found: Process, endpoint: str | None) -> bool:
    """Whether this process serves by now: /health answers 200, or without an endpoint its boot listens."""
    if endpoint is not None:
        return healthy(endpoint)[0]
    return manager.has_printed(found) and bool(manager.reading().ledger["ready"])


def is_up(manager: Manager, boot: t.Mapping[str, t.Any], endpoint: str | None) -> bool:
    """Whether that very boot has printed that it listens, and with an endpoint whether /health answers 200."""
    text = manager.text(boot)
    try:
        text.poll()
        ready = bool(read_ledger(text.lines(), source={}, bounded=text.bounded)["ready"])
    finally:
        text.close()
    return ready and (endpoint is None or healthy(endpoint)[0])


def _follow(
    manager: Manager,
    boot: t.Mapping[str, t.Any],
    text: BootText,
    phase: Phase,
    timeout: float,
    endpoint: str | None,
) -> Reading:
    start = told = time.monotonic()
    load: Load | None = None
    shown = 0
    ledger: Ledger | None = None
    flags: dict[str, str] = {}
    answer, pause = "", _FIRST_POLL
    while True:
        # Whether it lives is asked before the log is read: what it printed last is then in what we read.
        try:
            current = manager.current()
            process = current if current is not None and manager.owns(boot, current) else None
            lives = process is not None or manager.lives(boot)
        except RadianceError:
            if time.monotonic() - start >= timeout:
                raise
            time.sleep(text.longest_pause)  # a runtime that is too busy to answer says nothing of the boot
            continue
        if process is not None:
            flags = process.flags
        new = text.poll()
        if new or not lives or ledger is None:
            ledger = read_ledger(
                text.lines() if lives else text.all(),
                source={},
                flags=flags or None,
                bounded=text.bounded,
            )
        waited = time.monotonic() - start
        if not lives:
            raise _ended(manager, boot, text.reading(None, flags).ledger, text.all(), waited)
        if ledger["status"] == "refused":
            raise _refused(text.reading(process, flags).ledger, text.all())
        if ledger["ready"]:
            well, answer = healthy(endpoint) if endpoint else (True, "")
            if well and process is not None:
                phase.says = f"listening after {waited:.1f} s" + (f", {answer}" if answer else "")
                return text.reading(process, flags)
        if waited >= timeout:
            raise _never(text.reading(process, flags).ledger, text.all(), timeout, answer)
        load = load_progress(text.lines()) if new else load
        percent, now = load.percent if load is not None else 0, time.monotonic()
        if is_due(now - told, percent, shown):
            told, shown = now, percent
            phase.tell(f"{load.says if load is not None else last_line(text.lines())}, {waited:,.0f} s")
        time.sleep(pause)
        pause = min(pause * 1.5, text.longest_pause)


def _reason(ledger: t.Mapping[str, t.Any], text: str) -> str:
    reason = ledger.get("reason")
    return str(reason["text"]) if reason else last_line(text)


def _refused(ledger: Ledger, text: str) -> RadianceError:
    return RadianceError(
        f"The engine refused this boot: {_reason(ledger, text)}", code="engine_refused", result={"ledger": ledger}
    )


def _ended(manager: Manager, boot: t.Mapping[str, t.Any], ledger: Ledger, text: str, waited: float) -> RadianceError:
    if ledger["status"] == "refused":
        return _refused(ledger, text)
    told = manager.timed_out(boot)
    if told is not None:
        came = load_progress(text)
        by_then = f"; by then it was {came.says}" if came is not None else ""
        return RadianceError(f"{told}{by_then}.", code="start_timeout", result={"ledger": ledger})
    if _NAME_TAKEN.search(text):
        return RadianceError(
            f"The runtime had not let go of the container before: {last_line(text)}",
            code="container_in_the_way",
            result={"ledger": ledger},
        )
    told = manager.did_not_stay(boot)
    if told is not None:
        return RadianceError(told, code="start_failed", result={"ledger": ledger})
    status = manager.exit_status(boot)
    how = f" with {status}" if status else ""
    return RadianceError(
        f"The engine ended{how} after {waited:.1f} s, before it listened. Its last line: {last_line(text)}",
        code="engine_exited",
        result={"ledger": ledger},
    )


def _never(ledger: Ledger, text: str, timeout: float, answer: str) -> RadianceError:
    but = f" It listens, but {answer}." if ledger["ready"] else ""
    return RadianceError(
        f"Not ready after {timeout:g} s (ready_timeout).{but} Its last line: {last_line(text)}",
        code="never_ready",
        result={"ledger": ledger},
    )


def save_receipt(state: State, reading: Reading) -> str:
    """Keep the boot's text, which ends with its listening line, and which boot it is of; returns the text's path.

    The receipts of the last two switches on record stay however old they are: of the pair in force, and of the one
    that a roll-back returns to.
    """
    try:
        entries = _records.read(state.records)
    except (OSError, RadianceError):  # who writes into it next says what is wrong with it
        entries = []
    switched = [entry["ledger"] for entry in entries if entry["kind"] == "switched"]
    needed = [ledger["fingerprint"] for ledger in switched[-2:] if ledger and "fingerprint" in ledger]
    return receipt.save(state.receipts, reading, needed)
