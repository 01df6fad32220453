# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stack that a plan is for: engine version and image, and what of this ledger does not carry over to another.

Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.law import releases_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.predictions import MEASURED_QUANTITIES
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.request import Arm, Request
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import GONE_FLAGS, at_least
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.text import Ledger, counted


class Stack:
    """What will run after the plan: the engine version and image, and whether they are what runs now."""

    def __init__(self, ledger: Ledger, request: Request) -> None:
        version = (ledger.get("engine") or {}).get("version")
        digest = (ledger.get("source") or {}).get("image_digest")
        # Name, as asked, as it runs; None where nothing is asked or the ledger does not tell.
        self._parts: tuple[tuple[str, str | None, str | None], ...] = (
            ("engine_version", request.engine_version, version),
            ("image_digest", request.image_digest, digest),
        )
        self._asked_version, self._asked_digest = request.engine_version, request.image_digest
        self._margin_mib = request.shape_margin_mib
        self._flags = ledger.get("flags") or {}
        # Of another image nobody knows the version before it runs.
        self.version: str | None = request.engine_version or (None if "image_digest" in self.changes else version)
        self.digest: str | None = request.image_digest or digest

    @property
    def changes(self) -> list[str]:
        """``engine_version`` and ``image_digest`` where they differ from what runs.

        An image is asked for where it is not what runs, whether or not its runtime tells the digest of what runs.
        """
        return [
            name
            for name, asked, runs in self._parts
            if asked is not None and asked != runs and (runs is not None or name == "image_digest")
        ]

    @property
    def text(self) -> str | None:
        """A prediction's ``stack``: what is known of version and digest."""
        return " ".join(part for part in (self.version, self.digest) if part) or None

    def comparable_arms(self, arms: t.Sequence[Arm]) -> tuple[Arm, ...]:
        """The arms that may speak of what will run: all of them, unless the stack changes and they name another."""
        if not self.changes:
            return tuple(arms)
        return tuple(arm for arm in arms if self._names_it(arm))

    def _names_it(self, arm: Arm) -> bool:
        digest = self._asked_digest is not None and self._asked_digest in (arm.image_digest or arm.stack or "")
        return digest or self._asked_version in releases_of(arm)

    def warnings(self, arms: t.Sequence[Arm]) -> list[str]:
        """What a changed stack voids, what it no longer takes, and what could not be compared."""
        said = [
            f"{name} {asked} could not be compared with what runs: the ledger does not tell it."
            for name, asked, runs in self._parts
            if asked is not None and runs is None
        ]
        if self.changes and self.version is None:
            said.append(
                "Nobody knows which release of the engine the new image holds before it runs, so no flag that it may "
                "not take could be named: it does not start with one that it does not know, and then the old image is "
                "put back. engine_version says which it is."
            )
        if self.changes:
            said.append(
                f"The stack changes ({', '.join(self.changes)}): this ledger is evidence of another stack. Its "
                f"ceiling, its contract and its slots may not carry over, and {', '.join(MEASURED_QUANTITIES)} are not "
                f"predicted. A fill leaves its first boot shape_margin_mib {self._margin_mib} free, and a second fill "
                "follows from its own ledger."
            )
            left = len(arms) - len(self.comparable_arms(arms))
            if left:
                said.append(f"{counted(left, 'arm')} of another stack, or of one that is not named, do not carry over.")
            if self._flags.get("prefix-cache-dir"):
                said.append(
                    f"The prefix cache in {self._flags['prefix-cache-dir']} was written by another stack: what it "
                    "holds may be of no use to the new one."
                )
        said += [
            f"--{flag} is gone since engine {'.'.join(map(str, since))} and must not be passed to {self.version}, "
            "which does not start with an option that it does not know."
            for flag, since in GONE_FLAGS
            if flag in self._flags and at_least(self.version, since)
        ]
        return said
