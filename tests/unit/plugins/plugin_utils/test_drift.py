# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drift is a difference of values with a direction; what a switch on record explains completes itself."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _drift, _files

FLAGS = {
    "vram-weights-mib": "24000",
    "vram-kv-mib": "5120",
    "max-num-seqs": "3",
    "max-model-len": "200000",
    "kv-cache-dtype": "fp8",
    "num-speculative-tokens": "2",
    "model": "/srv/models/next.rad",
    "port": "8000",
    "host": "127.0.0.1",
    "tp": "2",
    "host-pool-mib": "16384",
}


@pytest.fixture
def env(example: t.Any) -> dict[str, str]:
    """The env of the old pair."""
    return _files.env_values(example.service, example.old)


def directions(found: dict[str, t.Any]) -> dict[str, str]:
    return {item["name"]: item["direction"] for item in found["findings"]}


def test_three_that_agree_are_no_drift(env: dict[str, str]) -> None:
    found = _drift.drift(env, dict(env), FLAGS, [])
    assert (found["findings"], found["explained"], found["notes"]) == ([], False, [])
    assert found["running"] == env


@pytest.mark.parametrize(
    ("fleet", "target", "running", "direction"),
    [
        ("24500", "24000", "24000", "fleet_differs"),
        ("24000", "24500", "24000", "target_differs"),
        ("24500", "24500", "24000", "not_restarted"),
        ("24500", "24600", "24000", "all_differ"),
    ],
)
def test_each_difference_has_its_direction(
    env: dict[str, str], fleet: str, target: str, running: str, direction: str
) -> None:
    key, flags = "VRAM_WEIGHTS_MIB", {**FLAGS, "vram-weights-mib": running}
    found = _drift.drift({**env, key: fleet}, {**env, key: target}, flags, [])
    assert directions(found) == {key: direction}
    says = found["findings"][0]["says"]
    assert key in says and fleet in says or direction == "target_differs"
    assert found["running"][key] == running


def test_values_are_compared_as_text(env: dict[str, str]) -> None:
    found = _drift.drift({**env, "VRAM_KV_MIB": "05120"}, env, FLAGS, [])
    assert directions(found) == {"VRAM_KV_MIB": "fleet_differs"}


def test_without_an_env_here_the_host_and_its_process_are_compared(env: dict[str, str]) -> None:
    assert directions(_drift.drift(None, env, FLAGS, [])) == {}
    assert directions(_drift.drift(None, {**env, "TP": "4"}, FLAGS, [])) == {"TP": "not_restarted"}


def test_a_flag_that_a_process_was_not_given_is_a_difference(env: dict[str, str]) -> None:
    flags = {name: text for name, text in FLAGS.items() if name != "host-pool-mib"}
    found = _drift.drift(env, env, flags, [])
    assert directions(found) == {"HOST_POOL_MIB": "not_restarted"}
    assert "absent" in found["findings"][0]["says"]


def test_the_image_is_no_flag(env: dict[str, str]) -> None:
    assert directions(_drift.drift({**env, "IMAGE": "x@sha256:0a"}, {**env, "IMAGE": "x@sha256:0a"}, FLAGS, [])) == {}
    assert directions(_drift.drift({**env, "IMAGE": "y"}, {**env, "IMAGE": "x"}, FLAGS, [])) == {
        "IMAGE": "fleet_differs"
    }


@pytest.mark.parametrize(
    ("image", "digest", "named", "drifts"),
    [
        ("localhost/radiance:1.0.13", "sha256:0a", "localhost/radiance:1.0.13", False),
        ("localhost/radiance:1.0.13", "sha256:0a", "radiance:1.0.13", False),
        ("localhost/radiance:1.0.13", "sha256:0a", "localhost/radiance@sha256:0a", False),
        ("localhost/radiance:1.0.13", "sha256:0a", "localhost/radiance@sha256:0b", True),
        ("localhost/radiance:1.0.13", "sha256:0a", "localhost/radiance:1.1.0", True),
        ("localhost/radiance:latest", "sha256:0a", "localhost/radiance", False),
        ("localhost/radiance:latest", "sha256:0a", "radiance", False),
        ("localhost/radiance", None, "localhost/radiance:latest", False),
        ("registry:5000/radiance:latest", None, "registry:5000/radiance", False),
        ("localhost/radiance:1.0.13", "sha256:0a", "localhost/radiance", True),
        ("localhost/radiance@sha256:0a", "sha256:0a", "localhost/radiance", True),
        (None, None, "localhost/radiance:1.1.0", False),
    ],
)
def test_the_image_that_runs_is_the_containers(
    example: t.Any, env: dict[str, str], image: str | None, digest: str | None, named: str, drifts: bool
) -> None:
    source = {"image": image, "image_digest": digest}
    named_env = {**env, "IMAGE": named}
    found = _drift.drift(named_env, named_env, FLAGS, [], None, source)
    assert directions(found) == ({"IMAGE": "not_restarted"} if drifts else {})
    assert found["running"]["IMAGE"] == (image if drifts else named)
    if drifts:
        assert (
            f"IMAGE is {named} in the host's copy, and the running process still has {image}."
            in found["findings"][0]["says"]
        )
    # Without an env it is the inventory that names another one; what runs is kept.
    found = _drift.drift(None, None, FLAGS, [], {**example.service, "image": named}, source)
    assert [said for said in found["lost"] if "image" in said] == (
        [
            f"The running container has the image {image}, and the inventory declares {named}, while no env says which "
            f"is in force: write {image} in `image` of flashnext in the inventory, and ask for another with "
            f"-e image={named}."
        ]
        if drifts
        else []
    )
    assert found["running"]["IMAGE"] == (image if drifts else named)


