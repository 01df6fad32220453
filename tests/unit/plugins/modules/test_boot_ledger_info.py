# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as ansible-core runs it: options in, one JSON document out."""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import platform
import threading
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources import receipt
from ansible_collections.kvfleet.radiance.plugins.module_utils._sources.ledgers import read_boot
from ansible_collections.kvfleet.radiance.plugins.modules import boot_ledger_info

LOGS = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "logs"
HEALTHY = LOGS / "healthy-1.0.13.log"
KEY = "hush-hush-1234"

PutProgram = t.Callable[[str, str], pathlib.Path]
Run = t.Callable[..., dict[str, t.Any]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_module(**options: t.Any) -> dict[str, t.Any]:
        with patch_module_args(options), pytest.raises(SystemExit):
            boot_ledger_info.main()
        return t.cast("dict[str, t.Any]", json.loads(capsys.readouterr().out))

    return run_module


class Versions(http.server.BaseHTTPRequestHandler):
    body: t.ClassVar[bytes] = b""
    status: t.ClassVar[int] = 200

    def do_GET(self) -> None:
        allowed = self.path == "/version" and self.headers.get("Authorization") == f"Bearer {KEY}"
        self.send_response(self.status if allowed else 401)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_args: t.Any) -> None:
        pass


@pytest.fixture
def versions() -> t.Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Versions)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("source", ["file", "receipt"])
def test_a_log_and_a_receipt(run: Run, source: str) -> None:
    result = run(source=source, path=str(HEALTHY), name="flashnext")
    assert result["changed"] is False
    assert result["ledger"]["status"] == "complete"
    assert (result["ledger"]["source"]["kind"], result["ledger"]["source"]["name"]) == (source, "flashnext")


def test_a_text(run: Run) -> None:
    result = run(source="text", text=HEALTHY.read_text())
    assert result["ledger"]["settled"][0]["free"]["text"] == "2.01 GiB"


def test_check_mode_gives_the_same(run: Run) -> None:
    plain = run(source="file", path=str(HEALTHY))
    checked = run(source="file", path=str(HEALTHY), _ansible_check_mode=True)
    assert checked["ledger"] == plain["ledger"]
    assert checked["changed"] is False


def test_a_failure_carries_the_ledger_and_its_reason(run: Run) -> None:
    text = "E unknown option '--vram-kv-mib'\n"
    result = run(source="text", text=text)
    assert result["failed"] is True
    assert result["code"] == "unknown_option"
    assert "'--vram-kv-mib'" in result["msg"]
    assert result["msg"] == result["ledger"]["reason"]["text"]
    assert result["ledger"]["status"] == "refused"


def test_any_status_can_be_asked_for(run: Run) -> None:
    result = run(source="text", text="", require="any")
    assert "failed" not in result
    assert result["ledger"]["status"] == "absent"


def test_a_log_that_is_not_there(run: Run, tmp_path: pathlib.Path) -> None:
    result = run(source="file", path=str(tmp_path / "none.log"))
    assert (result["failed"], result["code"]) == (True, "log_unreadable")
    assert result["ledger"]["status"] == "absent"


def test_a_pid_file_with_something_else_in_it(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "pid").write_text("words")
    result = run(source="file", path=str(HEALTHY), pid_file=str(tmp_path / "pid"))
    assert (result["failed"], result["code"]) == (True, "pid_file_unreadable")


def test_a_process_that_does_not_write_the_log_is_not_used(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "pid").write_text(str(os.getpid()))
    result = run(source="file", path=str(HEALTHY), pid_file=str(tmp_path / "pid"))
    assert (result["ledger"]["flags"], result["ledger"]["pair"]["exact"]) == ({}, False)
    assert f"No live process of {tmp_path}/pid" in json.dumps(result["warnings"])


