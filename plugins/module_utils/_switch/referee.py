# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The referee: whether the new boot's ledger is what was asked for. Pure.

It judges essential rows only. A healthy boot is not undone because a row that is nice to have was reworded: what was
not printed there is no finding.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import FLAGS, SHAPE_NAMES
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import number, pair_text
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import images

Finding = dict[str, t.Any]


def judge(expect: t.Mapping[str, t.Any], ledger: t.Mapping[str, t.Any], another_image: bool = False) -> list[Finding]:
    """``[{name, holds, asked, printed, line, says}]`` for what was judged, in order.

    ``expect`` is ``{to, predictions}`` of the plan, and ``image`` and ``image_digest`` where one is asked for. Names:
    listening, image, pair, settled, settled_free.card<N>, capacity, shape. The switch holds when every ``holds`` is
    true. ``another_image``: this boot is of another release than the one before, whose rows may be worded otherwise.
    What is not printed as it is known here is then named, and held against nobody.
    """
    to = expect["to"]
    findings = [_listening(ledger)]
    findings += _image(expect, ledger)
    findings += [_let_pass(finding, another_image) for finding in (*_pair(to, ledger), *_settled(to, ledger))]
    findings += _capacity(to, expect.get("predictions") or [], ledger)
    findings += _shape(to, ledger)
    return findings


def differences(to: t.Mapping[str, t.Any], flags: t.Mapping[str, str]) -> list[str]:
    """Where a process's flags are not what ``to`` states, as phrases; a null in ``to`` states nothing."""
    out = []
    for key, option in FLAGS.items():
        if to.get(key) is None:
            continue
        runs = flags.get(option)
        if runs != str(to[key]):
            out.append(f"--{option} {'is not given' if runs is None else 'is ' + runs}, asked is {to[key]}")
    return out


def _finding(name: str, holds: bool, asked: t.Any, printed: t.Any, line: str | None, says: str) -> Finding:
    return {"name": name, "holds": holds, "asked": asked, "printed": printed, "line": line, "says": says}


def goal_text(expect: t.Mapping[str, t.Any], old: t.Mapping[str, t.Any] | None) -> str:
    """The pair that is switched to, and its image where that is another than the ``old`` one."""
    image = "" if old is None or images.is_asked(expect, old) else f" of the image {expect['image']}"
    return pair_text(expect["to"]) + image


def _let_pass(finding: Finding, another_image: bool) -> Finding:
    """What a row that is not there says of a boot of another release: nothing."""
    if finding["holds"] or not another_image or finding["printed"] is not None:
        return finding
    return {**finding, "holds": True, "says": f"{finding['says']} in words that are known here; it is another release"}


def _image(expect: t.Mapping[str, t.Any], ledger: t.Mapping[str, t.Any]) -> list[Finding]:
    runs = images.of_ledger(ledger)
    if not expect.get("image") or runs is None:
        return []
    wrong = images.difference(expect, runs)
    says = wrong[0] if wrong else f"the image is the one that was asked for, {expect['image']}"
    return [_finding("image", not wrong, expect["image"], runs["name"], None, says)]


def _listening(ledger: t.Mapping[str, t.Any]) -> Finding:
    ready = bool(ledger["ready"])
    says = "the boot reached its listening line" if ready else "the boot has not reached `server: listening`"
    return _finding("listening", ready, True, ready, None, says)


