# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: boot_tried
short_description: Whether a switch tried a boot on its plan
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Predictions are judged by a boot. A switch that was refused, or failed, before it started anything tried none.
positional: _input
options:
  _input:
    description:
      - The state of the run, as the role keeps it.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Judge the predictions
  ansible.builtin.include_role:
    name: kvfleet.radiance.endpoint
    tasks_from: verify
  when: endpoint_run | kvfleet.radiance.boot_tried
"""

RETURN = r"""
_value:
  description:
    - Whether there is a boot to judge by.
  type: bool
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._summary import boot_tried


class FilterModule:
    """The boot_tried filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"boot_tried": as_filter(boot_tried)}
