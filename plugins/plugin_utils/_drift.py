# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the fleet directory, the target's copy and the running process differ, by values, and in which direction."""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import pair_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container, process
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _files, _hand_written, _history, _words

Values = t.Optional[t.Mapping[str, str]]

# Where an engine listens that was given no --host.
ENGINE_HOST = "0.0.0.0"
# What a stated pair stands in for.
REPLACED = ("expert-vs-cache-ratio",)

_SAYS = {
    "fleet_differs": "{key} is {fleet} in the fleet directory, and {running} on the host, which runs it.",
    "target_differs": "{key} is {target} in the host's copy; the fleet directory and the process have {running}.",
    "not_restarted": "{key} is {target} in the host's copy, and the running process still has {running}.",
    "all_differ": "{key} is {fleet} in the fleet directory, {target} in the host's copy and {running} in the process.",
}


def drift(
    fleet: Values,
    target: Values,
    flags: Values,
    record: t.Sequence[t.Mapping[str, t.Any]],
    service: t.Mapping[str, t.Any] | None = None,
    source: t.Mapping[str, t.Any] | None = None,
    script: t.Mapping[str, str] | None = None,
) -> dict[str, t.Any]:
    """Compare the env of the fleet directory, the env on the target and the flags of the running process.

    Each of the first three is None where it does not exist or cannot be read. With ``service`` the notes tell what the
    inventory declares otherwise than the env has it; ``source`` is the ledger's, which knows the image of a container.
    ``script`` is what an adopted service starts by: ``{env, serve, env_path, serve_path}`` of its host.
    Returns ``{findings, explained, running, notes, lost}``:
    ``findings`` [{name, fleet, target, running, direction, says}] with direction fleet_differs, target_differs,
    not_restarted or all_differ; ``explained`` whether a switch on record accounts for all of them (the controller
    ended before it wrote the fleet directory), so that they complete themselves, and the first of the ``notes`` is the
    reason; ``running`` the env that the running process amounts to; ``lost`` a sentence for each flag of the process
    that the serve script would drop, or would give another value, without anybody having asked for it.
    """
    keys = list(dict.fromkeys([*(fleet or {}), *(target or {})]))
    in_force = {**(target or {}), **(fleet or {})}
    if not in_force and service is not None:
        in_force = _declared(service, flags or {})
    image = _running_image(source or {}, [env["IMAGE"] for env in (fleet, target, in_force) if env and "IMAGE" in env])
    findings = []
    for key in keys:
        values = {
            "fleet": None if fleet is None else fleet.get(key, ""),
            "target": None if target is None else target.get(key, ""),
            "running": image if key == "IMAGE" else None if flags is None else flags.get(_files.flag_of(key), ""),
        }
        direction = _direction(values["fleet"], values["target"], values["running"])
        if direction:
            shown = {name: _words.UNKNOWN if value is None else value or "absent" for name, value in values.items()}
            if values["running"] is None:
                shown["running"] = shown["target"]
            says = _SAYS[direction].format(key=_files.file_key(service or {}, key), **shown)
            findings.append({"name": key, **values, "direction": direction, "says": says})
    says = _explanation(findings, record)
    passed = {**(flags or {}), **({} if image is None else {"image": image})}
    running = {key: passed.get(_files.flag_of(key), value) for key, value in in_force.items()}
    if service is not None and "MODEL" in running and not running["MODEL"].startswith("/") and not (target or fleet):
        # Relative to a folder that is not the serve script's: the inventory knows where it lies.
        running["MODEL"] = str(service["model"])
    notes = [says] if says else []
    if service is not None:
        notes += _files.identity_notes(service, in_force)
    lost = []
    if service is not None and flags is not None:
        env = fleet or target or {}
        lost = (
            _lost_by_script(script, flags)
            if script
            else _lost(service, flags, running, env) + _lost_image(service, source or {}, env)
        )
    return {
        "findings": findings,
        "explained": bool(says),
        "running": running,
        "notes": notes,
        "lost": lost,
    }


def _running_image(source: t.Mapping[str, t.Any], named: t.Sequence[str]) -> str | None:
    """The image of the running container: as an env or the inventory names it, where that is the same one; else as it
    was asked for. None where no runtime tells.
    """
    image, digest = source.get("image"), source.get("image_digest")
    if not image:
        return None
    return next((name for name in named if container.is_image(name, str(image), digest)), str(image))


def _lost_image(service: t.Mapping[str, t.Any], source: t.Mapping[str, t.Any], env: t.Mapping[str, str]) -> list[str]:
    """That another image is declared than the one that runs, where no env names any: a resize keeps what runs."""
    declared, image = service.get("image"), source.get("image")
    if not image or declared is None or "IMAGE" in env:
        return []
    if container.is_image(str(declared), str(image), source.get("image_digest")):
        return []
    return [
        f"The running container has the image {image}, and the inventory declares {declared}, while no env says which "
        f"is in force: write {image} in `image` of {service.get('name')} in the inventory, and ask for another with "
        f"-e image={declared}."
    ]


def _declared(service: t.Mapping[str, t.Any], flags: t.Mapping[str, str]) -> dict[str, str]:
    """An env that nobody has written yet: pair and shape where the process has them, then what is declared."""
    pair = {key: flags[_files.flag_of(key)] for key in _words.ENV_OF.values() if _files.flag_of(key) in flags}
    return {**pair, **_files.env_values(service, {})}


