# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: engine_command
short_description: The words that start the engine, up to its image or its first flag
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - The command of the service, or that of its container runtime with the options that the switch relies on.
  - Options of a container that would hide it from the switch, hide its boot or show a secret are an error.
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the command
  ansible.builtin.debug:
    msg: "{{ endpoint_services[0] | kvfleet.radiance.engine_command | map('quote') | join(' ') }}"
"""

RETURN = r"""
_value:
  description:
    - A list of words.
  type: list
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._service import engine_command


class FilterModule:
    """The engine_command filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"engine_command": as_filter(engine_command)}
