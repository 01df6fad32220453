# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another image: what a name means on the host, what its release takes, and what plan, env and record say of it."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _records
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import (
    _drift,
    _env_text,
    _files,
    _gates,
    _history,
    _image,
    _plan_report,
    _record_lines,
    _request,
    _schemas,
    _summary,
    _ways_back,
)
from hypothesis import given
from hypothesis import strategies as st

OLD, NEW = "sha256:" + "0a" * 32, "sha256:" + "0b" * 32
BEFORE, AFTER = "localhost/radiance:1.0.13", f"localhost/radiance@{NEW}"
PODMAN: dict[str, t.Any] = {
    "name": "flashnext",
    "model": "/models/next.rad",
    "port": 8000,
    "manager": "systemd",
    "runtime": "podman",
    "image": BEFORE,
}
DOCKER = {**PODMAN, "runtime": "docker"}
LEDGER = {"source": {"image": BEFORE, "image_digest": OLD}, "engine": {"version": None, "version_from": None}}
HALVES = {"weights_mib": 24000, "kv_mib": 5120}


def told(
    digest: str | None = NEW, references: t.Sequence[str] | None = None, label: str | None = None
) -> dict[str, t.Any]:
    """What the runtime's `image inspect` says of an image."""
    names = [f"localhost/radiance@{digest}"] if references is None and digest else list(references or [])
    labels = {"org.opencontainers.image.version": label} if label else None
    item = {"Id": "7a" * 32, "Digest": digest, "RepoDigests": names, "Config": {"Labels": labels}}
    return {"rc": 0, "stdout": json.dumps([item]), "stderr": ""}


GONE = {"rc": 125, "stdout": "[]\n", "stderr": "Error: localhost/radiance:2: image not known\n"}


def choice(asked: str, inspected: t.Mapping[str, t.Any], service: t.Any = None, **more: t.Any) -> dict[str, t.Any]:
    return _image.image_choice(service or PODMAN, asked, inspected, LEDGER, **more)


def refused(code: str, call: t.Callable[[], t.Any]) -> str:
    """What it is refused with, under this code."""
    with pytest.raises(RadianceError) as error:
        call()
    assert error.value.code == code
    return error.value.text


@pytest.mark.parametrize(
    "asked", ["localhost/radiance:1.2.4", "localhost/radiance:latest", "localhost/radiance", "radiance:nightly"]
)
def test_a_tag_is_held_to_the_digest_that_it_means_on_the_host(asked: str) -> None:
    found = choice(asked, told())
    assert (found["image"], found["digest"], found["same"]) == (AFTER, NEW, False)
    assert (found["asked"], found["before"]) == (asked, BEFORE)


def test_a_reference_by_digest_stays_as_it_was_written() -> None:
    asked = f"registry:5000/infer/radiance@{NEW}"
    assert choice(asked, told(references=[f"localhost/radiance@{NEW}"]))["image"] == asked


@pytest.mark.parametrize(
    ("asked", "references", "image"),
    [
        (
            "registry:5000/radiance:2",
            ["localhost/radiance@" + NEW, "registry:5000/radiance@" + NEW],
            "registry:5000/radiance",
        ),
        ("radiance:2", ["registry:5000/other@" + NEW, "localhost/radiance@" + NEW], "localhost/radiance"),
        # A list of images for several machines has a digest of its own: the one that a container will tell goes first.
        ("localhost/radiance:2", ["localhost/radiance@" + OLD, "localhost/radiance@" + NEW], "localhost/radiance"),
    ],
)
def test_of_several_names_the_one_that_was_asked_for(asked: str, references: list[str], image: str) -> None:
    assert choice(asked, told(references=references))["image"] == f"{image}@{NEW}"


def test_dockers_digest_is_the_one_that_a_container_of_it_will_tell() -> None:
    found = choice("radiance:2", told(digest=None, references=["radiance@" + NEW, "other@" + OLD]), DOCKER)
    assert (found["image"], found["digest"]) == ("radiance@" + NEW, NEW)


