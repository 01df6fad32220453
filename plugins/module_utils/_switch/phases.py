# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The account of one call of the switch: its phases, and all that it returns.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import contextlib
import time
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._hidden import hidden, hidden_ledger, masked_argv
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.state import Progress

# The phases of a switch in their order, and those of its way back. guard is of units alone, hand_back of a handover.
FORWARD = (
    "lock",
    "precheck",
    "guard",
    "drain",
    "stop",
    "release",
    "swap",
    "start",
    "ready",
    "referee",
    "receipt",
    "keep",
)
BACK = ("restore", "start", "ready", "hand_back")
# Those in which nothing is stopped yet.
BEFORE_STOP = FORWARD[: FORWARD.index("stop")]


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
        self.probation: dict[str, t.Any] | None = None
        self.others: list[dict[str, t.Any]] = []

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
                {"name": name, "seconds": round(time.monotonic() - began, 2), "says": hidden(phase.says)}
            )

    def acted(self, argv: t.Sequence[str]) -> None:
        """Note a command that runs now."""
        self.actions.append(masked_argv(argv))

    def result(self) -> dict[str, t.Any]:
        """The module's return values, but for ``msg``."""
        return {
            "changed": self.changed,
            "outcome": self.outcome,
            "says": hidden(" ".join(self.says)),
            "recovered": self.recovered,
            "phases": self.phases,
            "actions": self.actions,
            "before": self.before and hidden_ledger(self.before),
            "ledger": self.ledger and hidden_ledger(self.ledger),
            "restored": self.restored and hidden_ledger(self.restored),
            "findings": self.findings,
            "downtime_seconds": self.downtime_seconds,
            "receipt": self.receipt,
            "diff": self.diff,
            "records": self.records,
            "by_hand": self.by_hand,
            "probation": self.probation,
            "others": self.others,
            "warnings": [hidden(text) for text in self.warnings],
        }
