# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of a service's runbook that a resize keeps: how to read its boot, resize, return, and what its gates mean.

What the boot printed is quoted as printed; every other number is in the env, and is pointed to.
"""

from __future__ import annotations

import shlex
import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _commands, _gates, _history, _service
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._markdown import cell, fenced, link, wrapped

Entry = t.Mapping[str, t.Any]

# What a person has to know of a gate to decide what to do when it fails.
MEANINGS = {
    "dtype_known": "the engine ends the boot at a cache dtype that it does not know.",
    "engine_takes_pair": "this release is told its pair; later ones split the card themselves.",
    "pair_within_ceiling": "slab and pool together leave every card what the engine keeps free. Above that a card "
    "settles under its floor.",
    "one_request_fits": "the pool holds one sequence of full length. Below that the engine refuses every long prompt.",
    "host_pool_holds_the_rest": "the experts that the slab does not hold fit the pinned memory of the host.",
    "pool_meets_contract": "the pool holds every sequence at full length at once. Below that the service boots, serves "
    "short chats and refuses long ones.",
    "pool_holds_live_sessions": "the blocks of finished sessions that were asked for stay in the pool.",
    "rows_within_exact_wire": "a full decode step is small enough to be exact on the lossy wire between the cards.",
    "chunk_within_interval": "a prefill chunk ends where a checkpoint may be taken.",
    "headroom_kept": "what was asked to stay free above the floor does.",
}
_ROWS = "settled at|backs|slab slots|sampler:"


def runbook_lines(name: str, about: t.Mapping[str, t.Any]) -> list[str]:
    """The lines of Markdown, from the second level of headings on; ``about`` as ``_documents`` tells it."""
    history = _history.history(about["record"], about["to"], about.get("making"))
    attempt = next((one for one in _history.attempts(about["record"]) if one[0] == history["made"]), [])
    # No heading ends with the name, which may end with a stop.
    lines = [f"## {name}: the VRAM pair", ""]
    lines += _where(about)
    lines += ["", f"### {name}: read the ledger", "", *_reading(about, attempt)]
    lines += ["", f"### {name}: what the gates mean", "", *_gate_lines(about, history["made"])]
    return lines + ["", f"### {name}: resize, and return", "", *_how(about)]


def _link(kind: str, about: t.Mapping[str, t.Any]) -> str:
    return link(about["files"][kind], about["files"]["runbook"])


def _where(about: t.Mapping[str, t.Any]) -> list[str]:
    managed = _service.managed_by(about["service"])
    runs = f"a process of `{about['host']}`"
    if managed["unit"]:
        runs = f"`{managed['unit']}` of the {managed['scope']} on `{about['host']}`"
    if managed["container"]:
        runs += f", container `{managed['container']}`"
    lines = wrapped(
        f"Pair, shape, image, model and port are in {_link('env', about)}, and nowhere else. Its header says which "
        "plan made the pair, from which boot, with what arithmetic, and what came of each prediction."
    )
    return [
        *lines,
        "",
        "| what | where |",
        "|---|---|",
        f"| runs as | {cell(runs)} |",
        f"| started by | {_link('serve', about)}, the same for every pair |",
        f"| gates | {_link('bats', about)} |",
        f"| record | {_link('record', about)}: plans, outcomes, measurements and verdicts |",
    ]


def _playbook(play: str, about: t.Mapping[str, t.Any], *words: str) -> str:
    return _commands.playbook(play, str(about["host"]), str(about["service"]["name"]), *words)


def _reading(about: t.Mapping[str, t.Any], attempt: t.Sequence[Entry]) -> list[str]:
    lines = wrapped(
        "The first command reads the boot that runs, holds it to the files and to what was predicted, and changes "
        "nothing. The second shows the bare lines on the host."
    )
    lines += ["", *fenced(_playbook("verify", about), _on_the_host(about["service"]), kind="sh"), ""]
    switched = next((entry for entry in reversed(attempt) if entry["kind"] == "switched"), None)
    ledger = (switched or {}).get("ledger") or {}
    settled = [str(item["line"]) for item in ledger.get("settled") or []]
    if settled:
        lines += wrapped(f"The boot `{ledger['fingerprint']}`, which proved the pair in force, printed:")
        lines += ["", *fenced(*settled), ""]
    else:
        lines += ["No boot of a resize is on record yet for the pair in force.", ""]
    return [
        *lines,
        *wrapped(
            "- `settled at A free against B`: A stays free, B has to. What A has more is all that can be given to "
            "the pair, and nothing else on the card is spare.",
            "  ",
        ),
        *wrapped(
            "- `backs N sequences all at M tokens at once`: the pool holds its contract. Another wording means that "
            "it does not.",
            "  ",
        ),
        *wrapped(
            "- `slab slots` and `pinned pool slots`: the experts on the card and those in the host's memory; their "
            "sum stays.",
            "  ",
        ),
        *wrapped("- `sampler: … R rows`: sequences times one more than the speculation depth.", "  "),
    ]


def _on_the_host(service: t.Mapping[str, t.Any]) -> str:
    managed = _service.managed_by(service)
    user = " --user" if managed["scope"] == "user" else ""
    if managed["source"] == "file":
        return f"grep -aE '{_ROWS}' {shlex.quote(str(service['log']))} | tail -n 20"
    if managed["source"] == "journald":
        return f"journalctl{user} -u {managed['unit']} -b -o cat | grep -aE '{_ROWS}' | tail -n 20"
    return f"{managed['source']} logs {managed['name']} 2>&1 | grep -aE '{_ROWS}'"


def _gate_lines(about: t.Mapping[str, t.Any], made: Entry | None) -> list[str]:
    lines = wrapped(
        f"They hold before every restart. The bounds are in the header of {_link('env', about)}, and "
        f"{_link('bats', about)} fails when somebody edits the env beyond them, or to a larger shape; what is "
        "marked *plan only* takes the ledger as well, and only a plan judges it."
    )
    if made is None:
        return [*lines, "", "The next resize says which apply here, and by which lines of the boot."]
    gates = [gate for gate in made["plan"]["gates"] if gate["name"] in MEANINGS]
    lines += ["", f"The lines are of the boot `{made['plan']['fingerprint']}`, which the pair was planned from.", ""]
    by_line: dict[str, list[str]] = {}
    for gate in gates:
        by_line.setdefault(" ".join(str(gate["from"]).split()), []).append(gate["name"])
        alone = "" if gate["name"] in _gates.TESTED else " (*plan only*)"
        lines += wrapped(f"- `{gate['name']}`{alone}: {MEANINGS[gate['name']]}", "  ")
        if gate.get("accepted"):
            lines += wrapped("  Not held to here, knowingly: the header of the env has the reason.", "  ")
    for line, names in by_line.items():
        by = f"By {' and '.join(f'`{name}`' for name in names)}:"
        lines += ["", *wrapped(by), "", *fenced(*wrapped(line))]
    return lines


def _how(about: t.Mapping[str, t.Any]) -> list[str]:
    plan, fill = (
        _playbook("plan", about, "-e fill=true"),
        _playbook("resize", about, "-e fill=true"),
    )
    return [
        *wrapped(
            "With the playbooks and not by hand: they read the ledger, plan, restart once, and put the old pair back "
            "when the new one does not hold. `weights_mib` and `kv_mib` state a pair, `max_num_seqs` and "
            "`max_model_len` a shape; `fill` gives the slab what the contract leaves."
        ),
        "",
        *fenced(plan, fill, kind="sh"),
        "",
        "To return to what ran before the last switch, and to see what may be returned to:",
        "",
        *fenced(str(about["undo"]), _playbook("history", about), kind="sh"),
    ]
