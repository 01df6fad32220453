# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets plain ``pytest`` import the collection by its full name from any checkout.

ansible-test runs the same tests from a real collection tree and needs none of this.
"""

from __future__ import annotations

import pathlib
import sys

import hypothesis

# How long an example takes says how busy the machine is, not whether the code is right.
hypothesis.settings.register_profile("busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("busy")

_ROOT = pathlib.Path(__file__).resolve().parents[2]
if "ansible_collections" not in _ROOT.parts:
    sys.path.insert(0, str(_ROOT / "collections"))
