# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts kvfleet.radiance.service_switch detached on the target, shows its progress, and brings back its result.

The switch takes as long as the engine loads. Run over the connection, it would die with it; detached, it ends on the
target whatever happens to us, and we may lose the connection and find it again.
"""

from __future__ import annotations

import contextlib
import json
import time
import typing as t

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import LARGEST_BYTES
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import BEFORE_STOP, Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import TIMEOUTS

display = Display()

_MODULE = "kvfleet.radiance.service_switch"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.3, 2.0
_ASK_EVERY = 5.0
# What the wrapper needs to write down the end of a module that died.
_WRAPPER_GRACE = 3.0
# No sign at all of a module that was started: not a progress line, not a result.
_NO_SIGN = 300.0
# A failure to transfer or to run that is not the connection's; so many in a row are no accident.
_ERRORS_IN_A_ROW = 5
_GONE = "its process on the target is gone"
_Answer = t.TypeVar("_Answer")


class _Lost(Exception):
    """The connection did not come back before the time was over in which the switch must have ended."""


class ActionModule(ActionBase):  # type: ignore[misc]
    """See the module's documentation."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module: plainly in check mode, else detached and followed."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        self._vars = task_vars or {}
        if self._task.check_mode:
            result.update(self._execute_module(module_name=_MODULE, task_vars=self._vars))
            self._remove_tmp_path(self._connection._shell.tmpdir)
            return result
        args = self._task.args
        self._where = f"{self._vars.get('inventory_hostname', '?')} {args.get('service', '?')}"
        self._progress_path = self._remote_path(str(args.get("state_dir", "")), str(args.get("service", "")))
        earlier = {line["run"] for line in self._progress()}
        limit = self._limit()
        self._deadline = time.monotonic() + limit + 60
        started = self._start(limit)
        if "ansible_job_id" not in started:
            result.update(started)
            return result
        job = str(started["ansible_job_id"])
        try:
            result.update(self._follow(job, earlier))
        except _Lost as error:
            result.update(
                _interrupted(self._seen, f"the connection was lost and did not come back ({error})", lost=True)
            )
        finally:
            with contextlib.suppress(AnsibleError):
                self._job(job, "cleanup")
            with contextlib.suppress(AnsibleError):
                self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def _remote_path(self, state_dir: str, service: str) -> str:
        expanded = self._remote_expand_user(state_dir) if state_dir.startswith("~") else state_dir
        return str(self._connection._shell.join_path(expanded, service, "progress.jsonl"))

    def _limit(self) -> int:
        """Seconds in which the module has ended for certain, the finishing of an earlier switch included.

        At the limit the wrapper kills it in the middle, so it has to lie above all deadlines together.
        """
        total = 0.0
        for name, default in TIMEOUTS.items():
            try:
                total += float(self._task.args.get(name, default))
            except (TypeError, ValueError):
                total += default  # the module itself refuses it, in words
        return int(4 * total + 1800)

    def _start(self, limit: int) -> dict[str, t.Any]:
        own = self._task.async_val
        self._task.async_val = limit
        try:
            return t.cast(
                "dict[str, t.Any]", self._execute_module(module_name=_MODULE, task_vars=self._vars, wrap_async=True)
            )
        finally:
            self._task.async_val = own

    def _follow(self, job: str, earlier: set[str]) -> dict[str, t.Any]:
        """Poll until the module has ended, or is gone without having said how. What was seen of it is ``_seen``."""
        self._seen: list[dict[str, t.Any]] = []
        pause = _FIRST_PAUSE
        began = asked = time.monotonic()
        while True:
            time.sleep(pause)
            pause = min(pause * 1.2, _LONGEST_PAUSE)
            lines = self._catch_up(earlier)
            # The progress is cheap to read. The job is asked when that says that it has ended, and now and then.
            if lines and lines[-1]["phase"] != "end" and time.monotonic() - asked < _ASK_EVERY:
                continue
            asked = time.monotonic()
            status = self._surely(lambda: self._job(job, "status"))
            # It may have begun, gone on and ended since the progress was read.
            if status.get("finished"):
                return _finished(status, self._catch_up(earlier))
            if lines and not self._lives(lines[0]):
                time.sleep(_WRAPPER_GRACE)
                status = self._surely(lambda: self._job(job, "status"))
                lines = self._catch_up(earlier)
                return _finished(status, lines) if status.get("finished") else _interrupted(lines, _GONE)
            if not lines and time.monotonic() - began > _NO_SIGN:
                return _interrupted(lines, f"nothing was heard of it for {_NO_SIGN:g} s")

    def _catch_up(self, earlier: set[str]) -> list[dict[str, t.Any]]:
        """All lines of this run so far, those that are new shown."""
        lines = [line for line in self._surely(self._progress) if line["run"] not in earlier]
        if self._seen:
            # Another run's are in their place once it has begun.
            lines = [line for line in lines if line["run"] == self._seen[0]["run"]]
        for line in lines[len(self._seen) :]:
            self._show(line)
        self._seen = lines or self._seen
        return self._seen

    def _surely(self, ask: t.Callable[[], _Answer]) -> _Answer:
        """Ask the target, through any number of lost connections."""
        pause, errors, warned = 1.0, 0, False
        while True:
            try:
                return ask()
            except AnsibleConnectionFailure as error:
                if time.monotonic() > self._deadline:
                    raise _Lost(str(error)) from error
                if not warned:
                    warned = True
                    display.display(f"[{self._where}] the connection is lost; the switch goes on without it")
            except AnsibleError:
                errors += 1
                if errors >= _ERRORS_IN_A_ROW:
                    raise
            with contextlib.suppress(AnsibleError, AttributeError):
                self._connection.reset()
            time.sleep(pause)
            pause = min(pause * 1.5, 10.0)

    def _read(self, path: str) -> str:
        # Of a file alone, and no more than one has: a pipe keeps its reader waiting, and some devices never end.
        # A word of its own, without a pattern and without a leading =, means the same to every login shell.
        word = self._connection._shell.quote(path)
        command = f"test -f {word} && head -c {LARGEST_BYTES} {word}"
        found = self._low_level_execute_command(command, sudoable=True)
        return str(found["stdout"]) if found["rc"] == 0 else ""

    def _progress(self) -> list[dict[str, t.Any]]:
        """The progress lines that are whole; whatever a login shell prints around them is none."""
        lines = []
        for text in self._read(self._progress_path).splitlines():
            with contextlib.suppress(ValueError):
                value = json.loads(text)
                if isinstance(value, dict) and {"run", "phase", "says"} <= value.keys():
                    lines.append(value)
        return lines

    def _lives(self, first: dict[str, t.Any]) -> bool:
        """Whether the process that wrote the first line still runs."""
        text = self._surely(lambda: self._read(f"/proc/{int(first.get('pid') or 0)}/stat"))
        fields = text.rpartition(")")[2].split()
        return len(fields) > 19 and fields[0] not in ("Z", "X") and int(fields[19]) == first.get("ticks")

    def _show(self, line: dict[str, t.Any]) -> None:
        if line["says"] and not self._task.no_log:
            display.display(f"[{self._where}] {line['phase']}: {line['says']}")

    def _job(self, job: str, mode: str) -> dict[str, t.Any]:
        folder = self._remote_expand_user(self.get_shell_option("async_dir", default="~/.ansible_async"))
        return t.cast(
            "dict[str, t.Any]",
            self._execute_module(
                module_name="ansible.legacy.async_status",
                module_args={"jid": job, "mode": mode, "_async_dir": folder},
                task_vars=self._vars,
            ),
        )