@pytest.mark.parametrize("service", [PODMAN, DOCKER])
def test_a_name_without_a_digest_is_refused(service: dict[str, t.Any]) -> None:
    said = refused("image_without_digest", lambda: choice("localhost/radiance:latest", told(digest=None), service))
    assert f"{service['runtime']} knows no digest of it" in said
    assert "may mean another image tomorrow" in said and "image=NAME@sha256:" in said


def test_an_image_that_the_host_does_not_have_is_refused_with_what_gets_it() -> None:
    said = refused("image_missing", lambda: choice("localhost/radiance:2", GONE))
    assert "podman has no such image on the host (Error: localhost/radiance:2: image not known)" in said
    assert said.endswith("as the user whose podman runs flashnext: podman pull localhost/radiance:2")


@pytest.mark.parametrize(
    ("asked", "inspected"),
    [
        (BEFORE, told(OLD)),
        ("localhost/radiance:latest", told(OLD)),
        (f"localhost/radiance@{OLD}", GONE),
        (BEFORE, GONE),
    ],
)
def test_what_runs_is_asked_for(asked: str, inspected: dict[str, t.Any]) -> None:
    found = choice(asked, inspected)
    assert (found["same"], found["image"]) == (True, BEFORE)
    assert _image.image_words(found) == [f"{asked} is what runs"]
    assert "image" not in _request.pair_request(PODMAN, {"image": asked}, image=found)


def test_a_tag_that_has_moved_since_the_start_is_another_image() -> None:
    found = choice(BEFORE, told(NEW))
    assert (found["same"], found["image"], found["digest"]) == (False, AFTER, NEW)


@pytest.mark.parametrize(
    ("asked", "label", "said", "version", "told_by"),
    [
        ("localhost/radiance:1.2.4", None, None, "1.2.4", "tag"),
        ("localhost/radiance:1.2.4", "1.2.3", None, "1.2.3", "label"),
        ("localhost/radiance:nightly", None, "1.1.0", "1.1.0", "said"),
        ("localhost/radiance:nightly", "1.1.0", "1.1.0", "1.1.0", "said"),
        ("localhost/radiance:nightly", "devel", None, None, None),
        (AFTER, None, None, None, None),
        ("registry:5000/radiance", None, None, None, None),
    ],
)
def test_the_release_of_an_image(
    asked: str, label: str | None, said: str | None, version: str | None, told_by: str | None
) -> None:
    found = choice(asked, told(label=label), engine_version=said)
    assert (found["version"], found["version_from"]) == (version, told_by)
    words = " ".join(_image.image_words(found))
    assert (f"release {version}, as" in words) is (version is not None)
    assert ("nobody knows its release before it runs; -e engine_version=" in words) is (version is None)


def test_a_release_that_the_label_contradicts_is_refused() -> None:
    said = refused("engine_version_differs", lambda: choice(AFTER, told(label="1.2.4"), engine_version="1.1.0"))
    assert said.startswith(
        f"engine_version=1.1.0 was said of {AFTER}, whose label says 1.2.4. Leave engine_version out"
    )


def planned(
    example: t.Any, image: str | None, before: str | None, attempt: str = "0123456789ab", **request: t.Any
) -> t.Any:
    return example.entry(
        "planned", attempt, plan=example.plan, request={"pair": "fill", **request}, image=image, image_before=before
    )


def switched(example: t.Any, image: str | None, attempt: str = "0123456789ab", version: str | None = None) -> t.Any:
    ledger = {"engine": {"version": version, "version_from": "endpoint"}} if version else None
    return example.entry(
        "switched", attempt, to=example.new, downtime_seconds=41.2, receipt=None, ledger=ledger, image=image
    )


