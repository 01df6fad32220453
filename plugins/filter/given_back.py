# Copyright: kvfleet.radiance maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: given_back
short_description: Files that were adopted without what is ours in them
version_added: 0.1.0
author:
  - kvfleet.radiance maintainers
description:
  - Of the env the assignments stay, and every other line of each file.
positional: _input, texts, host
options:
  _input:
    description:
      - The service.
    type: dict
    required: true
  texts:
    description:
      - V(fleet) and V(target), each with the texts of its files, empty where there is none.
    type: dict
    required: true
  host:
    description:
      - Inventory name of the host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Give the files back
  ansible.builtin.set_fact:
    theirs: "{{ service | kvfleet.radiance.given_back(texts, inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description:
    - The texts, as they came. A file of the gates that is ours as a whole has none.
  type: dict
"""

import typing as t

from ansible_collections.kvfleet.radiance.plugins.plugin_utils._filters import as_filter
from ansible_collections.kvfleet.radiance.plugins.plugin_utils._taken_over import given_back


class FilterModule:
    """The given_back filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Name to function."""
        return {"given_back": as_filter(given_back)}
