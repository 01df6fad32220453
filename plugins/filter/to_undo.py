# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: to_undo
short_description: What of a host is returned to what ran before, after a stop
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - What this run has switched, where that is declared and another host has no good outcome.
positional: _input, outcomes, after_stop
options:
  _input:
    description:
      - Inventory name of the host.
    type: str
    required: true
  outcomes:
    description:
      - Each host of the run in its order, and what it has come to so far.
    type: dict
    required: true
  after_stop:
    description:
      - What is declared.
    type: str
    choices: [leave, undo]
    required: true
"""

EXAMPLES = r"""
- name: See what is to be undone here
  ansible.builtin.set_fact:
    endpoint_undoing: "{{ inventory_hostname | kvfleet.radiance.to_undo(outcomes, 'undo') }}"
"""

RETURN = r"""
_value:
  description:
    - V(services), the last one first, and V(because); empty where there is none.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._undo import to_undo


class FilterModule:
    """The to_undo filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"to_undo": as_filter(to_undo)}
