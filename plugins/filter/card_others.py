# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: card_others
short_description: The other services on the cards of one
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - For O(kvfleet.radiance.service_switch#module:others).
positional: _input, services, host, target, reserved
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  services:
    description:
      - All services of the host.
    type: list
    elements: dict
    required: true
  host:
    description:
      - Name of the host in the inventory.
    type: str
    required: true
  target:
    description:
      - Directory of the files on the host.
    type: str
    required: true
  reserved:
    description:
      - What is reserved for others, a list of C(card), C(mib) and C(reason).
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Show who else is declared on the cards of the first service
  ansible.builtin.debug:
    msg: "{{ endpoint_services[0] | kvfleet.radiance.card_others(endpoint_services, inventory_hostname, '/srv/x') }}"
"""

RETURN = r"""
_value:
  description:
    - One item for each, with the options of the module.
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._handover import card_others


class FilterModule:
    """The card_others filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"card_others": as_filter(card_others)}
