# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: verdict_report
short_description: Predictions beside measurements, and the four numbers of a resize
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - The first table has each prediction, what was measured, and its verdict. The second has what was asked, what
    is configured, what the engine printed, and what a probe saw.
positional: _input, verdicts, seen
options:
  _input:
    description:
      - The predictions of a plan.
    type: list
    elements: dict
    required: true
  verdicts:
    description:
      - Their verdicts, as P(kvfleet.radiance.verdicts#filter) returns them.
    type: list
    elements: dict
    required: true
  seen:
    description:
      - V(to), V(flags) of the live process, V(ledger) of its boot, and V(probes).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what became of the predictions
  ansible.builtin.debug:
    msg: "{{ plan.predictions | kvfleet.radiance.verdict_report(verdicts, seen) | join('\n') }}"
"""

RETURN = r"""
_value:
  description:
    - The lines of both tables.
  type: list
  elements: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._verdict_report import verdict_report


class FilterModule:
    """The verdict_report filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"verdict_report": as_filter(verdict_report)}
