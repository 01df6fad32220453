# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of ``podman run`` and ``docker run``: which of them is the image, and what the container is called."""

from __future__ import annotations

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
_ALONE_LETTERS = "dtiPq"


def run_options(words: t.Sequence[str]) -> t.Iterator[tuple[int, str, str]]:
    """Each option behind ``run`` with its position and its value; at last the image, with an empty option.

    Short options of one word, as of ``-ite NAME=VALUE``, come one by one.
    """
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
        if not word.startswith("--"):
            letters = word[1:]
            while letters and letters[0] in _ALONE_LETTERS and letters[1:2] != "=":
                yield position, f"-{letters[0]}", ""
                letters = letters[1:]
            if not letters:
                continue
            option, equals, value = f"-{letters[0]}", letters[1:], letters[1:].removeprefix("=")
        if equals:
            yield position, option, value
        elif option in _ALONE:
            yield position, option, ""
        else:
            yield position, option, words[at] if at < len(words) else ""
            at += 1


def image_position(words: t.Sequence[str]) -> int | None:
    """Where the image stands; None where there is no ``run`` or nothing behind its options."""
    return next((at for at, option, _value in run_options(words) if not option and at < len(words)), None)


def container_name(words: t.Sequence[str]) -> str | None:
    """What ``--name`` says; None where nothing does."""
    return next((value for _at, option, value in run_options(words) if option == "--name"), None)
