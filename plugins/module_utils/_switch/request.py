# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one call of the switch was asked for, read and checked before anything is touched.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import FLAGS
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import whole_number
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.container import RUNTIMES
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.unit import SCOPES
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import files
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.needed import Need

# The module's options that are seconds, with their defaults, which are those of the role. The wait for the memory of
# the cards is the longer one: given up too early it ends in a way back that lacks the same memory.
TIMEOUTS: t.Mapping[str, int] = {"drain_timeout": 60, "stop_timeout": 60, "release_timeout": 120, "ready_timeout": 1800}
_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*")
_EXPECT = ("to", "predictions", "attempt", "host", "flags", "image", "image_digest")


class Other(t.NamedTuple):
    """Another service that is declared on cards of this one: ``cards`` are those that both have.

    ``reserved``: its part of each of them is kept free for it.
    """

    service: str
    manager: dict[str, t.Any]
    cards: list[int]
    endpoint: str | None
    api_key_file: str | None
    reserved: bool


class Request(t.NamedTuple):
    """The options of the module, read. Times in seconds, paths absolute on the target, ``manager`` described."""

    service: str
    manager: dict[str, t.Any]
    image: str | None
    cards: list[int]
    files: list[files.Wanted]
    needs: list[Need]
    endpoint: str | None
    api_key_file: str | None
    expect: dict[str, t.Any] | None
    fingerprint: str | None
    drain_timeout: float
    stop_timeout: float
    release_timeout: float
    ready_timeout: float
    before_drain: list[str]
    after_ready: list[str]
    state_dir: str
    save_receipt: bool
    probation: int | None
    others: list[Other]
    handover: bool


def read_request(options: t.Mapping[str, t.Any]) -> Request:
    """The module's options as a Request.

    Raises RadianceError ``option_unusable``, ``expect_unusable``, ``not_a_whole_number`` or ``file_unusable``.
    """
    service = str(options["service"])
    if not _SERVICE.fullmatch(service):
        raise RadianceError(
            f"service {service!r} names a folder of the state directory: letters, digits and . _ @ - only, "
            "a letter or digit first.",
            code="option_unusable",
        )
    if not str(options["state_dir"]).startswith("/"):
        raise _not_absolute("state_dir", options["state_dir"])
    for name in TIMEOUTS:
        if options[name] < 0:
            raise RadianceError(f"{name} is {options[name]}; seconds are 0 or more.", code="option_unusable")
    expect = options.get("expect")
    if expect is None and options.get("fingerprint"):
        raise RadianceError(
            "fingerprint needs expect: without it nothing is switched, whatever runs.",
            code="expect_unusable",
        )
    if (expect is not None or options.get("files")) and options.get("save_receipt"):
        raise RadianceError(
            "save_receipt changes nothing but the receipt, and expect asks for a switch, which saves that of its new "
            "boot; files are written. Give one of the two.",
            code="option_unusable",
        )
    return Request(
        service=service,
        manager=_read_manager(service, options),
        image=options.get("image"),
        cards=list(options.get("cards") or []),
        files=[files.wanted(entry) for entry in options.get("files") or []],
        needs=[Need(**entry) for entry in options.get("needs") or []],
        endpoint=options.get("endpoint"),
        api_key_file=options.get("api_key_file"),
        expect=None if expect is None else _read_expect(expect),
        fingerprint=options.get("fingerprint"),
        drain_timeout=options["drain_timeout"],
        stop_timeout=options["stop_timeout"],
        release_timeout=options["release_timeout"],
        ready_timeout=options["ready_timeout"],
        before_drain=list(options.get("before_drain") or []),
        after_ready=list(options.get("after_ready") or []),
        state_dir=options["state_dir"],
        save_receipt=bool(options.get("save_receipt")),
        probation=_read_probation(options),
        others=[_read_other(other, service) for other in options.get("others") or []],
        handover=bool(options.get("handover")),
    )


def _read_other(other: t.Mapping[str, t.Any], service: str) -> Other:
    name = str(other["service"])
    if not _SERVICE.fullmatch(name) or name == service:
        raise RadianceError(
            f"others has the service {name!r}: it names another service of this host, by the name of its folder in the "
            "state directory.",
            code="option_unusable",
        )
    try:
        manager = _read_manager(name, other)
    except RadianceError as error:
        raise RadianceError(f"others, {name}: {error.text}", code=error.code) from error
    return Other(
        service=name,
        manager=manager,
        cards=sorted(set(other.get("cards") or [])),
        endpoint=other.get("endpoint"),
        api_key_file=other.get("api_key_file"),
        reserved=bool(other.get("reserved")),
    )


