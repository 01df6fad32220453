# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.module_utils._errors import RadianceError
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._probation import probation_seconds, probation_words
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._request import request_objection


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("0", 0), (0, 0), ("168h", 604800), ("", None)]
)
def test_a_time(text: t.Any, seconds: int | None) -> None:
    assert probation_seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["2", 2, "2 h", "1.5h", "-1h", "+1h", "0s", "02h", "2H", "2d", "169h", "٢h", True, "2h\n"]
)
def test_what_is_no_time_is_refused(text: t.Any) -> None:
    with pytest.raises(RadianceError) as found:
        probation_seconds(text)
    assert found.value.code == "probation_unreadable"


def test_a_plain_process_has_nobody_who_watches_it() -> None:
    unit = {"name": "flashnext", "manager": "systemd"}
    assert probation_words({"probation": "2h"}, [unit]) == ""
    assert "flashnext is a plain process" in probation_words({"probation": "2h"}, [{"name": "flashnext"}])
    assert probation_words({"probation": "0"}, [{"name": "flashnext"}]) == ""
    assert "Write a whole number with its unit" in request_objection({"probation": "2"}, [unit], "dankserver")
