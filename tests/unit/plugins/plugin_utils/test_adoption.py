# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a hand-written service can be taken over: the fixture of the test hosts, and what is wrong with others."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _adoption, _runtime_words, _schemas

HANDMADE = pathlib.Path(__file__).resolve().parents[4] / "extensions" / "hosts" / "fixtures" / "handmade"
ENV = (HANDMADE / "scripts" / "qwen.env").read_text()
SERVE = (HANDMADE / "scripts" / "serve-qwen.sh").read_text()
BATS = (HANDMADE / "tests" / "qwen.bats").read_text()
DECLARED = yaml.safe_load(HANDMADE.with_suffix(".yml").read_text())["all"]["hosts"]["dankserver-a"][
    "endpoint_services"
][0]
# What the kernel shows of the client that the unit started, its key and its token masked as the module does it.
# fmt: off
ARGV = [
    "podman", "run", "--rm", "--replace", "--name", "qwen", "--init", "--network", "host", "--log-driver", "k8s-file",
    "-e", "HUB_TOKEN=********", "-v", "/srv/handmade/scripts/../models:/models:ro", "localhost/radiance:1.0.13",
    "--model", "/models/qwen.rad", "--host", "127.0.0.1", "--port", "8001", "--api-key", "********", "--tp", "2",
    "--host-pool-mib", "16384",
    "--vram-weights-mib", "24000", "--vram-kv-mib", "5120", "--max-num-seqs", "3", "--max-model-len", "200000",
    "--kv-cache-dtype", "fp8", "--num-speculative-tokens", "2",
]
# fmt: on
COMMAND: dict[str, t.Any] = {
    "manager": "systemd",
    "unit": "qwen.service",
    "scope": "system",
    "program": ["/srv/handmade/scripts/serve-qwen.sh"],
    "argv": ARGV,
}


def survey(
    service: dict[str, t.Any] | None = None,
    env: str = ENV,
    serve: str = SERVE,
    argv: list[str] | None = None,
    fleet: dict[str, str] | None = None,
    **command: t.Any,
) -> dict[str, t.Any]:
    here = {"env": env, "serve": serve, "bats": BATS, **(fleet or {})}
    texts = {"target": {"env": env, "serve": serve}, "fleet": here}
    ran = {**COMMAND, **({"argv": argv} if argv is not None else {}), **command}
    return _adoption.survey(DECLARED if service is None else service, ran, texts, "/srv/handmade", "dankserver-a")


def the_objection(**changed: t.Any) -> str:
    (objection,) = survey(**changed)["objections"]
    return str(objection)


def test_the_declared_service_can_be_taken_over() -> None:
    found = survey()
    assert (found["objections"], found["item"]) == ([], [])
    assert set(found["owned"]) == {
        "SLAB_MIB", "POOL_MIB", "SEQS", "CONTEXT", "KV_CACHE_DTYPE", "DEPTH", "HOST_POOL_MIB", "QWEN_IMAGE", "MODEL",
        "PORT",
    }  # fmt: skip


def test_a_bare_name_gets_the_item_to_paste() -> None:
    found = survey({"name": "qwen"})
    (item,) = yaml.safe_load("\n".join(found["item"]))
    assert item == {name: value for name, value in DECLARED.items() if name not in ("docs", "timeouts")}
    assert _schemas.problems(item, "service") == []
    assert len(found["objections"]) == 1 and "`manager` is missing" in found["objections"][0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"port": 8000}, "`port` is 8000, and what runs has 8001"),
        ({"model": "/models/other.rad"}, "what runs has /models/qwen.rad"),
        ({"runtime": "docker"}, "`runtime` is docker"),
        ({"container": "other"}, "`container` is other, and what runs has qwen"),
        ({"host": "0.0.0.0"}, "`host` is 0.0.0.0, and what runs has 127.0.0.1"),
        ({"flags": {"tp": "2"}}, "`flags` is tp: 2, and what runs has tp: 2, host-pool-mib: 16384"),
        ({"flags": {"tp": "4", "host-pool-mib": "16384"}}, "`flags`"),
        ({"env_names": {"VRAM_KV_MIB": "POOL"}}, "`env_names` is VRAM_KV_MIB: POOL"),
    ],
)
def test_what_the_inventory_has_otherwise_is_told(change: dict[str, t.Any], said: str) -> None:
    found = survey({**DECLARED, **change})
    assert said in found["objections"][0]
    # The item that is shown fits what runs.
    assert survey(yaml.safe_load("\n".join(found["item"]))[0])["objections"] == []


def test_the_image_and_the_host_pool_of_the_env_are_in_force() -> None:
    moved = {**DECLARED, "image": "localhost/radiance:1.0.5", "flags": {"tp": "2", "host-pool-mib": "8192"}}
    assert survey(moved)["objections"] == []


def test_another_unit_than_the_name_says_is_found() -> None:
    (item,) = yaml.safe_load("\n".join(survey({"name": "qwen"}, unit="chat.service", manager="systemd_user")["item"]))
    assert (item["unit"], item["manager"]) == ("chat.service", "systemd_user")


