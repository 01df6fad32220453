# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a file is ours: all of it, a block in somebody's own file, or nothing. Text in, text out.

A file that is absent, or that carries our marker, is written whole. In one that was adopted only the lines between the
two markers are ever replaced. Any other file is somebody's own.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _env_file
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import is_secret
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _blocks, _commands, _files, _words
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._blocks import HASH, Block

_WHOLE = re.compile(rf"^# {re.escape(_files.MARKER)};", re.MULTILINE)
# An env of ours is compared, shown and committed as a whole.
_SECRET = (
    "carries a secret, and this file is shown in diffs and stands in the fleet directory. Put it into a file that only "
    "the service's user reads: the one of api_key_file, or one that container_options name with --env-file."
)
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")


def block_name(service: t.Mapping[str, t.Any], host: str) -> str:
    """What the block of a service is called in its files."""
    return f"{service['name']} on {host}" if service.get("per_host") else str(service["name"])


def block_of(text: str, name: str) -> Block | None:
    """The block of this name. Raises RadianceError ``marker_damaged``."""
    return next((block for block in _blocks.found(text, HASH) if block.name == name), None)


def kind_of(text: str | None, name: str) -> str:
    """``absent``, ``ours`` (the whole file), ``block`` or ``foreign``. Raises RadianceError ``marker_damaged``."""
    if not text:
        return "absent"
    if block_of(text, name) is not None:
        return "block"
    return "ours" if _WHOLE.search(text) else "foreign"


def env_file(text: str, service: t.Mapping[str, t.Any] | None = None, host: str = "") -> dict[str, t.Any]:
    """An env as read strictly: ``{values, errors: [{line, text}], adopted}``.

    With ``service`` the values have our keys, whatever the file calls them, and where only a block is ours they are
    those of the block. Raises RadianceError ``marker_damaged``.
    """
    env = _env_file.read_env(text)
    keys = _files.env_keys(service) if service else {}
    numbers = [keys.get(key, key) for key in _words.ENV_OF.values() if key != "KV_CACHE_DTYPE"]
    # Somebody's own file, adopted or to be adopted, may leave a part of the shape to the engine, by an empty value.
    block = block_of(text, block_name(service, host)) if service else None
    whole = service is None or (block is None and _files.MARKER in text)
    env = _env_file.without_loose_numbers(env, [name for name in numbers if whole or env.values.get(name) != ""])
    errors = [{"line": error.line, "text": error.text} for error in env.errors]
    values = env.values
    if block is None and _files.MARKER in text:
        secrets = [name for name in values if is_secret(name)]
        errors += [{"line": env.lines[name], "text": f"{name} {_SECRET}"} for name in secrets]
        values = {name: value for name, value in values.items() if name not in secrets}
    if block is not None:
        within = _assigned_in(text, block)
        values = {name: value for name, value in values.items() if name in within}
    if service:
        ours = _files.our_keys(service)
        values = {ours.get(name, name): value for name, value in values.items()}
    return {"values": values, "errors": errors, "adopted": block is not None}


def keys_of_others(text: str, service: t.Mapping[str, t.Any], host: str) -> dict[str, str]:
    """The keys of an env that stand in blocks of other services, with the name of the block."""
    name = block_name(service, host)
    others = [block for block in _blocks.found(text, HASH) if block.name != name]
    return {key: block.name for block in others for key in _assigned_in(text, block)}


def _assigned_in(text: str, block: Block) -> set[str]:
    return {found[1] for line in _blocks.body_of(text, block) if (found := _ASSIGNED.match(line))}


def env_placed(
    header: t.Sequence[str],
    values: t.Mapping[str, str],
    service: t.Mapping[str, t.Any],
    host: str,
    current: str | None,
) -> str:
    """The text of an env with ``header`` and ``values``: the whole file, or ``current`` with its block written anew.

    A block keeps its keys and their order: what their owner states nowhere stays unstated.
    Raises RadianceError ``marker_damaged`` and those of the renderer.
    """
    name = block_name(service, host)
    if current is None or kind_of(current, name) != "block":
        return _env_file.render_env(header, {_files.file_key(service, key): value for key, value in values.items()})
    there = env_file(current, service, host)["values"]
    kept = {_files.file_key(service, key): values.get(key, value) for key, value in there.items()}
    # The marker of the block says whose it is.
    header = [line.removeprefix(f"{_files.MARKER}; ") for line in header]
    return _blocks.placed(current, name, _env_file.render_env(header, kept).rstrip("\n").split("\n"), HASH)


def _placed(whole: str, body: t.Sequence[str], service: t.Mapping[str, t.Any], host: str, current: str | None) -> str:
    """``whole``, or where only a block of ``current`` is ours, ``current`` with ``body`` in it."""
    name = block_name(service, host)
    if kind_of(current, name) != "block":
        return whole.replace("\ufffd", "?")
    return _blocks.placed(t.cast("str", current), name, body, HASH)


