# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an item of endpoint_services means: its manager, its source, its container, and what is refused of each."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _request, _schemas, _service

BASE: dict[str, t.Any] = {"name": "flashnext", "model": "/models/next.rad", "port": 8000}
PROCESS = {**BASE, "engine": ["/usr/local/bin/radiance"], "log": "/srv/fn.log", "pid_file": "/srv/fn.pid"}
UNIT = {**BASE, "manager": "systemd", "engine": ["/usr/local/bin/radiance"]}
PODMAN = {**BASE, "manager": "systemd", "runtime": "podman", "image": "localhost/radiance@sha256:0a"}
ROOTLESS = {**PODMAN, "manager": "systemd_user"}
DOCKER = {**PODMAN, "runtime": "docker"}


@pytest.mark.parametrize("service", [PROCESS, UNIT, PODMAN, ROOTLESS, DOCKER])
def test_each_kind_of_service_fits_the_schema(service: dict[str, t.Any]) -> None:
    assert _schemas.problems(service, "service") == []
    source = _service.managed_by(service)["source"]
    assert _schemas.problems({**service, "source": source}, "service") == []


def test_the_example_of_the_inventory_is_a_service() -> None:
    path = pathlib.Path(__file__).resolve().parents[4] / "inventory" / "host_vars" / "dankserver.yml"
    (service,) = yaml.safe_load(path.read_text(encoding="utf-8"))["endpoint_services"]
    assert _schemas.problems(service, "service") == []
    assert _service.engine_command(service)[:2] == ["podman", "run"]


@pytest.mark.parametrize(
    ("service", "without", "said"),
    [
        (PODMAN, "image", "at the top: missing image (a runtime runs that image)"),
        (
            PODMAN,
            "manager",
            "at the top: missing manager (a container is run by a unit: write manager: systemd, or systemd_user for a "
            "rootless one)",
        ),
        (
            UNIT,
            "engine",
            "at the top: missing engine (name the engine's command, or runtime and image for one in a container)",
        ),
        (
            PROCESS,
            "log",
            "at the top: missing log (a plain process is found by them; a unit has manager: systemd or systemd_user)",
        ),
    ],
)
def test_what_is_missing_is_named_with_the_reason(service: dict[str, t.Any], without: str, said: str) -> None:
    assert _schemas.problems({name: value for name, value in service.items() if name != without}, "service") == [said]


@pytest.mark.parametrize(
    ("service", "change", "said"),
    [
        (PROCESS, {"image": "x"}, "at image: needs a runtime: podman or docker"),
        (PROCESS, {"container": "x"}, "at container: needs a runtime: podman or docker"),
        (PROCESS, {"container_options": ["-q"]}, "at container_options: needs a runtime: podman or docker"),
        (PROCESS, {"unit": "x.service"}, "at unit: needs manager: systemd or systemd_user"),
        (PROCESS, {"source": "journald"}, "at source: must be file (a plain process writes a file)"),
        (UNIT, {"log": "/x"}, "at log: only of a plain process: systemd and the runtime keep a unit's"),
        (ROOTLESS, {"pid_file": "/x"}, "at pid_file: only of a plain process: systemd knows a unit's"),
        (UNIT, {"source": "podman"}, "at source: must be journald (a unit without a container writes to the journal)"),
        (
            PODMAN,
            {"source": "docker"},
            "at source: must be podman (the boot is read where the container and its command line are)",
        ),
        (
            DOCKER,
            {"source": "journald"},
            "at source: must be docker (the boot is read where the container and its command line are)",
        ),
        (
            PODMAN,
            {"manager": "process"},
            "at manager: must be systemd or systemd_user (a container is run by a unit)",
        ),
        (PODMAN, {"engine": ["x"]}, "at engine: leave it out: with a runtime the image is the engine's command"),
        (PODMAN, {"unit": "flashnext"}, "at unit: must be the full name of a service unit, like flashnext.service"),
        (PODMAN, {"image": "--privileged"}, "at image: must be the name of an image, with its tag or digest"),
        (
            PODMAN,
            {"container": "a b"},
            "at container: must be letters, digits and . _ -, a letter or a digit first",
        ),
        (PODMAN, {"container_options": [1]}, "at container_options/0: must be string"),
    ],
)
def test_what_does_not_belong_together_is_named(service: dict[str, t.Any], change: dict[str, t.Any], said: str) -> None:
    assert _schemas.problems({**service, **change}, "service") == [said]


