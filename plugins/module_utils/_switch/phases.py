# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""One call of the switch: what was asked, and the account of what was done.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import platform
import re
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sizes import whole_number
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import files
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.referee import OPTIONS
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import Progress

# A file item has a path and an octal mode; `path` expands a leading ~, which a plain text would not.
ARGUMENTS: dict[str, t.Any] = {
    "service": {"type": "str", "required": True},
    "manager": {"type": "str", "choices": ["process"], "default": "process"},
    "start": {"type": "list", "elements": "str", "required": True},
    "pid_file": {"type": "path", "required": True},
    "source": {"type": "str", "choices": ["file"], "default": "file"},
    "path": {"type": "path", "required": True},
    "cards": {"type": "list", "elements": "int", "default": []},
    "files": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "content": {"type": "str"},
            "src": {"type": "path"},
            "dest": {"type": "path", "required": True},
            "mode": {"type": "raw"},
        },
        "mutually_exclusive": [("content", "src")],
        "required_one_of": [("content", "src")],
    },
    "endpoint": {"type": "str"},
    "api_key_file": {"type": "path", "no_log": False},
    "expect": {"type": "dict"},
    "fingerprint": {"type": "str"},
    "drain_timeout": {"type": "float", "default": 60},
    "stop_timeout": {"type": "float", "default": 60},
    "release_timeout": {"type": "float", "default": 60},
    "ready_timeout": {"type": "float", "default": 1800},
    "before_drain": {"type": "list", "elements": "str", "default": []},
    "after_ready": {"type": "list", "elements": "str", "default": []},
    "state_dir": {"type": "path", "required": True},
}


class Request(t.NamedTuple):
    """The options of the module, read. Times in seconds, paths absolute on the target."""

    service: str
    start: list[str]
    pid_file: str
    log: str
    cards: list[int]
    files: list[files.Wanted]
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

    @property
    def host(self) -> str:
        """The host's name in records: what the inventory calls it, else what it calls itself."""
        return str((self.expect or {}).get("host") or platform.node())


def read_request(options: t.Mapping[str, t.Any]) -> Request:
    """The module's options as a Request.

    Raises RadianceError ``option_unusable``, ``expect_unusable`` or ``file_unusable``.
    """
    service = str(options["service"])
    if not re.match(r"^[A-Za-z0-9][A-Za-z0-9._@-]*$", service):
        raise RadianceError(
            f"service {service!r} names a folder of the state directory: letters, digits and . _ @ - only, "
            "a letter or digit first.",
            code="option_unusable",
        )
    for name in ("pid_file", "path", "state_dir"):
        if not str(options[name]).startswith("/"):
            raise RadianceError(
                f"{name} {options[name]!r} is not an absolute path on the target.", code="option_unusable"
            )
    if not options["start"] or not options["start"][0].startswith("/"):
        raise RadianceError("start needs a program by its absolute path as its first item.", code="option_unusable")
    for name in ("drain_timeout", "stop_timeout", "release_timeout", "ready_timeout"):
        if options[name] < 0:
            raise RadianceError(f"{name} is {options[name]}; seconds are 0 or more.", code="option_unusable")
    expect = options.get("expect")
    if expect is None and (options.get("files") or options.get("fingerprint")):
        raise RadianceError(
            "files and fingerprint need expect: without it this only finishes a switch that was interrupted.",
            code="expect_unusable",
        )
    if expect is not None:
        expect = {**expect, "to": _read_to(expect.get("to"))}
    return Request(
        service=service,
        start=list(options["start"]),
        pid_file=options["pid_file"],
        log=options["path"],
        cards=list(options.get("cards") or []),
        files=[files.wanted(entry) for entry in options.get("files") or []],
        endpoint=options.get("endpoint"),
        api_key_file=options.get("api_key_file"),
        expect=expect,
        fingerprint=options.get("fingerprint"),
        drain_timeout=options["drain_timeout"],
        stop_timeout=options["stop_timeout"],
        release_timeout=options["release_timeout"],
        ready_timeout=options["ready_timeout"],
        before_drain=list(options.get("before_drain") or []),
        after_ready=list(options.get("after_ready") or []),
        state_dir=options["state_dir"],
    )


def _read_to(to: t.Any) -> dict[str, t.Any]:
    """``expect.to`` with numbers for numbers: a template hands them over as text."""
    if not isinstance(to, dict):
        raise RadianceError("expect needs `to`, the pair and shape of the plan.", code="expect_unusable")
    unknown = sorted(set(to) - set(OPTIONS))
    if unknown:
        raise RadianceError(
            f"expect.to has {', '.join(unknown)}; it states {', '.join(OPTIONS)}.", code="expect_unusable"
        )
    numbers = {
        key: whole_number(value, f"expect.to.{key}")
        for key, value in to.items()
        if key != "kv_cache_dtype" and value is not None
    }
    return {**to, **numbers}


class Phase:
    """The phase that runs now. Set ``says`` to the sentence that the result keeps."""

    def __init__(self, name: str, progress: Progress | None) -> None:
        self.name = name
        self.says = ""
        self._progress = progress

    def tell(self, says: str) -> None:
        """Show a line to whoever follows."""
        if self._progress is not None:
            self._progress.line(self.name, says)


class Run:
    """What this call has done so far; ``result`` has every key that the module returns, at any moment."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress
        self.changed = False
        self.outcome = "unchanged"
        self.says: list[str] = []
        self.recovered: str | None = None
        self.phases: list[dict[str, t.Any]] = []
        self.actions: list[list[str]] = []
        self.before: dict[str, t.Any] | None = None
        self.ledger: dict[str, t.Any] | None = None
        self.restored: dict[str, t.Any] | None = None
        self.findings: list[dict[str, t.Any]] = []
        self.downtime_seconds: float | None = None
        self.receipt: str | None = None
        self.diff: list[dict[str, str]] = []
        self.records: list[dict[str, t.Any]] = []
        self.by_hand: list[str] = []
        self.warnings: list[str] = []

    @contextlib.contextmanager
    def phase(self, name: str) -> t.Iterator[Phase]:
        """Time a phase and keep its sentence, that of the error which ends it included."""
        phase = Phase(name, self.progress)
        phase.tell("")  # shown to nobody, but a follower knows then in which phase a process died
        began = time.monotonic()
        try:
            yield phase
        except RadianceError as error:
            phase.says = error.text
            raise
        except Exception as error:
            phase.says = f"{type(error).__name__}: {error}"
            raise
        finally:
            phase.tell(phase.says)
            self.phases.append(
                {"name": name, "seconds": round(time.monotonic() - began, 2), "says": files.masked(phase.says)}
            )

    def acted(self, argv: t.Sequence[str]) -> None:
        """Note a command that runs now."""
        self.actions.append(files.masked_argv(argv))

    def result(self) -> dict[str, t.Any]:
        """The module's return values, but for ``msg``."""
        return {
            "changed": self.changed,
            "outcome": self.outcome,
            "says": files.masked(" ".join(self.says)),
            "recovered": self.recovered,
            "phases": self.phases,
            "actions": self.actions,
            "before": self.before,
            "ledger": self.ledger,
            "restored": self.restored,
            "findings": self.findings,
            "downtime_seconds": self.downtime_seconds,
            "receipt": self.receipt,
            "diff": self.diff,
            "records": self.records,
            "by_hand": self.by_hand,
            "warnings": [files.masked(text) for text in self.warnings],
        }