def test_a_script_of_its_own_runs_under_its_interpreter() -> None:
    env = "SLAB=24000\nPOOL=5120\n"
    flags = '--model /m.rad --port 8000 --vram-weights-mib "$SLAB" --vram-kv-mib "$POOL"'
    serve = f'. "$(dirname "$0")/qwen.env"\nexec radiance {flags}\n'
    words = ["--model", "/m.rad", "--port", "8000", "--vram-weights-mib", "24000", "--vram-kv-mib", "5120"]
    for argv in (["radiance", *words], ["/usr/bin/python3", "/usr/bin/radiance", *words]):
        (item,) = yaml.safe_load("\n".join(survey({"name": "qwen"}, env, serve, argv)["item"]))
        assert item == {
            "name": "qwen",
            "manager": "systemd",
            "engine": ["radiance"],
            "model": "/m.rad",
            "port": 8000,
            # The engine's own default, where the script names no address.
            "host": "0.0.0.0",
            "env_names": {"VRAM_WEIGHTS_MIB": "SLAB", "VRAM_KV_MIB": "POOL"},
        }
    assert "gives" not in the_objection(service={"name": "qwen"}, env=env, serve=serve, argv=["radiance", *words])
    assert "running process has" in the_objection(
        service={"name": "qwen"}, env=env, serve=serve, argv=["other", *words]
    )


def test_another_command_line_than_the_one_that_runs_is_refused() -> None:
    other = [word.replace("5120", "5119") for word in ARGV]
    said = the_objection(argv=other)
    assert "`--vram-kv-mib 5120 --max-num-seqs`" in said and "`--vram-kv-mib 5119 --max-num-seqs`" in said
    assert "the running process has" in the_objection(argv=[*ARGV, "--no-warmup"])
    # The same program in another folder is another one.
    script, runs = SERVE.replace("exec podman", "exec /opt/new/podman"), ["/opt/old/podman", *ARGV[1:]]
    assert "`/opt/new/podman run`, and the running process has `/opt/old/podman run`" in the_objection(
        serve=script, argv=runs
    )
    assert survey(serve=script, argv=["/opt/new/podman", *ARGV[1:]])["objections"] == []
    assert "the running process has" in the_objection(argv=ARGV[:-2])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            '"$POOL_MIB"',
            "5120",
            "line 26 of scripts/serve-qwen.sh on dankserver-a states --vram-kv-mib 5120 itself. Write "
            '--vram-kv-mib "$VRAM_KV_MIB"',
        ),
        ('"$SEQS"', "3", "line 27"),
        (
            '"$DEPTH"',
            '"${DEEP:-2}"',
            "line 29 of scripts/serve-qwen.sh on dankserver-a states --num-speculative-tokens 2 itself",
        ),
    ],
)
def test_a_pair_or_shape_that_the_script_states_is_refused_by_its_line(old: str, new: str, said: str) -> None:
    assert said in the_objection(serve=SERVE.replace(old, new))


def test_no_pair_at_all_gets_the_lines_that_change_nothing() -> None:
    bare = SERVE.replace('  --vram-weights-mib "$SLAB_MIB" --vram-kv-mib "$POOL_MIB" \\\n', "")
    at = ARGV.index("--vram-weights-mib")
    argv = [*ARGV[:at], *ARGV[at + 4 :]]
    said = survey(serve=bare, argv=argv)["objections"]
    assert (
        len(said) == 2
        and 'Write VRAM_KV_MIB= into scripts/qwen.env and ${VRAM_KV_MIB:+--vram-kv-mib "$VRAM_KV_MIB"}' in said[1]
    )
    # And so it is taken.
    optional = "".join(
        f'  ${{{key}:+--{flag} "${key}"}} \\\n'
        for key, flag in (("SLAB_MIB", "vram-weights-mib"), ("POOL_MIB", "vram-kv-mib"))
    )
    mended = SERVE.replace('  --vram-weights-mib "$SLAB_MIB" --vram-kv-mib "$POOL_MIB" \\\n', optional)
    env = ENV.replace("SLAB_MIB=24000", "SLAB_MIB=").replace("POOL_MIB=5120", "POOL_MIB=", 1)
    found = survey(serve=mended, argv=argv, env=env)
    assert found["objections"] == [] and {"SLAB_MIB", "POOL_MIB"} <= set(found["owned"])


def test_a_part_of_the_shape_that_nobody_states_is_left_to_the_engine() -> None:
    bare = SERVE.replace(' \\\n  --num-speculative-tokens "$DEPTH"', "")
    found = survey(
        {**DECLARED, "env_names": {k: v for k, v in DECLARED["env_names"].items() if v != "DEPTH"}},
        serve=bare,
        argv=ARGV[:-2],
    )
    assert found["objections"] == [] and "DEPTH" not in found["owned"]


def test_one_key_for_two_flags_is_refused() -> None:
    two = SERVE.replace('"$CONTEXT"', '"$POOL_MIB"')
    said = the_objection(serve=two, argv=[word.replace("200000", "5120") for word in ARGV])
    assert "POOL_MIB in scripts/qwen.env is the value of" in said and "Give each a key of its own" in said


