# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: way_back
short_description: Where a roll-back leads
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Reads the record and names the pair and shape that ran before, or that a line put in force.
positional: _input, to
options:
  _input:
    description:
      - The record of the service.
    type: list
    elements: dict
    required: true
  to:
    description:
      - V(previous), or the id of a line of the record.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Tell where a roll-back would lead
  ansible.builtin.debug:
    msg: "{{ record | kvfleet.radiance.way_back('previous') }}"
"""

RETURN = r"""
_value:
  description:
    - V(to) the pair and shape, V(image) the reference of its image (none where the line has none), V(returns_to) the id
      of the line, V(says) a sentence, V(ran) whether it ever served, V(objection) empty; or V(objection) alone, with
      its V(code), where there is no such way.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._history import way_back_or_objection


class FilterModule:
    """The way_back filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"way_back": as_filter(way_back_or_objection)}