def test_the_record_remembers_the_release_of_an_image(example: t.Any) -> None:
    record = [planned(example, AFTER, BEFORE, engine_version="1.2.4"), switched(example, AFTER)]
    assert choice(AFTER, told(), record=record)["version_from"] == "record"
    runs = {**LEDGER, "source": {"image": AFTER, "image_digest": NEW}}
    assert _image.known_engine(runs, record)["engine"] == {"version": "1.2.4", "version_from": "image"}
    record.append(switched(example, AFTER, version="1.2.5"))
    assert _image.known_engine(runs, record)["engine"]["version"] == "1.2.5"
    assert _image.known_engine(runs)["engine"]["version"] is None
    assert _image.known_engine(LEDGER)["engine"] == {"version": "1.0.13", "version_from": "image"}
    back = [{**record[0], "image_digest_before": OLD}]
    assert _image.version_on_record(f"localhost/radiance@{OLD}", back) == "1.0.13"
    asked = {**LEDGER, "engine": {"version": "1.0.12", "version_from": "endpoint"}}
    assert _image.known_engine(asked, record) == asked
    process = {"source": {"image": None}, "engine": {"version": None, "version_from": None}}
    assert _image.known_engine(process, record) == process


@pytest.mark.parametrize(
    ("version", "flags", "gone"),
    [
        ("1.0.13", {"expert-vs-cache-ratio": "0.8"}, []),
        ("1.1.0", {"expert-vs-cache-ratio": "0.8"}, ["--expert-vs-cache-ratio (gone since 1.1)"]),
        ("1.2.4", {}, []),
        ("1.3.0", {}, ["--vram-weights-mib (gone since 1.3)", "--vram-kv-mib (gone since 1.3)"]),
        (None, {"expert-vs-cache-ratio": "0.8"}, []),
    ],
)
def test_flags_that_the_release_no_longer_takes_are_named(
    example: t.Any, version: str | None, flags: dict[str, str], gone: list[str]
) -> None:
    service = {**PODMAN, "flags": flags}
    runs = {"engine": {"version": version}}
    said = _image.command_objection(service, _files.env_values(service, example.new), {}, runs)
    assert [name for name in gone if name not in said] == []
    assert bool(said) is bool(gone)
    if gone:
        assert f"engine {version} does not start with an option that it does not know. Nothing was changed." in said
    if version == "1.1.0":
        assert said.endswith("Take expert-vs-cache-ratio out of `flags` of flashnext in the inventory.")
    if version == "1.3.0":
        assert said.endswith("Ask with -e fill=true, which leaves the split of the card to this release.")
        without = {**example.new, "weights_mib": None, "kv_mib": None}
        assert _image.command_objection(service, _files.env_values(service, without), {}, runs) == ""


def test_the_release_of_a_command_line_is_that_of_the_image_that_is_asked_for(example: t.Any) -> None:
    values = _files.env_values(PODMAN, example.new)
    old, new = {"engine": {"version": "1.0.13"}}, {"engine": {"version": "1.3.0"}}
    assert "engine 1.3.0" in _image.command_objection(PODMAN, values, {"image": AFTER, "engine_version": "1.3.0"}, old)
    assert _image.command_objection(PODMAN, values, {"image": AFTER, "engine_version": "1.0.13"}, new) == ""
    # What runs tells nothing of another image.
    assert _image.command_objection(PODMAN, values, {"image": AFTER}, new) == ""
    assert _image.command_objection(PODMAN, values, {}, {}) == ""


def test_the_env_gets_the_image_and_the_inventory_is_pointed_out(example: t.Any) -> None:
    in_force = _files.env_values(PODMAN, example.old)
    values = _files.env_values(PODMAN, example.new, in_force, image=AFTER)
    assert (values["IMAGE"], in_force["IMAGE"]) == (AFTER, BEFORE)
    # A later plain run keeps it, and says what the inventory still names.
    assert _files.env_values(PODMAN, example.new, values)["IMAGE"] == AFTER
    assert _files.identity_notes(PODMAN, values) == [
        f"IMAGE is {AFTER} in the env and {BEFORE} in the inventory. The env is in force; -e image={BEFORE} asks for "
        "the other one."
    ]
    assert "IMAGE" not in _files.env_values(example.service, example.new, image=AFTER)