def test_of_a_process_that_is_gone_one_warning_is_enough(run: Run, tmp_path: pathlib.Path) -> None:
    # Nobody listens there; and what did would be another one. Ansible keeps the warnings of a whole process.
    (tmp_path / "pid").write_text("4194304")
    log, silent = {"source": "file", "path": str(HEALTHY)}, "http://127.0.0.1:7"
    warned = json.dumps(run(**log, pid_file=str(tmp_path / "pid"), endpoint=silent)["warnings"])
    assert f"No live process of {tmp_path}/pid" in warned
    assert silent not in warned
    assert f"{silent} did not tell" in json.dumps(run(**log, endpoint=silent)["warnings"])


@pytest.mark.parametrize("source", ["podman", "docker", "journald", "file", "receipt", "text"])
def test_a_source_needs_its_option(run: Run, source: str) -> None:
    result = run(source=source)
    assert result["failed"] is True
    assert f"source is {source} but all of the following are missing" in result["msg"]


def test_a_container_is_what_is_read_by_default(run: Run, put_program: PutProgram) -> None:
    told = LOGS.parent / "containers" / "podman-4.3.1-running.json"
    put_program("podman", f"[ $1 = container ] && cat {told} || cat {HEALTHY}")
    result = run(name="flashnext")
    assert result["ledger"]["pair"] == {"weights_mib": 24000, "kv_mib": 5120, "exact": True}
    assert result["ledger"]["source"]["kind"] == "podman"


def test_a_container_that_is_not_there(run: Run, put_program: PutProgram) -> None:
    put_program("podman", "echo 'Error: no such container x' >&2; exit 125")
    result = run(name="x")
    assert (result["failed"], result["code"]) == (True, "container_absent")
    assert result["ledger"]["status"] == "absent"


def test_a_runtime_that_is_not_there(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run(source="docker", name="flashnext")
    assert (result["failed"], result["code"]) == (True, "command_missing")


def test_a_unit_whose_flags_are_not_known_is_a_warning(run: Run, put_program: PutProgram) -> None:
    shown = "Id=flashnext.service\nActiveState=active\nSubState=running\nMainPID=0\nInvocationID=9ab33127\n"
    put_program("systemctl", f"printf '{shown}'")
    put_program("journalctl", f"cat {HEALTHY}")
    result = run(source="journald", name="flashnext", scope="user")
    assert (result["ledger"]["status"], result["ledger"]["pair"]["exact"]) == ("complete", False)
    assert "does not have the engine's command line" in json.dumps(result["warnings"])


def test_the_endpoint_tells_the_version(run: Run, versions: str, tmp_path: pathlib.Path) -> None:
    Versions.body, Versions.status = b'{"version": "1.0.13", "engine": "radiance", "abi_version": 13}', 200
    (tmp_path / "key").write_text(KEY + "\n")
    result = run(source="file", path=str(HEALTHY), endpoint=versions, api_key_file=str(tmp_path / "key"))
    assert result["ledger"]["engine"] == {"version": "1.0.13", "version_from": "endpoint"}
    assert KEY not in json.dumps(result)


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b'{"version": "0.9.1"}', 200, "is not radiance"),
        (b'{"version": {"a": 1}, "engine": "radiance"}', 200, "is not radiance"),
        (b"<html>", 502, "502"),
    ],
)
def test_a_version_that_is_not_told_is_a_warning(run: Run, versions: str, body: bytes, status: int, says: str) -> None:
    Versions.body, Versions.status = body, status
    result = run(source="file", path=str(HEALTHY), endpoint=versions, api_key=KEY)
    assert result["ledger"]["engine"] == {"version": None, "version_from": None}
    assert says in json.dumps(result["warnings"])
    assert "failed" not in result


def test_an_endpoint_that_tells_its_version_only_is_not_compared(run: Run, versions: str) -> None:
    Versions.body, Versions.status = b'{"version": "1.0.13", "engine": "radiance"}', 200
    result = run(source="file", path=str(HEALTHY), endpoint=versions, api_key=KEY)
    assert result["ledger"]["status"] == "complete"
    assert "did not tell what it serves (it answered 401)" in json.dumps(result["warnings"])


