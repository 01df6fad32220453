# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the hand-written files of a service say: the words of its command line, and which key of the env feeds which."""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _env_file
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import MASK, masked_argv
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import is_secret
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _files
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._runtime_words import image_position
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._serve_script import Script, engine_flags, read_script
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._shell_expansion import Field


class Files(t.NamedTuple):
    """Env and serve script as texts, with the paths that they have on their machine."""

    env: str
    serve: str
    env_path: str
    serve_path: str


class Found(t.NamedTuple):
    """What the files of a service say. ``fed`` has for each of our keys the name in the env that feeds it."""

    script: Script
    values: dict[str, str]
    engine: list[Field]
    flags: dict[str, tuple[str, Field]]
    fed: dict[str, str]


def read_files(files: Files, where: str) -> Found:
    """What they say; ``where`` names the script. Raises RadianceError ``script_not_understood``, with the line."""
    values = _env_file.read_env(files.env).values
    try:
        script = read_script(files.serve, files.serve_path, values, files.env_path)
    except RadianceError as error:
        raise RadianceError(f"{where}, {error.text}", code=error.code) from error
    words = script.command
    for before, word in zip([None, *words], words):  # noqa: B905
        if word.secret and not _holds_secret(before.text if before is not None else "", word.text):
            raise RadianceError(
                f"{where}, line {word.line}: the content of a file is a word of the command, and not behind --api-key. "
                "Write the value into the env.",
                code="script_not_understood",
            )
    start = _engine_begins(words, where)
    flags = engine_flags(words[start:])
    fed = {_files.key_of(flag): name for flag, (_value, field) in flags.items() for name in _only_name(field, values)}
    fed.update({_files.key_of(flag): name for flag, name in script.optional.items() if name in values})
    if _in_container(words):
        for name in _only_name(words[start - 1], values):
            fed["IMAGE"] = name
    return Found(script, values, words[start:], flags, fed)


def _in_container(words: t.Sequence[Field]) -> bool:
    return posixpath.basename(words[0].text) in container.RUNTIMES


def _engine_begins(words: t.Sequence[Field], where: str) -> int:
    """Where the engine's own words begin: behind the image, or at the first flag."""
    if not _in_container(words):
        return next((at for at, word in enumerate(words) if at and word.text.startswith("--")), len(words))
    image = image_position([word.text for word in words])
    if image is None:
        raise RadianceError(
            f"{where}, line {words[0].line}: it runs no container. Write `exec podman run … IMAGE …`.",
            code="script_not_understood",
        )
    return image + 1


def _holds_secret(before: str, word: str) -> bool:
    """Whether a word that is a secret stands where everything masks one."""
    option = word.partition("=")[0] if word.startswith("--") and "=" in word else before
    return option.startswith("--") and is_secret(option[2:])


def _only_name(field: Field, values: t.Mapping[str, str]) -> list[str]:
    """The key of the env that a word is the value of, where it is nothing else."""
    names = [name for name in field.names if name in values]
    return names if len(field.names) == 1 and not field.written and names else []


def words_of(found: Found) -> list[str]:
    """The words of the command, the content of files and other secrets masked."""
    return masked_argv([field.text + MASK if field.secret else field.text for field in found.script.command])


def difference(one: t.Sequence[str], other: t.Sequence[str]) -> tuple[str, str]:
    """Where two lists of words part, with the word before: it may be the flag of a value.

    Where one has a mask, what the other has in its place is a secret too, which no name of its own tells.
    """
    at = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )
    cut = slice(max(at - 1, 0), at + 2)
    return _beside(one[cut], other[cut]), _beside(other[cut], one[cut])


def _beside(words: t.Sequence[str], others: t.Sequence[str]) -> str:
    masked = any(MASK in word and word not in words for word in others)
    return " ".join(MASK if masked and word not in others else word for word in words) or "nothing"
