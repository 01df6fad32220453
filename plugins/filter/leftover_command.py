# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: leftover_command
short_description: The words that remove a container which was left behind
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - A client that was killed leaves its container. Podman's is replaced by the start itself, docker's is not.
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
    msg: "{{ endpoint_services[0] | kvfleet.radiance.leftover_command | map('quote') | join(' ') }}"
"""

RETURN = r"""
_value:
  description:
    - A list of words, empty where nothing has to be removed.
  type: list
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._service import leftover_command


class FilterModule:
    """The leftover_command filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"leftover_command": as_filter(leftover_command)}