def test_a_key_in_the_block_of_another_service_is_refused() -> None:
    marks = [f"# {mark} kvfleet.radiance: managed; nightly\n" for mark in ("BEGIN", "END")]
    shared = ENV.replace("PORT=8001\n", f"{marks[0]}PORT=8001\n{marks[1]}")
    found = survey(env=shared)
    assert found["objections"] == [
        "PORT in scripts/qwen.env is in the block of nightly. Give qwen a key of its own, and name it in its script."
    ]
    assert found["owned"] == []


def test_files_that_differ_here_and_there_are_told_by_value() -> None:
    said = the_objection(fleet={"env": ENV.replace("POOL_MIB=5120", "POOL_MIB=6144") + "HF_TOKEN=hf_secret\n"})
    assert "POOL_MIB (6144 here, 5120 on dankserver-a), HF_TOKEN" in said and "secret" not in said
    said = the_objection(fleet={"serve": SERVE.replace("--tp 2", "--tp 4")})
    assert "gives `--tp 4 --host-pool-mib`, and that of dankserver-a `--tp 2 --host-pool-mib`" in said
    # Comments and blank lines are no difference.
    assert survey(fleet={"env": "# mine\n" + ENV, "serve": SERVE.replace("umask 022\n", "")})["objections"] == []


def test_what_runs_in_the_place_of_a_secret_is_not_told() -> None:
    serve = SERVE.replace("--tp 2", '--tp "${HF_TOKEN:-********}"')
    said = the_objection(serve=serve, argv=[*ARGV[: ARGV.index("--tp") + 1], "hush", *ARGV[ARGV.index("--tp") + 2 :]])
    assert "they give `--tp ******** --host-pool-mib`, and the running process has `--tp ******** --host-pool" in said
    assert "hush" not in said


def test_what_cannot_be_read_is_refused_with_its_line() -> None:
    assert the_objection(serve=SERVE.replace("umask 022", "ulimit -n 1\nnvtop")).startswith(
        "dankserver-a:/srv/handmade/scripts/serve-qwen.sh, line 13: it has `nvtop`"
    )
    said = survey(env=ENV.replace("PORT=8001", "PORT='8001'"))["objections"]
    assert [text.partition(": ")[0] for text in said] == [
        f"line 22 of {where}" for where in ("dankserver-a:/srv/handmade/scripts/qwen.env", "scripts/qwen.env")
    ]
    assert "There is no scripts/qwen.env. Copy dankserver-a:/srv/handmade/scripts/qwen.env there" in the_objection(
        fleet={"env": ""}
    )
    assert "ends without a newline" in the_objection(fleet={"bats": "x"})
    # Written back, it would have other bytes.
    latin = "# na\ufffdve\n"
    for kind, text in (("env", ENV), ("serve", SERVE.partition("\n")[2]), ("bats", "")):
        assert ", line 1 is not UTF-8 text." in the_objection(fleet={kind: latin + text})
    assert "scripts/qwen.env, line 1: the block 'x' begins there and has no END" in the_objection(
        fleet={"env": "# BEGIN kvfleet.radiance: managed; x\n" + ENV}
    )
    assert "nothing to adopt" in the_objection(fleet={"env": "# kvfleet.radiance: managed; the pair\n" + ENV})


def test_a_unit_that_runs_another_script_is_refused_with_the_paths_to_write() -> None:
    assert "`paths: {serve: bin/qwen}`" in the_objection(program=["/srv/handmade/bin/qwen"])
    assert "endpoint_target_dir" in the_objection(program=["/opt/qwen"])
    assert survey(program=["/bin/sh", "/srv/handmade/scripts/serve-qwen.sh"])["objections"] == []


def test_a_key_is_compared_by_its_place_and_shown_nowhere() -> None:
    literal = SERVE.replace('"$(cat "$here/../qwen.key")"', "sk-this-is-literal-0815")
    service = {name: value for name, value in DECLARED.items() if name != "api_key_file"}
    found = survey(service, serve=literal)
    assert found["objections"] == [] and "0815" not in str(found)
    said = the_objection(
        serve=SERVE.replace('--api-key "$(cat "$here/../qwen.key")"', '--volume "$(cat "$here/../qwen.key")"')
    )
    assert "line 23" in said and "not behind --api-key" in said


@pytest.mark.parametrize(
    ("words", "image", "name"),
    [
        ("podman run --rm -it --name q --init img --model m", 7, "q"),
        ("podman run --name=q -v /a:/b:ro -e X=1 -dt img", 8, "q"),
        ("docker --host x run --privileged --device /dev/kfd --gpus all -p8:8 img run img", 10, None),
        ("podman run --pull never -- img --name x", 5, None),
        ("podman run -ite A=b -qv/a:/b -d=true img", 6, None),
        ("podman run -qeA=b -", 3, None),
        ("podman run --rm --", None, None),
        ("podman run --rm", None, None),
        ("podman start q", None, None),
    ],
)
def test_where_the_image_stands(words: str, image: int | None, name: str | None) -> None:
    position = _runtime_words.image_position(words.split())
    assert (position, _runtime_words.container_name(words.split()[:position])) == (image, name)
