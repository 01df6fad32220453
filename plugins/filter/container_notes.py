# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: container_notes
short_description: What the options of a container lack, or have, that an engine stumbles over
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Devices, the seccomp profile, groups by number and the limit of locked memory, and volumes that are relabelled at
    each start.
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what the container lacks
  ansible.builtin.debug:
    msg: "{{ endpoint_services[0] | kvfleet.radiance.container_notes }}"
"""

RETURN = r"""
_value:
  description:
    - Sentences, none for a service without a container.
  type: list
  elements: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._container_notes import container_notes
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The container_notes filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"container_notes": as_filter(container_notes)}
