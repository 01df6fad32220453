# Copyright: kvfleet.radiance maintainers
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run has come to is on the screen before the fleet directory can refuse the file that says so."""

from __future__ import annotations

import pathlib

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_the_summary_is_shown_before_anything_is_written() -> None:
    names = [task["name"] for task in yaml.safe_load((ROOT / "roles/endpoint/tasks/summary.yml").read_text())]
    assert names[:4] == ["Sum up", "Show the summary", "Make our own folder", "Write summary.json"]
