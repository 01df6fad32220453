# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another image switched to and back from, with real processes: the engine of each image is a copy of its own."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_service import (
    NEW,
    OLD,
    env_text,
    wait_until,
)
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._switch.switch_units import (
    UnitService,
    before,
)

OLD_IMAGE = "localhost/radiance:1.0.13"
DIGEST = "sha256:" + "5d" * 32
TAG = "localhost/radiance:1.2.4"
OTHER = "sha256:" + "24" * 32
IMAGE = f"localhost/radiance@{OTHER}"


def asked(service: UnitService, to: dict[str, t.Any], image: str = IMAGE, digest: str = OTHER) -> dict[str, t.Any]:
    """The options of a switch to this pair of this image."""
    options = service.options(to)
    return {
        "image": image,
        "expect": {**options["expect"], "image": image, "image_digest": digest},
        "files": [{"dest": str(service.env), "content": f"{env_text(to)}IMAGE={image}\n", "mode": None}],
    }


def runs(service: UnitService) -> tuple[str, str | None, bool]:
    """The image and the pair that run, and whether they serve."""
    told = json.loads(service.podman("container", "inspect", "flash"))[0]
    return told["Config"]["Image"], service.pair(), service.serves()


def finding(result: dict[str, t.Any], name: str) -> dict[str, t.Any]:
    return next(row for row in result["findings"] if row["name"] == name)


def test_another_image_with_the_same_pair_is_a_switch(unit: UnitService) -> None:
    unit.image(TAG, OTHER, {"release": "1.2.4"})
    unit.start_old()
    result = unit.run(OLD, **asked(unit, OLD))
    assert (result["outcome"], result["failed"]) == ("switched", False), result
    assert runs(unit) == (IMAGE, "24000+5120", True)
    assert finding(result, "image") == {
        "name": "image",
        "holds": True,
        "asked": IMAGE,
        "printed": IMAGE,
        "line": None,
        "says": f"the image is the one that was asked for, {IMAGE}",
    }
    assert f"Switched to 24,000 + 5,120 of the image {IMAGE} after" in result["says"]
    assert [(entry["kind"], entry["image"]) for entry in unit.records()] == [("switched", IMAGE)]
    assert result["ledger"]["source"]["image_digest"] == OTHER

    again = unit.run(OLD, **asked(unit, OLD))
    assert (again["outcome"], again["changed"], again["failed"]) == ("unchanged", False, False), again

    back = unit.run(NEW, **asked(unit, NEW, OLD_IMAGE, DIGEST))
    assert (back["outcome"], back["failed"]) == ("switched", False), back
    assert runs(unit) == (OLD_IMAGE, "25844+5119", True)


def test_an_image_that_does_not_take_the_pair_goes_back_to_the_old_one(unit: UnitService) -> None:
    unit.image(TAG, OTHER, {"release": "1.3.0"})
    unit.start_old()
    result = unit.run(NEW, **asked(unit, NEW))
    assert (result["outcome"], result["failed"], result["code"]) == ("rolled_back", True, "engine_refused"), result
    assert f"The switch to 25,844 + 5,119 of the image {IMAGE} ended in phase ready" in result["msg"]
    assert "'--vram-weights-mib'" in result["msg"]
    assert runs(unit) == (OLD_IMAGE, "24000+5120", True)
    unit.check_whole(OLD)
    (entry,) = unit.records()
    assert (entry["kind"], entry["image"], entry["to"]) == ("rolled_back", OLD_IMAGE, OLD)


def test_a_release_that_splits_the_card_itself_is_given_no_pair_and_gets_it_back_on_the_way_back(
    unit: UnitService,
) -> None:
    unit.image(TAG, OTHER, {"release": "1.3.0"})
    unit.start_old()
    to = {**OLD, "weights_mib": None, "kv_mib": None}
    options = asked(unit, OLD)
    env = "".join(line for line in options["files"][0]["content"].splitlines(True) if not line.startswith("VRAM_"))
    split = {**options, "files": [{**options["files"][0], "content": env}]}
    split["expect"] = {**options["expect"], "to": to, "predictions": []}
    result = unit.run(OLD, **split)
    assert (result["outcome"], result["failed"]) == ("switched", False), result
    (argv,) = unit.engines()
    assert not any(word.startswith("--vram-") for word in argv)
    # The engine's own split is told, and not held against the pair that nobody asked for.
    told = finding(result, "settled_free.card0")
    assert told["holds"] and told["says"].endswith("MiB short, by the engine's own split")
    assert (result["ledger"]["budget"]["weights"], result["ledger"]["pair"]["exact"]) == ("derived", False)
    assert unit.run(OLD, **split)["outcome"] == "unchanged"

    back = unit.run(OLD, **asked(unit, OLD, OLD_IMAGE, DIGEST))
    assert (back["outcome"], back["failed"]) == ("switched", False), back
    assert runs(unit) == (OLD_IMAGE, "24000+5120", True)


