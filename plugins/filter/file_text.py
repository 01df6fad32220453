# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: file_text
short_description: A file of ours, or our block in somebody's file
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - A file that is absent or ours is written whole. Of one that was adopted every line outside of its block stays.
positional: _input, kind, service, host, current
options:
  _input:
    description:
      - The whole file, as it would be where it is ours.
    type: str
    required: true
  kind:
    description:
      - V(serve) or V(bats).
    type: str
    required: true
  service:
    description:
      - The service.
    type: dict
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
  current:
    description:
      - The text that is there.
    type: str
"""

EXAMPLES = r"""
- name: Show the serve script
  ansible.builtin.debug:
    msg: "{{ whole | kvfleet.radiance.file_text('serve', service, inventory_hostname, current) }}"
"""

RETURN = r"""
_value:
  description:
    - The text of the file.
  type: str
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._managed_text import file_text


class FilterModule:
    """The file_text filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"file_text": as_filter(file_text)}
