# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: deadline
short_description: The instant after which nothing shall be under way
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Reads a time of the day like V(06:00), the next one in the zone of the controller, or an ISO 8601 instant with its
    offset.
options:
  _input:
    description:
      - What the command asks; null or empty asks nothing.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Fix it
  ansible.builtin.set_fact:
    endpoint_not_after: "{{ '06:00' | kvfleet.radiance.deadline }}"
"""

RETURN = r"""
_value:
  description:
    - V(at) in words and V(epoch) in seconds; null where nothing is asked.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._not_after import deadline


class FilterModule:
    """The deadline filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"deadline": as_filter(deadline)}
