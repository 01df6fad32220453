# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets these tests import the rehearsal engine, which shares no code with the collection."""

from __future__ import annotations

import pathlib
import sys

REHEARSAL = pathlib.Path(__file__).resolve().parents[3] / "extensions" / "rehearsal"
sys.path[:0] = [str(REHEARSAL), str(pathlib.Path(__file__).parent)]
