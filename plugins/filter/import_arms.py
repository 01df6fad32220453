# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: import_arms
short_description: The lines of the record for a file of arms
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Reads YAML or JSON on the controller, a list of arms, strictly. The first item that is off is named by its number.
positional: _input, service, host
options:
  _input:
    description:
      - Path of the file.
    type: path
    required: true
  service:
    description:
      - Name of the service.
    type: str
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Make the lines
  ansible.builtin.set_fact:
    lines: "{{ ('arms.yml' | kvfleet.radiance.import_arms('flashnext', inventory_hostname)).entries }}"
"""

RETURN = r"""
_value:
  description:
    - V(entries), the lines, or V(objection), why the file is not taken.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._arm_import import import_or_objection
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter


class FilterModule:
    """The import_arms filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"import_arms": as_filter(import_or_objection)}