@pytest.mark.parametrize(
    ("name", "said", "refused", "taken"),
    [
        (
            "port",
            "at port: must be a port from 1 to 65535",
            # What a template gives is text.
            (0, -1, 65536, 99999, "0", "08000", "65536", "99999", "8000/tcp", ""),
            (1, 8000, 65535, "1", "8000", "59999", "64999", "65499", "65529", "65535"),
        ),
        (
            "endpoint",
            "at endpoint: must be the base URL, like http://127.0.0.1:8000, without /v1",
            (
                "127.0.0.1:8000",
                "ftp://x",
                "http://",
                "http://x/v1",
                "http://x/v1/",
                "http://u:p@x",
                "http://x/?a",
                "http://a b",
            ),
            ("http://127.0.0.1:8000", "https://llm.example/radiance", "http://[::1]:8000/", "http://v1"),
        ),
        ("log", "at log: must be an absolute path on the target", ("fn.log", "~/fn.log", ""), ("/srv/fn.log",)),
        ("pid_file", "at pid_file: must be an absolute path on the target", ("run/fn.pid",), ("/run/fn.pid",)),
        ("api_key_file", "at api_key_file: must be an absolute path on the target", ("fn.key",), ("/srv/fn.key",)),
        ("timeouts", "at timeouts/stop: must be at least 0", ({"stop": -1},), ({"drain": 0, "stop": 0, "release": 0},)),
        ("timeouts", "at timeouts/ready: must be at least 1", ({"ready": 0},), ({"ready": 1, "probe": 1},)),
        ("cards", "at cards/1: must be at least 0", ([0, -1],), ([0, 1],)),
    ],
)
def test_a_value_that_cannot_be_is_named_with_what_fits(
    name: str, said: str, refused: tuple[t.Any, ...], taken: tuple[t.Any, ...]
) -> None:
    for value in refused:
        assert _schemas.problems({**PROCESS, name: value}, "service") == [said], value
    for value in taken:
        assert _schemas.problems({**PROCESS, name: value}, "service") == [], value


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        (PROCESS, ("process", "system", None, "file", "flashnext", None)),
        (UNIT, ("systemd", "system", "flashnext.service", "journald", "flashnext.service", None)),
        (
            {**UNIT, "manager": "systemd_user", "unit": "llm@1.service"},
            ("systemd_user", "user", "llm@1.service", "journald", "llm@1.service", None),
        ),
        (PODMAN, ("systemd", "system", "flashnext.service", "podman", "flashnext", "flashnext")),
        (
            {**DOCKER, "container": "fn", "unit": "llm.service"},
            ("systemd", "system", "llm.service", "docker", "fn", "fn"),
        ),
    ],
)
def test_what_is_left_out_is_filled_in(service: dict[str, t.Any], expected: tuple[t.Any, ...]) -> None:
    assert tuple(_service.managed_by(service).values()) == expected


def test_the_command_of_each_engine() -> None:
    assert _service.engine_command({**PROCESS, "engine": ["python3", "/a b/radiance.py"]}) == [
        "python3",
        "/a b/radiance.py",
    ]
    options = ["--device", "/dev/kfd", "--log-driver=k8s-file", "--volume", "/srv/my models:/models"]
    # fmt: off
    assert _service.engine_command({**PODMAN, "container": "fn", "container_options": options}, 60.0) == [
        "podman", "run", "--rm", "--replace", "--name", "fn", "--init", "--network", "host",
        "--stop-timeout", "60", *options,
    ]
    assert _service.engine_command(DOCKER, 60.0) == [
        "docker", "run", "--rm", "--name", "flashnext", "--init", "--network", "host", "--stop-timeout", "60",
    ]
    assert _service.engine_command(DOCKER, 20.5)[-2:] == ["--stop-timeout", "21"]
    assert _service.engine_command(DOCKER)[-2:] == ["--network", "host"]
    own = {**DOCKER, "container_options": ["--stop-timeout=5"]}
    assert _service.engine_command(own, 60.0)[-3:] == ["--network", "host", "--stop-timeout=5"]
    # fmt: on


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--log-driver", "none"], "--log-driver none"),
        (["--log-driver=passthrough"], "--log-driver passthrough"),
        (["--device", "/dev/kfd", "--log-driver", "passthrough-tty"], "--log-driver passthrough-tty"),
        (["--name", "x"], "--name: the container is named by `container`"),
        (["--name=x"], "--name: the container is named by `container`"),
        (["-d"], "-d: the unit runs the container in the foreground"),
        (["-dt"], "-d: the unit runs the container in the foreground"),
        (["-itd"], "-d: the unit runs the container in the foreground"),
        (["-qdv", "/srv:/srv"], "-d: the unit runs the container in the foreground"),
        (["--detach=true"], "--detach: the unit runs the container in the foreground"),
        (["-a", "stdin"], "-a: all that the engine prints has to reach the journal of the unit"),
        (["-astdin"], "-a: all that the engine prints has to reach the journal of the unit"),
        (["-ia", "stdin"], "-a: all that the engine prints has to reach the journal of the unit"),
        (["--attach=stdin"], "--attach: all that the engine prints has to reach the journal of the unit"),
        (["--sig-proxy=false"], "--sig-proxy: by it the runtime passes the stop"),
        (["--pod", "llm"], "--pod: a pod has a network of its own"),
        (["--pod-id-file=/run/pod"], "--pod-id-file: a pod has a network of its own"),
        (["--network", "bridge"], "--network: the container has the network of the host"),
        (["localhost/other:1"], "has a word at its beginning that is no option"),
        (["--privileged", "localhost/other:1"], "has a word behind --privileged that is no option"),
        (["--env", "HF_TOKEN", "hf_hushhush"], "has a word behind --env that is no option"),
        (["--init"], "--init: the serve script does it"),
        (["--env", "HF_TOKEN=shown-to-nobody"], "sets HF_TOKEN, which carries a secret"),
        (["--env=API_KEY=shown-to-nobody"], "sets API_KEY, which carries a secret"),
        (["-eAPI_KEY=shown-to-nobody"], "sets API_KEY, which carries a secret"),
        (["-e", "API_KEY=shown-to-nobody"], "sets API_KEY, which carries a secret"),
        (["-ite", "API_KEY=shown-to-nobody"], "sets API_KEY, which carries a secret"),
        (["-teAPI_KEY=shown-to-nobody"], "sets API_KEY, which carries a secret"),
    ],
)
def test_options_that_hide_the_engine_or_show_a_secret_are_refused(options: list[str], said: str) -> None:
    service = {**PODMAN, "container_options": options}
    with pytest.raises(RadianceError) as caught:
        _service.engine_command(service)
    assert caught.value.code == "container_options_unfit"
    assert caught.value.text.startswith("container_options of flashnext ") and said in caught.value.text
    assert "shown-to-nobody" not in caught.value.text
    # The host need not be read for that.
    assert _request.request_objection({}, [service], "dankserver") == caught.value.text


