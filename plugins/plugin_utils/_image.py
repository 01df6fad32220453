# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image of a service: the one that a command asks for, which release it holds, and what that release takes.

The env in the fleet directory says which image is in force, as it does of the pair: what the inventory declares is what
a service starts with where there is no env yet.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._plan.shape import GONE_FLAGS, at_least, version_of
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import container
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _files, _service

REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_SAID_BY = {
    "said": "engine_version says",
    "label": "its label says",
    "tag": "its tag says",
    "record": "the record says",
}


def refuse_image(
    service: t.Mapping[str, t.Any],
    request: t.Mapping[str, t.Any],
    findings: t.Sequence[t.Mapping[str, t.Any]] = (),
) -> None:
    """Raises RadianceError where an image is refused before the host is asked for it: ``image_not_asked`` and
    ``no_container``.

    ``findings`` are those of ``drift``: an image that is only applied with the rest of the fleet directory is not asked
    for.
    """
    name, unit, image = service["name"], _service.managed_by(service)["unit"], request.get("image")
    if image in (None, ""):
        applied = next((item for item in findings if item["name"] == "IMAGE"), None)
        if applied is None or request.get("drift") != "apply":
            return
        raise RadianceError(
            f"{applied['says']} An image is never applied along with the rest: ask for it with -e image="
            f"{applied.get('fleet') or 'NAME'} beside drift=apply, or use -e drift=adopt.",
            code="image_not_asked",
        )
    if not service.get("runtime"):
        what = f"the unit {unit} runs its engine without a container" if unit else f"{name} is a plain process"
        raise RadianceError(
            f"image={image} was asked, and {what}: there is no image. Put the other engine where `engine` of {name} "
            "names it, restart the service, and resize from what its boot prints.",
            code="no_container",
        )


def image_choice(
    service: t.Mapping[str, t.Any],
    asked: str,
    inspected: t.Mapping[str, t.Any],
    ledger: t.Mapping[str, t.Any],
    engine_version: t.Any = None,
    record: t.Sequence[t.Mapping[str, t.Any]] = (),
) -> dict[str, t.Any]:
    """What ``asked`` means on the host: ``{asked, image, digest, version, version_from, same, before}``.

    ``inspected`` is the result of the runtime's ``image inspect``: rc, stdout, stderr. ``image`` is what goes into the
    env: a tag is held to the digest that it means now, so that what was judged is what starts. ``version`` is None
    where nobody knows it before it runs; ``version_from`` says who told it. ``same``: it is the image that runs.
    ``before`` is what runs. Raises RadianceError ``image_missing``, ``image_without_digest`` and
    ``engine_version_differs``.
    """
    runtime = str(service["runtime"])
    source = ledger.get("source") or {}
    before, running = source.get("image"), source.get("image_digest")
    found = container.read_image(runtime, str(inspected.get("stdout") or "")) if not inspected.get("rc") else None
    digest = found.digest if found is not None else None
    by_name = bool(before) and container.is_image(asked, str(before), running)
    same = digest == running if digest and running else by_name
    choice: dict[str, t.Any] = {
        "asked": asked,
        "image": before if same else asked,
        "digest": running if same else digest,
        "version": None,
        "version_from": None,
        "same": same,
        "before": before,
    }
    if same:
        return choice
    if found is None:
        said = " ".join(str(inspected.get("stderr") or "").split()) or "no such image"
        raise RadianceError(
            f"image={asked} was asked, and {runtime} has no such image on the host ({said[:200].rstrip('.')}). Nothing "
            f"was changed, and a switch asks no registry. Get it there first, as the user whose {runtime} runs "
            f"{service['name']}: {runtime} pull {asked}",
            code="image_missing",
        )
    reference = asked if "@" in asked else _by_digest(asked, found)
    if reference is None or not digest:
        raise RadianceError(
            f"image={asked} was asked, and {runtime} knows no digest of it: such a name may mean another image "
            f"tomorrow, and nothing would tell. Push it to a registry, pull it from there with {runtime} on the host, "
            "and ask for it by its digest: image=NAME@sha256:…",
            code="image_without_digest",
        )
    version, version_from = _release(asked, found.version, engine_version, record)
    return {**choice, "image": reference, "version": version, "version_from": version_from}


def _by_digest(asked: str, found: container.Image) -> str | None:
    """``asked`` by its digest: as the runtime names it, in the same repository where it is known in several."""
    name = container.repository(asked)
    named = [item for item in found.references if item.partition("@")[0] == name]
    # podman knows a short name by its registry.
    longer = [item for item in found.references if item.partition("@")[0].endswith(f"/{name}")]
    ours = named or longer or found.references
    return next((item for item in ours if item.endswith(f"@{found.digest}")), ours[0] if ours else None)