@pytest.mark.parametrize("declared", ["localhost/radiance", "radiance", "localhost/radiance@sha256:0a"])
def test_an_env_without_an_image_loses_none_that_the_inventory_only_writes_otherwise(
    example: t.Any, env: dict[str, str], declared: str
) -> None:
    source = {"image": "localhost/radiance:latest", "image_digest": "sha256:0a"}
    found = _drift.drift(env, env, FLAGS, [], {**example.service, "image": declared}, source)
    assert [said for said in found["lost"] if "image" in said] == []


def test_a_switch_on_record_explains_a_fleet_directory_that_is_behind(example: t.Any, env: dict[str, str]) -> None:
    new = _files.env_values(example.service, example.new)
    flags = {**FLAGS, "vram-weights-mib": "25844", "vram-kv-mib": "5119"}
    record = [example.planned(), example.switched()]
    found = _drift.drift(env, new, flags, record)
    assert set(directions(found).values()) == {"fleet_differs"}
    assert found["explained"] is True
    assert "25,844 + 5,119" in found["notes"][0]
    # Somebody may have set it back, which looks the same: the way to say so is told with it.
    assert found["notes"][0].endswith("It is written now; who set it back by hand says so with -e drift=apply.")


def test_a_pair_that_crashed_in_its_probation_explains_a_fleet_directory_that_is_ahead(
    example: t.Any, env: dict[str, str]
) -> None:
    new = _files.env_values(example.service, example.new)
    back = {**example.rolled_back(), "phase": "probation", "says": "The engine ended with status 137."}
    record = [example.planned(), example.switched(), back]
    found = _drift.drift(new, env, FLAGS, record)
    assert set(directions(found).values()) == {"fleet_differs"}
    assert found["explained"] is True
    assert found["notes"][0].startswith(
        "The engine ended with status 137. The unit went back to 24,000 + 5,120 MiB by itself"
    )
    assert _drift.drift({**new, "PORT": "8001"}, env, FLAGS, record)["explained"] is False
    assert _drift.drift(new, env, FLAGS, [*record[:2], {**back, "phase": "referee"}])["explained"] is False


def test_a_record_of_another_pair_explains_nothing(example: t.Any, env: dict[str, str]) -> None:
    record = [example.planned(), example.switched()]
    edited = {**env, "VRAM_WEIGHTS_MIB": "24500"}
    assert _drift.drift(edited, env, FLAGS, record)["explained"] is False
    rolled = [example.planned(), example.rolled_back()]
    assert _drift.drift(edited, env, FLAGS, rolled)["explained"] is False


def test_the_inventory_is_told_apart_from_drift(example: t.Any, env: dict[str, str]) -> None:
    found = _drift.drift(env, env, FLAGS, [], {**example.service, "port": 9000})
    assert found["findings"] == []
    assert found["notes"] == ["PORT is 8000 in the env and 9000 in the inventory. Changing it is no resize: it stays."]


def test_the_running_pair(example: t.Any) -> None:
    assert _drift.running_pair({"flags": FLAGS}) == example.old
    assert _drift.running_pair({"flags": {}})["weights_mib"] is None


def test_a_flag_that_the_inventory_does_not_name_would_be_lost(example: t.Any, env: dict[str, str]) -> None:
    flags = {**FLAGS, "tp-wire": "wht6", "expert-vs-cache-ratio": "0.8"}
    for fleet, target in ((env, env), (None, env), (None, None)):
        (said,) = _drift.drift(fleet, target, flags, [], example.service)["lost"]
        assert "--tp-wire wht6" in said
        assert 'Add tp-wire: "wht6" under `flags` of flashnext' in said
    named = {**example.service, "flags": {**example.service["flags"], "tp-wire": "wht6"}}
    assert _drift.drift(None, None, flags, [], named)["lost"] == []


def test_a_flag_that_would_gain_another_value_is_found(example: t.Any, env: dict[str, str]) -> None:
    named = {**example.service, "flags": {**example.service["flags"], "tp-wire": "exact"}}
    (said,) = _drift.drift(env, env, {**FLAGS, "tp-wire": "wht6"}, [], named)["lost"]
    assert "has --tp-wire wht6, and a restart would give it --tp-wire exact" in said


def test_an_engine_without_a_host_listens_everywhere(example: t.Any) -> None:
    flags = {name: text for name, text in FLAGS.items() if name != "host"}
    (said,) = _drift.drift(None, None, flags, [], example.service)["lost"]
    assert "so it has 0.0.0.0" in said and "--host 127.0.0.1" in said
    assert _drift.drift(None, None, flags, [], {**example.service, "host": "0.0.0.0"})["lost"] == []


def test_without_any_env_what_runs_is_worked_out_from_the_process(example: t.Any, env: dict[str, str]) -> None:
    flags = {**FLAGS, "tp": "4", "model": "models/next.rad"}
    running = _drift.drift(None, None, flags, [], example.service)["running"]
    # A path that is relative to an unknown folder is of no use to a serve script.
    assert running == {**env, "TP": "4", "MODEL": "/srv/models/next.rad"}
    assert list(running)[:2] == ["VRAM_WEIGHTS_MIB", "VRAM_KV_MIB"]
