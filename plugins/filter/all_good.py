# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: all_good
short_description: Whether a further host may start
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - True while every host is either planned or has come to a good end.
positional: _input
options:
  _input:
    description:
      - The outcome of each host of the run, none for a host that has none.
    type: list
    elements: raw
    required: true
"""

EXAMPLES = r"""
- name: Stop the fleet
  ansible.builtin.assert:
    that: outcomes | kvfleet.radiance.all_good
"""

RETURN = r"""
_value:
  description:
    - Whether it may.
  type: bool
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._summary import all_good


class FilterModule:
    """The all_good filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"all_good": as_filter(all_good)}
