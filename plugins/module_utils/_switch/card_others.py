# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other services on the cards of this one: which of them run, and which are in its way.

Two that run side by side share their cards on purpose. One that ran before the boot that a plan was made from is in
that ledger's `already held`; beside one that began since, the pair that runs has room, and a larger one may not. That
one is in the way then, and so is any where this service does not run, unless its part is reserved.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import os
import shlex
import typing as t
import urllib.parse

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import pair_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import pair_text
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import unit as units
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import Process
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import unit_files
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.managers import manager_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Run
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.request import Other, Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import State

# An entry of the journal's `others`.
Entry = t.Mapping[str, t.Any]


class _Seen(t.NamedTuple):
    other: Other
    manager: Manager
    # None for a unit that waits for its next restart.
    process: Process | None

    @property
    def name(self) -> str:
        """The service with what a person finds it by."""
        unit = self.other.manager.get("unit")
        pid = f"process {self.process.pid}" if self.process is not None else "between two starts"
        pair = pair_text(pair_of(self.process.flags) if self.process is not None else None)
        return f"{self.other.service} ({f'{unit}, ' if unit else ''}{pid}, {pair} MiB a card)"


def look(request: Request, state: State, run: Run, own: Process | None) -> list[dict[str, t.Any]]:
    """Tell in ``run.others`` who else runs on these cards; returns what is in the way, as the journal keeps it.

    ``own`` is the process of this service. Raises RadianceError ``switch_interrupted`` where a switch of another one
    is not finished: what it has stopped may be about to start.
    """
    in_the_way = []
    more = own is None or _asks_for_more(request.expect, own)
    for other in request.others:
        journal = State(state.root, other.service).journal
        if os.path.exists(journal):
            raise RadianceError(
                f"A switch of {other.service}, which has {_cards(other.cards)} too, has not ended ({journal}). Nothing "
                f"was changed. Finish it first: resize {other.service}.",
                code="switch_interrupted",
            )
        try:
            seen = _see(other)
        except RadianceError as error:
            run.warnings.append(
                f"Whether {other.service} runs, which has {_cards(other.cards)} too, could not be asked: {error.text}"
            )
            continue
        if seen is None:
            continue
        held = own is not None and seen.process is not None and seen.process.started_ticks <= own.started_ticks
        stance = "reserved" if other.reserved else "beside" if held or not more else "in_the_way"
        run.others.append(_told(seen, stance, held, request.service, own))
        if stance == "in_the_way":
            in_the_way.append(_entry(seen))
    return in_the_way


def _asks_for_more(expect: t.Mapping[str, t.Any] | None, own: Process) -> bool:
    """Whether the pair that is asked for is larger than the one that runs, or either is not known."""
    sums: list[int] = []
    for to in ((expect or {}).get("to") or {}, pair_of(own.flags)):
        halves = [half for half in (to.get("weights_mib"), to.get("kv_mib")) if isinstance(half, int)]
        if len(halves) < 2:
            return True
        sums.append(sum(halves))
    return sums[0] > sums[1]


def _see(other: Other) -> _Seen | None:
    manager = manager_of(other.manager)
    found = manager.current()
    return _Seen(other, manager, found) if found is not None or manager.comes_back() else None


def _told(seen: _Seen, stance: str, held: bool, service: str, own: Process | None) -> dict[str, t.Any]:
    on = _cards(seen.other.cards)
    if stance == "reserved":
        says = f"{seen.name} runs on {on} too, and its part is reserved"
    elif held:
        says = (
            f"{seen.name} runs on {on} too. It ran before this boot of {service}, so what it held then is in `already "
            "held` of the ledger; what it took since is not"
        )
    elif own is None:
        says = f"{seen.name} runs on {on}, and {service} does not run"
    else:
        says = (
            f"{seen.name} runs on {on} too. It began after this boot of {service}, so nothing of what it holds is in "
            "the ledger that the plan was made from, and a larger pair may not fit beside it"
        )
    return {
        "service": seen.other.service,
        "unit": seen.other.manager.get("unit"),
        "pid": seen.process.pid if seen.process is not None else None,
        "cards": seen.other.cards,
        "stance": stance,
        "both_run": own is not None,
        "says": f"{says}.",
    }


def _entry(seen: _Seen) -> dict[str, t.Any]:
    found = seen.process
    return {
        "service": seen.other.service,
        "manager": seen.other.manager,
        "pid": found.pid if found is not None else None,
        "ticks": found.started_ticks if found is not None else None,
        "to": pair_of(found.flags) if found is not None else None,
        "cards": seen.other.cards,
        "endpoint": seen.other.endpoint,
        "boot": None,
    }


def check(request: Request, run: Run, in_the_way: t.Sequence[Entry]) -> None:
    """Refuse cards that are taken, and a handover that could not be undone.

    Raises RadianceError ``cards_taken`` and ``no_way_back``.
    """
    run.warnings += [told["says"] for told in run.others if told["stance"] == "beside"]
    if not in_the_way:
        return
    if not request.handover:
        says = " ".join(told["says"] for told in run.others if told["stance"] == "in_the_way")
        names = names_of(in_the_way)
        raise RadianceError(
            f"{says} Nothing was stopped or changed. Stop {names}; or keep free what it takes "
            "(reserved_for_others_mib, for each of these cards); or have the cards handed over (-e handover=true): "
            f"{names} is drained and stopped, and started again if this does not hold.",
            code="cards_taken",
        )
    for entry in in_the_way:
        manager = manager_of(entry["manager"])
        problem, image = manager.problem(()), manager.lost_image(None)
        if image is not None:
            problem = f"the runtime does not have its image {image} any more"
        if problem is not None:
            raise RadianceError(
                f"There is no way back from this handover: {entry['service']} could not be started again "
                f"({problem}). Nothing was stopped or changed. Mend that, then run this again.",
                code="no_way_back",
            )
    told = [dict(entry, stance="handed_over") if entry["stance"] == "in_the_way" else entry for entry in run.others]
    run.others = told


def warn_of_restart(run: Run, unit: tuple[str, str] | None, in_the_way: t.Sequence[Entry]) -> None:
    """A unit that starts with the machine takes its cards again then; which one does is the operator's to say."""
    for entry in in_the_way:
        name, scope = entry["manager"].get("unit"), entry["manager"].get("scope")
        if name is None or unit_files.properties(name, scope, "UnitFileState").get("UnitFileState") != "enabled":
            continue
        instead = f" ; {shlex.join(units.argv(scope, 'enable', unit[0]))}" if unit and unit[1] == scope else ""
        run.warnings.append(
            f"{name} is enabled, so when the machine restarts it starts and takes the cards again. To have it stay "
            f"stopped: {shlex.join(units.argv(scope, 'disable', name))}{instead}"
        )


def answers(endpoint: str | None, others: t.Sequence[Entry]) -> bool:
    """Whether one of these lives and listens at the port of ``endpoint``: services on one card set often share it."""
    return any(
        _port(entry["endpoint"]) == _port(endpoint) and manager_of(entry["manager"]).current() is not None
        for entry in others
    )


def names_of(others: t.Sequence[Entry]) -> str:
    """Their names, for a sentence."""
    return " and ".join(str(entry["service"]) for entry in others)


def _cards(cards: t.Sequence[int]) -> str:
    return f"card{'s' if len(cards) != 1 else ''} {', '.join(map(str, cards))}"


def _port(endpoint: str | None) -> int | None:
    if endpoint is None:
        return None
    url = urllib.parse.urlsplit(endpoint)
    return url.port or (443 if url.scheme == "https" else 80)