def test_the_request_has_the_image_its_digest_and_its_release() -> None:
    asked = _request.pair_request(PODMAN, {"image": "x"}, image=choice("localhost/radiance:1.2.4", told()))
    assert asked == {"pair": "keep", "image": AFTER, "image_digest": NEW, "engine_version": "1.2.4"}
    unknown = _request.pair_request({**PODMAN, "pair": "fill"}, {}, image=choice(AFTER, told()))
    assert unknown == {"pair": "fill", "image": AFTER, "image_digest": NEW}


def test_a_stated_pair_stays_stated_under_another_image() -> None:
    image = choice(AFTER, told())
    assert _request.pair_request(PODMAN, {}, stated=True, image=image, running=HALVES)["pair"] == HALVES
    assert _request.pair_request(PODMAN, {"fill": "true"}, stated=True, image=image, running=HALVES)["pair"] == "fill"
    assert _request.pair_request(PODMAN, {}, stated=True, running=HALVES)["pair"] == "keep"
    assert _request.pair_request(PODMAN, {}, image=image, running=HALVES)["pair"] == "keep"


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"engine_version": "1.1.0"}, "engine_version=1.1.0 says what another image holds: say image=… with it."),
        (
            {"image": "-v /:/host"},
            "image is '-v /:/host'. Write the name of an image, with its tag or digest: NAME@sha256:…",
        ),
        (
            {"image": "x:2", "to": "previous"},
            "image=x:2 and to=previous were asked at once. to says which image: leave image out.",
        ),
        ({"image": "x:2"}, ""),
    ],
)
def test_what_cannot_be_meant_is_refused_before_the_host_is_asked(request_: dict[str, str], said: str) -> None:
    assert _request.request_objection(request_, [PODMAN], "dankserver") == said


@given(st.text(max_size=40))
def test_what_is_taken_for_an_image_is_one_word_of_a_command_line(text: str) -> None:
    taken = _image.REFERENCE.fullmatch(text) is not None
    if taken:
        assert text == text.strip() and not text.startswith("-") and not set(text) & set(" \t\n'\"$`\\;&|<>*?()")


def test_a_service_without_a_container_has_no_image() -> None:
    process = {**PODMAN, "manager": "process", "runtime": None, "engine": ["/e"]}
    unit = {**PODMAN, "runtime": None, "engine": ["/e"]}
    asked = {"image": "x:2"}
    said = [
        refused("no_container", lambda: _image.refuse_image(process, asked)),
        refused("no_container", lambda: _image.refuse_image(unit, asked)),
    ]
    assert "flashnext is a plain process: there is no image" in said[0]
    assert "the unit flashnext.service runs its engine without a container: there is no image" in said[1]
    assert all("Put the other engine where `engine` of flashnext names it" in words for words in said)
    _image.refuse_image(PODMAN, asked)
    _image.refuse_image(process, {})


def test_an_image_is_not_applied_along_with_the_rest() -> None:
    findings = [{"name": "IMAGE", "says": "IMAGE is x:2 in the fleet directory.", "fleet": "x:2"}]
    said = refused("image_not_asked", lambda: _image.refuse_image(PODMAN, {"drift": "apply"}, findings))
    assert said == (
        "IMAGE is x:2 in the fleet directory. An image is never applied along with the rest: ask for it with "
        "-e image=x:2 beside drift=apply, or use -e drift=adopt."
    )
    _image.refuse_image(PODMAN, {"drift": "adopt"}, findings)
    _image.refuse_image(PODMAN, {"drift": "apply", "image": "x:2"}, findings)


# The record


def test_lines_hold_the_image_and_old_lines_stay_valid(example: t.Any) -> None:
    record = [planned(example, AFTER, BEFORE), switched(example, AFTER), example.planned(), example.switched()]
    assert "image" not in record[2] and "image" not in record[3]
    for entry in record:
        _records.check(entry)
        assert _schemas.problems(entry, "record") == []


