# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: file_changes
short_description: Which files differ, each with its diff
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Secrets are masked in the diffs.
positional: _input, after, names, host, target_dir
options:
  _input:
    description:
      - The texts before.
    type: dict
    required: true
  after:
    description:
      - The texts after.
    type: dict
    required: true
  names:
    description:
      - The names of the files, as P(kvfleet.radiance.file_names#filter) gives them.
    type: dict
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
  target_dir:
    description:
      - The directory on the host that holds the copies.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show the diffs
  ansible.builtin.debug:
    msg: "{{ texts | kvfleet.radiance.file_changes(begun, names, host, '/srv/radiance') | map(attribute='diff') }}"
"""

RETURN = r"""
_value:
  description:
    - Of each that differs V(side), V(kind), V(path), V(text) and V(diff).
  type: list
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._taken_over import file_changes


class FilterModule:
    """The file_changes filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"file_changes": as_filter(file_changes)}
