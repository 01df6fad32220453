# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are taken over, written again and given back: every line of their owner's stays, byte for byte."""

from __future__ import annotations

import pathlib
import subprocess
import typing as t

import hypothesis
import hypothesis.strategies as st
import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils import _env_file
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import (
    _drift,
    _env_text,
    _files,
    _gates,
    _managed_text,
    _record_lines,
    _schemas,
    _taken_over,
    _ways_back,
)

HOST = "dankserver"
NAMES = {"VRAM_WEIGHTS_MIB": "SLAB_MIB", "VRAM_KV_MIB": "POOL_MIB"}
SERVICE: dict[str, t.Any] = {
    "name": "qwen",
    "manager": "systemd",
    "engine": ["radiance"],
    "model": "/models/q.rad",
    "port": 8001,
    "env_names": NAMES,
}
ENV = """\
# by hand
SLAB_MIB=24000
# the pool
POOL_MIB=5120

MODEL=/models/q.rad
HF_HOME=/srv/hf
"""
# What the block of ENV takes out of it.
REST = "# by hand\n# the pool\n\nHF_HOME=/srv/hf\n"
OWNED = ["SLAB_MIB", "POOL_MIB", "MODEL"]
SERVE = "#!/bin/sh\n# by hand\nset -eu\nexec radiance\n"
BATS = '@test "mine" {\n  true\n}\n'
# The template's: two lines that make it a file, and a test.
WHOLE_BATS = '#!/usr/bin/env bats\n# kvfleet.radiance: managed; the gates\n\n@test "qwen: ours" {\n  true\n}\n'
HISTORY: dict[str, t.Any] = {"made": None, "predictions": [], "failed": [], "stated": False}


def texts(env: str = ENV, serve: str = SERVE, bats: str = BATS) -> dict[str, dict[str, str]]:
    return {"target": {"env": env, "serve": serve}, "fleet": {"env": env, "serve": serve, "bats": bats}}


def rendered(begun: dict[str, dict[str, str]], values: dict[str, str]) -> dict[str, dict[str, str]]:
    """What the role writes into texts whose blocks have begun."""
    out = {}
    for side, there in begun.items():
        out[side] = {
            "env": _env_text.env_text(values, SERVICE, HOST, HISTORY, there["env"]),
            "serve": _managed_text.file_text("ours\n", "serve", SERVICE, HOST, there["serve"]),
        }
        if side == "fleet":
            out[side]["bats"] = _managed_text.file_text(WHOLE_BATS, "bats", SERVICE, HOST, there["bats"])
    return out


def adopt(there: dict[str, dict[str, str]], owned: t.Sequence[str] = tuple(OWNED)) -> dict[str, dict[str, str]]:
    begun = _taken_over.with_blocks(SERVICE, there, owned, HOST)
    return rendered(begun, _managed_text.env_file(begun["fleet"]["env"], SERVICE, HOST)["values"])


def outside(text: str) -> str:
    """A text without its block, by its markers alone."""
    head, _begin, tail = text.partition("# BEGIN kvfleet.radiance: managed; qwen\n")
    return head + tail.partition("# END kvfleet.radiance: managed; qwen\n")[2] if _begin else text


def test_the_env_has_one_block_where_the_first_line_was() -> None:
    env = adopt(texts())["target"]["env"]
    assert outside(env) == REST
    assert env.startswith(
        "# by hand\n# BEGIN kvfleet.radiance: managed; qwen\n# the pair and shape of qwen on dankserver\n"
    )
    assert (
        "\n\nSLAB_MIB=24000\nPOOL_MIB=5120\nMODEL=/models/q.rad\n# END kvfleet.radiance: managed; qwen\n# the pool\n"
        in env
    )


def test_the_script_has_a_comment_behind_its_own_and_the_tests_stand_behind_theirs() -> None:
    fleet = adopt(texts())["fleet"]
    assert outside(fleet["serve"]) == SERVE
    assert fleet["serve"].startswith(
        "#!/bin/sh\n# by hand\n# BEGIN kvfleet.radiance: managed; qwen\n# The pair of qwen is SLAB_MIB"
    )
    assert fleet["bats"] == (
        BATS + '# BEGIN kvfleet.radiance: managed; qwen\n@test "qwen: ours" {\n  true\n}\n'
        "# END kvfleet.radiance: managed; qwen\n"
    )
    # Without any of its owner's the gates are a file of ours.
    assert adopt(texts(bats=""))["fleet"]["bats"] == WHOLE_BATS


def test_adopting_again_changes_nothing() -> None:
    once = adopt(texts())
    assert adopt(once) == once
    assert _taken_over.file_changes(once, adopt(once), _files.file_names(SERVICE, HOST), HOST, "/srv/q") == []


