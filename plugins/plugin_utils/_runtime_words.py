# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of ``podman run`` and ``docker run``: which of them is the image, and what the container is called."""

from __future__ import annotations

import re
import typing as t

# Options of both runtimes that take no value, by their manuals podman-run(1) and docker-run(1).
_ALONE = (
    "--detach",
    "--disable-content-trust",
    "--env-host",
    "--help",
    "--http-proxy",
    "--init",
    "--interactive",
    "--no-healthcheck",
    "--no-hostname",
    "--no-hosts",
    "--oom-kill-disable",
    "--passwd",
    "--privileged",
    "--publish-all",
    "--quiet",
    "--read-only",
    "--read-only-tmpfs",
    "--replace",
    "--rm",
    "--rmi",
    "--rootfs",
    "--sig-proxy",
    "--tls-verify",
    "--tty",
    "--unsetenv-all",
    "--use-api-socket",
)
_SHORT_ALONE = re.compile(r"-[dtiPq]+")


def run_options(words: t.Sequence[str]) -> t.Iterator[tuple[int, str, str]]:
    """Each option behind ``run`` with its position and its value; at last the image, with an empty option."""
    if "run" not in words:
        return
    at = list(words).index("run") + 1
    while at < len(words):
        word, position = words[at], at
        at += 1
        if not word.startswith("-") or word in ("-", "--"):
            yield (position if word != "--" else at, "", "")
            return
        option, equals, value = word.partition("=")
        short = not word.startswith("--")
        if equals and not short:
            yield position, option, value
        elif word in _ALONE or (short and _SHORT_ALONE.fullmatch(word)):
            yield position, word, ""
        elif short and len(word) > 2 and not _SHORT_ALONE.fullmatch(word[:2]):
            yield position, word[:2], word[2:].removeprefix("=")
        else:
            yield position, word, words[at] if at < len(words) else ""
            at += 1


def image_position(words: t.Sequence[str]) -> int | None:
    """Where the image stands; None where there is no ``run`` or nothing behind its options."""
    return next((at for at, option, _value in run_options(words) if not option and at < len(words)), None)


def container_name(words: t.Sequence[str]) -> str | None:
    """What ``--name`` says; None where nothing does."""
    return next((value for _at, option, value in run_options(words) if option == "--name"), None)
