# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: handover_notes
short_description: What a plan says of who else runs on the cards
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - What stays beside it, and what is stopped for it, with the command that hands the cards back.
positional: _input, others, plan, handover, undo
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  others:
    description:
      - What M(kvfleet.radiance.service_switch) told of those that run, its C(others).
    type: list
    elements: dict
    required: true
  plan:
    description:
      - The plan; beside a service that runs as well, a pair that is no larger has room.
    type: dict
    required: true
  handover:
    description:
      - Whether the cards are to be handed over.
    type: bool
    required: true
  undo:
    description:
      - The command that undoes the resize.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show what is stopped for it
  ansible.builtin.debug:
    msg: "{{ endpoint_service | kvfleet.radiance.handover_notes(switched.others, plan, true, endpoint_undo) }}"
"""

RETURN = r"""
_value:
  description:
    - Sentences.
  type: list
  elements: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._handover import handover_notes


class FilterModule:
    """The handover_notes filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"handover_notes": as_filter(handover_notes)}
