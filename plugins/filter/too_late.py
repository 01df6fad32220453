# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: too_late
short_description: Why a switch is not begun any more
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Judged by the clock of the controller, at this moment.
positional: _input, until
options:
  _input:
    description:
      - What P(kvfleet.radiance.time_needed#filter) returned; null needs no time.
    type: dict
    required: true
  until:
    description:
      - What P(kvfleet.radiance.deadline#filter) returned; null bounds nothing.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Look at the clock
  ansible.builtin.assert:
    that: needed | kvfleet.radiance.too_late(endpoint_not_after) == ""
"""

RETURN = r"""
_value:
  description:
    - A sentence, empty where it ends in time.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._not_after import too_late


class FilterModule:
    """The too_late filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"too_late": as_filter(too_late)}
