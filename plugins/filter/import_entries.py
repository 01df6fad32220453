# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: import_entries
short_description: The lines of the record for a file of past measurements and verdicts
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Reads YAML or JSON on the controller, strictly. A list of arms, or a dictionary with the lists V(arms) and
    V(verdicts). The first item that is off is named by its number.
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
    lines: "{{ ('arms.yml' | kvfleet.radiance.import_entries('flashnext', inventory_hostname)).entries }}"
"""

RETURN = r"""
_value:
  description:
    - V(entries), the lines, or V(objection), why the file is not taken.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._import_file import import_or_objection


class FilterModule:
    """The import_entries filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"import_entries": as_filter(import_or_objection)}
