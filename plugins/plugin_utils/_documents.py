# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documents of a fleet directory that tell of a service: its runbook, its row, its line, and the log.

They point to the env, where the numbers are, and repeat none: a second place would be wrong after the next resize. Only
the log has numbers, of what happened. Each file is somebody's, with a part of ours between markers.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import hidden, put_back
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import (
    _blocks,
    _files,
    _fleet_log,
    _history,
    _managed_text,
    _markdown,
    _runbook,
)

_SERVICES = "services"
_HEADING = "## Radiance endpoints"
_TABLE = ["| service | host | pair and shape | gates | runbook |", "|---|---|---|---|---|"]


def fleet_document(text: str, kind: str, run: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any]) -> dict[str, str]:
    """A document with our part of it brought up to date: ``{text, masked, objection}``.

    ``kind`` is runbook, agents, llms or log, ``text`` the file as it is (empty where there is none). ``run`` has
    ``service``, ``record``, ``plan``, ``making`` and ``failure``; ``about``: ``host``, ``check`` and ``undo`` (the
    command). ``masked`` is the text that may be seen, as the module fleet_file takes it; ``objection`` is empty, or why
    the file is left as it is.
    """
    told = _told_of(run, about)
    try:
        made = _DOCUMENTS[kind](text, told)
        return {"text": made, "masked": _masked(made, text), "objection": ""}
    except RadianceError as error:
        return {"text": text, "masked": "", "objection": f"{told['files'][kind]}: {error.text}"}


def _masked(text: str, there: str) -> str:
    """The text with the secrets masked in the lines that the file ``there`` has; ours have none.

    Raises RadianceError ``secret_missing`` where they could not be put back into their lines.
    """
    shown: dict[str, list[str]] = {}
    for line, without in zip(there.split("\n"), hidden(there).split("\n"), strict=True):
        shown.setdefault(line, []).append(without)
    masked = "\n".join(shown[line].pop(0) if shown.get(line) else line for line in text.split("\n"))
    if put_back(masked, there) != text:
        raise RadianceError(
            "it has secrets that are not told from each other once masked. Nothing was changed. Take them out.",
            code="secret_missing",
        )
    return masked


def _told_of(run: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What a document tells of: ``to`` is the pair and shape in force, ``making`` in check mode the plan that would
    run."""
    return {
        "service": run["service"],
        "host": about["host"],
        "files": _files.file_names(run["service"], str(about["host"])),
        "record": run["record"],
        "to": run["plan"]["from" if run.get("failure") else "to"],
        "making": run["making"] if about["check"] else None,
        "undo": about["undo"],
    }


def _name(about: t.Mapping[str, t.Any]) -> str:
    return _managed_text.block_name(about["service"], str(about["host"]))


def _less(about: t.Mapping[str, t.Any]) -> str:
    """What is said wherever the pair is pointed to, where the pool holds less than the contract."""
    made = _history.history(about["record"], about["to"], about.get("making"))["made"]
    one = made and (made["plan"].get("contract") or {}).get("backing") == "one_request"
    return ", the pool backs one request: less than the contract" if one else ""


def _agents(text: str, about: t.Mapping[str, t.Any]) -> str:
    name, files = _name(about), about["files"]
    links = [_markdown.link(files[kind], files["agents"]) for kind in ("env", "bats", "runbook")]
    shown = _markdown.plain(name)
    cells = [shown, _markdown.plain(str(about["host"])), links[0] + _less(about), *links[1:]]
    row = f"| {' | '.join(cells)} |"
    return _blocks.with_row(text or "# Fleet\n", _SERVICES, row, f"| {shown} |", [_HEADING, "", *_TABLE])


def _llms(text: str, about: t.Mapping[str, t.Any]) -> str:
    name, files = _name(about), about["files"]
    runbook = _markdown.link(files["runbook"], files["llms"], name)
    env = _markdown.link(files["env"], files["llms"])
    host = _markdown.plain(str(about["host"]))
    row = f"- {runbook}: radiance endpoint on {host}, its pair and shape in {env}{_less(about)}"
    return _blocks.with_row(text or "# Fleet\n", _SERVICES, row, f"- [{_markdown.plain(name)}](", [_HEADING, ""])


def _runbook_page(text: str, about: t.Mapping[str, t.Any]) -> str:
    name = _name(about)
    shown = _markdown.plain(name)
    return _blocks.placed(text or f"# {shown}: runbook\n", name, _runbook.runbook_lines(shown, about))


def _log(text: str, about: t.Mapping[str, t.Any]) -> str:
    return _fleet_log.with_outcomes(text or "# Log\n", _name(about), about["record"], about.get("making"))


_DOCUMENTS: dict[str, t.Callable[[str, t.Mapping[str, t.Any]], str]] = {
    "runbook": _runbook_page,
    "agents": _agents,
    "llms": _llms,
    "log": _log,
}
