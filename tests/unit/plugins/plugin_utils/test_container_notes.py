# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._container_notes import container_notes

WHOLE = [
    "--device",
    "/dev/kfd",
    "--device=/dev/dri",
    "--security-opt",
    "seccomp=unconfined",
    "--group-add",
    "44",
    "--group-add=109",
    "--ulimit",
    "memlock=-1:-1",
    "--volume",
    "/srv/models:/models:ro",
]


def notes(*options: str, **fields: object) -> list[str]:
    service = {"name": "a", "runtime": "podman", "flags": {"host-pool-mib": "16384"}, **fields}
    return container_notes({**service, "container_options": list(options)})


def test_what_an_engine_wants_is_named_where_it_lacks() -> None:
    assert notes(*WHOLE) == []
    assert notes("--privileged") == notes("-it", "--privileged", "--device", "/dev/kfd") == []
    # What stands in the place of a value is one.
    assert notes("--label", "--privileged") == notes()
    assert notes("--volume", "/srv/models:/models:ro") == [
        "container_options of a have no --device /dev/kfd; no --device /dev/dri; no --security-opt seccomp=unconfined; "
        "no --group-add for the groups of /dev/kfd and /dev/dri, by number; no --ulimit memlock=-1 (rootless: "
        "LimitMEMLOCK=infinity of the unit) for the host pool, which is pinned. An engine on real cards wants them."
    ]
    assert notes(*WHOLE[2:]) == [
        "container_options of a have no --device /dev/kfd. An engine on real cards wants them."
    ]
    assert notes(*WHOLE[3:], "--device", "amd.com/gpu=all") == []
    assert notes(*WHOLE[:8]) == [
        "container_options of a have no --ulimit memlock=-1 (rootless: LimitMEMLOCK=infinity of the unit) for the host "
        "pool, which is pinned. An engine on real cards wants them."
    ]
    assert notes(*WHOLE[:8], flags={}) == []


def test_a_service_without_a_container_has_none() -> None:
    assert container_notes({"name": "a", "engine": ["/usr/bin/radiance"]}) == []


@pytest.mark.parametrize(
    "options",
    [
        ["--volume", "/srv/models:/models:ro,z"],
        ["-v", "/srv/models:/models:Z"],
        ["--volume=/srv/models:/models:z"],
        ["--mount", "type=bind,src=/srv/models,dst=/models,relabel=shared"],
    ],
)
def test_a_volume_that_is_relabelled_at_each_start_is_named(options: list[str]) -> None:
    (said,) = notes(*WHOLE, *options)
    assert "relabel" in said
    assert said.endswith("Label it once, outside of the container, and leave z and Z out.")


def test_a_folder_called_z_is_not_relabelled() -> None:
    assert notes(*WHOLE, "--volume", "/srv/z:/z:ro") == []


def test_a_group_by_name_is_named() -> None:
    assert notes(*WHOLE, "--group-add", "render") == [
        "container_options of a have --group-add render: an image without /etc/group knows no names. Give the number "
        "that the host has for it (getent group NAME)."
    ]
    assert notes(*WHOLE, "--group-add", "keep-groups") == []
