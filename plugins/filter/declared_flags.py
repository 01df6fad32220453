# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: declared_flags
short_description: Further engine flags that a service states
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - The address that the engine binds, then the service's V(flags).
positional: _input
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the flags
  ansible.builtin.debug:
    msg: "{{ endpoint_services[0] | kvfleet.radiance.declared_flags }}"
"""

RETURN = r"""
_value:
  description:
    - Flag without dashes to its text.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._files import declared_flags
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The declared_flags filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"declared_flags": as_filter(declared_flags)}
