# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The image of either side of a switch: which one runs, which one is asked for, and whether a name still means it.

An image is told here as ``{name, digest}``, the name as a command line asked for it; the digest is None where nothing
tells it, and the whole is None where no container runs.
Private to the collection: it may change in any release.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.container import is_image, repository
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.manager import Manager

Told = t.Optional[t.Mapping[str, t.Any]]


def of_ledger(ledger: t.Mapping[str, t.Any] | None) -> dict[str, t.Any] | None:
    """The image of the boot that a ledger is of."""
    source = (ledger or {}).get("source") or {}
    return {"name": source["image"], "digest": source.get("image_digest")} if source.get("image") else None


def is_asked(expect: t.Mapping[str, t.Any], told: Told) -> bool:
    """Whether this image is the one that ``expect`` states; so it is where nothing is stated, or nothing is told."""
    if not expect.get("image") or told is None:
        return True
    if expect.get("image_digest") and told["digest"]:
        return bool(expect["image_digest"] == told["digest"])
    return is_image(expect["image"], told["name"], told["digest"])


def difference(expect: t.Mapping[str, t.Any], told: Told) -> list[str]:
    """In a phrase, where the image that runs is not the one that is asked for."""
    return (
        [] if told is None or is_asked(expect, told) else [f"the image is {told['name']}, asked is {expect['image']}"]
    )


def is_same(one: Told, other: Told) -> bool:
    """Whether two images that ran are the same one, as far as they are told."""
    return other is None or is_asked({"image": other["name"], "image_digest": other["digest"]}, one)


def check_names(manager: Manager, expect: t.Mapping[str, t.Any], runs: Told) -> None:
    """Hold the names that either pair would be started by to what they stand for.

    Raises RadianceError ``image_moved`` where a tag was given to another image since the plan, or since the start.
    """
    asked = {"name": expect.get("image"), "digest": expect.get("image_digest")}
    for image, back in ((runs, True), (asked, False)):
        if image is None or not image["name"] or not image["digest"]:
            continue
        now = manager.digest_of(image["name"])
        if now is None or now == image["digest"]:
            continue
        name = image["name"]
        what = "what runs" if back else "what was planned for"
        tag = manager.tag_command(name) if back else None
        way_out = (
            f"Give the name back to the image that runs (on the host: {tag}), and ask for the other one by its digest: "
            f"-e image={repository(name)}@{now}."
            if tag
            else "Plan again."
        )
        raise RadianceError(
            f"{name} means the image {now} on this host now, and {what} is {image['digest']}: a start by that name "
            f"would start another engine. Nothing was stopped or changed. {way_out}",
            code="image_moved",
        )
