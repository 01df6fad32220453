# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_file
short_description: The content of a plan file
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Collects the plans of several hosts.
positional: _input
options:
  _input:
    description:
      - Each host and its runs that have a plan.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the plan file
  ansible.builtin.debug:
    msg: "{{ {inventory_hostname: endpoint_planned} | kvfleet.radiance.plan_file }}"
"""

RETURN = r"""
_value:
  description:
    - V(schema) and V(plans).
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._plan_file import plan_file


class FilterModule:
    """The plan_file filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"plan_file": as_filter(plan_file)}
