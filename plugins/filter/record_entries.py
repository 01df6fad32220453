# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: record_entries
short_description: The lines of the record at the end of an attempt
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - One for what the probes measured, if any ran, and one for each verdict that is not open.
positional: _input, predictions, probes, host, service, attempt
options:
  _input:
    description:
      - Verdicts, as P(kvfleet.radiance.verdicts#filter) returns them.
    type: list
    elements: dict
    required: true
  predictions:
    description:
      - The predictions of the plan.
    type: list
    elements: dict
    required: true
  probes:
    description:
      - V(calibration), V(boundary) and V(rates), as far as they ran.
    type: dict
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
  service:
    description:
      - Name of the service.
    type: str
    required: true
  attempt:
    description:
      - Id of the attempt.
    type: str
"""

EXAMPLES = r"""
- name: Make the lines
  ansible.builtin.set_fact:
    lines: "{{ verdicts | kvfleet.radiance.record_entries(predictions, probes, host, service, attempt) }}"
"""

RETURN = r"""
_value:
  description:
    - The lines.
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._history import record_entries


class FilterModule:
    """The record_entries filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"record_entries": as_filter(record_entries)}
