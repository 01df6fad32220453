# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other programs: run to their end, or read until the boot that they print is complete."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.file import boot_text

READ_SECONDS = 300.0


class Done(t.NamedTuple):
    """``status`` is the exit status, negative for the signal that ended it."""

    status: int
    out: str
    err: str


def run(argv: t.Sequence[str], timeout: float = 60.0) -> Done:
    """Run a program to its end: no shell, nothing on stdin, messages in English. ``timeout`` in seconds.

    Raises RadianceError ``command_missing`` and ``command_stuck``.
    """
    process = _start(argv, subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise _stuck(argv, timeout) from error
    finally:
        _end(process)
    return Done(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def read_until_listening(argv: t.Sequence[str], timeout: float = READ_SECONDS) -> tuple[str, int | None]:
    """What a program prints, stdout and stderr in their order, up to the listening line of the first boot in it.

    The second value is its exit status, or None where it was ended at that line (or after more than a boot can be):
    what it would have printed then is not read. Raises RadianceError ``command_missing`` and ``command_stuck``.
    """
    process = _start(argv, subprocess.STDOUT)
    late = threading.Event()

    def give_up() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(timeout, give_up)
    timer.daemon = True
    timer.start()
    try:
        text, whole = boot_text(t.cast("t.BinaryIO", process.stdout))
        status = process.wait() if whole else None
    finally:
        timer.cancel()
        _end(process)
    if late.is_set():
        raise _stuck(argv, timeout)
    return text, status


def environment(uid: int, users: str = "/run/user") -> dict[str, str]:
    """Ours, with messages in English. Who became another user lacks what leads to that user's systemd and podman."""
    names = {**os.environ, "LC_ALL": "C"}
    folder = os.path.join(users, str(uid))
    if uid != 0 and os.path.isdir(folder):
        names.setdefault("XDG_RUNTIME_DIR", folder)
    return names


def _start(argv: t.Sequence[str], stderr: int) -> subprocess.Popen[bytes]:
    try:
        # The core has no module at hand to run it with.
        return subprocess.Popen(  # pylint: disable=ansible-bad-function
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment(os.getuid()),
            start_new_session=True,  # so that it can be ended with the processes that it starts itself
        )
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or error
        raise RadianceError(
            f"The program {argv[0]} cannot be run ({what}). Install it on the target, or have it in the PATH of the "
            f"user that the task runs as, which is {os.environ.get('PATH', '')!r}.",
            code="command_missing",
        ) from error


def _stuck(argv: t.Sequence[str], timeout: float) -> RadianceError:
    return RadianceError(
        f"`{shlex.join(argv)[:300]}` did not end in {timeout:,.0f} seconds, and was ended. Run it by hand on the "
        "target to see what it waits for.",
        code="command_stuck",
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    # It leads a group of its own; its number is not given to another process before it was waited for.
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes]) -> None:
    _kill(process)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()
