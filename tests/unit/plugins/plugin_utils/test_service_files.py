# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The env of a pair: its values, its header, the gates that it must pass, and where its files lie."""

from __future__ import annotations

import subprocess
import time
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils import _env_text, _files, _history, _service

LIVE = {
    "sessions": 2,
    "tokens": 184000,
    "factor": 1.8,
    "factor_from": "the engine's guide, 4.3",
    "held_tokens": 662400,
    "needed_mib": 5507.664,
}


def rendered(example: t.Any, history: dict[str, t.Any] | None = None) -> str:
    values = _files.env_values(example.service, example.new)
    told = history or _history.history([], example.new, example.planned())
    return _env_text.env_text(values, example.service, "dankserver", told)


def test_the_values_and_their_order(example: t.Any) -> None:
    assert list(_files.env_values(example.service, example.new).items()) == [
        ("VRAM_WEIGHTS_MIB", "25844"),
        ("VRAM_KV_MIB", "5119"),
        ("MAX_NUM_SEQS", "3"),
        ("MAX_MODEL_LEN", "200000"),
        ("KV_CACHE_DTYPE", "fp8"),
        ("NUM_SPECULATIVE_TOKENS", "2"),
        ("MODEL", "/srv/models/next.rad"),
        ("PORT", "8000"),
        ("HOST", "127.0.0.1"),
        ("TP", "2"),
        ("HOST_POOL_MIB", "16384"),
    ]


def test_a_resize_moves_no_identity(example: t.Any) -> None:
    in_force = {"MODEL": "/old/model.rad", "PORT": "9000", "TP": "4", "VRAM_KV_MIB": "1"}
    values = _files.env_values(example.service, example.new, in_force, host_pool_mib="20480")
    assert (values["MODEL"], values["PORT"], values["TP"]) == ("/old/model.rad", "9000", "4")
    assert values["VRAM_KV_MIB"] == "5119"
    assert values["HOST_POOL_MIB"] == "20480"
    notes = _files.identity_notes(example.service, in_force)
    assert [note.split()[0] for note in notes] == ["MODEL", "PORT", "TP"]


@pytest.mark.parametrize("flag", ["api-key", "hf-token", "vram-kv-mib", "max-num-seqs", "port", "host"])
def test_a_secret_or_a_value_of_the_plan_is_no_further_flag(example: t.Any, flag: str) -> None:
    with pytest.raises(RadianceError) as error:
        _files.env_values({**example.service, "flags": {flag: "not-to-be-shown"}}, example.new)
    assert error.value.code == "flag_unfit"
    assert flag in error.value.text
    assert "not-to-be-shown" not in error.value.text


