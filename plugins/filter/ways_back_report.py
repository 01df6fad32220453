# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: ways_back_report
short_description: What there is to return to, for a person to read
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Each pair that served, the newest first, with its image and whether it can be had.
positional: _input, service, host, about
options:
  _input:
    description:
      - The record of the service.
    type: list
    elements: dict
    required: true
  service:
    description:
      - An item of C(endpoint_services).
    type: dict
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
  about:
    description:
      - V(unread), V(looked) and V(undo).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ record | kvfleet.radiance.ways_back_report(endpoint_service, inventory_hostname, about) | join('\\n') }}"
"""

RETURN = r"""
_value:
  description:
    - Lines.
  type: list
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._ways_back import ways_back_report


class FilterModule:
    """The ways_back_report filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"ways_back_report": as_filter(ways_back_report)}
