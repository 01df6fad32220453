# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: probation_seconds
short_description: How many seconds a pair is on probation, from what a command asks
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Reads V(90s), V(30m), V(2h) or V(0), and nothing else.
options:
  _input:
    description:
      - What the command asks; null or empty asks nothing.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Two hours
  ansible.builtin.debug:
    msg: "{{ '2h' | kvfleet.radiance.probation_seconds }}"
"""

RETURN = r"""
_value:
  description:
    - Seconds, null where nothing is asked.
  type: int
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._probation import probation_seconds


class FilterModule:
    """The probation_seconds filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"probation_seconds": as_filter(probation_seconds)}