def test_a_key_that_is_added_later_joins_the_block() -> None:
    once = adopt(texts())["fleet"]["env"]
    grown = once + "MAX_NUM_SEQS=3\n"
    twice = adopt(texts(env=grown), [*OWNED, "MAX_NUM_SEQS"])["fleet"]["env"]
    assert outside(twice) == REST and "MODEL=/models/q.rad\nMAX_NUM_SEQS=3\n# END" in twice


def test_a_resize_writes_the_values_under_the_names_of_the_file() -> None:
    once = adopt(texts())
    new = {
        "VRAM_WEIGHTS_MIB": "25844",
        "VRAM_KV_MIB": "5119",
        "MAX_NUM_SEQS": "3",
        "MODEL": "/models/q.rad",
        "HOST": "::",
    }
    env = rendered(once, new)["target"]["env"]
    assert outside(env) == REST
    # What the file states nowhere stays unstated.
    assert _env_file.read_env(env).values == {
        "SLAB_MIB": "25844",
        "POOL_MIB": "5119",
        "MODEL": "/models/q.rad",
        "HF_HOME": "/srv/hf",
    }
    assert _managed_text.env_file(env, SERVICE, HOST)["values"] == {
        "VRAM_WEIGHTS_MIB": "25844",
        "VRAM_KV_MIB": "5119",
        "MODEL": "/models/q.rad",
    }


def test_giving_back_leaves_the_values_in_force_and_every_other_byte() -> None:
    resized = rendered(adopt(texts()), {"VRAM_WEIGHTS_MIB": "25844", "VRAM_KV_MIB": "5119", "MODEL": "/models/q.rad"})
    back = _taken_over.given_back(SERVICE, resized, HOST)["texts"]
    assert back["target"]["env"] == (
        "# by hand\nSLAB_MIB=25844\nPOOL_MIB=5119\nMODEL=/models/q.rad\n# the pool\n\nHF_HOME=/srv/hf\n"
    )
    assert (back["target"]["serve"], back["fleet"]["bats"]) == (SERVE, BATS)
    # The gates that came with the adoption go with it, and what is given back can be adopted again.
    assert _taken_over.given_back(SERVICE, adopt(texts(bats="")), HOST)["texts"]["fleet"]["bats"] == ""
    assert outside(adopt(back)["target"]["env"]) == REST


def test_what_giving_back_could_not_compare_is_said() -> None:
    adopted = adopt(texts())
    told = _taken_over.given_back(SERVICE, adopted, HOST)
    assert (told["objection"], told["says"]) == (
        "",
        [
            "qwen on dankserver: our markers and comments go; the values, the record and documents stay. Nothing "
            "restarts, and whether what runs was started by these values was not looked at"
        ],
    )
    adopted["target"]["env"] = adopted["target"]["env"].replace("POOL_MIB=5120", "POOL_MIB=4096")
    assert _taken_over.given_back(SERVICE, adopted, HOST)["says"][1:] == [
        "  scripts/qwen.env here and on dankserver differ in POOL_MIB: each keeps what it has"
    ]
    gone = {"fleet": adopted["fleet"], "target": {"env": "", "serve": ""}}
    told = _taken_over.given_back(SERVICE, gone, HOST)
    assert told["says"][1:] == ["  there is no scripts/qwen.env on dankserver, so the two were not compared"]
    # What is not there is not made.
    assert told["texts"]["target"] == {"env": "", "serve": ""}
    assert _taken_over.given_back(SERVICE, texts(), HOST)["says"] == [
        "qwen on dankserver: nothing of ours is in its files"
    ]


def test_a_file_that_is_ours_as_a_whole_has_nobody_to_be_given_to() -> None:
    env = "# kvfleet.radiance: managed; qwen\nVRAM_KV_MIB=5120\n"
    assert "it was not adopted" in _taken_over.given_back(SERVICE, texts(env=env), HOST)["objection"]


# Lines of an env that are not ours: comments of any text, blank lines, further keys.
LINES = st.one_of(
    st.text(st.characters(blacklist_characters="\n\r", blacklist_categories=["Cs"]), max_size=20)
    .map(lambda text: "#" + text)
    .filter(lambda line: "kvfleet" not in line),
    st.just(""),
    st.from_regex(r"MINE_[A-Z]{1,8}=[A-Za-z0-9._:/@%+,-]{0,8}", fullmatch=True),
)


