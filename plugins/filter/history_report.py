# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: history_report
short_description: The record of a service for a person to read
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Predicted beside measured over time, the score by quantity, and the arms, in 100 columns.
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
      - Where the record is from. V(unread) is why the one on the host could not be read, where it could not.
        V(imported) has V(file), V(added) and V(of), how many arms of how many of a file were put on record, or in
        V(check) mode would be.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ record | kvfleet.radiance.history_report(endpoint_service, inventory_hostname) | join('\n') }}"
"""

RETURN = r"""
_value:
  description:
    - The lines.
  type: list
  elements: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._history_report import history_report


class FilterModule:
    """The history_report filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"history_report": as_filter(history_report)}
