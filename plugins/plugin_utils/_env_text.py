# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The header of an env: which plan made the pair, from which ledger, with what arithmetic, and what became of it.

It is made from the record alone, so the same record gives the same bytes.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _files, _managed_text, _words

_number = _words.number


def env_text(
    values: t.Mapping[str, str],
    service: t.Mapping[str, t.Any],
    host: str,
    history: t.Mapping[str, t.Any],
    current: str | None = None,
) -> str:
    """The env of a service: header from ``history``, then ``values``; of one that was adopted, ``current`` with its
    block written anew.
    """
    return _managed_text.env_placed(env_header(service, host, history), values, service, host, current)


def env_header(service: t.Mapping[str, t.Any], host: str, history: t.Mapping[str, t.Any]) -> list[str]:
    """The header's lines, without the leading ``#``."""
    lines = [f"{_files.MARKER}; the pair and shape of {service['name']} on {host}"]
    made = history["made"]
    if made is None:
        lines += ["", "No plan on record made this pair: it was taken over as it ran."]
    else:
        lines += _plan_lines(made, history)
    for attempt in history["failed"]:
        lines += _failed_lines(attempt)
    return [line.rstrip("\\").rstrip() for line in lines]


def _plan_lines(made: t.Mapping[str, t.Any], history: t.Mapping[str, t.Any]) -> list[str]:
    plan = made["plan"]
    asked = "filled" if made["request"].get("pair") == "fill" else "kept"
    origin = "stated by a command" if history["stated"] else asked
    lines = [
        f"Plan {made['attempt']} of {made['at']}, record {made['id']}; pair: {origin}.",
        "",
        f"From {_words.pair(plan['from'])} MiB a card, {_words.shape(plan['from'])}",
        f"to   {_words.pair(plan['to'])} MiB a card, {_words.shape(plan['to'])}",
        *_image_lines(made),
        "",
        f"Ledger of boot {plan['fingerprint']}:",
    ]
    lines += [f"  {line}" for line in (plan.get("ceiling") or {}).get("lines", [])]
    lines += [f"Ceiling:  {line}" for line in ceiling_words(plan)]
    lines += [f"Contract: {line}" for line in contract_words(plan)]
    for gate in plan["gates"]:
        if gate.get("accepted"):
            lines.append(f"Accepted: {gate['name']}: {gate['accepted']}")
    lines += ["", "Predictions:"]
    lines += [f"  {line}" for line in prediction_words(history["predictions"])]
    return lines


def _image_lines(made: t.Mapping[str, t.Any]) -> list[str]:
    """Which image the plan put in force, where it was another one, and whose ledger the figures below are of."""
    image, before = made.get("image"), made.get("image_before")
    if image is None or image == before:
        return []
    release = made["request"].get("engine_version")
    return [
        f"Image {image}" + (f", release {release}" if release else ""),
        f"instead of {before}, whose boot printed the ledger below: evidence of another stack.",
    ]


def ceiling_words(plan: t.Mapping[str, t.Any]) -> list[str]:
    """The ceiling with its three terms, and the reserves where there are any."""
    ceiling = plan.get("ceiling")
    if not ceiling:
        return []
    withdrawn = ceiling.get("withdrawn_mib")
    less = f"− {withdrawn:,.2f} of withdrawn checkpoint slots " if withdrawn else ""
    lines = [
        f"{ceiling['mib']:,.2f} MiB ± {ceiling['plus_minus_mib']:,.2f} a card = {ceiling['settled_free_mib']:,.2f} "
        f"settled free {less}− {ceiling['floor_mib']:,.2f} floor + {_number(ceiling['pair_sum_mib'])} pair "
        f"(card {ceiling['card']})"
    ]
    if ceiling.get("reserve_mib"):
        lines.append(f"{_number(ceiling['reserve_mib'])} MiB kept as a personal reserve: {ceiling['reserve_reason']}")
    for other in ceiling.get("others") or []:
        if other["mib"]:
            lines.append(
                f"{_number(other['mib'])} MiB of card {other['card']} kept for others as a personal reserve: "
                f"{other['reason']}"
            )
    return lines


def contract_words(plan: t.Mapping[str, t.Any]) -> list[str]:
    """What the pool must hold, with its terms and where they come from."""
    contract = plan.get("contract")
    if not contract:
        return []
    if contract["needed_mib"] is None:
        return ["not known: no line of the boot that was planned from tells the KV figures of this shape"]
    less = ""
    if contract.get("backing") == "one_request":
        less = f"backing one_request, less than the contract of {contract['full_mib']:,.2f} MiB for all: "
    live = contract.get("live_sessions")
    sessions = []
    if live:
        sessions.append(
            f"{live['needed_mib']:,.2f} MiB hold {_number(live['sessions'])} live sessions of {live['tokens']:,} "
            f"tokens: {live['held_tokens']:,} tokens of blocks, {live['factor']:g} x context by "
            f"{live['factor_from']}, an estimate"
        )
    return [
        f"{less}{contract['needed_mib']:,.2f} MiB of the pool's {_number(contract['pool_mib'])} = "
        f"{contract['tokens_mib']:,.2f} tokens + {contract['state_mib']:,.2f} state + "
        f"{contract['checkpoint_mib']:,.2f} checkpoints ({_number(contract['rate_bytes_per_token'])} B a token, "
        f"{_number(contract['state_mib_per_sequence'])} MiB a sequence; figures from {contract['figures_from']})",
        *sessions,
    ]


def prediction_words(predictions: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    """Each prediction with its verdict: ``settled_free_mib.card0  210.17 to 220.42 MiB  held, 215.30``."""
    return _words.table(prediction_rows(predictions), indent="")


def prediction_rows(predictions: t.Sequence[t.Mapping[str, t.Any]]) -> list[list[str]]:
    """A row of id, interval and verdict for each prediction."""
    rows = []
    for item in predictions:
        verdict = item.get("verdict") or "open"
        measured = "" if item.get("measured") is None else f", {_number(item['measured'])}"
        rows.append([item["id"], _words.interval(item["low"], item["high"], item.get("unit")), f"{verdict}{measured}"])
    return rows


def _failed_lines(attempt: t.Mapping[str, t.Any]) -> list[str]:
    image = f" of the image {attempt['image']}" if attempt.get("image") else ""
    lines = [
        "",
        f"{attempt['at']}: {_words.pair(attempt['to'])} MiB{image} was tried and rolled back in phase "
        f"{attempt['phase']}:",
        f"  {_words.one_line(attempt['says'])}",
    ]
    return lines + [f"  {line}" for line in prediction_words(attempt["predictions"])]
