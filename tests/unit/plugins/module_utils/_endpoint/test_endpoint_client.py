# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client against servers that misbehave: every outcome is a result, in time, without the key."""

from __future__ import annotations

import socket
import threading
import time
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import client
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.bodies import TEXT, json_body
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.endpoint_server import (
    Call,
    sends,
    serving,
)

KEY = "sk-very-secret-key"


class Words:
    """A text in two pieces."""

    chars = 11

    def parts(self) -> t.Iterator[str]:
        yield "hello "
        yield "world"


def test_a_plain_get() -> None:
    with serving({"/health": sends({"status": "ok", "in_flight": 2})}) as server:
        reply = client.get(server.url, "/health", timeout=5)
    assert reply.ok
    assert reply.json() == {"status": "ok", "in_flight": 2}


def test_the_key_goes_only_where_it_is_asked_for() -> None:
    with serving({"/health": sends({}), "/ping": sends({}), "/load": sends({})}) as server:
        for path in ("/health", "/ping", "/load"):
            client.get(server.url, path, timeout=5, api_key=KEY)
        sent = {path: headers.get("Authorization") for _method, path, headers, _body in server.requests}
    assert sent == {"/health": None, "/ping": None, "/load": "Bearer sk-very-secret-key"}


def test_a_server_that_repeats_the_key_does_not_spread_it() -> None:
    answers = {"/load": sends({"error": {"message": f"invalid api key {KEY}"}}, status=401)}
    with serving(answers) as server:
        reply = client.get(server.url, "/load", timeout=5, api_key=KEY)
    assert reply.status == 401
    assert reply.json() == {"error": {"message": "invalid api key ***"}}


@pytest.mark.parametrize(
    "written",
    [
        r"sk-ab\/cd\"ef-1234",
        r"sk-ab\u002Fcd\u0022ef-1234",
        r"sk-ab\\\/cd\\\"ef-1234",
        "sk-ab%2Fcd%22ef-1234",
        "sk-ab/cd&#34;ef-1234",
    ],
)
def test_a_key_that_comes_back_in_another_form_is_not_spread_either(written: str) -> None:
    with serving({"/load": sends(b'{"says": "' + written.encode() + b'"}')}) as server:
        reply = client.get(server.url, "/load", timeout=5, api_key='sk-ab/cd"ef-1234')
    assert reply.json() == {"says": "***"}


def test_a_deadline_of_any_length() -> None:
    with serving({"/load": sends({})}) as server:
        assert client.get(server.url, "/load", timeout=1e12).ok


def test_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        reply = client.get(f"http://127.0.0.1:{unused.getsockname()[1]}", "/health", timeout=5)
    assert reply.status is None
    assert reply.fault is not None
    assert reply.fault.code == "not_listening"


def test_a_drip_does_not_pass_the_deadline() -> None:
    def drip(call: Call) -> None:
        call.send_response(200)
        call.send_header("Content-Length", "1000")
        call.end_headers()
        for _piece in range(40):
            call.wfile.write(b"x")
            call.wfile.flush()
            time.sleep(0.05)

    with serving({"/health": drip}) as server:
        started = time.monotonic()
        reply = client.get(server.url, "/health", timeout=0.4)
        took = time.monotonic() - started
    assert reply.fault is not None
    assert reply.fault.code == "timeout"
    assert 0.35 < took < 0.9


def test_dripping_headers_do_not_pass_the_deadline() -> None:
    def drip(call: Call) -> None:
        for _piece in range(40):
            call.wfile.write(b"H")
            call.wfile.flush()
            time.sleep(0.05)

    with serving({"/health": drip}) as server:
        started = time.monotonic()
        reply = client.get(server.url, "/health", timeout=0.4)
        took = time.monotonic() - started
    assert reply.fault is not None
    assert reply.fault.code == "timeout"
    assert took < 0.9


def test_a_flood_is_not_read() -> None:
    with serving({"/stats": sends(b"x" * 300_000)}) as server:
        reply = client.get(server.url, "/stats", timeout=5, limit=100_000)
    assert reply.fault is not None
    assert reply.fault.code == "too_large"
    assert "100,000 bytes" in reply.fault.text
    assert len(reply.body) <= 100_000


def test_a_redirect_is_not_followed() -> None:
    answers = {"/load": sends({}, status=302, headers={"Location": "/elsewhere"}), "/elsewhere": sends({})}
    with serving(answers) as server:
        reply = client.get(server.url, "/load", timeout=5, api_key=KEY)
        paths = [path for _method, path, _headers, _body in server.requests]
    assert reply.fault is not None
    assert reply.fault.code == "redirect"
    assert paths == ["/load"]


def test_a_reply_that_ends_early_is_cut() -> None:
    def cut(call: Call) -> None:
        call.send_response(200)
        call.send_header("Content-Length", "1000")
        call.end_headers()
        call.wfile.write(b'{"status":')

    with serving({"/health": cut}) as server:
        reply = client.get(server.url, "/health", timeout=5)
    assert not reply.ok
    assert reply.fault is not None
    assert reply.fault.code == "cut"


