# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files of a host the start of a container names, by the options of the inventory or by an owner's own script."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._needed_files import needed_files

SERVICE: dict[str, t.Any] = {"name": "qwen", "runtime": "podman", "image": "radiance:1.0.13", "port": 8001}
SERVE = """\
#!/bin/sh
. /srv/radiance/scripts/qwen.env
exec podman run --rm -v /srv/models:/models:ro -v cache:/cache --env-file="$SECRETS" --device /dev/kfd "$IMAGE" \\
  --model /models/q.rad --env-file /of/the/engine
"""


@pytest.mark.parametrize(
    ("options", "needs"),
    [
        (["--env-file", "/srv/a.env"], [("/srv/a.env", "--env-file", True)]),
        (["--env-file=scripts/a.env"], [("/srv/radiance/scripts/a.env", "--env-file", True)]),
        (["-v", "/srv/models:/models:ro", "-vcache:/c"], [("/srv/models", "-v", False)]),
        (["--volume", "./models:/models"], [("/srv/radiance/models", "--volume", False)]),
        (["--device", "/dev/dri:/dev/dri:rw", "--device", "amd.com/gpu=all"], [("/dev/dri", "--device", False)]),
        (["--mount", "type=bind,src=/srv/m,dst=/m,ro"], [("/srv/m", "--mount", False)]),
        (["--mount", "type=tmpfs,destination=/t"], []),
        (["--security-opt", "seccomp=unconfined", "--security-opt", "label=disable"], []),
        (["--security-opt=seccomp=/srv/s.json"], [("/srv/s.json", "--security-opt", False)]),
        (["--privileged", "--label-file", "/l", "--group-add", "44"], [("/l", "--label-file", True)]),
    ],
)
def test_what_the_options_name(options: list[str], needs: list[tuple[str, str, bool]]) -> None:
    found = needed_files({**SERVICE, "container_options": options}, "/srv/radiance")
    assert [(need["path"], need["option"], need["read"]) for need in found] == needs
    assert {need["stated_in"] for need in found} <= {"the container_options of qwen"}


def test_docker_makes_a_folder_that_is_not_there() -> None:
    docker = {**SERVICE, "runtime": "docker", "container_options": ["-v", "/srv/m:/m", "--env-file", "/srv/a.env"]}
    assert [need["path"] for need in needed_files(docker, "/srv/radiance")] == ["/srv/a.env"]


def test_what_an_owners_script_names_up_to_its_image() -> None:
    script = {
        "env": "IMAGE=radiance:1.0.13\nSECRETS=/srv/secrets.env\n",
        "serve": SERVE,
        "env_path": "/srv/radiance/scripts/qwen.env",
        "serve_path": "/srv/radiance/scripts/serve-qwen.sh",
    }
    assert needed_files(SERVICE, "/srv/radiance", script) == [
        {"path": path, "option": option, "stated_in": "/srv/radiance/scripts/serve-qwen.sh", "read": read}
        for path, option, read in (
            ("/srv/models", "-v", False),
            ("/srv/secrets.env", "--env-file", True),
            ("/dev/kfd", "--device", False),
        )
    ]


def test_a_service_without_a_container_names_none() -> None:
    assert needed_files({"name": "qwen", "engine": ["radiance"]}, "/srv/radiance") == []