@hypothesis.given(
    st.lists(LINES, max_size=12), st.permutations(range(12)), st.integers(0, 99999), st.integers(0, 99999)
)
def test_any_line_around_the_block_survives_whatever_is_written(
    lines: list[str], order: list[int], slab: int, pool: int
) -> None:
    unique = list(
        {
            line.partition("=")[0] if "=" in line and line[:1] != "#" else f"{at}": line
            for at, line in enumerate(lines)
        }.values()
    )
    mixed = list(unique)
    for at, line in zip(order, ["SLAB_MIB=24000", "POOL_MIB=5120"], strict=False):
        mixed.insert(min(at, len(mixed)), line)
    owned = ["SLAB_MIB", "POOL_MIB"]
    env = "".join(line + "\n" for line in mixed)
    theirs = "".join(line + "\n" for line in unique)
    adopted = adopt(texts(env=env), owned)
    assert outside(adopted["target"]["env"]) == theirs
    values = {"VRAM_WEIGHTS_MIB": str(slab), "VRAM_KV_MIB": str(pool)}
    resized = rendered(adopted, values)
    assert outside(resized["target"]["env"]) == theirs
    assert _managed_text.env_file(resized["fleet"]["env"], SERVICE, HOST)["values"] == values
    back = _taken_over.given_back(SERVICE, resized, HOST)["texts"]["target"]["env"]
    assert [line for line in back.split("\n") if not line.startswith(("SLAB_MIB=", "POOL_MIB="))] == theirs.split("\n")
    assert {name: _env_file.read_env(back).values[name] for name in owned} == {
        "SLAB_MIB": str(slab),
        "POOL_MIB": str(pool),
    }


@hypothesis.given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r"), max_size=200))
def test_any_script_comes_back_as_it_was(text: str) -> None:
    hypothesis.assume("kvfleet" not in text)
    serve = f"#!/bin/sh\n{text}\n"
    adopted = adopt(texts(serve=serve, bats=serve))
    assert outside(adopted["target"]["serve"]) == serve
    back = _taken_over.given_back(SERVICE, adopted, HOST)["texts"]
    assert (back["target"]["serve"], back["fleet"]["serve"], back["fleet"]["bats"]) == (serve, serve, serve)


def test_a_damaged_marker_is_refused_and_nothing_is_lost() -> None:
    env = adopt(texts())["fleet"]["env"].replace("# END kvfleet.radiance: managed; qwen\n", "")
    with pytest.raises(RadianceError) as refused:
        adopt(texts(env=env))
    assert refused.value.code == "marker_damaged" and "line 2" in refused.value.text


def test_the_diff_shows_the_files_and_no_secret() -> None:
    before = texts(env=ENV + "HF_TOKEN=hf_aaaaaaaaaaaa\n")
    changes = _taken_over.file_changes(before, adopt(before), _files.file_names(SERVICE, HOST), HOST, "/srv/q")
    assert [(item["side"], item["path"]) for item in changes] == [
        ("target", "/srv/q/scripts/qwen.env"),
        ("target", "/srv/q/scripts/serve-qwen.sh"),
        ("fleet", "scripts/qwen.env"),
        ("fleet", "scripts/serve-qwen.sh"),
        ("fleet", "tests/qwen.bats"),
    ]
    assert "+# BEGIN kvfleet.radiance: managed; qwen" in changes[0]["diff"] and "hf_aaa" not in str(
        item["diff"] for item in changes
    )
    assert "hf_aaaaaaaaaaaa" in changes[0]["text"]


def test_an_env_with_other_names_is_held_to_its_gates_and_to_the_process_by_them() -> None:
    env = adopt(texts())["fleet"]["env"]
    to = {"weights_mib": 24000, "kv_mib": 5120, "max_num_seqs": 3}
    assert _gates.file_gates(env, to, None, SERVICE) == []
    (said,) = _gates.file_gates(env.replace("5120", "5119"), to, None, SERVICE)
    assert said == "POOL_MIB is '5119' in the rendered env, and the plan has 5120."
    values = _managed_text.env_file(env, SERVICE, HOST)["values"]
    flags = {
        "vram-weights-mib": "24000",
        "vram-kv-mib": "5000",
        "model": "/models/q.rad",
        "port": "8001",
        "host": "127.0.0.1",
    }
    found = _drift.drift(values, values, flags, [], SERVICE)
    assert [item["says"] for item in found["findings"]] == [
        "POOL_MIB is 5120 in the host's copy, and the running process still has 5000."
    ]


def test_a_request_that_the_env_has_no_key_for_is_refused_with_the_lines_to_add() -> None:
    env = adopt(texts())["fleet"]["env"]
    plan = {"from": {"kv_mib": 5120, "max_num_seqs": 3}, "to": {"kv_mib": 5119, "max_num_seqs": 4}}
    shape = dict.fromkeys(("weights_mib", "max_model_len", "kv_cache_dtype", "num_speculative_tokens"))
    plan = {side: {**shape, **pair} for side, pair in plan.items()}
    said = _managed_text.unstated_objection(SERVICE, HOST, plan, {}, env)
    assert "The plan has max-num-seqs 4" in said and "vram-kv-mib" not in said
    assert 'MAX_NUM_SEQS= as a line of scripts/qwen.env, and ${MAX_NUM_SEQS:+--max-num-seqs "$MAX_NUM_SEQS"}' in said
    assert said.endswith(f"Then adopt again:\nansible-playbook playbooks/adopt.yml -l {HOST} -e service=qwen")
    assert "image x:1" in _managed_text.unstated_objection(SERVICE, HOST, plan, {"image": "x:1"}, env)
    assert _managed_text.unstated_objection(SERVICE, HOST, {**plan, "to": plan["from"]}, {}, env) == ""
    # A file of ours has every key.
    assert _managed_text.unstated_objection(SERVICE, HOST, plan, {}, "# kvfleet.radiance: managed; x\n") == ""