@pytest.mark.parametrize(
    ("service", "drivers"),
    [(PODMAN, "Take k8s-file, json-file or journald, or"), (DOCKER, "Take json-file, local or journald, or")],
)
def test_a_log_that_nobody_could_read_names_the_drivers_of_its_runtime(service: dict[str, t.Any], drivers: str) -> None:
    with pytest.raises(RadianceError, match=drivers):
        _service.engine_command({**service, "container_options": ["--log-driver", "none"]})


@pytest.mark.parametrize(
    "options",
    [
        ["--log-driver", "journald"],
        ["--env", "HSA_OVERRIDE_GFX_VERSION=11.0.0", "--env-file", "/srv/x.env", "--env", "HF_TOKEN"],
        ["-t", "-it", "-v/data:/data", "-hdankserver", "--add-host", "a:1", "--annotation=a=d", "--device", "/dev/dri"],
        # The value of another option is none of its own.
        ["--label", "--init", "--annotation", "-d", "--memory-swap", "-1"],
        ["--ulimit", "memlock=-1", "--group-add", "keep-groups", "--security-opt=label=disable"],
    ],
)
def test_other_options_are_the_operators_own(options: list[str]) -> None:
    assert _request.request_objection({}, [{**PODMAN, "container_options": options}], "dankserver") == ""


@pytest.mark.parametrize(
    ("service", "command"),
    [
        (UNIT, "systemctl start flashnext.service"),
        ({**ROOTLESS, "unit": "llm.service"}, "systemctl --user start llm.service"),
    ],
)
def test_a_unit_is_started_by_systemctl(service: dict[str, t.Any], command: str) -> None:
    assert _service.start_command(service, "/srv/radiance/scripts/serve-flashnext.sh").endswith(f"; {command}")


def test_only_a_container_of_docker_has_to_be_removed_before_the_next_start() -> None:
    assert _service.leftover_command({**DOCKER, "container": "fn"}) == ["docker", "rm", "--force", "fn"]
    assert [_service.leftover_command(service) for service in (PROCESS, UNIT, PODMAN, ROOTLESS)] == [[], [], [], []]


@pytest.mark.parametrize(
    ("service", "words"),
    [
        (PROCESS, ("/srv/fn.log", "/srv/fn.pid", "is not serving", "setsid sh -c")),
        (UNIT, ("journal of flashnext.service", "declare `runtime` and `image`", "systemctl start flashnext.service")),
        (ROOTLESS, ("container flashnext", "systemctl --user start flashnext.service")),
    ],
)
def test_where_no_engine_is_found_the_way_out_is_the_services_own(
    service: dict[str, t.Any], words: tuple[str, ...]
) -> None:
    said = _service.gone_words(service, "/srv/radiance/scripts/serve-flashnext.sh")
    assert [word for word in words if word not in said] == []
    assert ("pid" in said) is (service is PROCESS)


def test_a_reading_that_failed_has_its_own_words_and_a_container_its_start() -> None:
    said = {"msg": "podman has no container 'flashnext'.", "code": "container_absent"}
    words = _service.gone_words(ROOTLESS, "/srv/radiance/scripts/serve-flashnext.sh", said).split("\n\n")
    assert words[0] == "podman has no container 'flashnext'."
    assert words[1].endswith("systemctl --user start flashnext.service")
    said = {"msg": "The unit flashnext.service does not run. Start it.", "code": "unit_inactive"}
    assert _service.gone_words(UNIT, "/srv/radiance/scripts/serve-flashnext.sh", said) == said["msg"]
