# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers of podman and docker: how one stands, and what it is of."""

from __future__ import annotations

import datetime
import json
import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.command import Done, run
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.process import flags_of

RUNTIMES = ("podman", "docker")

# Where an image says which release it holds, by the OCI's own name.
_VERSION_LABEL = "org.opencontainers.image.version"
# What `ps` shows of an id. Both runtimes take any beginning of one for a name.
_SHORT_ID = 12
# What the kernel, and the tools that map a user's ids, say of somebody who may not.
_DENIED = re.compile(r"permission denied|not permitted|not allowed", re.IGNORECASE)
_NO_DAEMON = re.compile(r"cannot connect to the docker daemon", re.IGNORECASE)
_TIME = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))$")


class Container(t.NamedTuple):
    """``image`` is as the command line asked for it, by tag or by digest. ``pid`` is the host's number of its first
    process, 0 where it does not run. ``restarts`` counts the runtime's own. ``argv`` is the command line inside, with
    its secrets. Times are UTC, ISO 8601; ``finished_at`` is the end of an earlier run, or None.
    ``log_path`` is the file that its log is written to, where the runtime tells. ``restarting``: the runtime waits to
    start it again. ``exit_code``, ``out_of_memory`` and ``error``, the runtime's own words, are of its last end, or of
    a start that failed."""

    runtime: str
    name: str
    id: str
    image: str
    image_digest: str | None
    log_driver: str
    started_at: str
    pid: int
    restarts: int
    argv: list[str]
    finished_at: str | None
    log_path: str = ""
    log_options: t.Mapping[str, t.Any] = {}
    restarting: bool = False
    exit_code: int | None = None
    out_of_memory: bool = False
    error: str = ""

    @property
    def flags(self) -> dict[str, str]:
        """The engine's flags, as ``process.flags_of`` gives them: without secrets."""
        return flags_of(self.argv)


class Image(t.NamedTuple):
    """``digest`` is what ``Container.image_digest`` of a container of it is, None where nothing tells it.
    ``references`` are the names by digest that the runtime knows it by, ``version`` is what its label says."""

    id: str
    digest: str | None
    references: list[str]
    version: str | None


