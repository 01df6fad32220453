# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Traffic that is told wrongly, and hooks that do not come to an end, stop nothing and hold nothing up."""

from __future__ import annotations

import http.server
import pathlib
import threading
import time
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch import drain
from ansible_collections.kvfleet.radiance.plugins.module_utils._switch.phases import Phase, Run


@pytest.fixture(name="load")
def load_fixture() -> t.Iterator[t.Callable[[bytes], str]]:
    """Gives the address of a server whose every answer is the bytes."""
    said = b""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *args: t.Any) -> None:
            """Nothing on the screen."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(body: bytes) -> str:
        nonlocal said
        said = body
        return f"http://127.0.0.1:{server.server_port}"

    try:
        yield answer
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    "body",
    [
        b'{"running": -5, "waiting": 5}',
        b'{"running": 0, "waiting": -1}',
        b'{"running": 1000000000000, "waiting": 0}',
        b'{"running": true, "waiting": 0}',
        b'{"running": 0}',
        b"[0, 0]",
    ],
)
def test_what_is_no_count_of_requests_is_not_taken_for_one(load: t.Callable[[bytes], str], body: bytes) -> None:
    with pytest.raises(RadianceError) as refused:
        drain.wait_idle(Phase("drain", None), load(body), None, 1.0)
    assert refused.value.code == "load_unreadable"
    assert repr(body.decode()) in refused.value.text


def test_many_requests_are_waited_for(load: t.Callable[[bytes], str]) -> None:
    with pytest.raises(RadianceError, match=r"^12,345 request\(s\) were still running or waiting after 0.1 s"):
        drain.wait_idle(Phase("drain", None), load(b'{"running": 12000, "waiting": 345}'), None, 0.1)


def test_what_a_hook_leaves_running_is_not_waited_for(tmp_path: pathlib.Path) -> None:
    began = time.monotonic()
    drain.hook(Run(), "before_drain", ["/bin/sh", "-c", f"sleep 20 & echo $! >{tmp_path}/pid"])
    assert time.monotonic() - began < 10
    pid = int((tmp_path / "pid").read_text())
    assert pathlib.Path(f"/proc/{pid}").exists()
    drain.hook(Run(), "after_ready", ["/bin/kill", str(pid)])


def test_the_last_words_of_a_hook_are_told() -> None:
    words = "head -c 300000 /dev/zero; echo; echo no such pool; exit 7"
    with pytest.raises(RadianceError) as failed:
        drain.hook(Run(), "before_drain", ["/bin/sh", "-c", words])
    assert failed.value.text == "The hook before_drain (/bin/sh) ended with status 7 and says: no such pool"


def test_a_hook_that_prints_for_ever_is_ended_with_all_that_it_began(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "_HOOK_TIMEOUT", 0.3)
    words = f"sleep 20 & echo $! >{tmp_path}/pid; while :; do echo x; done"
    with pytest.raises(RadianceError) as failed:
        drain.hook(Run(), "before_drain", ["/bin/sh", "-c", words])
    assert failed.value.text == "The hook before_drain (/bin/sh) had not ended after 0.3 s, and was ended."
    stat = pathlib.Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    for _turn in range(100):
        if not stat.exists() or ") Z " in stat.read_text():
            break
        time.sleep(0.05)
    else:
        raise AssertionError("what it began runs on")
