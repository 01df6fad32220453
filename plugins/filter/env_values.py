# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: env_values
short_description: The values of a service's env for a pair and shape
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - What is neither pair nor shape stays as the env in force has it.
positional: _input, to, in_force, host_pool_mib, image
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  to:
    description:
      - The pair and shape.
    type: dict
    required: true
  in_force:
    description:
      - Values of the env in force.
    type: dict
  host_pool_mib:
    description:
      - A new size of the pinned pool.
    type: raw
  image:
    description:
      - Another image, where one is asked for.
    type: str
"""

EXAMPLES = r"""
- name: Show the values
  ansible.builtin.debug:
    msg: "{{ endpoint_services[0] | kvfleet.radiance.env_values(plan.to) }}"
"""

RETURN = r"""
_value:
  description:
    - Name to value, in the order of the file.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._files import env_values
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The env_values filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"env_values": as_filter(env_values)}
