# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets plain ``pytest`` import the collection by its full name from any checkout.

ansible-test runs the same tests from a real collection tree and needs none of this.
"""

from __future__ import annotations

import pathlib
import sys

_ROOT = pathlib.Path(__file__).resolve().parents[2]
if "ansible_collections" not in _ROOT.parts:
    sys.path.insert(0, str(_ROOT / "collections"))