def inspect(runtime: str, name: str) -> Container | None:
    """The container of this name, or of this id (12 digits at least); None where there is none.

    Raises RadianceError ``runtime_unusable``, ``command_missing`` and ``command_stuck``.
    """
    done = run([runtime, "container", "inspect", "--", name])
    if done.status:
        if "no such container" in done.err.lower():
            return None
        raise RadianceError(_unusable(runtime, name, done), code="runtime_unusable")
    try:
        told = json.loads(done.out)[0]
        container = parse_container(runtime, told)
        image_id = str(told["Image"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RadianceError(
            f"{runtime} tells of the container {name!r} in a form that is not known here ({error!r}). "
            "Read the log of the engine as a file.",
            code="runtime_unusable",
        ) from error
    if name != container.name and not (len(name) >= _SHORT_ID and container.id.startswith(name)):
        return None
    if container.image_digest is None:
        image = inspect_image(runtime, image_id)
        container = container._replace(image_digest=image.digest if image else None)
    return container


def parse_container(runtime: str, told: t.Mapping[str, t.Any]) -> Container:
    """One item of ``container inspect``. ``image_digest`` is None for docker, which tells it of an image only.

    Raises what looking into another shape raises.
    """
    state, log = told["State"], told["HostConfig"]["LogConfig"]
    # docker says of a container that waits to be started again that it is running.
    restarting = bool(state.get("Restarting")) and not state["Pid"]
    runs = bool(state["Running"] or state.get("Paused")) and not restarting
    return Container(
        runtime=runtime,
        name=told["Name"].lstrip("/"),
        id=told["Id"],
        image=told["Config"]["Image"],
        image_digest=told.get("ImageDigest") or None,
        log_driver=log["Type"],
        started_at=utc(state["StartedAt"]) or "",
        pid=int(state["Pid"]) if runs else 0,
        restarts=int(told.get("RestartCount") or 0),
        argv=[str(word) for word in (told["Path"], *(told["Args"] or ()))],
        finished_at=utc(state["FinishedAt"], digits=9),
        log_path=log.get("Path") or told.get("LogPath") or "",
        log_options=dict(log.get("Config") or {}),
        restarting=restarting,
        exit_code=int(state["ExitCode"]) if not runs and state.get("ExitCode") is not None else None,
        out_of_memory=bool(state.get("OOMKilled")) and not runs,
        error=str(state.get("Error") or "").strip(),
    )


def names(runtime: str) -> list[str] | None:
    """The names of all containers, those that do not run included; None where the runtime does not tell.

    Raises RadianceError ``command_missing`` and ``command_stuck``.
    """
    done = run([runtime, "ps", "--all", "--format", "{{.Names}}"])
    return sorted(done.out.split()) if not done.status else None


def has_image(runtime: str, image: str) -> bool:
    """Whether the runtime has an image, by tag, digest or id, so that a start need not ask a registry for it."""
    return run([runtime, "image", "inspect", "--", image]).status == 0


def inspect_image(runtime: str, image: str) -> Image | None:
    """The image of this name as the host has it now; None where it has none, or tells of it in another form."""
    done = run([runtime, "image", "inspect", "--", image])
    return None if done.status else read_image(runtime, done.out)


def read_image(runtime: str, told: str) -> Image | None:
    """What ``image inspect`` printed of one image; None where it is in another form."""
    try:
        item = json.loads(told)[0]
        references = [str(name) for name in item.get("RepoDigests") or []]
        # podman tells it; docker only in the names by which registries know an image, and none knows one built here.
        digest = item.get("Digest") if runtime == "podman" else references[0].partition("@")[2] if references else None
        labels = (item.get("Config") or {}).get("Labels") or item.get("Labels") or {}
        return Image(str(item["Id"]), digest or None, references, labels.get(_VERSION_LABEL) or None)
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def is_image(name: str, image: str, digest: str | None) -> bool:
    """Whether ``name`` means the image that runs, which its runtime tells as ``image`` with this digest.

    A runtime may show a short name with its registry, and an image that was asked for by its tag under its digest.
    """
    asked, runs = _tagged(name), _tagged(image)
    return asked == runs or runs.endswith(f"/{asked}") or bool(digest and name.rpartition("@")[2] == digest)


def repository(reference: str) -> str:
    """A reference without its tag and digest."""
    head, slash, last = reference.partition("@")[0].rpartition("/")
    return head + slash + last.partition(":")[0]


def _tagged(image: str) -> str:
    """With the tag that a runtime adds to a name without one."""
    last = image.rpartition("/")[2]
    return image if ":" in last or "@" in last else f"{image}:latest"


def utc(text: str, digits: int = 2) -> str | None:
    """A runtime's time in UTC with so many digits of the second; None for the year 1, which means never."""
    found = _TIME.match(text)
    if found is None or text.startswith("0001-"):
        return None
    whole, fraction, sign, hours, minutes = found.groups()
    time = datetime.datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S")
    if sign:
        offset = datetime.timedelta(hours=int(hours), minutes=int(minutes))
        time += -offset if sign == "+" else offset
    return f"{time:%Y-%m-%dT%H:%M:%S}.{(fraction or '').ljust(9, '0')[:digits]}Z"


def _unusable(runtime: str, name: str, done: Done) -> str:
    if _DENIED.search(done.err):
        way_out = f"Run as the user whose {runtime} has the container, which is root with become."
    elif _NO_DAEMON.search(done.err):
        way_out = (
            "Start docker on the host, as by `systemctl start docker`; where its daemon listens elsewhere, set "
            "DOCKER_HOST in the environment of the task."
        )
    else:
        way_out = f"Read again; if it is the same, `{runtime} container inspect {name}` has to be mended on the host."
    said = last_words(done.err) or f"status {done.status}"
    return f"{runtime} does not tell of the container {name!r}: {said}{'' if said.endswith('?') else '.'} {way_out}"


def last_words(text: str) -> str:
    """The runtime's own words: its last line, without the full stop."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("Error")] or lines
    return errors[-1][:500].rstrip(".") if errors else ""