def _pair(to: t.Mapping[str, t.Any], ledger: t.Mapping[str, t.Any]) -> list[Finding]:
    if to.get("weights_mib") is None or to.get("kv_mib") is None:
        return []  # from release 1.3 on the engine splits the card itself
    asked: dict[str, int] = {key: to[key] for key in ("weights_mib", "kv_mib")}
    wrong, printed = [], {}
    rows = (ledger.get("budget") or {}).get("rows") or {}
    pair = ledger.get("pair") or {}
    for key, row_name in (("weights_mib", "vram_weights"), ("kv_mib", "vram_kv")):
        row = rows.get(row_name)
        if row is not None:
            printed[key] = row["mib"]
            # Half a unit of the printed digits; a stated pool is printed as it was asked, so nothing more is due.
            if abs(row["mib"] - asked[key]) > row["plus_minus_mib"] + 0.01:
                wrong.append(f"{row_name} is {row['text']} for {number(asked[key])} MiB asked")
        elif pair.get(key) is not None:
            printed[key] = pair[key]
        if pair.get("exact") and pair.get(key) is not None and pair[key] != asked[key]:
            wrong.append(
                f"the command line of this boot says {number(pair[key])} MiB for {number(asked[key])} MiB asked"
            )
    if len(printed) < 2:
        return [_finding("pair", False, asked, printed or None, None, "this boot did not print its pools")]
    says = "; ".join(wrong) or f"the boot printed the pair {pair_text(asked)} that was asked"
    return [_finding("pair", not wrong, asked, printed, None, says)]


def _settled(to: t.Mapping[str, t.Any], ledger: t.Mapping[str, t.Any]) -> list[Finding]:
    findings = []
    # A split of the engine's own is not a pair that asked for too much: what it leaves free is told, and not judged.
    ours = to.get("weights_mib") is not None or to.get("kv_mib") is not None
    printed = ledger.get("settled") or []
    for row in printed:
        free, floor = row["free"], row["floor"]
        holds = free["mib"] + free["plus_minus_mib"] >= floor["mib"] - floor["plus_minus_mib"]
        short = floor["mib"] - free["mib"]
        says = f"card {row['card']} settled at {free['text']} free against a floor of {floor['text']}"
        if not holds:
            says += f", {short:,.2f} MiB short" + ("" if ours else ", by the engine's own split")
        holds = holds or not ours
        findings.append(
            _finding(f"settled_free.card{row['card']}", holds, floor["mib"], free["mib"], row.get("line"), says)
        )
    cards = {row["card"] for row in printed}
    absent = [card for card in (ledger.get("devices") or {}).get("used") or [] if card not in cards]
    if absent or not printed:
        which = ", ".join(str(card) for card in absent) or "any card"
        findings.append(
            _finding("settled", False, "a settled line", None, None, f"this boot printed no settled line for {which}")
        )
    return findings


def _capacity(
    to: t.Mapping[str, t.Any], predictions: t.Sequence[t.Mapping[str, t.Any]], ledger: t.Mapping[str, t.Any]
) -> list[Finding]:
    asked = to.get("max_num_seqs")
    capacity = ledger.get("capacity") or {}
    predicted = [row for row in predictions if row.get("quantity") == "sequences_backed"]
    # A pool that is meant to hold one request only is not undone for holding one request only.
    if asked is None or not any(row.get("low") is not None and row["low"] >= asked for row in predicted):
        return []
    if capacity.get("full") is None:
        return []
    holds = bool(capacity["full"]) and (capacity.get("sequences") is None or capacity["sequences"] >= asked)
    says = f"the pool backs all {asked} sequences in full"
    if not holds:
        percent = capacity.get("backing_percent")
        says = f"the pool does not back {asked} sequences in full" + ("" if percent is None else f", but {percent} %")
    return [_finding("capacity", holds, asked, capacity.get("sequences"), None, says)]


def _shape(to: t.Mapping[str, t.Any], ledger: t.Mapping[str, t.Any]) -> list[Finding]:
    flags = ledger.get("flags") or {}
    readable = {key: to.get(key) for key in SHAPE_NAMES if to.get(key) is not None and FLAGS[key] in flags}
    if not readable:
        return []
    wrong = differences(readable, flags)
    printed = {key: flags[FLAGS[key]] for key in readable}
    says = "; ".join(wrong) or "the command line of this boot has the shape that was asked"
    return [_finding("shape", not wrong, readable, printed, None, says)]
