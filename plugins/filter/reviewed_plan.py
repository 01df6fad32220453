# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: reviewed_plan
short_description: The item of a plan file for a host and a service
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Refuses a file that is no plan file, or that plans something else.
positional: _input, host, service
options:
  _input:
    description:
      - Path of the plan file on the controller.
    type: path
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
"""

EXAMPLES = r"""
- name: Read a reviewed plan
  ansible.builtin.set_fact:
    reviewed: "{{ 'plan.json' | kvfleet.radiance.reviewed_plan(inventory_hostname, 'flashnext') }}"
"""

RETURN = r"""
_value:
  description:
    - V(host), V(service), V(request) and V(plan).
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._plan_file import reviewed_plan


class FilterModule:
    """The reviewed_plan filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"reviewed_plan": as_filter(reviewed_plan)}
