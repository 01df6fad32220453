# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the samples of a client come to, and the page that the rows of all faults make. Pure."""

from __future__ import annotations

import typing as t

Row = t.Mapping[str, t.Any]

HEAD = """# Faults, injected and survived

Written by `extensions/hosts/faults.sh`. Each fault was injected for real into a real run of `resize.yml` on the test
hosts of `extensions/hosts` (systemd, sshd, podman, and the stand-in engine, whose boots take some seconds), while a
client asked the endpoint for a small completion every 0.2 s. *system* is a unit of the system, *user* one of a user.

*Without service* is from the last good answer to the next one, as the client saw it, from before the fault until the
next run had ended: the boots of every switch in it are part of that. A machine with other work is slower.

After each: no wrong answer, one engine, the files of the target and of the fleet directory say the pair that runs,
no journal, staged file, drop-in or held lock is left, every record line is valid, and one more run changes nothing.
What was otherwise stands in bold. A host of a user that is restarted keeps its boot id, by which the restore at boot
takes it for the same boot of the machine and leaves the files to the next run. What a fault did to the runtime of the
test host itself, and what mended that before the next run, stands beside what served.

| fault | where | without service | served then, with nobody's help | the next run |
|---|---|---|---|---|
"""


def without_service(samples: t.Sequence[t.Mapping[str, t.Any]]) -> float:
    """Seconds from a last good answer to the next one, where what is between failed; to the end, where none follows."""
    total, good, failed = 0.0, None, False
    for sample in samples:
        if not sample["good"]:
            failed = True
            good = sample["at"] if good is None else good
            continue
        if failed and good is not None:
            total += sample["at"] - good
        good, failed = sample["at"], False
    if failed and good is not None:
        total += samples[-1]["at"] - good
    return round(total, 1)


def page(
    wanted: t.Sequence[tuple[str, str]], rows: t.Mapping[tuple[str, str], Row], untested: t.Mapping[str, str]
) -> str:
    """The page: a line for each fault and place that is wanted, and what there is for those that cannot be injected."""
    text = HEAD + "".join(_line(fault, where, rows.get((fault, where))) for fault, where in wanted)
    if untested:
        text += "\nNot injectable on these hosts:\n\n| fault | instead |\n|---|---|\n"
        text += "".join(f"| {name} | {why} |\n" for name, why in untested.items())
    return text


def _line(fault: str, where: str, row: Row | None) -> str:
    if row is None:
        return f"| {fault} | {where} | not injected yet | | |\n"
    after = "; ".join([row["after"], *row.get("mended", [])]) + (f"; **{'; '.join(row['bad'])}**" if row["bad"] else "")
    return f"| {fault} | {where} | {row['seconds']:.1f} s | {after} | {_cell(row['next'])} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
