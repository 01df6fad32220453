# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Only a boot that was tried is judged."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._summary import boot_tried


@pytest.mark.parametrize(
    ("failure", "phases", "tried"),
    [
        (None, [], True),
        ({"word": "refused"}, ["lock", "precheck"], False),
        ({"word": "refused"}, None, False),
        ({"word": "rolled_back"}, ["lock", "precheck", "stop", "restore", "start", "ready"], False),
        ({"word": "rolled_back"}, ["precheck", "stop", "swap", "start", "ready", "restore", "start", "ready"], True),
        ({"word": "not_serving"}, ["precheck", "stop", "swap", "start"], True),
    ],
)
def test_a_boot_was_tried_where_something_started_before_the_old_pair_came_back(
    failure: t.Any, phases: list[str] | None, tried: bool
) -> None:
    switched = {} if phases is None else {"phases": [{"name": name} for name in phases]}
    assert boot_tried({"failure": failure, "switched": switched}) is tried


def test_what_was_only_read_is_judged_by_its_boot() -> None:
    assert boot_tried({"ledger": {}})
