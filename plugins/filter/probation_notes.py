# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: probation_notes
short_description: What a plan says of probations
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - What became of the one in force, and what the one that is asked for does.
positional: _input, told, restart
options:
  _input:
    description:
      - What the command asks; null or empty asks nothing.
    type: raw
    required: true
  told:
    description:
      - What became of the one in force, empty where there is none.
    type: str
    required: true
  restart:
    description:
      - Whether the plan restarts.
    type: bool
    required: true
"""

EXAMPLES = r"""
- name: Show them
  ansible.builtin.debug:
    msg: "{{ '2h' | kvfleet.radiance.probation_notes('', true) }}"
"""

RETURN = r"""
_value:
  description:
    - Sentences.
  type: list
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._probation import probation_notes


class FilterModule:
    """The probation_notes filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"probation_notes": as_filter(probation_notes)}
