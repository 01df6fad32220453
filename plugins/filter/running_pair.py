# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: running_pair
short_description: The pair and shape that a running process was started with
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Read from the flags in its ledger. A flag that it was not given is null.
positional: _input
options:
  _input:
    description:
      - The ledger of the running boot.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the pair
  ansible.builtin.debug:
    msg: "{{ boot.ledger | kvfleet.radiance.running_pair }}"
"""

RETURN = r"""
_value:
  description:
    - The pair and shape.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._drift import running_pair
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The running_pair filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"running_pair": as_filter(running_pair)}
