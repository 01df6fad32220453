# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that goes down in the middle of a switch comes back on the old pair by itself.

A small unit, ``kvfleet-restore-SERVICE.service``, is wanted by the service's own and runs before it. It runs
``restore.sh`` of the state directory, which is there only between the swap and the end of a switch.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import shlex
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils import _durable
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import unit as units
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import host_boot
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import card_others, unit_files
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.scripts import restore_script
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State

_WAITED_FOR = ("notify", "notify-reload", "forking", "oneshot", "dbus")
_COMES_BACK = ("WantedBy", "RequiredBy", "TriggeredBy")


def unit_text(service: str, unit: str, scope: str, script: str) -> str:
    """The unit. It is skipped, in no time, wherever there is no script."""
    after = ["After=local-fs.target remote-fs.target"] if scope == "system" else []
    mount = [f"RequiresMountsFor={unit_files.mount_word(os.path.dirname(script))}"] if scope == "system" else []
    return "\n".join(
        [
            f"{unit_files.MARK}a switch of {service} installs it",
            "[Unit]",
            f"Description=Old pair of {service} where the machine went down in a switch",
            f"Before={unit}",
            *after,
            *mount,
            f"ConditionPathExists={unit_files.specifiers(script)}",
            "",
            "[Service]",
            "Type=oneshot",
            "TimeoutStartSec=60",
            f"ExecStart=/bin/sh {unit_files.word(script)}",
            "",
            "[Install]",
            # A machine that starts another unit in its place has to restore as well.
            f"WantedBy={unit} {'default' if scope == 'user' else 'multi-user'}.target",
            "",
        ]
    )


def prepare(
    manager: Manager, state: State, run: Run, check_mode: bool, others: t.Sequence[t.Mapping[str, t.Any]] = ()
) -> None:
    """Install the unit where it is not there yet, and warn where the service would not come back at all.

    ``others``: what is stopped for it, as the journal keeps it.

    What stands in the way of it is a warning: without it a switch is what it was before there was this.
    """
    if not manager.is_unit:
        return
    with run.phase("guard") as phase:
        try:
            unit, scope = t.cast("tuple[str, str]", manager.watched())
            shown = unit_files.properties(unit, scope, "UnitFileState", "Type", "TimeoutStartUSec", *_COMES_BACK)
            # Of other types the start is over as soon as the program runs.
            if shown.get("Type") in _WAITED_FOR and shown.get("TimeoutStartUSec") not in (None, "", "infinity"):
                run.warnings.append(
                    f"{unit} is of Type={shown['Type']} with TimeoutStartSec={shown['TimeoutStartUSec']}: systemd ends "
                    "a boot that loads longer than that. TimeoutStartSec=infinity leaves it to ready_timeout."
                )
            card_others.warn_of_restart(run, (unit, scope), others)
            if shown.get("UnitFileState") == "enabled-runtime" or not (
                shown.get("UnitFileState") == "enabled" or any(shown.get(name) for name in _COMES_BACK)
            ):
                enable = shlex.join(units.argv(scope, "enable", unit))
                run.warnings.append(
                    f"{unit} is {shown.get('UnitFileState') or 'of no target'}: when the machine restarts nothing "
                    f"starts it, and neither pair comes back by itself. To have it start: {enable}."
                )
            name = f"kvfleet-restore-{state.service}.service"
            path = os.path.join(unit_files.folder(scope), name)
            text = unit_text(state.service, unit, scope, state.restore)
            changed = unit_files.differs(path, text)
            if not changed and unit_files.properties(name, scope, "UnitFileState").get("UnitFileState") == "enabled":
                phase.says = f"{name} is there: the old pair comes back where the machine goes down in this switch"
                return
            argv = units.argv(scope, "enable", name)
            unit_files.check_writable(path)
            if check_mode:
                run.acted(argv)
                phase.says = f"would install {path}, which restores the old pair where the machine goes down"
                return
            if changed:
                unit_files.write(path, text)
            run.changed = True
            run.acted(argv)
            unit_files.ask(scope, "daemon-reload")
            unit_files.ask(scope, "enable", name)
            phase.says = f"installed {path}, which restores the old pair where the machine goes down in this switch"
        except RadianceError as error:
            phase.says = f"no restore when the machine restarts: {error.text}"
            run.warnings.append(
                f"Where the machine goes down in this switch, nothing restores the old files before the next run: "
                f"{error.text}"
            )


def arm(state: State, manager: Manager, journal: t.Mapping[str, t.Any]) -> None:
    """From now on another boot of the machine restores the journal's files first, and starts what ran before."""
    able = [entry for entry in journal["files"] if not entry["existed"] or entry.get("old")]
    text = restore_script(
        state.service, host_boot(), state.journal, able, _starts(manager, journal["old"] is None, journal["others"])
    )
    _durable.replace(state.restore, text.encode("utf-8", "surrogateescape"), 0o600)


def _starts(manager: Manager, alone: bool, others: t.Sequence[t.Mapping[str, t.Any]]) -> list[list[str]]:
    """The commands that give the cards back to the units that had them. ``alone``: the service itself did not run."""
    if not others:
        return []
    unit, scope = t.cast("tuple[str, str]", manager.watched())
    again = [entry["manager"]["unit"] for entry in others if entry["manager"].get("scope") == scope]
    stop = [units.argv(scope, "stop", "--no-block", unit)] if again and alone else []
    return stop + [units.argv(scope, "start", "--no-block", name) for name in again]


def disarm(state: State) -> None:
    """The files that are there stay, whatever happens to the machine."""
    if _durable.remove(state.restore):
        _durable.sync_folder(state.folder)