def test_the_way_back_has_its_image(example: t.Any) -> None:
    record = [planned(example, AFTER, BEFORE), switched(example, AFTER)]
    assert _ways_back.way_back(record, "previous", "")["image"] == BEFORE
    assert _ways_back.way_back(record, record[1]["id"], "")["image"] == AFTER
    # A tag may mean another image since: what ran then had this digest.
    known = {**record[0], "image_digest_before": OLD}
    assert _ways_back.way_back([known, record[1]], "previous", "")["image"] == f"localhost/radiance@{OLD}"
    pinned = {**known, "image_before": f"localhost/radiance@{OLD}"}
    assert _ways_back.way_back([pinned, record[1]], "previous", "")["image"] == f"localhost/radiance@{OLD}"
    old = [example.planned(), example.switched()]
    assert (_ways_back.way_back(old, "previous", "")["image"], _ways_back.way_back(old, old[1]["id"], "")["image"]) == (
        None,
        None,
    )
    with pytest.raises(RadianceError) as unknown:
        _ways_back.way_back([*old, *record], "ffffffffffff", "")
    assert [line.rpartition(", ")[2] for line in unknown.value.text.splitlines()[1:-1]] == ["–", AFTER]


def test_returning_to_an_image_is_not_refused_by_what_another_one_printed(example: t.Any) -> None:
    back = _ways_back.way_back([planned(example, AFTER, BEFORE), switched(example, AFTER)], "previous", "")
    image = _image.image_choice(PODMAN, BEFORE, told(OLD), {**LEDGER, "source": {"image": AFTER, "image_digest": NEW}})
    asked = _request.pair_request(PODMAN, {"to": "previous"}, back=back, image=image)
    assert (asked["ran_before"], asked["pair"]) == (back["says"], HALVES)
    assert asked["image"] == f"localhost/radiance@{OLD}"
    split = {**back, "to": {**back["to"], "weights_mib": None, "kv_mib": None}}
    assert _request.pair_request(PODMAN, {"to": "previous"}, back=split)["pair"] == "fill"


def test_two_images_of_one_pair_are_two_attempts(example: t.Any) -> None:
    fields = {"plan": example.plan, "request": {}, "image": AFTER, "image_before": BEFORE}
    one = _record_lines.record_entry(fields, "planned", "h", "flashnext")
    other = _record_lines.record_entry({**fields, "image": "localhost/radiance@sha256:cc"}, "planned", "h", "flashnext")
    plain = _record_lines.record_entry({**fields, "image": BEFORE}, "planned", "h", "flashnext")
    before = _record_lines.record_entry({"plan": example.plan, "request": {}}, "planned", "h", "flashnext")
    assert len({one["attempt"], other["attempt"], plain["attempt"]}) == 3
    assert plain["attempt"] == before["attempt"]
    assert _record_lines.record_entry(fields, "planned", "h", "flashnext", record=[one]) == one


def test_a_try_that_was_rolled_back_is_one_of_its_image(example: t.Any) -> None:
    record = [planned(example, AFTER, BEFORE), example.rolled_back()]
    assert "was rolled back on" in _history.rolled_back_before(record, example.new, AFTER)[0]
    assert _history.rolled_back_before(record, example.new) == []
    failed = _history.history(record, example.old)["failed"]
    assert [item["image"] for item in failed] == [AFTER]
    header = _env_text.env_header(PODMAN, "h", _history.history(record, example.old))
    assert any(f"25,844 + 5,119 MiB of the image {AFTER} was tried and rolled back" in line for line in header)


def test_the_header_says_whose_ledger_the_figures_are_of(example: t.Any) -> None:
    record = [planned(example, AFTER, BEFORE, engine_version="1.2.4"), switched(example, AFTER)]
    header = _env_text.env_header(PODMAN, "h", _history.history(record, example.new))
    assert f"Image {AFTER}, release 1.2.4" in header
    assert f"instead of {BEFORE}, whose boot printed the ledger below: evidence of another stack." in header
    plain = [planned(example, BEFORE, BEFORE), switched(example, BEFORE)]
    assert not any(
        "another stack" in line for line in _env_text.env_header(PODMAN, "h", _history.history(plain, example.new))
    )


