# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""A ledger against what an endpoint says of itself, which is a snapshot that the engine made when it started.

They are of one boot, or one of the two is stale: the log's process has ended and another one answers, or an older
process still answers. Only what both of them tell is compared. ``uptime_s`` counts from the start of the engine or
later, so an endpoint that was up before the log's process began cannot be that process; the other way round, a long
load looks like a later start.
"""

from __future__ import annotations

import datetime
import os
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.replies import count_of, positive
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import MIB_PER_UNIT, size_from_dict

# The kernel tells a process's start within a second or two, and a runtime that of its container.
_START_SECONDS = 10.0
_EPSILON_MIB = 1e-6
# Beyond any machine: what is larger is no figure, and no person reads it.
_MOST = 10**15


class EndpointCheck(t.TypedDict):
    """A check of a ledger with both figures in words. The two numbers are None where none of it is a size."""

    name: str
    holds: bool
    difference_mib: float | None
    tolerance_mib: float | None
    says: str


def check_endpoint(ledger: t.Mapping[str, t.Any], info: t.Any, now: float) -> list[EndpointCheck]:
    """A check for each thing that the ledger and ``info``, the JSON of ``/server_info``, both tell.

    ``now`` is when ``info`` was told, in seconds since the epoch. Fields of another type than expected are not told.
    """
    server, engine = _dict(_dict(info).get("server")), _dict(_dict(info).get("engine"))
    capacity = ledger["capacity"]
    checks = [
        _start(ledger, server, now),
        _version(ledger["engine"], _text(server.get("version"))),
        _served_model(ledger, server),
        _same("arch", "the architecture", _text(ledger["model"]["arch"]), _text(engine.get("arch"))),
        _same("layers", "the layer count", ledger["model"]["layers"], _count(engine.get("n_layers"))),
        _same("tp", "the number of ranks", ledger["tp"], _count(engine.get("tensor_parallel"))),
        _same("wire", "the wire", ledger["wire"]["mode"], _wire(engine.get("tp_wire"))),
        _same("sequences", "max_num_seqs", capacity["sequences"], _count(server.get("max_num_seqs"))),
        _same("tokens", "max_model_len", capacity["tokens"], _count(server.get("max_model_len"))),
        *_cards(ledger, _list(engine.get("devices"))),
        *_groups(ledger["kv"]["groups"], _list(engine.get("kv_groups"))),
        _checkpoints(ledger["kv"]["checkpoints"], _count(engine.get("checkpoint_slots"))),
    ]
    return [check for check in checks if check is not None]


def hold_to_endpoint(ledger: t.Mapping[str, t.Any], info: t.Any, now: float) -> dict[str, t.Any]:
    """The ledger with the checks of ``check_endpoint``; incomplete where it was complete and one of them failed."""
    checks = check_endpoint(ledger, info, now)
    found = {**ledger, "checks": [*ledger["checks"], *checks]}
    broken = [check["says"] for check in checks if not check["holds"]]
    if broken and ledger["status"] == "complete":
        text = f"The endpoint serves another boot than the log's: {'; '.join(broken)}. {_stale(ledger, info, now)}"
        found.update(status="incomplete", reason={"code": "endpoint_differs", "text": text})
    return found


def _stale(ledger: t.Mapping[str, t.Any], info: t.Any, now: float) -> str:
    """Which of the two is the older one, as far as their times tell, and the way out."""
    begun, served = _begun(ledger), _served(_dict(_dict(info).get("server")), now)
    if begun is None:
        since = f", which has served since {_utc(served)}," if served is not None else ""
        return (
            f"No running process is known to have printed this log, so the log is stale, and the endpoint{since} is "
            "what runs. Read the log of that service: by its container, its unit, or with its pid_file."
        )
    if served is None:
        return (
            f"The process of the log runs since {_utc(begun)}; the endpoint does not tell since when it serves. Name "
            "the endpoint of this service."
        )
    if served < begun - _START_SECONDS:
        return (
            f"The endpoint is stale: it has served since {_utc(served)}, and the process of the log runs since "
            f"{_utc(begun)} only. Stop the older engine, or name the endpoint of this service."
        )
    return (
        f"The log is stale: the process that should have printed it runs since {_utc(begun)} and the endpoint serves "
        f"since {_utc(served)}, so that the log does not hold that boot. Unless the endpoint is of another service, "
        "read the boot's receipt, or restart the service with a log of its own."
    )


def _start(ledger: t.Mapping[str, t.Any], server: dict[str, t.Any], now: float) -> EndpointCheck | None:
    begun, served = _begun(ledger), _served(server, now)
    if begun is None or served is None:
        return None
    says = f"the process of the log runs since {_utc(begun)}, the endpoint serves since {_utc(served)}"
    return _check("start", served >= begun - _START_SECONDS, says)


def _version(mine: t.Mapping[str, t.Any], told: str | None) -> EndpointCheck | None:
    """The log does not tell it, so that another answer of the endpoint, or the image, is held to this one."""
    if mine["version"] is None or told is None:
        return None
    says = f"the version is {mine['version']} as the {mine['version_from']} tells it and {told} in /server_info"
    return _check("version", mine["version"] == told, says)


def _served_model(ledger: t.Mapping[str, t.Any], server: dict[str, t.Any]) -> EndpointCheck | None:
    """The name that is served is the model file's, without its extension."""
    told, path = _text(server.get("model")), ledger["flags"].get("model")
    if told is None or not path:
        return None
    file = os.path.basename(path)
    names = {file, os.path.splitext(file)[0], path, ledger["model"]["name"]}
    return _check("model", told in names, f"the model is {file} in the log's command line and {told} at the endpoint")