def _finished(status: dict[str, t.Any], lines: list[dict[str, t.Any]]) -> dict[str, t.Any]:
    """The module's own result; where it died without one, what its progress tells."""
    words = str(status.get("msg", "")).strip().splitlines()[-1:]
    # A module that was killed printed nothing, and the wrapper reports that it found no result in it.
    killed = not words or "json char" in words[0]
    if "outcome" in status or not (lines or killed):
        return {name: value for name, value in status.items() if name not in ("ansible_job_id", "started", "finished")}
    return _interrupted(lines, _GONE if killed else f"{_GONE} ({words[0]})")


def _interrupted(lines: list[dict[str, t.Any]], why: str, lost: bool = False) -> dict[str, t.Any]:
    """A failure with the keys of every result, for a module that is gone, or (``lost``) that goes on unseen."""
    phase = next((line["phase"] for line in reversed(lines) if line["phase"] != "end"), "lock")
    msg = (
        f"The switch was {'last seen' if lost else 'interrupted'} in phase {phase}: {why}. Run the same again, or the "
        "module without expect: it restores the old pair or finishes the new one, and says which."
    )
    return {
        **Run().result(),
        "failed": True,
        # The unit of the way back may be there by then, although nothing was stopped.
        "changed": lost or phase == "guard" or phase not in BEFORE_STOP,
        "outcome": "failed",
        "code": "interrupted",
        "phases": [{"name": phase, "seconds": None, "says": why}],
        "says": msg,
        "msg": msg,
    }
