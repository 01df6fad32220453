# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd's units: how one stands, and what its processes printed since its last start."""

from __future__ import annotations

import contextlib
import os
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.command import (
    Done,
    read_until_listening,
    run,
)

# Whose systemd has the unit, by its manager.
SCOPES = {"systemd": "system", "systemd_user": "user"}
_PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "MainPID",
    "ExecMainCode",
    "ExecMainStatus",
    "InvocationID",
    "NRestarts",
    "Job",
    "NeedDaemonReload",
    "InactiveEnterTimestamp",
)
# How a main process ends that was told to; podman and docker hand a signal on as a status.
_TOLD_TO_END = ("signal 15", "signal 2", "status 143", "status 130")
# ExecMainCode as systemctl prints it: the kernel's si_code, see waitid(2).
_ENDINGS = {"1": "status", "2": "signal", "3": "signal"}


class Unit(t.NamedTuple):
    """``name`` is systemd's own, with its suffix. ``main_pid`` is 0 where no process of it runs. ``exit_status`` is
    ``status 2`` or ``signal 9``, of the main process that ended last; empty while it runs. ``invocation`` is the id of
    the last start, empty where there was none. ``restarts`` counts systemd's own, ``job`` is the number of what is
    queued for it, 0 where nothing is. ``outdated`` tells that its file has changed since systemd read it. ``ended_at``
    is when it ended last, in systemd's own words, empty where it has not."""

    name: str
    scope: str
    load_state: str
    active_state: str
    sub_state: str
    result: str
    main_pid: int
    exit_status: str
    invocation: str
    restarts: int
    job: int
    outdated: bool
    ended_at: str = ""

    @property
    def stopped(self) -> bool:
        """Whether nothing of it runs, and systemd will not start it by itself."""
        return self.active_state in ("inactive", "failed")

    @property
    def crashed(self) -> bool:
        """Whether it has failed, and nobody stopped it: a stop that ran into its timeout leaves it failed as well."""
        return self.active_state == "failed" and self.result != "timeout" and self.exit_status not in _TOLD_TO_END

    @property
    def runs(self) -> bool:
        """Whether it has been started: one that waits for its next restart has not."""
        return not self.stopped and self.sub_state not in ("auto-restart", "auto-restart-queued")


def systemctl(scope: str, *words: str, timeout: float = 60) -> Done:
    """Run systemctl on the manager of the system or of the user, without a pager and without asking for a password.

    Raises RadianceError ``command_missing`` and ``command_stuck``.
    """
    return run([*argv(scope), "--no-pager", "--no-ask-password", *words], timeout)


def argv(scope: str, *words: str) -> list[str]:
    """systemctl on the manager of the system or of the user, as a person writes it."""
    return ["systemctl", *(["--user"] if scope == "user" else []), *words]


def program(name: str, scope: str) -> list[str]:
    """The words of a unit's ExecStart, none where it has none. Raises what ``systemctl`` raises."""
    return exec_words(systemctl(scope, "show", "--property=ExecStart", "--value", "--", name).out)


def exec_words(shown: str) -> list[str]:
    """The command line in what ``systemctl show`` prints of ExecStart; it parts words by blanks and quotes nothing."""
    found = re.search(r"argv\[\]=(.*?) ; ignore_errors=", shown)
    return found.group(1).split() if found else []


def lingers() -> bool | None:
    """Whether the services of this user outlive the user's last session; None where nothing tells."""
    with contextlib.suppress(RadianceError):
        done = run(["loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value"])
        return {"yes": True, "no": False}.get(done.out.strip()) if not done.status else None
    return None


def show(name: str, scope: str) -> Unit:
    """How a unit stands; one that does not exist has the ``load_state`` ``not-found``.

    Raises RadianceError ``systemd_unreachable``, ``command_missing`` and ``command_stuck``.
    """
    done = systemctl(scope, "show", f"--property={','.join(_PROPERTIES)}", "--", name)
    if done.status:
        raise RadianceError(_unreachable(name, scope, done), code="systemd_unreachable")
    return parse_unit(done.out, scope)


def parse_unit(text: str, scope: str) -> Unit:
    """What ``systemctl show`` prints of one unit."""
    found = dict(line.partition("=")[::2] for line in text.splitlines())
    ending = _ENDINGS.get(found.get("ExecMainCode", ""))
    return Unit(
        name=found.get("Id", ""),
        scope=scope,
        load_state=found.get("LoadState", ""),
        active_state=found.get("ActiveState", ""),
        sub_state=found.get("SubState", ""),
        result=found.get("Result", ""),
        main_pid=_number(found.get("MainPID")),
        exit_status=f"{ending} {_number(found.get('ExecMainStatus'))}" if ending else "",
        invocation=found.get("InvocationID", ""),
        restarts=_number(found.get("NRestarts")),
        job=_number(found.get("Job")),
        outdated=found.get("NeedDaemonReload") == "yes",
        ended_at=found.get("InactiveEnterTimestamp", ""),
    )


def journal(invocation: str, scope: str) -> str:
    """What the processes of a unit printed since its start ``invocation``, each line once, up to its listening line.

    Raises RadianceError ``journal_unreadable``, ``command_missing`` and ``command_stuck``.
    """
    # The id is matched in every journal that this user may read, so that a user's unit is found as well where the
    # journal is volatile and users have none of their own. Only what a process wrote to its stdout and stderr: podman's
    # log driver journald writes each line of the container a second time, by the journal's own protocol.
    text, status = read_until_listening(
        [
            "journalctl",
            "--quiet",
            "--no-pager",
            "--output=cat",
            f"_SYSTEMD_INVOCATION_ID={invocation}",
            "_TRANSPORT=stdout",
        ]
    )
    if status:
        whose, become = (
            ("the system's journal", "Run with become, or let") if scope == "system" else ("the journal", "Let")
        )
        raise RadianceError(
            f"journalctl cannot read {whose}: {_words(text) or f'status {status}'} {become} the user into the group "
            "systemd-journal.",
            code="journal_unreadable",
        )
    return text


def told_of(invocation: str, scope: str) -> str:
    """What systemd itself wrote of a unit in that start, empty where the journal does not tell.

    Raises RadianceError ``command_missing`` and ``command_stuck``.
    """
    field = "USER_INVOCATION_ID" if scope == "user" else "INVOCATION_ID"
    done = run(["journalctl", "--quiet", "--no-pager", "--output=cat", f"{field}={invocation}"])
    return done.out if not done.status else ""


def _unreachable(name: str, scope: str, done: Done) -> str:
    said = _words(done.err or done.out) or f"status {done.status}"
    if scope == "user":
        return (
            f"systemctl --user does not tell of {name!r}: {said} The manager of a user's units answers that user "
            "alone: log in as this user, do not become it, and let its manager run without a session: "
            "loginctl enable-linger USER."
        )
    return (
        f"systemctl does not tell of {name!r}: {said} Name a unit of a host that runs systemd; a unit of a user's own "
        "is in the scope user."
    )


def _words(text: str) -> str:
    """The last thing that a program said, as a sentence."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300].rstrip(".") + "." if lines else ""


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
