# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: probed_shape
short_description: The pair and shape that the probes ask a new boot for
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - All sequences, or as many as a pool below the contract was predicted to back.
options:
  _input:
    description:
      - The state of the run, as the role keeps it.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ endpoint_run | kvfleet.radiance.probed_shape }}"
"""

RETURN = r"""
_value:
  description:
    - Pair and shape.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._run import probed_shape


class FilterModule:
    """The probed_shape filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"probed_shape": as_filter(probed_shape)}