def _cards(ledger: t.Mapping[str, t.Any], devices: list[t.Any]) -> t.Iterator[EndpointCheck | None]:
    numbers = sorted(number for device in devices if (number := _count(_dict(device).get("device"))) is not None)
    used = ledger["devices"]["used"]
    if devices and len(numbers) == len(devices) and len(used) == ledger["tp"]:
        yield _same("cards", "the list of cards", _listed(used), _listed(numbers))
    bytes_of = [size for device in devices if (size := _amount(_dict(device).get("vram_bytes"))) is not None]
    total = ledger["budget"]["rows"]["card_total"]
    if devices and len(bytes_of) == len(devices) and total is not None:
        yield _size("card_total", "the smallest card", total, min(bytes_of))


def _groups(mine: list[dict[str, t.Any]], told: list[t.Any]) -> t.Iterator[EndpointCheck | None]:
    """Each group of the KV plan: its size, and what it is counted in."""
    theirs = {name: _dict(row) for row in told if (name := _text(_dict(row).get("name"))) is not None}
    if not mine or not theirs:
        return
    names = [group["name"] for group in mine]
    yield _same("kv_groups", "the list of KV groups", _listed(sorted(names)), _listed(sorted(theirs)))
    for group in mine:
        other = theirs.get(group["name"])
        if other is None:
            continue
        size = _amount(other.get("bytes"))
        if size is not None:
            yield _size(f"kv.{group['name']}", f"the KV group {group['name']}", group["size"], size)
        for key, their_key in (("blocks", "blocks"), ("tokens", "tokens"), ("slots", "states")):
            what = f"the number of {their_key} of the KV group {group['name']}"
            yield _same(f"kv.{group['name']}.{key}", what, group[key], _count(other.get(their_key)))


def _checkpoints(mine: t.Mapping[str, t.Any], told: int | None) -> EndpointCheck | None:
    """Of those that the budget counted, a boot may back fewer."""
    if mine["slots"] is None or told is None:
        return None
    backed = mine.get("backed")
    printed = f"{mine['slots']:,}" if backed is None else f"{mine['slots']:,} ({backed:,} of them backed)"
    says = f"the number of checkpoint slots is {printed} in the log and {told:,} at the endpoint"
    return _check("checkpoint_slots", told in (mine["slots"], backed), says)


def _same(name: str, what: str, mine: t.Any, theirs: t.Any) -> EndpointCheck | None:
    if mine is None or theirs is None:
        return None
    shown = [f"{value:,}" if isinstance(value, int) else value for value in (mine, theirs)]
    return _check(name, mine == theirs, f"{what} is {shown[0]} in the log and {shown[1]} at the endpoint")


def _size(name: str, what: str, mine: t.Mapping[str, t.Any], their_bytes: float) -> EndpointCheck:
    size, told = size_from_dict(mine), their_bytes * MIB_PER_UNIT["B"]
    difference = told - size.mib
    holds = abs(difference) <= size.plus_minus_mib + _EPSILON_MIB
    says = f"{what} has {size.text} in the log and {told:,.2f} MiB at the endpoint"
    return _check(name, holds, says, difference, size.plus_minus_mib)


def _check(
    name: str, holds: bool, says: str, difference: float | None = None, tolerance: float | None = None
) -> EndpointCheck:
    return {
        "name": f"endpoint_{name}",
        "holds": holds,
        "difference_mib": None if difference is None else round(difference, 6),
        "tolerance_mib": None if tolerance is None else round(tolerance, 6),
        "says": says,
    }


def _begun(ledger: t.Mapping[str, t.Any]) -> float | None:
    """When the process of the log began, in seconds since the epoch; None where no running process is known."""
    text = ledger["source"]["started_at"]
    if not text:
        return None
    try:
        time = datetime.datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return None
    return time.replace(tzinfo=datetime.timezone.utc).timestamp()


def _served(server: dict[str, t.Any], now: float) -> float | None:
    uptime = _amount(server.get("uptime_s"))
    return None if uptime is None or uptime > now else now - uptime


def _utc(time: float | None) -> str:
    return (
        "" if time is None else f"{datetime.datetime.fromtimestamp(time, tz=datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    )


def _wire(value: t.Any) -> str | None:
    """At one rank there is no wire, and nothing on it is lossy."""
    return {"exact": "exact", "wht6": "wht6", "n/a": "exact"}.get(value) if isinstance(value, str) else None


def _listed(values: t.Iterable[t.Any]) -> str:
    return ", ".join(str(value) for value in values) or "none"


def _count(value: t.Any) -> int | None:
    count = count_of(value)
    return count if count is not None and count < _MOST else None


def _amount(value: t.Any) -> float | None:
    amount = positive(value)
    return amount if amount is not None and amount < _MOST else None


def _text(value: t.Any) -> str | None:
    return value[:200] if isinstance(value, str) and value.isprintable() and value else None


def _dict(value: t.Any) -> dict[str, t.Any]:
    return value if isinstance(value, dict) else {}


def _list(value: t.Any) -> list[t.Any]:
    return value[:64] if isinstance(value, list) else []