def _lost(
    service: t.Mapping[str, t.Any], flags: t.Mapping[str, str], running: t.Mapping[str, str], env: t.Mapping[str, str]
) -> list[str]:
    """What a start by the rendered serve script would take from the running process, in sentences with the way out.

    A key that an ``env`` holds is compared with the process as drift is.
    """
    values = _files.env_values(service, {}, {**running, **env})
    passed = {_files.flag_of(key): value for key, value in values.items() if key != "IMAGE"}
    planned = {_files.flag_of(key) for key in _words.ENV_OF.values()}
    name, out = service.get("name"), []
    for flag, value in {"host": ENGINE_HOST, **flags}.items():
        # Pair and shape are the plan's; a ratio means nothing beside a stated pair.
        if flag in planned or flag in REPLACED:
            continue
        words = f"--{flag} {value}".rstrip()
        if flag not in passed:
            out.append(
                f"The running process has {words}, which the inventory does not name: a restart would lose it. "
                f'Add {flag}: "{value}" under `flags` of {name} in the inventory.'
            )
        elif passed[flag] != value and _files.key_of(flag) not in env:
            where = f"`flags` of {name}" if flag in (service.get("flags") or {}) else f"`{flag}` of {name}"
            given = f"has {words}" if flag in flags else f"was given no --{flag}, so it has {value}"
            out.append(
                f"The running process {given}, and a restart would give it --{flag} {passed[flag]}. "
                f"Write {value} in {where} in the inventory."
            )
    return out


def _lost_by_script(script: t.Mapping[str, str], flags: t.Mapping[str, str]) -> list[str]:
    """What a start by the script of an adopted service would change, but for the values of its env: the rest of its
    command line is its owner's, who may have edited it since it was started.
    """
    try:
        found = _hand_written.read_files(_hand_written.Files(**script), script["serve_path"])
    except RadianceError as error:
        return [error.text]
    gives = {flag: value for flag, (value, _field) in found.flags.items() if not process.is_secret(flag)}
    return [
        f"{script['serve_path']} gives {_flag_words(flag, gives)}, and the running process has "
        f"{_flag_words(flag, flags)}: a restart would change it, and that is no resize. Restart the service by its "
        "script first, or write into it what runs."
        for flag in {**gives, **flags}
        if _files.key_of(flag) not in found.fed and gives.get(flag) != flags.get(flag)
    ]


def _flag_words(flag: str, flags: t.Mapping[str, str]) -> str:
    return f"--{flag} {flags[flag]}".rstrip() if flag in flags else f"no --{flag}"


def _direction(fleet: str | None, target: str | None, running: str | None) -> str:
    known = [value for value in (fleet, target, running) if value is not None]
    if len(set(known)) <= 1:
        return ""
    if running is None or target is None or fleet is None:
        return "not_restarted" if fleet is None else "fleet_differs"
    if target == running:
        return "fleet_differs"
    if fleet == running:
        return "target_differs"
    return "not_restarted" if fleet == target else "all_differ"


def _explanation(findings: t.Sequence[t.Mapping[str, t.Any]], record: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """Why the fleet directory is behind: the last switch on record, if it accounts for every finding."""
    if not findings or any(item["direction"] != "fleet_differs" for item in findings):
        return ""
    switched = _history.ended_by(record)
    if switched is not None and switched["kind"] == "rolled_back" and switched["phase"] == "probation":
        return _returned(findings, switched, record)
    if switched is None or switched["kind"] != "switched":
        return ""
    planned = next(
        (e for e in reversed(record) if e["kind"] == "planned" and e["attempt"] == switched["attempt"]), None
    )
    if planned is None:
        return ""
    before, after = _env_of(planned["plan"]["from"]), _env_of(switched["to"])
    before["IMAGE"], after["IMAGE"] = planned.get("image_before"), switched.get("image")
    if not _accounts(findings, before, after):
        return ""
    image = f" of the image {after['IMAGE']}" if any(item["name"] == "IMAGE" for item in findings) else ""
    return (
        f"The switch of {switched['at']} (record {switched['id']}) put {_words.pair(switched['to'])} MiB{image} there, "
        "and the fleet directory has what was before it. It is written now; who set it back by hand says so with "
        "-e drift=apply."
    )


def _returned(
    findings: t.Sequence[t.Mapping[str, t.Any]],
    back: t.Mapping[str, t.Any],
    record: t.Sequence[t.Mapping[str, t.Any]],
) -> str:
    """Why the fleet directory is ahead: the pair that it has crashed in its probation, and the one before came back."""
    tried = next((e for e in reversed(record) if e["kind"] == "switched" and e["attempt"] == back["attempt"]), None)
    before, after = _env_of(back["tried"]), _env_of(back["to"] or {})
    before["IMAGE"], after["IMAGE"] = (tried or {}).get("image"), back.get("image")
    if not _accounts(findings, before, after):
        return ""
    return (
        f"{back['says']} The unit went back to {_words.pair(back['to'] or {})} MiB by itself (record {back['id']} of "
        f"{back['at']}), and the fleet directory still has the pair that crashed."
    )


def _accounts(
    findings: t.Sequence[t.Mapping[str, t.Any]],
    before: t.Mapping[str, str | None],
    after: t.Mapping[str, str | None],
) -> bool:
    """Whether every finding is a step from ``before``, which the fleet directory has, to ``after``, which runs."""
    for item in findings:
        was, is_now = before.get(item["name"]) or "", after.get(item["name"]) or ""
        if was == is_now or (was, is_now) != (item["fleet"], item["running"]):
            return False
    return True


def _env_of(to: t.Mapping[str, t.Any]) -> dict[str, str | None]:
    """Pair and shape by their keys in an env, as text; None for what is not stated there."""
    return {key: None if to.get(name) is None else str(to[name]) for name, key in _words.ENV_OF.items()}


def running_pair(ledger: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The pair and shape that the process of a ledger was started with; None for a flag that it was not given."""
    return pair_of(ledger.get("flags") or {})
