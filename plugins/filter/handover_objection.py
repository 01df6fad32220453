# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: handover_objection
short_description: Why a restart is refused for who else runs on the cards
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Refuses cards that another service holds, unless they are to be handed over.
positional: _input, others, plan, handover
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
"""

EXAMPLES = r"""
- name: Refuse cards that are taken
  ansible.builtin.assert:
    that: endpoint_service | kvfleet.radiance.handover_objection(switched.others, plan, false) == ''
"""

RETURN = r"""
_value:
  description:
    - A sentence, empty where nothing is refused.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._handover import handover_objection


class FilterModule:
    """The handover_objection filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"handover_objection": as_filter(handover_objection)}