def test_a_wrong_key_fails(run: Run, versions: str) -> None:
    Versions.body, Versions.status = b"{}", 200
    result = run(source="file", path=str(HEALTHY), endpoint=versions, api_key="another-key")
    assert (result["failed"], result["code"]) == (True, "wrong_key")


def test_nothing_is_asked_where_nothing_listens(run: Run) -> None:
    refused = "E server: cannot bind 127.0.0.1:1\n"
    text = HEALTHY.read_text().replace("I server: listening", refused + "I server: was not listening")
    result = run(source="text", text=text, endpoint="http://127.0.0.1:1", require="any")
    assert result["ledger"]["reason"]["code"] == "cannot_bind"
    assert "http://127.0.0.1:1 did not" not in json.dumps(result)


def test_a_receipt_stands_in_with_a_warning(run: Run, put_program: PutProgram, tmp_path: pathlib.Path) -> None:
    told = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "containers" / "podman-4.3.1-running.json"
    script = "case $1 in container) cat {told} ;; --log-level=error) {log} ;; esac"
    put_program("podman", script.format(told=told, log=f"cat {HEALTHY}"))
    whole = run(name="flashnext", receipts=str(tmp_path))
    receipt.save(str(tmp_path), read_boot("podman", name="flashnext"))
    put_program("podman", script.format(told=told, log="exit 125"))
    assert run(name="flashnext")["code"] == "log_unreadable"
    for check_mode in (False, True):
        found = run(name="flashnext", receipts=str(tmp_path), _ansible_check_mode=check_mode)
        assert found["ledger"]["source"]["kind"] == "receipt"
        assert (found["ledger"]["fingerprint"], found["changed"]) == (whole["ledger"]["fingerprint"], False)
        assert f"its ledger is that of its receipt {tmp_path}" in json.dumps(found["warnings"])


def test_the_log_comes_without_names(run: Run, tmp_path: pathlib.Path) -> None:
    host, user = platform.node(), "zaphod"
    told = f"I plugin /home/{user}/x.so of {host} and my-fleet, {KEY}\n"
    (tmp_path / "log").write_text(HEALTHY.read_text().replace("I chunk geometry", told + "I chunk geometry"))
    result = run(source="file", path=str(tmp_path / "log"), with_log=True, hide=["my-fleet"], api_key=KEY)
    assert "I plugin <path-1> of <name-1> and <name-2>, <key-1>" in result["log"].splitlines()
    again = run(source="text", text=result["log"])["ledger"]
    for key in ("status", "pair", "budget", "settled", "slab", "kv", "capacity"):
        assert again[key] == result["ledger"][key]


def test_the_log_of_a_refused_boot_comes_with_the_failure(run: Run) -> None:
    result = run(source="text", text="E unknown option '--x'\nusage: /usr/bin/radiance\n", with_log=True)
    assert (result["failed"], result["code"]) == (True, "unknown_option")
    assert result["log"] == "E unknown option '--x'\nusage: <path-1>\n"


def test_there_is_no_log_where_there_is_no_boot_or_nobody_asked(run: Run) -> None:
    assert run(source="text", text="hello\n", with_log=True, require="any")["log"] is None
    assert "log" not in run(source="file", path=str(HEALTHY))


def test_a_secret_in_the_words_of_the_engine_is_masked(run: Run) -> None:
    lines = HEALTHY.read_text().splitlines(keepends=True)
    text = "".join([lines[0], "W loaded with HF_TOKEN=hf_abcdefghij from the env\n", *lines[1:]])
    warned = run(source="text", text=text)["ledger"]["warnings"]
    assert [item["text"] for item in warned if "loaded" in item["text"]] == [
        "loaded with HF_TOKEN=******** from the env"
    ]
