# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The texts of files that are taken over, and of those that are given back. Every line of their owner's stays.

Texts are ``{fleet: {env, serve, bats}, target: {env, serve}}``, empty where there is no file.
"""

from __future__ import annotations

import difflib
import posixpath
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _env_file
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import hidden
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _files, _managed_text

Service = t.Mapping[str, t.Any]
Texts = t.Mapping[str, t.Mapping[str, str]]


def with_blocks(service: Service, texts: Texts, owned: t.Sequence[str], host: str) -> dict[str, dict[str, str]]:
    """The texts with a block of ours begun in each file that is somebody's, in the env around what is ``owned``."""
    name = _managed_text.block_name(service, host)
    return {
        side: {kind: _begun(kind, text, name, owned) if text else "" for kind, text in there.items()}
        for side, there in texts.items()
    }


def _begun(kind: str, text: str, name: str, owned: t.Sequence[str]) -> str:
    if kind == "env":
        return _env_begun(text, name, owned)
    if _managed_text.kind_of(text, name) in ("block", "ours"):
        return text
    # Behind the comments that a script begins with, and behind the tests of somebody's own.
    lines = text.split("\n")
    before = (
        next(at for at, line in enumerate(lines) if not line.startswith("#")) if kind == "serve" else len(lines) - 1
    )
    return _managed_text.begun(text, name, before)


def _env_begun(text: str, name: str, owned: t.Sequence[str]) -> str:
    """``text`` with what is owned in its block, or in a new one at the first such line."""
    lines = text.split("\n")
    block = _managed_text.block_of(text, name)
    inside = range(block.begin, block.end) if block is not None else ()
    mine = [at for at, line in enumerate(lines) if at not in inside and line.partition("=")[0] in owned]
    if not mine:
        return text
    moved = [lines[at] for at in mine]
    if block is None:
        begun = _managed_text.begun(text, name, mine[0])
        return _env_begun(begun, name, owned)
    out: list[str] = []
    for at, line in enumerate(lines):
        if at == block.end:
            out += moved
        if at not in mine:
            out.append(line)
    return "\n".join(out)


def given_back(service: Service, texts: Texts, host: str) -> dict[str, t.Any]:
    """What giving the files back makes of them: ``{texts, objection, says}``.

    ``texts`` are without the blocks of ours: in the env the assignments stay, so that the same pair stays in force. A
    file of the gates that is ours as a whole came with the adoption, and has no text then. ``objection`` is empty, or
    why nothing is given back; ``says`` are lines. Raises RadianceError ``marker_damaged``.
    """
    name = _managed_text.block_name(service, host)
    out = {side: {kind: _given_back(kind, text, name) for kind, text in there.items()} for side, there in texts.items()}
    if _managed_text.kind_of(texts["fleet"].get("bats"), name) == "ours":
        out["fleet"]["bats"] = ""
    path = _files.file_names(service, host)["env"]
    kinds = [_managed_text.kind_of(there["env"], name) for there in texts.values()]
    objection = ""
    if "ours" in kinds and "block" not in kinds:
        objection = (
            f"{path} is a file of this collection as a whole: it was not adopted, and there is nobody to give it back "
            "to."
        )
    return {"texts": out, "objection": objection, "says": _says_of(service, texts, out != texts, path, host)}


def _says_of(service: Service, texts: Texts, changes: bool, path: str, host: str) -> list[str]:
    """What a person has to know who takes the files over again."""
    says = "nothing of ours is in its files"
    if changes:
        says = (
            "our markers and comments go; the values, the record and documents stay. Nothing restarts, and whether "
            "what runs was started by these values was not looked at"
        )
    here, there = (_env_file.read_env(texts[side]["env"]).values for side in ("fleet", "target"))
    differ = [key for key in {**here, **there} if here.get(key) != there.get(key)]
    lines = [f"{service['name']} on {host}: {says}"]
    for side, where in (("fleet", "here"), ("target", f"on {host}")):
        if not texts[side]["env"]:
            lines.append(f"  there is no {path} {where}, so the two were not compared")
            differ = []
    if differ:
        lines.append(f"  {path} here and on {host} differ in {', '.join(differ)}: each keeps what it has")
    return lines


def _given_back(kind: str, text: str, name: str) -> str:
    return _managed_text.ended(text, name, lambda line: kind == "env" and "=" in line and not line.startswith("#"))


def file_changes(
    before: Texts, after: Texts, names: t.Mapping[str, str], host: str, target_dir: str
) -> list[dict[str, str]]:
    """Each file that differs: ``{side, kind, path, text, diff}``, the diff without secrets."""
    out = []
    for side, there in after.items():
        for kind, text in there.items():
            was = before[side].get(kind, "")
            if text == was:
                continue
            path = names[kind] if side == "fleet" else posixpath.join(target_dir, names[kind])
            shown = path if side == "fleet" else f"{host}:{path}"
            lines = difflib.unified_diff(
                hidden(was).split("\n"),
                hidden(text).split("\n"),
                f"{shown} (before)",
                f"{shown} (after)",
                n=2,
                lineterm="",
            )
            out.append({"side": side, "kind": kind, "path": path, "text": text, "diff": "\n".join(lines)})
    return out
