# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: known_arms
short_description: The arms of a service, declared ones and those on record
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - As M(kvfleet.radiance.pair_plan) takes them, declared ones first, then the oldest on record.
positional: _input, record
options:
  _input:
    description:
      - An item of C(endpoint_services).
    type: dict
    required: true
  record:
    description:
      - The record of the service.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what was measured
  ansible.builtin.debug:
    msg: "{{ endpoint_service | kvfleet.radiance.known_arms(record) }}"
"""

RETURN = r"""
_value:
  description:
    - The arms.
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._arms import known_arms
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The known_arms filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"known_arms": as_filter(known_arms)}
