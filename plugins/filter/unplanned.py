# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: unplanned
short_description: The hosts of which a service could not be planned
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - By what is known of each host when all are planned.
positional: _input, outcomes
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
"""

EXAMPLES = r"""
- name: End where there are some
  ansible.builtin.assert:
    that: planned | kvfleet.radiance.unplanned(outcomes) | length == 0
"""

RETURN = r"""
_value:
  description:
    - Names of hosts.
  type: list
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._fleet_table import unplanned


class FilterModule:
    """The unplanned filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"unplanned": as_filter(unplanned)}
