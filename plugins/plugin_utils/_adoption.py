# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a service that somebody wrote by hand can be taken over without a restart, and what stands in the way.

Its files are read, never run. They have to give the very command line that runs, and the pair has to come from the env.
"""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _env_file
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import is_secret
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _files, _managed_text, _ready_item, _words
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._hand_written import (
    Files,
    Found,
    difference,
    read_files,
    words_of,
)

Service = t.Mapping[str, t.Any]
Texts = t.Mapping[str, t.Mapping[str, str]]


def survey(
    service: Service, command: t.Mapping[str, t.Any], texts: Texts, target_dir: str, host: str
) -> dict[str, t.Any]:
    """Hold the files of a service to what runs.

    ``command`` is what ``service_command_info`` returns, ``texts`` are ``{target: {env, serve}, fleet: {env, serve,
    bats}}``, empty where there is no file. Returns ``{objections, item, owned}``: sentences with one way out each; the
    item of the inventory joined with what was found, as lines of YAML, where the inventory lacks or contradicts a part
    of it; the keys of the env that would be ours, as the file calls them.
    """
    names = _files.file_names(service, host)
    paths = {kind: posixpath.normpath(posixpath.join(target_dir, names[kind])) for kind in ("env", "serve")}
    shown = {"target": {kind: f"{host}:{path}" for kind, path in paths.items()}, "fleet": names}
    nothing: dict[str, t.Any] = {"item": [], "owned": []}
    objections = _program(service, command, paths["serve"], target_dir)
    for side, there in texts.items():
        for kind, text in there.items():
            objections += _unreadable(kind, text, shown[side][kind], f"{host}:{paths.get(kind)}", service, host)
    if objections:
        return {"objections": objections, **nothing}
    try:
        sides = {
            side: read_files(Files(there["env"], there["serve"], paths["env"], paths["serve"]), shown[side]["serve"])
            for side, there in texts.items()
        }
    except RadianceError as error:
        return {"objections": [error.text], **nothing}
    found = sides["target"]
    item = _ready_item.ready_item(service, command, found)
    known = _ready_item.joined(service, item)
    objections = [
        *_agree(found, sides["fleet"], names, host),
        *_equal(found, command["argv"]),
        *_pair_and_shape(found, names, host),
    ]
    owned = [] if objections else _ready_item.owned(known, found)
    objections += _of_others(owned, [there["env"] for there in texts.values()], names["env"], service, host)
    against = [] if objections else _ready_item.held_against(service, item, found)
    if against:
        objections.append(
            f"The inventory of {service['name']}: {'; '.join(against)}. Put the item above into endpoint_services of "
            f"{host}, and run this again."
        )
    return {
        "objections": objections,
        "item": _ready_item.item_lines(known) if against else [],
        "owned": [] if objections else owned,
    }


def _program(service: Service, command: t.Mapping[str, t.Any], serve: str, target_dir: str) -> list[str]:
    """That the unit runs the serve script that the inventory means."""
    program = command["program"]
    if command["manager"] == "process" or serve in program:
        return []
    script = next((word for word in reversed(program) if word.startswith("/")), "")
    inside = posixpath.relpath(script, target_dir) if script else ".."
    way_out = f"write `paths: {{serve: {inside}}}` for {service['name']} in the inventory"
    if inside.startswith(".."):
        way_out = "let endpoint_target_dir be a folder above that script, and `paths: {serve: …}` the rest of its path"
    return [f"{command['unit']} runs {' '.join(program) or 'nothing'}, and the inventory means {serve}: {way_out}."]


def _unreadable(kind: str, text: str, shown: str, there: str, service: Service, host: str) -> list[str]:
    """Why a file cannot be taken over as it is."""
    if not text and kind == "bats":
        return []
    if not text:
        way_out = f"Name it in `paths` of {service['name']}" if shown == there else f"Copy {there} there, and commit it"
        return [f"There is no {shown}. {way_out}."]
    try:
        ours = _managed_text.kind_of(text, _managed_text.block_name(service, host)) == "ours"
    except RadianceError as error:
        return [f"{shown}, {error.text}"]
    if kind != "bats" and ours:
        return [f"{shown} is a file of this collection as a whole: there is nothing to adopt."]
    if not text.endswith("\n"):
        return [f"{shown} ends without a newline. Add it, so that a line can follow."]
    errors = _env_file.read_env(text).errors if kind == "env" else []
    return [f"line {error.line} of {shown}: {error.text}" for error in errors]


def _agree(there: Found, here: Found, names: t.Mapping[str, str], host: str) -> list[str]:
    """That the fleet directory has what the host has, by values and by words."""
    differ = [key for key in {**there.values, **here.values} if there.values.get(key) != here.values.get(key)]
    if differ:
        told = [
            key
            if is_secret(key)
            else f"{key} ({here.values.get(key, 'absent')} here, {there.values.get(key, 'absent')} on {host})"
            for key in differ
        ]
        return [f"{names['env']} of the fleet directory and of {host} differ in {', '.join(told)}. Make them equal."]
    if words_of(there) != words_of(here):
        given, gives = difference(words_of(here), words_of(there))
        return [
            f"{names['serve']} of the fleet directory gives `{given}`, and that of {host} `{gives}`. Make them equal."
        ]
    return []


def _equal(found: Found, running: t.Sequence[str]) -> list[str]:
    """That the files give the command line that runs: then taking them over restarts nothing."""
    words, runs = words_of(found), list(running)
    # A program that is a script itself runs under its interpreter, which stands before it.
    extra = next((at for at in range(3) if _is_program(runs[at : at + 1], words[0])), 0)
    if runs[extra + 1 :] == words[1:] and _is_program(runs[extra : extra + 1], words[0]):
        return []
    given, has = difference(
        words, [words[0], *runs[extra + 1 :]] if _is_program(runs[extra : extra + 1], words[0]) else runs
    )
    return [
        f"A start by these files would not give what runs: they give `{given}`, and the running process has `{has}`. "
        "Write into the files what runs, or restart the service by them yourself, and run this again."
    ]


def _is_program(word: t.Sequence[str], program: str) -> bool:
    """Whether a word of the process is the program. One that was named without its folder was looked for in PATH."""
    return bool(word) and (word[0] if "/" in program else posixpath.basename(word[0])) == program


def _of_others(owned: t.Sequence[str], envs: t.Sequence[str], path: str, service: Service, host: str) -> list[str]:
    """That none of the keys is in the block of another service, which reads the same env."""
    taken = {key: name for env in envs for key, name in _managed_text.keys_of_others(env, service, host).items()}
    return [
        f"{key} in {path} is in the block of {taken[key]}. Give {service['name']} a key of its own, and name it in its "
        "script."
        for key in owned
        if key in taken
    ]


def _pair_and_shape(found: Found, names: t.Mapping[str, str], host: str) -> list[str]:
    """That the pair, and what the script states of the shape, are values of the env, each with a key of its own."""
    out = []
    for name, key in _words.ENV_OF.items():
        flag = _files.flag_of(key)
        if key in found.fed:
            continue
        if flag in found.flags:
            value, field = found.flags[flag]
            out.append(
                f"line {field.line} of {names['serve']} on {host} states --{flag} {value} itself. Write "
                f'--{flag} "${key}" there and {key}={value} into {names["env"]}, here and on {host}: the command line '
                "stays as it is."
            )
        elif name in ("weights_mib", "kv_mib"):
            out.append(
                f"{names['serve']} states no --{flag}, so there is no pair to resize. Write {key}= into {names['env']} "
                f'and ${{{key}:+--{flag} "${key}"}} among the flags, here and on {host}: the command line '
                "stays as it is."
            )
    for name in dict.fromkeys(found.fed.values()):
        flags = [f"--{_files.flag_of(key)}" for key, its in found.fed.items() if its == name]
        if len(flags) > 1:
            out.append(f"{name} in {names['env']} is the value of {' and '.join(flags)}. Give each a key of its own.")
    return out