def test_a_part_of_the_shape_that_the_env_leaves_to_the_engine_stays_so() -> None:
    ran = {"weights_mib": 24000, "num_speculative_tokens": 2}
    in_force = {"VRAM_WEIGHTS_MIB": "24000", "NUM_SPECULATIVE_TOKENS": ""}
    assert _files.env_values(SERVICE, ran, in_force, None, None, ran)["NUM_SPECULATIVE_TOKENS"] == ""
    theirs = ENV + "NUM_SPECULATIVE_TOKENS=\n"
    for text in (theirs, adopt(texts(env=theirs), [*OWNED, "NUM_SPECULATIVE_TOKENS"])["fleet"]["env"]):
        found = _managed_text.env_file(text, SERVICE, HOST)
        assert (found["errors"], found["values"]["NUM_SPECULATIVE_TOKENS"]) == ([], "")
    asked = {**ran, "num_speculative_tokens": 3}
    assert _files.env_values(SERVICE, asked, in_force, None, None, ran)["NUM_SPECULATIVE_TOKENS"] == "3"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"VRAM_KV": "POOL"}, "VRAM_KV, which is no value of its env"),
        ({"VRAM_KV_MIB": "PORT"}, "has PORT for VRAM_KV_MIB, and PORT is PORT too"),
        ({"VRAM_KV_MIB": "X", "VRAM_WEIGHTS_MIB": "X"}, "has X for VRAM_WEIGHTS_MIB, and VRAM_KV_MIB is X too"),
    ],
)
def test_names_that_cannot_be_told_apart_are_refused(names: dict[str, str], said: str) -> None:
    with pytest.raises(RadianceError) as refused:
        _files.env_keys({**SERVICE, "env_names": names})
    assert refused.value.code == "env_names_unfit" and said in refused.value.text


def test_the_gates_in_somebodys_file_run_in_bats(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "q.bats"
    path.write_text(adopt(texts())["fleet"]["bats"])
    done = subprocess.run(["bats", str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["1..2", "ok 1 mine", "ok 2 qwen: ours"])


def test_what_its_owner_changed_in_the_script_since_it_started_is_told() -> None:
    serve = '. "$(dirname "$0")/qwen.env"\nexec radiance --tp 4 --model "$MODEL" --vram-weights-mib "$SLAB_MIB" --new\n'
    env = adopt(texts())["target"]["env"]
    script = {"env": env, "serve": serve, "env_path": "/srv/q/qwen.env", "serve_path": "/srv/q/serve.sh"}
    values = _managed_text.env_file(env, SERVICE, HOST)["values"]
    flags = {"tp": "2", "model": "/models/q.rad", "vram-weights-mib": "24000", "vram-kv-mib": "5120", "old": ""}
    said = _drift.drift(values, values, flags, [], SERVICE, None, script)["lost"]
    assert [text.partition(": ")[0] for text in said] == [
        "/srv/q/serve.sh gives --tp 4, and the running process has --tp 2",
        "/srv/q/serve.sh gives --new, and the running process has no --new",
        "/srv/q/serve.sh gives no --vram-kv-mib, and the running process has --vram-kv-mib 5120",
        "/srv/q/serve.sh gives no --old, and the running process has --old",
    ]
    (refused,) = _drift.drift(values, values, flags, [], SERVICE, None, {**script, "serve": "nvtop\n"})["lost"]
    assert refused.startswith("/srv/q/serve.sh, line 1: it has `nvtop`")


def test_a_way_back_leads_to_what_was_adopted() -> None:
    to = {"weights_mib": 24000, "kv_mib": 5120, "max_num_seqs": 3, "num_speculative_tokens": None}
    fields = {"to": to, "image": "x:1", "fingerprint": "0a", "files": ["scripts/qwen.env"], "env_names": NAMES}
    line = _record_lines.record_entry(fields, "adopted", HOST, "qwen")
    assert _schemas.problems(line, "record") == []
    back = _ways_back.way_back([line], line["id"], "")
    assert (back["to"]["weights_mib"], back["image"], back["ran"]) == (24000, "x:1", True)
    with pytest.raises(RadianceError, match=line["id"]):
        _ways_back.way_back([line], "nothing", "")
