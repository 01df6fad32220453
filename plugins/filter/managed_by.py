# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: managed_by
short_description: What starts a service, and where its boot is read
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Fills in what an item of C(endpoint_services) leaves out.
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the unit
  ansible.builtin.debug:
    msg: "{{ (endpoint_services[0] | kvfleet.radiance.managed_by).unit }}"
"""

RETURN = r"""
_value:
  description:
    - V(manager), V(scope) (system or user), V(unit) (none with a plain process), V(source), V(name)
      as the source knows it, V(container) (none without one).
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._service import managed_by


class FilterModule:
    """The managed_by filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"managed_by": as_filter(managed_by)}
