# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two shell scripts that a switch leaves on the host, for what happens when no run of ours is there to act.

Both are plain POSIX sh with every path quoted, may be run any number of times, and may be killed at any instant: a
file is put back by one rename of a copy that lies beside it, which needs no room on the disk and uses the copy up.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import shlex
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import unit as units
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.unit_files import MARK

_Entries = t.Sequence[t.Mapping[str, t.Any]]
# An end that somebody asked for: of its own accord no engine ends by these signals, or with a shell's status of them.
_ASKED_FOR = "success:* | exec-condition:* | start-limit-hit:* | *:TERM | *:INT | *:143 | *:130"


def _put_back(entries: _Entries) -> list[str]:
    lines = ["status=0"]
    for entry in entries:
        dest = shlex.quote(entry["dest"])
        if entry["existed"]:
            old = shlex.quote(entry["old"])
            lines.append(f"[ ! -e {old} ] || mv -f {old} {dest} || status=1")
        else:
            lines.append(f"rm -f {dest} || status=1")
    return lines


def restore_script(
    service: str, boot_id: str, journal: str, entries: _Entries, then: t.Sequence[t.Sequence[str]] = ()
) -> str:
    """Puts the old files back while the ``journal`` is there and the machine runs in another boot than ``boot_id``.

    ``then``: the commands that come after it.
    """
    return "\n".join(
        [
            f"{MARK}puts back the files of {service} where the machine went down in a switch",
            "read -r boot </proc/sys/kernel/random/boot_id || exit 0",
            f'[ "$boot" != {shlex.quote(boot_id)} ] || exit 0',
            f"[ -e {shlex.quote(journal)} ] || exit 0",
            *_put_back(entries),
            *(f"{shlex.join(argv)} || status=1" for argv in then),
            "exit $status",
            "",
        ]
    )


class Until(t.NamedTuple):
    """A deadline: in seconds of the machine's up time while it runs in boot ``boot_id``, else of the wall clock."""

    boot_id: str
    uptime: int
    wall: int


def probation_script(
    service: str, unit: str, scope: str, until: Until, armed: str, mark: str, entries: _Entries
) -> str:
    """What systemd runs when the ``unit`` has stopped: where it crashed before the deadline, the old files come back.

    ``armed`` becomes ``mark`` then, by a rename, with a line ``WALL RESULT CODE STATUS`` where the disk has room for
    it; from then on the script does nothing more.
    """
    systemctl = " ".join(units.argv(scope))
    mark = shlex.quote(mark)
    name = shlex.quote(unit)
    return "\n".join(
        [
            f"{MARK}returns {service} to its old pair where the new one crashes in its probation",
            f"[ ! -e {mark} ] || exit 0",
            "case ${SERVICE_RESULT:-success}:${EXIT_STATUS:-} in",
            f"{_ASKED_FOR}) exit 0 ;;",
            "esac",
            "read -r boot </proc/sys/kernel/random/boot_id || exit 0",
            f'if [ "$boot" = {shlex.quote(until.boot_id)} ]; then',
            "    read -r now rest </proc/uptime || exit 0",
            "    now=${now%%.*}",
            f"    until={until.uptime}",
            "else",
            "    now=$(date +%s) || exit 0",
            f"    until={until.wall}",
            "fi",
            '[ "$now" -lt "$until" ] || exit 0',
            "# A stop that somebody asked for is a job of systemd. What crashes has none, or that of its own start.",
            f"jobs=$({systemctl} list-jobs --no-legend --no-pager --full 2>/dev/null |",
            f'    while read -r number unit type rest; do [ "$unit" != {name} ] || echo "$type"; done)',
            "case $jobs in",
            "*stop* | *restart*) exit 0 ;;",
            "esac",
            *_put_back(entries),
            "[ $status = 0 ] || exit 1",
            f"mv -f {shlex.quote(armed)} {mark} || exit 1",
            f'echo "$(date +%s) ${{SERVICE_RESULT:--}} ${{EXIT_CODE:--}} ${{EXIT_STATUS:--}}" >{mark}',
            "# A unit that restarts itself does so; for one that does not, this is the start.",
            f"{systemctl} start --no-block {name}",
            "",
        ]
    )
