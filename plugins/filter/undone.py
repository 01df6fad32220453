# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: undone
short_description: What a host has come to after its undoing
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Each service that was returned has the word V(rolled_back).
positional: _input, came, because
options:
  _input:
    description:
      - What the host had come to.
    type: dict
    required: true
  came:
    description:
      - Outcomes of the services that were returned.
    type: list
    elements: dict
    required: true
  because:
    description:
      - Why they were.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Keep what was undone
  ansible.builtin.set_fact:
    endpoint_outcome: "{{ endpoint_outcome | kvfleet.radiance.undone(endpoint_done, 'c ended refused') }}"
"""

RETURN = r"""
_value:
  description:
    - V(word), V(says), V(services) and V(undone).
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._undo import undone


class FilterModule:
    """The undone filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"undone": as_filter(undone)}