def _tag(reference: str) -> str:
    return reference.partition("@")[0].rpartition("/")[2].partition(":")[2]


def _release(
    asked: str, label: str | None, said: t.Any, record: t.Sequence[t.Mapping[str, t.Any]]
) -> tuple[str | None, str | None]:
    """The release of an image, and who told it. Raises RadianceError where two contradict each other."""
    label = label if version_of(label) else None
    if said not in (None, ""):
        said = str(said).strip()
        if label and version_of(said) and version_of(label) != version_of(said):
            raise RadianceError(
                f"engine_version={said} was said of {asked}, whose label says {label}. Leave engine_version out, "
                "or ask for the image that you mean.",
                code="engine_version_differs",
            )
        return said, "said"
    if label:
        return label, "label"
    known = version_on_record(asked, record)
    if known:
        return known, "record"
    tag = _tag(asked)
    return (tag, "tag") if version_of(tag) else (None, None)


def version_on_record(image: str | None, record: t.Sequence[t.Mapping[str, t.Any]]) -> str | None:
    """The release that a reference was last put in force as, or that was read from its boot."""
    version = None
    for entry in record:
        # What ran by a tag is returned to by its digest.
        digest = entry.get("image_digest_before")
        if image and digest and image.endswith(f"@{digest}") and version_of(_tag(entry.get("image_before") or "")):
            version = _tag(entry["image_before"])
        if not image or entry.get("image") != image:
            continue
        if entry["kind"] == "planned":
            version = entry["request"].get("engine_version") or version
        elif entry["kind"] == "switched":
            version = ((entry["ledger"] or {}).get("engine") or {}).get("version") or version
    return version


def known_engine(ledger: t.Mapping[str, t.Any], record: t.Sequence[t.Mapping[str, t.Any]] = ()) -> dict[str, t.Any]:
    """The ledger with the release of its engine where only its image tells it: by the record, else by its tag."""
    image = (ledger.get("source") or {}).get("image")
    if not image or (ledger.get("engine") or {}).get("version"):
        return dict(ledger)
    version = version_on_record(image, record) or (_tag(image) if version_of(_tag(image)) else None)
    if version is None:
        return dict(ledger)
    return {**ledger, "engine": {"version": version, "version_from": "image"}}


def command_objection(
    service: t.Mapping[str, t.Any],
    values: t.Mapping[str, str],
    options: t.Mapping[str, t.Any],
    ledger: t.Mapping[str, t.Any],
) -> str:
    """Which flags of the final command line the release no longer takes, in a sentence; empty where it takes all.

    ``values`` are those of the env that is to be installed. The release is the one of ``options``, the planner's, or
    where these ask for no other image the one of ``ledger``, the boot that runs; what nobody knows refuses nothing.
    """
    version = options.get("engine_version")
    if not version and "image" not in options:
        version = (ledger.get("engine") or {}).get("version")
    gone = [
        (flag, ".".join(map(str, since)))
        for flag, since in GONE_FLAGS
        if _files.key_of(flag) in values and at_least(version, since)
    ]
    if not gone:
        return ""
    said = " and ".join(f"--{flag} (gone since {since})" for flag, since in gone)
    declared = [flag for flag, _since in gone if flag in (service.get("flags") or {})]
    way_out = f"Take {' and '.join(declared)} out of `flags` of {service['name']} in the inventory" if declared else ""
    if len(declared) < len(gone):
        way_out += " and ask" if way_out else "Ask"
        way_out += " with -e fill=true, which leaves the split of the card to this release"
    return (
        f"The final command line of {service['name']} has {said}, and engine {version} does not start with an option "
        f"that it does not know. Nothing was changed. {way_out}."
    )


def arguments(choice: t.Mapping[str, t.Any] | None) -> str:
    """The arguments of a command that ask for this image; none where none is asked for."""
    if not choice or choice["same"]:
        return ""
    said = f" -e engine_version={choice['version']}" if choice["version_from"] == "said" else ""
    return f" -e image={choice['asked']}{said}"


def image_words(choice: t.Mapping[str, t.Any] | None) -> list[str]:
    """What a plan says of its image; nothing where none is asked for."""
    if not choice:
        return []
    if choice["same"]:
        return [f"{choice['asked']} is what runs"]
    release = (
        f"release {choice['version']}, as {_SAID_BY[choice['version_from']]}"
        if choice["version"]
        else "nobody knows its release before it runs; -e engine_version=… says it"
    )
    lines = [f"{choice['before']} → {choice['image']}", release]
    if choice["asked"] != choice["image"]:
        lines.append(f"asked for as {choice['asked']}, and held to the digest that this name means on the host now")
    return [*lines, f"{choice['before']} stays on the host: it is the way back"]
