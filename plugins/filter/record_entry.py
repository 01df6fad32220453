# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: record_entry
short_description: A line of the record
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Stamps it with the time and its id, and refuses one that the schema does not allow.
positional: _input, kind, host, service, attempt, record
options:
  _input:
    description:
      - The own fields of its kind.
    type: dict
    required: true
  kind:
    description:
      - V(planned), V(switched), V(rolled_back), V(probed), V(verdict) or V(rollback).
    type: str
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
      - Id of the attempt that the line belongs to.
    type: str
  record:
    description:
      - The record; the same line of an attempt that has not ended yet is taken from there.
    type: list
    elements: dict
"""

EXAMPLES = r"""
- name: Make the line of a plan
  ansible.builtin.set_fact:
    line: "{{ own | kvfleet.radiance.record_entry('planned', inventory_hostname, 'flashnext', 'a0b1c2d3e4f5') }}"
  vars:
    own:
      plan: "{{ plan }}"
      request: "{{ request }}"
"""

RETURN = r"""
_value:
  description:
    - The line.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._history import record_entry


class FilterModule:
    """The record_entry filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"record_entry": as_filter(record_entry)}