def _read_probation(options: t.Mapping[str, t.Any]) -> int | None:
    seconds = options.get("probation")
    if seconds is None:
        return None
    if seconds < 0:
        raise RadianceError(f"probation is {seconds}; seconds are 0 or more.", code="option_unusable")
    if seconds and options["manager"] == "process":
        raise RadianceError(
            "probation needs a unit of systemd, which watches it: nobody watches a plain process. Leave it out.",
            code="option_unusable",
        )
    if seconds and options.get("expect") is None:
        raise RadianceError("probation is of a switch, so it needs expect; 0 ends one.", code="option_unusable")
    return int(seconds)


def _read_manager(service: str, options: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What describes the manager, with only the options that it takes."""
    start = list(options.get("start") or [])
    needed = options["manager"] == "process"
    if (needed and not start) or (start and not start[0].startswith("/")):
        raise RadianceError("start needs a program by its absolute path as its first item.", code="option_unusable")
    if options["manager"] == "process":
        for name in ("pid_file", "path"):
            if not str(options[name]).startswith("/"):
                raise _not_absolute(name, options[name])
        if options["source"] not in (None, "file"):
            raise RadianceError(
                f"The log of a plain process is a file; source is {options['source']}.", code="option_unusable"
            )
        return {"kind": "process", "start": start, "pid_file": options["pid_file"], "log": options["path"]}
    source = options["source"] or "podman"
    if source not in (*RUNTIMES, "journald"):
        raise RadianceError(
            f"A unit's engine is read from podman, docker or journald; source is {source}.", code="option_unusable"
        )
    return {
        "kind": "systemd",
        "unit": options.get("unit") or f"{service}.service",
        "scope": SCOPES[options["manager"]],
        "source": source,
        "name": options.get("name") or service,
        "script": start[0] if start else None,
    }


def _not_absolute(name: str, value: t.Any) -> RadianceError:
    return RadianceError(f"{name} {value!r} is not an absolute path on the target.", code="option_unusable")


def _read_expect(expect: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """``expect`` in the types that a journal and a record take: what they refuse must not come up after the stop."""
    unknown = sorted(set(expect) - set(_EXPECT))
    if unknown:
        raise RadianceError(f"expect has {', '.join(unknown)}; it states {', '.join(_EXPECT)}.", code="expect_unusable")
    predictions, flags, attempt = expect.get("predictions") or [], expect.get("flags") or {}, expect.get("attempt")
    if not isinstance(predictions, list) or not all(isinstance(row, dict) for row in predictions):
        raise RadianceError("expect.predictions is the list of a plan's predictions.", code="expect_unusable")
    if not isinstance(flags, dict):
        raise RadianceError(
            f"expect.flags is {flags!r}; it takes a dictionary of the engine's flags without dashes.",
            code="expect_unusable",
        )
    for name in ("image", "image_digest"):
        if expect.get(name) is not None and not isinstance(expect[name], str):
            raise RadianceError(f"expect.{name} is {expect[name]!r}; it takes text.", code="expect_unusable")
    return {
        "to": _read_to(expect.get("to")),
        "predictions": predictions,
        "attempt": None if attempt is None else str(attempt),
        "host": expect.get("host"),
        "flags": flags,
        "image": expect.get("image") or None,
        "image_digest": expect.get("image_digest") or None,
    }


def _read_to(to: t.Any) -> dict[str, t.Any]:
    """``expect.to`` with numbers for numbers: a template hands them over as text."""
    if not isinstance(to, dict):
        raise RadianceError("expect needs `to`, the pair and shape of the plan.", code="expect_unusable")
    unknown = sorted(set(to) - set(FLAGS))
    if unknown:
        raise RadianceError(
            f"expect.to has {', '.join(unknown)}; it states {', '.join(FLAGS)}.", code="expect_unusable"
        )
    numbers = {
        key: whole_number(value, f"expect.to.{key}")
        for key, value in to.items()
        if key != "kv_cache_dtype" and value is not None
    }
    return {**to, **numbers}