def test_a_script_that_starts_another_image_than_the_one_asked_for_is_found_out(unit: UnitService) -> None:
    """The pair is right, the boot is sound, and it is the old engine."""
    unit.image(TAG, OTHER, {"release": "1.2.4"})
    unit.start_old()
    unasked = asked(unit, OLD)["files"][0]
    files = [{**unasked, "content": env_text(OLD) + "# no IMAGE\n"}]
    result = unit.run(OLD, **{**asked(unit, OLD), "files": files})
    assert (result["outcome"], result["code"]) == ("rolled_back", "referee_refused"), result
    assert f"the image is {OLD_IMAGE}, asked is {IMAGE}" in result["msg"]
    unit.check_whole(OLD)


def test_rows_in_other_words_undo_no_sound_boot_of_another_release(unit: UnitService) -> None:
    unit.image(TAG, OTHER, {"release": "1.2.4"}, ("settled at", "came to rest at"))
    unit.start_old()
    result = unit.run(OLD, **asked(unit, OLD))
    assert (result["outcome"], result["failed"]) == ("switched", False), result
    assert runs(unit) == (IMAGE, "24000+5120", True)
    assert finding(result, "settled")["says"] == (
        "this boot printed no settled line for 0, 1 in words that are known here; it is another release"
    )


def test_the_same_image_has_to_print_its_rows(unit: UnitService) -> None:
    """What is let pass of another release is not let pass of the one that printed them before."""
    unit.image(OLD_IMAGE, DIGEST, {})
    unit.start_old()
    for path in (unit.folder / "images" / DIGEST[-4:] / "engine").glob("*.py"):
        path.write_text(path.read_text().replace("settled at", "came to rest at"))
    result = unit.run(NEW, **asked(unit, NEW, OLD_IMAGE, DIGEST))
    assert result["code"] == "referee_refused" and "no settled line for 0, 1" in result["msg"], result


def test_a_card_that_settles_short_of_its_floor_is_no_matter_of_words(unit: UnitService) -> None:
    unit.image(TAG, OTHER, {"release": "1.2.4", "after_budget_mib": [260.0, 260.0]})
    unit.start_old()
    assert unit.run(NEW)["outcome"] == "switched"
    result = unit.run(NEW, **asked(unit, NEW))
    assert (result["outcome"], result["code"]) == ("rolled_back", "referee_refused"), result
    assert "MiB short" in result["msg"]
    unit.check_whole(NEW)


def test_a_name_that_was_given_to_another_image_is_refused_before_the_stop(unit: UnitService) -> None:
    """A tag that has moved since the start would start another engine, in either direction."""
    unit.start_old()
    pid = unit.pid()
    unit.image(OLD_IMAGE, OTHER, {"release": "1.2.4"})
    result = unit.run(NEW, **asked(unit, NEW, OLD_IMAGE, DIGEST))
    assert (result["outcome"], result["code"], unit.pid()) == ("unchanged", "image_moved", pid), result
    assert f"{OLD_IMAGE} means the image {OTHER} on this host now, and what runs is {DIGEST}" in result["msg"]
    assert "podman tag \"$(podman container inspect --format '{{.Image}}' flash)\" " + OLD_IMAGE in result["msg"]
    assert f"-e image=localhost/radiance@{OTHER}." in result["msg"]

    result = unit.run(NEW, **asked(unit, NEW, OLD_IMAGE, DIGEST), check_mode=True)
    assert (result["changed"], result["code"]) == (False, "image_moved"), result


def test_an_image_that_was_planned_for_and_is_another_now(unit: UnitService) -> None:
    unit.image(TAG, OTHER, {"release": "1.2.4"})
    unit.start_old()
    planned = "sha256:" + "99" * 32
    result = unit.run(NEW, **asked(unit, NEW, TAG, planned))
    assert (result["outcome"], result["code"]) == ("unchanged", "image_moved"), result
    assert f"what was planned for is {planned}" in result["msg"] and result["msg"].endswith("Plan again.")


@pytest.mark.parametrize("verb", ["stop", "start"])
def test_a_run_that_died_between_two_images_is_finished_by_the_image(unit: UnitService, verb: str) -> None:
    """Both sides have the same pair: which of them serves, only the image tells."""
    unit.image(TAG, OTHER, {"release": "1.2.4"})
    unit.start_old()
    options = asked(unit, OLD)
    real = unit.options

    def with_image(to: t.Any = None, **more: t.Any) -> dict[str, t.Any]:
        return real(to, **{**(options if to is not None else {}), **more})

    unit.options = with_image  # type: ignore[method-assign]
    unit.killed(before(verb, "--no-block"), OLD)
    unit.options = real  # type: ignore[method-assign]
    assert unit.journal_phase() is not None
    if verb == "start":
        # Somebody brings the service up before the next run: the files in place are those of the new image.
        unit.systemctl("start")
        wait_until(unit.serves)
    result = unit.run(endpoint=unit.endpoint)
    if verb == "stop":
        assert runs(unit) == (OLD_IMAGE, "24000+5120", True), result
    else:
        assert result["outcome"] == "switched", result
        assert runs(unit) == (IMAGE, "24000+5120", True)
    assert unit.journal_phase() is None
