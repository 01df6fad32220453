# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: fleet_table
short_description: The plans of many hosts in one table
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - A service a line; what could not be planned stands below with its code.
positional: _input, outcomes, until
options:
  _input:
    description:
      - Each host and its runs that have a plan.
    type: dict
    required: true
  outcomes:
    description:
      - Each host and what could not be planned of it.
    type: dict
    required: true
  until:
    description:
      - What P(kvfleet.radiance.deadline#filter) returned; null bounds nothing.
    type: dict
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ planned | kvfleet.radiance.fleet_table(outcomes) | join('\\n') }}"
"""

RETURN = r"""
_value:
  description:
    - Lines.
  type: list
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._fleet_table import fleet_table


class FilterModule:
    """The fleet_table filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"fleet_table": as_filter(fleet_table)}
