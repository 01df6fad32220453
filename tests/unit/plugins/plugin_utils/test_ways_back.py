# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What there is to return to: listed with whether it can be had, and returned to in all that an attempt may change."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _request, _ways_back

UNDO = "ansible-playbook playbooks/rollback.yml -l dankserver -e service=flashnext -e to=previous"
OLD_IMAGE = f"localhost/radiance@sha256:{'a' * 64}"
NEW_IMAGE = f"localhost/radiance@sha256:{'b' * 64}"
WHOLE = {
    "weights_mib": 21972,
    "kv_mib": 8991,
    "max_num_seqs": 4,
    "max_model_len": 163840,
    "kv_cache_dtype": "bf16",
    "num_speculative_tokens": 1,
}


def record(example: t.Any) -> list[dict[str, t.Any]]:
    """One switch that changed pair, shape, dtype and image."""
    planned = example.entry(
        "planned",
        plan={**example.plan, "to": WHOLE},
        request={"pair": "fill"},
        image=NEW_IMAGE,
        image_before="localhost/radiance:1.0.13",
        image_digest_before=f"sha256:{'a' * 64}",
    )
    ended = {**example.switched(to=WHOLE), "image": NEW_IMAGE, "id": "0badc0ffee00", "at": "2026-11-30T01:00:00Z"}
    return [planned, ended]


def test_the_way_back_has_pair_and_shape_and_dtype_and_image(example: t.Any) -> None:
    back = _ways_back.way_back(record(example), "previous", UNDO)
    assert back["to"] == example.old
    assert back["image"] == OLD_IMAGE
    image = {"image": OLD_IMAGE, "digest": f"sha256:{'a' * 64}", "version": "1.0.13", "same": False}
    options = _request.pair_request(example.service, {"to": "previous"}, back=back, image=image)
    assert options["pair"] == {"weights_mib": 24000, "kv_mib": 5120}
    assert options["shape"] == {
        "max_num_seqs": 3,
        "max_model_len": 200000,
        "kv_cache_dtype": "fp8",
        "num_speculative_tokens": 2,
    }
    assert (options["image"], options["image_digest"]) == (OLD_IMAGE, f"sha256:{'a' * 64}")
    # By its id, forward again.
    forward = _ways_back.way_back(record(example), "0badc0ffee00", UNDO)
    assert (forward["to"], forward["image"], forward["ran"]) == (WHOLE, NEW_IMAGE, True)


def test_an_unknown_id_names_the_command_that_lists(example: t.Any) -> None:
    with pytest.raises(RadianceError) as refused:
        _ways_back.way_back(record(example), "4bd1e73f82f0", UNDO)
    assert "to=4bd1e73f82f0 names no line of the record" in refused.value.text
    command = "ansible-playbook playbooks/rollback.yml -l dankserver -e service=flashnext -e to=list"
    assert refused.value.text.split("\n")[-1] == f"Which of them can be had: {command}"


def test_the_list_tells_what_can_be_had(example: t.Any) -> None:
    service = {**example.service, "runtime": "podman"}
    looked = [{"__endpoint_image": OLD_IMAGE, "rc": 0}, {"__endpoint_image": NEW_IMAGE, "rc": 125, "msg": "non-zero"}]
    lines = _ways_back.ways_back_report(record(example), service, "dankserver", {"looked": looked, "undo": UNDO})
    assert _ways_back.images(record(example)) == [OLD_IMAGE, NEW_IMAGE]
    assert lines[0] == "flashnext on dankserver: what there is to return to, the newest first"
    assert lines[2].split("  ")[1] == "previous"
    assert "24,000 + 5,120" in lines[2] and "3 x 200,000, fp8, depth 2" in lines[2]
    assert "localhost/radiance@sha256:aaaaaaaaaaaa…" in lines[2]
    assert lines[2].endswith("yes, the host has its image")
    assert lines[3].startswith("  0badc0ffee00  2026-11-30T01:00:00Z  21,972 + 8,991") and "bf16" in lines[3]
    assert lines[3].endswith("runs now, by the record")
    assert lines[-1] == "  " + UNDO.replace("previous", "ID")


@pytest.mark.parametrize(
    ("looked", "said"),
    [
        ({"rc": 125}, f"no: the host does not have its image; podman pull {OLD_IMAGE}"),
        ({"rc": 1}, f"no: the host does not have its image; podman pull {OLD_IMAGE}"),
        ({"rc": 2, "msg": "no such file: podman"}, "not known: no such file: podman"),
        ({"unreachable": True}, "not known while the host does not answer"),
        (None, "not known while the host does not answer"),
    ],
)
def test_what_cannot_be_had_says_why(example: t.Any, looked: t.Any, said: str) -> None:
    about = {"looked": [{"__endpoint_image": OLD_IMAGE, **looked}] if looked else [], "undo": UNDO, "unread": "down"}
    lines = _ways_back.ways_back_report(record(example), {**example.service, "runtime": "podman"}, "dankserver", about)
    assert lines[1] == "  The record in the fleet directory alone; the host's cannot be read: down"
    assert lines[3].endswith(said)


def test_a_process_has_no_image_to_miss_and_a_record_may_hold_nothing(example: t.Any) -> None:
    lines = _ways_back.ways_back_report([example.planned(), example.switched()], example.service, "h", {"undo": UNDO})
    assert lines[2].endswith("–      yes")
    lines = _ways_back.ways_back_report([example.planned()], example.service, "h", {"undo": UNDO})
    state = "ansible-playbook playbooks/resize.yml -l dankserver -e service=flashnext -e weights_mib=… -e kv_mib=…"
    assert lines[1:] == ["  nothing: no switch is on record. State a pair:", f"  {state}"]
