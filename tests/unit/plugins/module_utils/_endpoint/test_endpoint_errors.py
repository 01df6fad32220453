# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fails a probe as a module, and what is waited for instead."""

from __future__ import annotations

import socket
import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint import boundary, calibration, rates
from ansible_collections.kvfleet.radiance.plugins.module_utils._endpoint.options import read
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.endpoint_server import Call
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_endpoint import Small
from ansible_collections.kvfleet.radiance.tests.unit.plugins.module_utils._endpoint.small_probes import honest, run

KEY = "sk-very-secret-key"


@pytest.mark.parametrize("probe", [calibration.probe, boundary.probe, rates.probe])
def test_a_wrong_key_is_an_error_and_a_right_one_is_sent(probe: t.Any) -> None:
    small = Small(window=60_000, sequences=1)
    small.key, small.timings, small.prefill_tps = KEY, honest, 400_000.0
    small.decode_tps = 20_000.0
    with pytest.raises(RadianceError) as caught:
        run(small, probe, key="sk-another-secret")
    assert caught.value.code == "wrong_key"
    assert "sk-another-secret" not in caught.value.text
    assert run(small, probe, key=KEY)[0]


@pytest.mark.parametrize("probe", [calibration.probe, boundary.probe, rates.probe])
def test_nothing_listening_is_an_error(probe: t.Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(RadianceError) as caught:
            probe(read({"endpoint": f"http://127.0.0.1:{port}", "model": None, "timeout": 5}, None))
    assert caught.value.code == "not_listening"
    assert f"http://127.0.0.1:{port}" in caught.value.text


def test_a_model_that_is_not_served_is_an_error() -> None:
    with pytest.raises(RadianceError) as caught:
        run(Small(), boundary.probe, model="large")
    assert caught.value.code == "model_unknown"
    assert "serves small" in caught.value.text


def test_what_an_endpoint_says_of_itself_is_shown_in_bounds() -> None:
    small = Small()
    with small.serving() as server:
        server.answers["/v1/models"] = lambda call: call.reply({"data": [{"id": "\x1b[31m" + "m" * 100_000}]})
        with pytest.raises(RadianceError) as caught:
            calibration.probe(read({"endpoint": server.url, "model": "another", "timeout": 10}, None))
    assert caught.value.code == "model_unknown"
    assert caught.value.text.startswith("The endpoint serves [31mmmm")
    assert len(caught.value.text) < 500


@pytest.mark.parametrize(("window", "sequences"), [(10**12, 3), (6000, 10**12), (-1, 0), ("6000", True)])
def test_a_shape_that_nothing_serves_is_none(window: t.Any, sequences: t.Any) -> None:
    small = Small(window=window, sequences=sequences)
    with small.serving() as server, pytest.raises(RadianceError) as caught:
        boundary.probe(read({"endpoint": server.url, "model": None, "timeout": 10}, None))
    assert caught.value.code == "shape_unknown"
    assert small.completions == 0


def test_a_loading_endpoint_is_waited_for_and_then_inconclusive() -> None:
    small = Small(together=3)
    with small.serving() as server:
        server.answers["/health"] = lambda call: call.reply({"error": {"message": "Loading model"}}, status=503)
        params = {"endpoint": server.url, "model": None, "timeout": 1, "chars_per_token": 2.5}
        found = boundary.probe(read(params, None))["boundary"]
        assert found["verdict"] == "inconclusive"
        assert "not ready after 1 s: Loading model" in found["says"]
        asked: list[int] = []

        def soon(call: Call) -> None:
            asked.append(1)
            call.reply({"status": "loading" if len(asked) < 3 else "ok"}, status=503 if len(asked) < 3 else 200)

        server.answers["/health"] = soon
        assert boundary.probe(read({**params, "timeout": 10}, None))["boundary"]["verdict"] == "passed"