def test_names_of_the_files(example: t.Any) -> None:
    names = _files.file_names(example.service, "dankserver")
    assert names["env"] == "scripts/flashnext.env"
    assert names["serve"] == "scripts/serve-flashnext.sh"
    assert names["record"] == "records/flashnext.jsonl"
    per_host = _files.file_names({**example.service, "per_host": True}, "dankserver")
    assert per_host["env"] == "scripts/flashnext.dankserver.env"
    mapped = _files.file_names({**example.service, "paths": {"env": "env/fn.env"}}, "dankserver")
    assert (mapped["env"], mapped["bats"]) == ("env/fn.env", "tests/flashnext.bats")


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x.env", "a/../../x.env", "", "$(x).env", "a`b", 'a"b', "a\nb", "a\\b"]
)
def test_a_path_stays_in_the_fleet_directory_and_is_a_path_to_a_shell(example: t.Any, path: str) -> None:
    with pytest.raises(RadianceError) as caught:
        _files.file_names({**example.service, "paths": {"env": path}}, "dankserver")
    assert caught.value.code == "path_unfit"


def test_the_header_tells_where_the_pair_comes_from(example: t.Any) -> None:
    text = rendered(example)
    for said in (
        "kvfleet.radiance: managed",
        "pair: filled.",
        example.line,
        "30,969.05 MiB ± 5.12 a card = 2,058.24 settled free − 209.19 floor + 29,120 pair (card 0)",
        "5,062.06 MiB of the pool's 5,119 = 4,284.67 tokens + 329.39 state + 448.00 checkpoints",
        "settled_free_mib.card0  210.12 to 220.36 MiB",
    ):
        assert said in text
    assert "VRAM_WEIGHTS_MIB=25844\n" in text


def test_the_same_record_gives_the_same_bytes(example: t.Any) -> None:
    record = [example.planned(), example.switched(), example.verdict("weights_mib", "held", 25844)]
    first = rendered(example, _history.history(record, example.new))
    again = rendered(example, _history.history(list(record), {k: str(v) for k, v in example.new.items()}))
    assert first == again
    assert "weights_mib 25,844 MiB held, 25,844" in " ".join(first.split())


def test_a_killed_prediction_stands_in_the_header(example: t.Any) -> None:
    record = [
        example.planned(),
        example.rolled_back(),
        example.verdict("settled_free_mib.card0", "killed", 149.19),
    ]
    text = rendered(example, _history.history(record, example.old))
    assert "25,844 + 5,119 MiB was tried and rolled back in phase referee" in text
    assert "killed, 149.19" in text


def test_accepted_gates_and_reserves_stand_there_with_their_reasons(example: t.Any) -> None:
    plan = example.plan
    plan["gates"][1].update(holds=False, accepted="short chats only")
    plan["ceiling"].update(reserve_mib=200, reserve_reason="a monitor on card 0")
    text = rendered(example, _history.history([], example.new, example.planned()))
    assert "Accepted: pool_meets_contract: short chats only" in text
    assert "200 MiB kept as a personal reserve: a monitor on card 0" in text


def test_what_is_kept_for_others_and_for_sessions_stands_there_too(example: t.Any) -> None:
    others = [{"card": 0, "mib": 0, "reason": None}, {"card": 1, "mib": 2048, "reason": "a desktop"}]
    example.plan["ceiling"].update(others_mib=2048, others=others)
    example.plan["contract"]["live_sessions"] = LIVE
    text = rendered(example, _history.history([], example.new, example.planned()))
    assert "2,048 MiB of card 1 kept for others as a personal reserve: a desktop" in text
    assert "card 0 kept" not in text
    assert (
        "5,507.66 MiB hold 2 live sessions of 184,000 tokens: 662,400 tokens of blocks, 1.8 x context by the engine's "
        "guide, 4.3, an estimate"
    ) in text


def test_a_backslash_never_ends_a_comment_line(example: t.Any) -> None:
    example.plan["ceiling"]["lines"] = ["a line that ends in \\"]
    assert "\\\n" not in rendered(example)


def test_a_value_that_cannot_stand_in_an_env_is_shown_with_the_reason(example: t.Any) -> None:
    with pytest.raises(RadianceError) as caught:
        rendered_values = {**_files.env_values(example.service, example.new), "MODEL": "/srv/my models/next.rad"}
        _env_text.env_text(rendered_values, example.service, "dankserver", _history.history([], example.new))
    assert caught.value.text == (
        "MODEL has a blank in its value: a shell takes what follows for a command, the others for the value. Write a "
        "plain value: one word of letters, digits and . _ : / @ % + = , -. It is '/srv/my models/next.rad'."
    )


def test_the_command_that_starts_a_service_gives_it_its_log_and_its_pid_file(example: t.Any, tmp_path: t.Any) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    serve = folder / "serve.sh"
    serve.write_text("#!/bin/sh\necho started by $$\n")
    serve.chmod(0o755)
    service = {**example.service, "pid_file": str(folder / "x.pid"), "log": str(folder / "x.log")}
    command = _service.start_command(service, str(serve))
    subprocess.run(["sh", "-c", f"{command} wait"], check=True, timeout=30)
    # setsid may go on in a process of its own.
    for _try in range(100):
        if (folder / "x.log").exists() and (folder / "x.log").read_text():
            break
        time.sleep(0.1)
    pid = (folder / "x.pid").read_text().strip()
    assert (folder / "x.log").read_text() == f"started by {pid}\n"