def test_a_controller_that_died_after_the_switch_is_explained_with_its_image(example: t.Any) -> None:
    record = [planned(example, AFTER, BEFORE), switched(example, AFTER)]
    fleet = _files.env_values(PODMAN, example.old)
    target = _files.env_values(PODMAN, example.new, fleet, image=AFTER)
    flags = {_files.flag_of(key): value for key, value in target.items() if key != "IMAGE"}
    source = {"image": AFTER, "image_digest": NEW}
    found = _drift.drift(fleet, target, flags, record, PODMAN, source)
    assert "IMAGE" in [item["name"] for item in found["findings"]]
    assert found["explained"] is True
    assert f"put 25,844 + 5,119 MiB of the image {AFTER} there" in found["notes"][0]
    unsaid = [planned(example, AFTER, "localhost/radiance:1.0.12"), switched(example, AFTER)]
    assert _drift.drift(fleet, target, flags, unsaid, PODMAN, source)["explained"] is False
    # To a release that splits the card itself: the pair is gone from the env.
    split = {**example.new, "weights_mib": None, "kv_mib": None}
    record = [planned(example, AFTER, BEFORE), {**switched(example, AFTER), "to": split}]
    target = _files.env_values(PODMAN, split, fleet, image=AFTER)
    flags = {_files.flag_of(key): value for key, value in target.items() if key != "IMAGE"}
    assert _drift.drift(fleet, target, flags, record, PODMAN, source)["explained"] is True


# The report


def about(image: t.Any) -> dict[str, t.Any]:
    undo = "ansible-playbook playbooks/rollback.yml -l dankserver -e service=flashnext -e to=previous"
    return {"host": "dankserver", "service": "flashnext", "undo": undo, "image": image, "probes": "none"}


def test_the_plan_shows_both_images_and_the_second_fill(example: t.Any) -> None:
    lines = _plan_report.plan_report(example.plan, about(choice("localhost/radiance:1.2.4", told(label="1.2.4"))))
    text = " ".join(" ".join(lines).split())
    assert f"image {BEFORE} → {AFTER} release 1.2.4, as its label says asked for as localhost/radiance:1.2.4" in text
    assert f"{BEFORE} stays on the host: it is the way back" in text
    assert (
        "then ansible-playbook playbooks/resize.yml -l dankserver -e service=flashnext -e fill=true the second fill, "
        "from what the first boot of the new image prints"
    ) in text
    plain = " ".join(_plan_report.plan_report(example.plan, about(None)))
    assert "second fill" not in plain and "  image " not in plain


def test_a_price_of_another_image_is_asked_with_it(example: t.Any) -> None:
    assert _image.arguments(choice("localhost/radiance:1.2.4", told())) == " -e image=localhost/radiance:1.2.4"
    said = choice(AFTER, told(), engine_version="1.2.4")
    assert _image.arguments(said) == f" -e image={AFTER} -e engine_version=1.2.4"
    assert _image.arguments(choice(BEFORE, told(OLD))) == _image.arguments(None) == ""


def test_the_outcome_names_the_image(example: t.Any) -> None:
    run = {"service": PODMAN, "plan": example.plan, "making": {"id": "x"}, "options": {"image": AFTER}}
    assert _summary.service_outcome(run)["says"] == f"24,000 + 5,120 → 25,844 + 5,119, image {AFTER}"
    assert _summary.service_outcome({**run, "options": {}})["says"] == "24,000 + 5,120 → 25,844 + 5,119"


def test_a_pair_over_a_ceiling_of_another_image_passes_the_gates_of_its_file(example: t.Any) -> None:
    plan = example.plan
    values = {**_files.env_values(PODMAN, example.new), "VRAM_WEIGHTS_MIB": "25900"}
    to = {**example.new, "weights_mib": 25900}
    text = _env_text.env_text(values, PODMAN, "h", _history.history([], to))
    assert len(_gates.file_gates(text, to, plan)) == 1
    gates = [{**gate, "holds": gate["name"] != "pair_within_ceiling"} for gate in plan["gates"]]
    assert _gates.file_gates(text, to, {**plan, "to": to, "gates": gates}) == []
