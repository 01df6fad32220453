# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot of a service that runs now, by its container or by its unit, or the reason why there is none to read."""

from __future__ import annotations

import os
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._ledger import read_ledger
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container, container_log, process, unit

# Programs that start the engine somewhere else, so that their command line is not the engine's.
_CLIENTS = ("podman", "docker", "conmon", "nerdctl", "podman-compose", "docker-compose")
_NAMES_SHOWN = 12


class NotReadable(RadianceError):
    """There is no boot to read: the ledger is absent, with this reason. Any other error: nothing could be asked."""


class Printed(t.NamedTuple):
    """What the boot printed up to its listening line, and the engine's flags, or None where they are not known.

    ``losses`` is a sentence on why lines may be missing, with a blank before it, or empty.
    """

    text: str
    flags: dict[str, str] | None
    losses: str = ""


def of_container(runtime: str, name: str, known: dict[str, t.Any]) -> Printed:
    """The boot of a container that runs. Adds what is known of it to ``known``, the ledger's ``source``.

    Raises NotReadable ``container_absent`` and ``log_unreadable``; RadianceError ``runtime_unusable``,
    ``command_missing`` and ``command_stuck``.
    """
    found = container.inspect(runtime, name)
    if found is None:
        raise NotReadable(_no_container(runtime, name), code="container_absent")
    known.update(
        name=found.name,
        log_driver=found.log_driver,
        container_id=found.id,
        image=found.image,
        image_digest=found.image_digest,
        started_at=found.started_at or None,
    )
    if found.pid or found.restarting or found.exit_code:
        known.update(restarts=found.restarts, restarted_by=runtime)
    if not found.pid:
        raise NotReadable(_not_running(found), code="container_absent")
    known.update(runs={"container_id": found.id, "started_at": found.started_at})
    try:
        text, place = container_log.read_boot(found)
    except RadianceError as error:
        raise _absent(error, "log_unreadable") from error
    known.update(place)
    return Printed(text, found.flags, container_log.losses(found))


def of_unit(name: str, scope: str, known: dict[str, t.Any]) -> Printed:
    """The boot of a unit that runs, by what it wrote into the journal. Adds to ``known`` as ``of_container`` does.

    Raises NotReadable ``unit_inactive``, ``log_empty`` and ``journal_unreadable``; RadianceError
    ``systemd_unreachable``, ``command_missing`` and ``command_stuck``.
    """
    found = unit.show(name, scope)
    known.update(name=found.name, restarts=found.restarts, restarted_by="systemd")
    if not found.runs:
        raise NotReadable(_no_unit(found) + _last_boot(found, scope), code="unit_inactive")
    main = _main_process(found)
    known.update(invocation=found.invocation, started_at=main.started_at if main is not None else None)
    known["runs"] = {"invocation": found.invocation}
    try:
        text = unit.journal(found.invocation, scope)
    except RadianceError as error:
        raise _absent(error, "journal_unreadable") from error
    if not text:
        raise NotReadable(_empty_journal(found), code="log_empty")
    return Printed(text, main.flags if main is not None and not _is_client(main.argv) else None)


def _main_process(found: unit.Unit) -> process.Process | None:
    if not found.main_pid:
        return None
    try:
        return process.of(found.main_pid)
    except OSError:  # it has ended since, or this user may not look at it: then its flags are not known
        return None


def _absent(error: RadianceError, code: str) -> RadianceError:
    return NotReadable(error.text, code=error.code) if error.code == code else error


def _is_client(argv: t.Sequence[str]) -> bool:
    return any(os.path.basename(word) in _CLIENTS for word in argv)


def _no_container(runtime: str, name: str) -> str:
    there = container.names(runtime)
    if there is None:
        has = ""
    elif name in there:
        return (
            f"{runtime} had no container {name!r} when it was asked, and has one by now: its service is starting, or "
            "starts it again and again. Read again; if it is the same, its unit's journal has the reason (source: "
            "journald)."
        )
    elif there:
        shown = ", ".join(there[:_NAMES_SHOWN]) + (", …" if len(there) > _NAMES_SHOWN else "")
        has = f"; it has {len(there):,}: {shown}"
    else:
        has = "; it has none"
    return (
        f"{runtime} has no container {name!r}{has}. Start the service, or name its container; one of root's is seen "
        "with become only, and one of another user as that user."
    )


def _not_running(found: container.Container) -> str:
    if found.finished_at is None:
        ended = f"it was never started ({found.error})" if found.error else "it was never started"
    else:
        ended = f"it ended at {found.finished_at[:19]}Z"
        ended += f" with status {found.exit_code}" if found.exit_code is not None else ""
        ended += ", killed for want of memory" if found.out_of_memory else ""
        ended += f" ({found.error})" if found.error else ""
    if found.restarting:
        way_out = f"{found.runtime} waits to start it again: stop its service, and mend what ends it"
    else:
        way_out = "Start its service"
    refusal = container_log.last_refusal(found) if found.finished_at else ""
    return (
        f"The container {found.name} of {found.runtime} does not run: {ended}. {way_out}; what it printed last is in "
        f"`{found.runtime} logs {found.name}`, and can be read as a text (source: text)."
        + (f" Its last boot: {refusal}" if refusal else "")
    )


def crash(found: unit.Unit) -> str:
    """That a unit which has crashed does not run, and what systemd says of its end, as a clause."""
    status = f" and {found.exit_status}" if found.exit_status else ""
    since = f" since {found.ended_at}" if found.ended_at else ""
    return f"{found.name} does not run: systemd has it as failed{since}, with the result {found.result}{status}"


def _no_unit(found: unit.Unit) -> str:
    if found.load_state == "not-found":
        other = "user" if found.scope == "system" else "system"
        return (
            f"The manager of the {found.scope} has no unit {found.name}. Name a unit that it has, or ask the manager "
            f"of the {other} (scope: {other})."
        )
    user = "--user " if found.scope == "user" else ""
    state = f"{found.active_state} ({found.sub_state})"
    ended = f", with the result {found.result}" if found.result not in ("", "success") else ""
    status = f" and {found.exit_status}" if ended and found.exit_status else ""
    return (
        f"The unit {found.name} does not run: it is {state}{ended}{status}. Start it with "
        f"`systemctl {user}start {found.name}`; its last words are in `journalctl {user}--unit {found.name}`."
    )


def _last_boot(found: unit.Unit, scope: str) -> str:
    """Why the engine ended the boot of a unit that does not run any more, as a sentence; empty where it did not say."""
    if not found.invocation:
        return ""
    try:
        reason = read_ledger(unit.journal(found.invocation, scope), source={}, bounded=True)["reason"]
    except RadianceError:
        return ""
    return f" Its last boot: {reason['text']}" if reason and reason["code"] not in ("log_empty", "no_boot") else ""


def _empty_journal(found: unit.Unit) -> str:
    reader = ""
    if os.geteuid() != 0:
        reader = " A user outside the group systemd-journal may not see it" + (
            ": run with become." if found.scope == "system" else "."
        )
    return (
        f"The journal holds nothing that {found.name} printed since its last start (invocation {found.invocation})."
        f"{reader} A container with the log driver passthrough writes past its unit: start it with --log-driver "
        "journald and read it by its runtime. Older entries may have been removed: read the boot's receipt."
    )
