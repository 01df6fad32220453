# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets plain ``pytest`` import the collection by its full name from any checkout.

ansible-test runs the same tests from a real collection tree and needs none of this.
"""

from __future__ import annotations

import os
import pathlib
import sys

import hypothesis
import pytest

# How long an example takes says how busy the machine is, not whether the code is right. Every run tries the same
# examples, so that what fails was changed; with EXAMPLES=1000 as many new ones. On the oldest Python a few of them tell
# whether it can run there at all.
hypothesis.settings.register_profile(
    "tests",
    deadline=None,
    derandomize="EXAMPLES" not in os.environ,
    max_examples=int(os.environ.get("EXAMPLES", 100 if sys.version_info >= (3, 10) else 20)),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("tests")

_ROOT = pathlib.Path(__file__).resolve().parents[2]
if "ansible_collections" not in _ROOT.parts:
    sys.path.insert(0, str(_ROOT / "collections"))


@pytest.fixture(autouse=True)
def _as_on_a_target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs on targets is tested as there, even after a test of a filter has imported the controller's code.

    ansible-core would show a module's warnings instead of returning them.
    """
    if {"modules", "module_utils"} & set(request.path.parts):
        monkeypatch.setattr("ansible.module_utils._internal.is_controller", False, raising=False)