def test_another_protocol_is_named() -> None:
    with serving({"/health": lambda call: t.cast(None, call.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n"))}) as server:
        reply = client.get(server.url, "/health", timeout=5)
    assert reply.fault is not None
    assert reply.fault.code == "not_http"


@pytest.mark.parametrize(
    "endpoint",
    [
        "127.0.0.1:8000",
        "ftp://127.0.0.1",
        "http://",
        "http://127.0.0.1:99999999",
        "http://user:secretword@127.0.0.1:8000",
        "http://127.0.0.1:8000/v1",
        "http://127.0.0.1:8000/v1/",
        "http://127.0.0.1:8000/?a=b",
        "http://127.0.0.1:8000/a b",
    ],
)
def test_what_is_no_base_url_is_refused(endpoint: str) -> None:
    with pytest.raises(RadianceError) as caught:
        client.Client(endpoint)
    assert caught.value.code == "endpoint_unusable"
    assert "secretword" not in caught.value.text


def test_an_endpoint_below_a_path() -> None:
    with serving({"/gateway/health": sends({"status": "ok"})}) as server:
        assert client.get(server.url + "/gateway/", "/health", timeout=5).ok


def test_a_text_is_sent_in_pieces_and_arrives_whole() -> None:
    body = json_body({"model": "m", "prompt": TEXT, "max_tokens": 1}, Words())
    with serving({"/v1/completions": sends({})}) as server:
        assert client.Client(server.url).post("/v1/completions", body).ok
        sent = server.requests[0][3]
    assert sent == {"model": "m", "prompt": "hello world", "max_tokens": 1}
    assert body.length == len(b"".join(body.parts()))


def test_events_arrive_with_their_times() -> None:
    def events(call: Call) -> None:
        call.begin_events()
        call.event({"n": 1})
        call.event({"n": 2}, after=0.2)
        call.event("not json")
        call.wfile.write(b": a comment\n\nevent: x\n")
        call.event("[DONE]")
        call.event({"n": 3})

    with serving({"/v1/completions": events}) as server:
        stream = client.Client(server.url).stream("/v1/completions", json_body({}))
        got = list(stream)
    assert [event.data for event in got] == [{"n": 1}, {"n": 2}, None]
    assert 0.15 < got[1].at - got[0].at < 0.5
    assert stream.started <= got[0].at <= got[1].at <= stream.ended
    assert stream.finished
    assert stream.fault is None


def test_a_stream_without_its_end_is_not_finished() -> None:
    def events(call: Call) -> None:
        call.begin_events()
        call.event({"n": 1})

    with serving({"/v1/completions": events}) as server:
        stream = client.Client(server.url).stream("/v1/completions", json_body({}))
        assert [event.data for event in stream] == [{"n": 1}]
    assert not stream.finished


def test_a_last_event_without_its_newline_counts() -> None:
    def events(call: Call) -> None:
        call.begin_events()
        call.wfile.write(b"data: [DONE]")

    with serving({"/v1/completions": events}) as server:
        stream = client.Client(server.url).stream("/v1/completions", json_body({}))
        assert list(stream) == []
    assert stream.finished


def test_an_error_instead_of_a_stream_is_kept() -> None:
    with serving({"/v1/completions": sends({"error": {"message": "no"}}, status=429)}) as server:
        stream = client.Client(server.url).stream("/v1/completions", json_body({}))
        assert list(stream) == []
    assert stream.status == 429
    assert stream.reply().json() == {"error": {"message": "no"}}


def test_a_dripping_stream_ends_at_the_deadline() -> None:
    def events(call: Call) -> None:
        call.begin_events()
        for n in range(40):
            call.event({"n": n}, after=0.05)

    with serving({"/v1/completions": events}) as server:
        stream = client.Client(server.url).stream("/v1/completions", json_body({}), timeout=0.4)
        got = list(stream)
    assert 3 <= len(got) <= 10
    assert stream.fault is not None
    assert stream.fault.code == "timeout"


def test_a_silent_stream_can_be_given_up() -> None:
    given_up = threading.Event()

    def silence(call: Call) -> None:
        call.begin_events()
        time.sleep(3)

    with serving({"/v1/completions": silence}) as server:
        stream = client.Client(server.url).stream("/v1/completions", json_body({}), timeout=30, cancel=given_up)
        threading.Timer(0.2, given_up.set).start()
        started = time.monotonic()
        assert list(stream) == []
        assert time.monotonic() - started < 1.0
    assert stream.fault is not None
    assert stream.fault.code == "cancelled"


def test_an_event_without_end_is_not_kept() -> None:
    def flood(call: Call) -> None:
        call.begin_events()
        call.wfile.write(b"data: ")
        for _piece in range(40):
            call.wfile.write(b"x" * 100_000)

    with serving({"/v1/completions": flood}) as server:
        stream = client.Client(server.url).stream("/v1/completions", json_body({}), timeout=10)
        assert list(stream) == []
    assert stream.fault is not None
    assert stream.fault.code == "too_large"


def test_a_refusal_before_the_body_was_read_is_still_heard() -> None:
    def refuse(listener: socket.socket) -> None:
        accepted, _where = listener.accept()
        with accepted:
            accepted.recv(1024)
            accepted.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
            accepted.shutdown(socket.SHUT_WR)
            while accepted.recv(65536):
                pass

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=refuse, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        body = json_body({"prompt": "x" * 2_000_000})
        reply = client.Client(url, timeout=5).post("/v1/completions", body)
        thread.join()
    assert reply.status == 413


def test_broken_json_is_none() -> None:
    assert client.parse_json(b"{") is None
    assert client.parse_json(b"\xff\xfe") is None
    assert client.parse_json(b"[" * 200_000) is None
