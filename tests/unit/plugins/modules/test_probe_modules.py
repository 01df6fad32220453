# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe modules as Ansible runs them: a process, JSON in, JSON out."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.modules import boundary_probe
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_endpoint import Small

KEY = "sk-very-secret-key"
PROBES = ["token_calibration_info", "boundary_probe", "rate_probe"]
HERE = pathlib.Path(boundary_probe.__file__).absolute()
TREE = next(parent for parent in HERE.parents if parent.name == "ansible_collections").parent


def call(name: str, **options: t.Any) -> dict[str, t.Any]:
    """Run one module and return what it prints; its whole output is checked for the key."""
    check_mode = options.pop("check_mode", False)
    done = subprocess.run(
        [sys.executable, str(HERE.with_name(f"{name}.py"))],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": {**options, "_ansible_check_mode": check_mode}}),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TREE), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert KEY not in done.stdout + done.stderr
    result: dict[str, t.Any] = json.loads(done.stdout)
    assert not result.get("changed")
    return result


@pytest.mark.parametrize("name", PROBES)
def test_check_mode_sends_nothing_and_says_so(name: str) -> None:
    with Small().serving() as server:
        result = call(name, endpoint=server.url, api_key=KEY, check_mode=True)
        assert server.requests == []
    assert (result["changed"], result["skipped"]) == (False, True)
    assert "check mode" in result["msg"]


@pytest.mark.parametrize("check_mode", [False, True])
def test_the_cost_is_told_in_check_mode_as_out_of_it(check_mode: bool) -> None:
    options: dict[str, t.Any] = {"prefill_tps": 1000, "prompt_tokens": "4000", "probes": "full"}
    with Small(window=6000).serving() as server:
        cost = call("probe_cost_info", endpoint=server.url, api_key=KEY, check_mode=check_mode, **options)["cost"]
        assert not [path for method, path, _headers, _body in server.requests if method == "POST"]
    # Three of 6,000 less 128, the edge, and runs, second turn and three streams of 4,000.
    assert cost["prompt_tokens"] == 3 * 5_872 + 6_000 + (3 + 4) * 4_000
    assert (cost["sequences"], cost["max_model_len"]) == (3, 6_000)
    assert cost["says"].startswith("full: about 90 s; 51,616 prompt tokens")


def test_a_bad_option_fails_in_check_mode_too() -> None:
    result = call("rate_probe", endpoint="127.0.0.1:8000", check_mode=True)
    assert (result["failed"], result["code"]) == (True, "endpoint_unusable")


def test_a_number_in_another_form_reaches_the_check_unchanged() -> None:
    result = call("boundary_probe", endpoint="http://127.0.0.1:1", sequences="06")
    assert (result["failed"], result["code"]) == (True, "not_a_whole_number")
    assert "sequences is '06'" in result["msg"]


def test_a_key_of_digits_is_refused_and_not_shown() -> None:
    result = call("rate_probe", endpoint="http://127.0.0.1:1", api_key="9753197531")
    assert (result["failed"], result["code"]) == (True, "key_unusable")
    assert "9753197531" not in json.dumps(result)


def test_one_key_only(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "key"
    path.write_text(KEY)
    result = call("rate_probe", endpoint="http://127.0.0.1:1", api_key=KEY, api_key_file=str(path))
    assert result["failed"]
    assert "mutually exclusive" in result["msg"]


def test_nothing_listening_fails() -> None:
    with Small().serving() as server:
        url = server.url
    result = call("boundary_probe", endpoint=url)
    assert (result["failed"], result["code"]) == (True, "not_listening")


def test_a_wrong_key_fails_and_a_key_file_opens(tmp_path: pathlib.Path) -> None:
    small = Small(window=6000)
    small.key = KEY
    path = tmp_path / "key"
    path.write_text(KEY + "\n")
    with small.serving() as server:
        wrong = call("token_calibration_info", endpoint=server.url, api_key="sk-another-secret")
        right = call("token_calibration_info", endpoint=server.url, api_key_file=str(path))
        health = [headers for _method, path, headers, _body in server.requests if path == "/health"]
    assert (wrong["failed"], wrong["code"]) == (True, "wrong_key")
    assert right["calibration"]["method"] == "refusal"
    assert health
    assert all("Authorization" not in headers for headers in health)


def test_a_boundary_with_its_own_calibration() -> None:
    small = Small(together=3)
    with small.serving() as server:
        result = call("boundary_probe", endpoint=server.url, timeout="20")
    assert result["boundary"]["verdict"] == "passed"
    assert (result["boundary"]["retrieved"], result["boundary"]["overlap"]) == (3, 3)
    assert result["calibration"]["chars_per_token"] == pytest.approx(2.5, abs=0.001)


def test_a_failed_verdict_is_no_failed_module() -> None:
    small = Small(together=3)
    small.text = lambda prompt, number: "who knows"
    with small.serving() as server:
        result = call("boundary_probe", endpoint=server.url, chars_per_token=2.5)
    assert "failed" not in result
    assert (result["boundary"]["verdict"], result["calibration"]) == ("failed", None)


def test_rates() -> None:
    small = Small()
    # So slow that what a busy machine loses is little of it: the two clocks have to agree.
    small.prefill_tps, small.decode_tps = 7000.0, 350.0
    small.timings = lambda prompt, made, prefill, decode: {
        "prompt_n": prompt,
        "prompt_ms": prefill * 1000,
        "predicted_per_second": (made - 1) / decode,
    }
    with small.serving() as server:
        result = call(
            "rate_probe", endpoint=server.url, chars_per_token=2.5, prompt_tokens="4000", generate_tokens="200"
        )
    assert result["rates"]["verdict"] == "passed"
    assert len(result["rates"]["runs"]) == 2
