# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between the releases that the stand-in can be. The README says which of it is fact."""

from __future__ import annotations

KNOWN = ("1.0.5", "1.0.13", "1.2.4", "1.3.0")
DEFAULT = "1.0.13"


class Release:
    """One release by its number; each property is one difference."""

    def __init__(self, name: str = DEFAULT) -> None:
        self.name = name
        self._number = tuple(int(part) for part in name.split("."))

    def since(self, *number: int) -> bool:
        """Whether this release is that one or a later one."""
        return self._number >= number

    @property
    def ratio(self) -> bool:
        """``--expert-vs-cache-ratio`` exists, and divides what is claimed."""
        return not self.since(1, 1)

    @property
    def pair(self) -> bool:
        """``--vram-weights-mib`` and ``--vram-kv-mib`` exist."""
        return not self.since(1, 3)

    @property
    def old_settled_lines(self) -> bool:
        """The four settled lines of 1.0.0 to 1.0.5, which speak of the headroom alone."""
        return not self.since(1, 0, 8)

    @property
    def timings(self) -> bool:
        """Answers carry ``timings``."""
        return self.since(1, 0, 8)

    @property
    def snapshots_on_host(self) -> bool:
        """Linear-state snapshots lie in pinned host memory and cost no VRAM."""
        return self.since(1, 1)

    @property
    def request_log(self) -> bool:
        """A line is logged for each request."""
        return self.since(1, 1, 1)

    @property
    def tool_choice(self) -> bool:
        """``tool_choice`` may name a tool or require one."""
        return self.since(1, 2, 1)

    @property
    def llama_fields(self) -> bool:
        """Fields of llama-server are taken, and logprobs."""
        return self.since(1, 3)
