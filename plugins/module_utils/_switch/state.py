# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state directory of a service: the lock, the progress that a controller follows, and where things lie.

``<state_dir>/<service>/`` (mode 0700) holds ``lock``, ``journal.json``, ``progress.jsonl``, ``records.jsonl``,
``receipts/`` and ``backup/``, at times ``restore.sh`` and ``probation.*``; ``<state_dir>/card<N>.lock`` keeps two
services from switching on the same card.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import typing as t
import uuid

from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._records import utc_now
from ansible_collections.kvfleet.radiance.plugins.module_utils._regular_file import open_regular
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import start_ticks


class State:
    """Paths of one service below ``state_dir``. Making the object touches nothing."""

    def __init__(self, state_dir: str, service: str) -> None:
        self.root = os.path.abspath(state_dir)
        self.folder = os.path.join(self.root, service)
        self.service = service
        self.lock = os.path.join(self.folder, "lock")
        self.journal = os.path.join(self.folder, "journal.json")
        self.progress = os.path.join(self.folder, "progress.jsonl")
        self.records = os.path.join(self.folder, "records.jsonl")
        self.receipts = os.path.join(self.folder, "receipts")
        self.backup = os.path.join(self.folder, "backup")
        # What systemd runs, and what it is about; see boot_guard.py and probation.py.
        self.restore = os.path.join(self.folder, "restore.sh")
        self.probation = os.path.join(self.folder, "probation.json")
        self.probation_ended = os.path.join(self.folder, "probation.ended")
        self.probation_script = os.path.join(self.folder, "probation.sh")
        self.probation_armed = os.path.join(self.folder, "probation.armed")
        self.probation_mark = os.path.join(self.folder, "probation.mark")

    def make(self) -> None:
        """Make the folders. Raises RadianceError ``state_dir_unusable``."""
        try:
            os.makedirs(self.root, exist_ok=True)
            for folder in (self.folder, self.receipts, self.backup):
                os.makedirs(folder, mode=0o700, exist_ok=True)
                os.chmod(folder, 0o700)
        except OSError as error:
            raise RadianceError(
                f"The state directory {error.filename or self.folder} cannot be made: {error.strerror}. Nothing was "
                "changed. Move away what is no directory there, or give state_dir one that this user may write.",
                code="state_dir_unusable",
            ) from error

    def sweep(self) -> None:
        """Remove what a run left that died after its journal was closed. Only with the lock, and without a journal."""
        # A script that could not be replaced would be found once the service is stopped.
        for path in [self.restore, *(os.path.join(self.backup, name) for name in os.listdir(self.backup))]:
            _durable.remove(path)


@contextlib.contextmanager
def locked(state: State, cards: t.Sequence[int]) -> t.Iterator[None]:
    """Hold the lock of the service and of its cards. The kernel lets go of them when we die, however we die.

    Raises RadianceError ``switch_locked``, naming who holds which lock.
    """
    paths = [state.lock, *(os.path.join(state.root, f"card{card}.lock") for card in sorted(set(cards)))]
    with contextlib.ExitStack() as stack:
        for path in paths:
            try:
                handle = open_regular(path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise RadianceError(
                    f"The lock {path} cannot be opened: {error.strerror}. Nothing was changed. What is no file there "
                    "has to go; the services of one card set share a state_dir, and the user who switches them has to "
                    "be able to write it.",
                    code="state_dir_unusable",
                ) from error
            stack.callback(os.close, handle)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RadianceError(_who_holds(path, handle), code="switch_locked") from error
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps({"pid": os.getpid(), "service": state.service, "at": utc_now()}).encode(), 0)
        yield


def _who_holds(path: str, handle: int) -> str:
    try:
        holder = json.loads(os.pread(handle, 4096, 0))
        who = f"process {holder['pid']}, which switches {holder['service']} since {holder['at']}"
    except (ValueError, KeyError, TypeError):
        who = "another switch that has only just begun"
    return f"The lock {path} is held by {who}. Nothing was changed. Run this again when that switch has ended."


class Progress:
    """What a controller may show while the switch runs: one JSON object a line, ``{run, at, phase, says, ...}``.

    ``run`` tells this run's lines from those of an earlier one. The first line also names the process, so that a
    follower can see whether it still lives; a line of phase ``end`` is the last.
    """

    def __init__(self, path: str) -> None:
        self.run = uuid.uuid4().hex[:12]
        self._handle = _anew(path)
        self.line("lock", "", pid=os.getpid(), ticks=start_ticks(os.getpid()))

    def line(self, phase: str, says: str, **more: t.Any) -> None:
        """Write one line. Progress is a courtesy: a full disk must not end a switch that could go on."""
        with contextlib.suppress(OSError):
            value = {"run": self.run, "at": utc_now(), "phase": phase, "says": says, **more}
            os.write(self._handle, json.dumps(value, sort_keys=True).encode("ascii") + b"\n")

    def close(self) -> None:
        """Write the last line."""
        self.line("end", "")
        with contextlib.suppress(OSError):
            os.close(self._handle)


def _anew(path: str) -> int:
    """A handle of a new file in the place of whatever is there: a pipe would keep us waiting, a link lead elsewhere."""
    _durable.remove(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
