# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: chosen_services
short_description: The services that a command means
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - One by its name, or all of them. A name that the host does not declare is refused.
positional: _input, name
options:
  _input:
    description:
      - Declared services.
    type: list
    elements: dict
    required: true
  name:
    description:
      - Name of one service; empty for all.
    type: str
"""

EXAMPLES = r"""
- name: Show the names
  ansible.builtin.debug:
    msg: "{{ endpoint_services | kvfleet.radiance.chosen_services('flashnext') | map(attribute='name') }}"
"""

RETURN = r"""
_value:
  description:
    - The services.
  type: list
  elements: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._request import chosen


class FilterModule:
    """The chosen_services filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"chosen_services": as_filter(chosen)}
