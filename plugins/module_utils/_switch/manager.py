# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a switch needs of whatever starts and stops the engine, and of the text that a boot prints.

A *boot* here is the journal's dictionary of where one boot is found: its process as ``pid`` and ``ticks`` (null while
it is not known), and what the manager needs to find its text.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import abc
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import process
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.reading import Reading

Boot = dict[str, t.Any]
Ledger = dict[str, t.Any]


class BootText(abc.ABC):
    """The text of a boot as far as it is written; each ``poll`` reads only what is new where that can be told."""

    # Seconds between two polls of a boot that takes its time.
    longest_pause = 0.25
    # False when text of an earlier boot may stand before it.
    bounded = True

    @abc.abstractmethod
    def poll(self) -> bool:
        """Whether at least one whole line has come since the last poll."""

    @abc.abstractmethod
    def lines(self) -> str:
        """The whole lines."""

    @abc.abstractmethod
    def all(self) -> str:
        """Everything, a line that was cut off included."""

    @abc.abstractmethod
    def reading(self, found: process.Process | None, flags: t.Mapping[str, str]) -> Reading:
        """The boot as boot_ledger_info would read it, up to the listening line."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of it."""


class Manager(abc.ABC):
    """One service, as what starts and stops it sees it."""

    # What it was made from, for the journal; ``managers.manager_of`` makes the same one again.
    described: dict[str, t.Any]
    # The command that a person would see: what starts the service.
    start_argv: list[str]
    # Whether it is a unit of systemd, which acts on files of ours where no run of ours does.
    is_unit = False

    @abc.abstractmethod
    def current(self) -> process.Process | None:
        """The live process of the service, or None."""

    def comes_back(self) -> bool:
        """Whether something starts the service by itself, though nothing of it may run at this moment."""
        return False

    def crashed(self) -> bool:
        """Whether nothing runs because the service ended by itself and has failed."""
        return False

    @abc.abstractmethod
    def nothing_runs(self) -> str:
        """The beginning of a sentence: what shows that nothing runs."""

    @abc.abstractmethod
    def to_be_found(self) -> str:
        """The beginning of a sentence: what a person does with a service that was started in another way."""

    @abc.abstractmethod
    def stranger(self) -> str | None:
        """A sentence when something lives in the service's place that we may neither stop nor start beside."""

    @abc.abstractmethod
    def problem(self, installs: t.Collection[str]) -> str | None:
        """A sentence when ``start`` could not work. ``installs`` are the files that the switch brings along."""

    @abc.abstractmethod
    def lost_image(self, image: str | None) -> str | None:
        """The image that a start of either pair would miss: ``image`` is the new pair's, where it is known."""

    def image(self) -> dict[str, t.Any] | None:
        """The image of the container that runs: ``{name, digest}``; None where none does."""
        return None

    def watched(self) -> tuple[str, str] | None:
        """The unit and its scope, where systemd runs the service. Raises RadianceError ``systemd_unreachable``."""
        return None

    def environment_files(self) -> list[str]:
        """The files, beside those of a switch, without which systemd does not start the service."""
        return []

    def digest_of(self, image: str) -> str | None:
        """The digest of what a name means on this host now; None where nothing tells."""
        return None

    def tag_command(self, image: str) -> str | None:
        """The shell command that gives this name to the image of the container that runs."""
        return None

    @abc.abstractmethod
    def program(self) -> list[str]:
        """The command line that a start runs; empty where nothing tells it."""

    @abc.abstractmethod
    def no_program(self) -> str | None:
        """A few words when the program that a start runs cannot be run as it is now."""

    @abc.abstractmethod
    def writes(self) -> list[tuple[str, str]]:
        """The files that a start writes, each with the option that names it: their disks need room."""

    @abc.abstractmethod
    def next_boot(self) -> Boot:
        """Where the next boot will be found, noted before it is started."""

    @abc.abstractmethod
    def start(self, boot: Boot) -> Boot:
        """Start; returns ``boot`` with what is known by now. Raises RadianceError ``start_failed``."""

    @abc.abstractmethod
    def began(self, boot: t.Mapping[str, t.Any]) -> str:
        """A few words on what was started."""

    @abc.abstractmethod
    def boot_of(self, found: process.Process, boot: Boot | None) -> Boot:
        """The boot of a process that was started by somebody else; ``boot`` is what a journal has noted."""

    @abc.abstractmethod
    def owns(self, boot: t.Mapping[str, t.Any], found: process.Process) -> bool:
        """Whether this process is the one of that boot."""

    @abc.abstractmethod
    def lives(self, boot: t.Mapping[str, t.Any]) -> bool:
        """Whether that boot has not ended."""

    @abc.abstractmethod
    def text(self, boot: t.Mapping[str, t.Any]) -> BootText:
        """The text of that boot."""

    @abc.abstractmethod
    def exit_status(self, boot: t.Mapping[str, t.Any]) -> str | None:
        """How that boot ended, in words; None where nothing tells."""

    def did_not_stay(self, boot: t.Mapping[str, t.Any]) -> str | None:
        """A sentence when that boot is over because what was started ended well, which no engine does by itself."""
        return None

    def timed_out(self, boot: t.Mapping[str, t.Any]) -> str | None:
        """A sentence when what starts the service has ended that boot because it took too long to start."""
        return None

    @abc.abstractmethod
    def reading(self, receipts: str | None = None) -> Reading:
        """The boot that runs, as boot_ledger_info reads it, with the folder of ``receipts`` if it is given."""

    @abc.abstractmethod
    def has_printed(self, found: process.Process) -> bool:
        """Whether that process can have printed anything yet: until then the last boot of a log is another's."""

    @abc.abstractmethod
    def stop_argv(self, pid: int) -> list[str]:
        """The command that a person would see: what stops that process."""

    @abc.abstractmethod
    def stop(self, pid: int, ticks: int, timeout: float) -> str:
        """Stop it, by force after ``timeout`` seconds; a sentence how it went. Raises ``still_running``."""

    @abc.abstractmethod
    def hold_down(self, timeout: float) -> None:
        """Where nothing runs, keep what restarts the service by itself from doing so; at most ``timeout`` seconds."""

    @abc.abstractmethod
    def by_hand(self, found: process.Process | None, before: t.Sequence[str], unknown: bool = False) -> list[str]:
        """The shell commands that start the service as we do: ``found`` is ended first, then ``before`` is run.

        ``unknown``: there may be something to end that could not be asked for.
        """