def _serve_placed(whole: str, service: t.Mapping[str, t.Any], host: str, current: str | None) -> str:
    """The serve script: our own ``whole``, or somebody's with our comment in it."""
    return _placed(whole, _serve_header(service, host), service, host, current)


def _serve_header(service: t.Mapping[str, t.Any], host: str) -> list[str]:
    """The comment of an adopted serve script: what of it comes from the env, and how it is changed."""
    names = _files.file_names(service, host)
    keys = [_files.file_key(service, key) for key in ("VRAM_WEIGHTS_MIB", "VRAM_KV_MIB")]
    return [
        f"# The pair of {service['name']} is {keys[0]} (slab) and {keys[1]} (pool), MiB a card, in {names['env']}.",
        "# A resize writes the values there and restarts once. Every other line of this script is its owner's.",
    ]


def _bats_placed(whole: str, service: t.Mapping[str, t.Any], host: str, current: str | None) -> str:
    """The gates: our own ``whole``, or the tests of it in somebody's file."""
    # The two lines that make it a file of its own.
    body = whole.rstrip("\n").split("\n")[2:]
    while body and not body[0]:
        body = body[1:]
    return _placed(whole, body, service, host, current)


def begun(text: str, name: str, before: int) -> str:
    """``text`` with an empty block before the line ``before``, counted from 0, and nothing else changed."""
    lines = text.split("\n")
    return "\n".join(
        [*lines[:before], *(_blocks.marker(mark, name, HASH) for mark in ("BEGIN", "END")), *lines[before:]]
    )


def ended(text: str, name: str, keep: t.Callable[[str], bool]) -> str:
    """``text`` without the block ``name``, but for those of its lines that ``keep`` keeps."""
    block = block_of(text, name)
    if block is None:
        return text
    lines = text.split("\n")
    kept = [line for line in lines[block.begin + 1 : block.end] if keep(line)]
    return "\n".join([*lines[: block.begin], *kept, *lines[block.end + 1 :]])


def unstated_objection(
    service: t.Mapping[str, t.Any],
    host: str,
    plan: t.Mapping[str, t.Any],
    options: t.Mapping[str, t.Any],
    current: str | None,
) -> str:
    """Why a request cannot be written into an env that was adopted, with the lines to add; empty where it can."""
    if kind_of(current, block_name(service, host)) != "block":
        return ""
    has = env_file(t.cast("str", current), service, host)["values"]
    wanted = {key: plan["to"][name] for name, key in _words.ENV_OF.items() if plan["to"][name] != plan["from"][name]}
    wanted.update(
        {
            key: options[name]
            for name, key in (("image", "IMAGE"), ("host_pool_mib", "HOST_POOL_MIB"))
            if options.get(name)
        }
    )
    names = _files.file_names(service, host)
    missing = [key for key in wanted if key not in has]
    if not missing:
        return ""
    lines = [
        f"{key}= as a line of {names['env']}, and "
        + (f'"${key}" for the image' if key == "IMAGE" else f'${{{key}:+--{_files.flag_of(key)} "${key}"}}')
        + f" in {names['serve']}"
        for key in missing
    ]
    return (
        f"The plan has {', '.join(f'{_files.flag_of(key)} {wanted[key]}' for key in missing)}, and {names['env']}, "
        f"which was adopted, has no key for it. Write {'; '.join(lines)}, with the value that runs where the script "
        f"states it now. Then adopt again:\n{_commands.playbook('adopt', host, service['name'])}"
    )


def current_files(
    service: t.Mapping[str, t.Any], run: t.Mapping[str, t.Any], host: str, env_path: str, serve_path: str
) -> dict[str, t.Any]:
    """The files of a service as they are: ``{fleet: {env, serve, bats}, target: {env, serve}, modes}``.

    Of one that is missing on one side it is the other side's. A mode is None for a file that keeps its own.
    """
    here, there = run.get("fleet_texts") or {}, run.get("target_texts") or {}
    target = {
        "env": there.get(env_path) or here.get("env") or "",
        "serve": there.get(serve_path) or here.get("serve") or "",
    }
    fleet = {kind: here.get(kind) or target.get(kind, "") for kind in ("env", "serve", "bats")}
    name = block_name(service, host)
    modes = {
        kind: None if "block" in (kind_of(fleet[kind], name), kind_of(target.get(kind), name)) else mode
        for kind, mode in (("env", "0644"), ("serve", "0755"), ("bats", "0755"))
    }
    return {"fleet": fleet, "target": target, "modes": modes}


def file_text(whole: str, kind: str, service: t.Mapping[str, t.Any], host: str, current: str | None = None) -> str:
    """A serve script (``serve``) or the gates (``bats``): ``whole``, or what is ours of it placed in ``current``."""
    place = {"serve": _serve_placed, "bats": _bats_placed}[kind]
    return place(whole, service, host, current)
